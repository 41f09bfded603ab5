package lines

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/apollo-11/apollo11/wire"
	"github.com/apollo-11/apollo11/wire/mutant"
)

// Core is the state of all lines. It belongs to one goroutine.
type Core struct {
	autonomy time.Duration
	open     bool
	partners func(wire.LineKey) []wire.LineKey // Config.NeverWith
	lines    map[wire.LineKey]*line
	keys     []wire.LineKey // of lines, in the order of the map
	marks    map[wire.LineKey]uint64
	held     map[wire.LineKey]uint64 // by the number of who holds it, 0 if that is not known
	released map[wire.LineKey]uint64 // the newest release; board is that of all

	contact  time.Duration // when the gateway was last heard
	lost     bool
	hands    Hands
	stopping bool

	drives map[uint64]drive // asked for, without an outcome yet
	lastN  uint64

	now time.Duration
	out Output
}

// line is one line.
type line struct {
	Line
	known bool // the level is the one that was driven last
	level bool
	set   *setting // what has set the level, nil for nobody who is told
	fall  *fall    // a level that has to be reached and was not yet
	ahead uint64   // the highest number of a Want that went ahead of its record
}

// setting is a level that somebody asked for.
type setting struct {
	cause string
	id    uint64
	order uint64
	level bool
	told  bool // its end is told: it is a lease or a pulse, or a level away from safe
	due   time.Duration
	timed bool // due holds
	pulse bool
	end   bool // level at the end of a pulse, at its time
	tries int  // of that end
	stuck bool // that its end failed has been told
}

// fall is a level that has to be reached.
type fall struct {
	level bool
	why   Why
	as    wire.LeaseEnd
	again time.Duration
}

// drive is a Drive without an outcome.
type drive struct {
	line  *line
	level bool
	want  *Want // nil for an act of the core
	begun time.Duration
	cause string // for the trace, if it is not that of the want or of the setting
	why   Why
	as    wire.LeaseEnd // what the setting that it ends is told
}

// New makes a core.
func New(cfg Config, now time.Duration) *Core {
	c := &Core{autonomy: cfg.Autonomy, open: cfg.Open, partners: cfg.NeverWith, lines: map[wire.LineKey]*line{}, marks: map[wire.LineKey]uint64{},
		held: map[wire.LineKey]uint64{}, released: map[wire.LineKey]uint64{}, drives: map[uint64]drive{}, contact: now, now: now}
	for _, l := range cfg.Lines {
		c.add(l)
	}
	return c
}

func (c *Core) add(l Line) *line {
	n := &line{Line: l}
	n.atSafe()
	c.lines[l.Key] = n
	c.keys = append(c.keys, l.Key)
	return n
}

// atSafe notes that a line was opened: at its safe level, or as it was.
func (l *line) atSafe() { l.known, l.level, l.set, l.fall = l.Output && l.HasSafe, l.Safe, nil, nil }

// Step takes one input.
func (c *Core) Step(now time.Duration, in Input) Output {
	c.now, c.out = max(now, c.now), Output{}
	if d, ok := in.(Driven); ok {
		c.driven(d)
		return c.finish()
	}
	if len(c.drives) > 0 {
		panic(fmt.Sprintf("bug: %T while %d drives have no outcome", in, len(c.drives)))
	}
	// What forbids comes before what is asked, and a hand at the board before the rest.
	switch in := in.(type) {
	case Heard:
		c.heard(in.At)
	case Local:
		c.local(in)
	}
	c.mindLoss()
	switch in := in.(type) {
	case Want:
		c.want(in)
	case Cancel:
		c.cancel(in.Cause)
	case Hold:
		c.hold(in.Lines)
	case Release:
		c.release(in)
	case Seed:
		c.seed(in)
	case Leftover:
		c.leftover(in)
	case Stop:
		c.stop()
	case Quiet:
		c.quiet(in.Lines)
	case Remap:
		c.remap(in)
	case Reopened:
		c.reopened(in.Line)
	case Gone:
		if l := c.lines[in.Line]; l != nil {
			l.known = false
		}
	case Heard, Local, Tick:
	default:
		panic(fmt.Sprintf("bug: input %T", in))
	}
	c.due()
	return c.finish()
}

func (c *Core) finish() Output {
	c.out.Deadline = c.deadline()
	return c.out
}

// deadline is when something will be due if no input comes before. Under LOCAL
// nothing is.
func (c *Core) deadline() time.Duration {
	d := NoDeadline
	if c.autonomy > 0 && !c.lost && !c.stopping {
		d = c.contact + c.autonomy
	}
	if c.hands == HandsOn {
		return d
	}
	for _, key := range c.keys {
		switch l := c.lines[key]; {
		case l.fall != nil:
			d = min(d, l.fall.again)
		case l.set != nil && l.set.timed && !mutant.On(mutant.LeaseTimerUnarmed):
			d = min(d, l.set.due)
		}
	}
	return d
}

// each calls f for all outputs, in the order of the map.
func (c *Core) each(f func(*line)) {
	for _, key := range c.keys {
		if l := c.lines[key]; l.Output {
			f(l)
		}
	}
}

// drive asks for a level.
func (c *Core) drive(d drive) {
	for _, other := range c.drives {
		if d.want == nil && other.line == d.line {
			return // whoever asked first in this step is the stronger one
		}
	}
	c.lastN++
	d.begun = c.now
	c.drives[c.lastN] = d
	cause := d.cause
	switch {
	case cause != "":
	case d.want != nil:
		cause = d.want.Cause
	case d.line.set != nil:
		cause = d.line.set.cause
	}
	c.out.Drives = append(c.out.Drives, Drive{N: c.lastN, Line: d.line.Key, Level: d.level, Why: d.why, Cause: cause})
}

// driven takes the outcome of a drive.
func (c *Core) driven(in Driven) {
	d, ok := c.drives[in.N]
	if !ok {
		panic(fmt.Sprintf("bug: an outcome of drive %d, which nobody asked for", in.N))
	}
	delete(c.drives, in.N)
	l := d.line
	switch in.Fate {
	case Moved:
		l.known, l.level, l.fall = true, d.level, nil
	case Doubtful:
		l.known = false
	case Unmoved:
	default:
		panic(fmt.Sprintf("bug: fate %d", in.Fate))
	}
	if d.want != nil {
		c.wanted(d, in.Fate)
		return
	}
	c.fell(d, in.Fate)
}

// end ends what has set a line, and tells it.
func (c *Core) end(l *line, why wire.LeaseEnd, level bool) {
	s := l.set
	l.set = nil
	if mutant.On(mutant.LevelSwapped) {
		level = !level
	}
	if s != nil && s.told {
		c.out.Ends = append(c.out.Ends, End{Line: l.Key, Cause: s.cause, ID: s.id, Why: why, Level: level, At: c.now})
	}
}

// seed takes what an earlier process knew.
func (c *Core) seed(in Seed) {
	for _, key := range slices.Sorted(maps.Keys(in.Marks)) {
		c.mark(key, in.Marks[key])
	}
	for _, key := range slices.Sorted(maps.Keys(in.Released)) {
		c.noteReleased(key, in.Released[key])
	}
	c.hold(slices.Sorted(maps.Keys(in.Holds)))
	for key, was := range c.held {
		c.held[key] = max(was, in.Holds[key])
	}
}

// mark raises the mark of a line. Those of lines that the map does not have are
// remembered as long as there are few of them.
func (c *Core) mark(key wire.LineKey, order uint64) {
	if _, ok := c.marks[key]; !ok && c.lines[key] == nil && len(c.marks) >= MaxRemembered {
		return
	}
	c.marks[key] = max(c.marks[key], order)
}

// hold holds lines at their safe levels. One that has another level is driven there.
func (c *Core) hold(keys []wire.LineKey) {
	for _, key := range keys {
		l := c.lines[key]
		if l == nil && len(c.held) >= MaxRemembered {
			continue
		}
		if _, held := c.held[key]; !held {
			c.held[key] = 0
		}
		if l != nil && l.Output && l.HasSafe && (!l.known || l.level != l.Safe || l.set != nil) && c.hands != HandsOn {
			c.fallTo(l, l.Safe, WhySafe, wire.LeaseReplaced)
		}
	}
}

// release ends holds that are not newer.
func (c *Core) release(in Release) {
	if in.Lines == nil {
		c.noteReleased(board, in.Order)
	}
	for _, key := range in.Lines {
		c.noteReleased(key, in.Order)
	}
	for key, order := range c.held {
		if (in.Lines == nil || slices.Contains(in.Lines, key)) && (in.Order == 0 || order <= in.Order) {
			delete(c.held, key)
		}
	}
}

// noteReleased remembers a release. Of lines that the map does not have few are.
func (c *Core) noteReleased(key wire.LineKey, order uint64) {
	if _, ok := c.released[key]; order == 0 || !ok && c.lines[key] == nil && key != board && len(c.released) >= MaxRemembered {
		return
	}
	c.released[key] = max(c.released[key], order)
}

// isHeld reports whether a line is held: one without a safe level can't be.
func (c *Core) isHeld(l *line) bool {
	_, held := c.held[l.Key]
	return l.HasSafe && held
}

// Level is how a line stands, as it is told.
func (c *Core) Level(key wire.LineKey) wire.Level {
	l := c.lines[key]
	switch {
	case l == nil || !l.Output || !l.known:
		return wire.LevelUnknown
	case c.isHeld(l) && l.level == l.Safe:
		return wire.LevelHeld
	case l.level:
		return wire.LevelHigh
	}
	return wire.LevelLow
}

// Held reports whether a line is held at its safe level.
func (c *Core) Held(key wire.LineKey) bool {
	l := c.lines[key]
	return l != nil && c.isHeld(l)
}

// Lost reports whether the gateway is lost.
func (c *Core) Lost() bool { return c.lost }

// Mark is the highest order number that has begun on a line, or on the whole board;
// 0 for none.
func (c *Core) Mark(key wire.LineKey) uint64 { return max(c.marks[key], c.marks[board]) }

// board is the key of marks that hold for every line.
const board = wire.LineKey(0)

// Rest lists where outputs must not be left: the safe levels, and the off levels of
// pulses where there is none. It is for a shell that dies.
func (c *Core) Rest() map[wire.LineKey]bool {
	levels := map[wire.LineKey]bool{}
	c.each(func(l *line) {
		switch {
		case l.HasSafe:
			levels[l.Key] = l.Safe
		case l.set != nil && l.set.pulse:
			levels[l.Key] = l.set.end
		}
	})
	return levels
}
