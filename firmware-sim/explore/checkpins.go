package explore

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/apollo-11/apollo11/fieldagent/lines"
	"github.com/apollo-11/apollo11/wire"
)

// lineKey names an output of a board: the line, whatever it is called.
type lineKey struct {
	board *agent
	line  wire.LineKey
}

// lineFact is what is known of an output: what it has, who has set it, and by when it
// must have another level.
type lineFact struct {
	level bool
	by    wire.Token    // the command that stands, zero for none
	until time.Duration // when its time is over, 0 for never
	end   bool          // the level that it must have then
	stuck bool          // it could not be driven, and is tried again
	pulse bool          // it is for a pulse
	cut   bool          // the end of a process has cut the pulse, and the level is another one
	short bool          // a renewal: it ends by a time of the gateway's, as the agent knows that

	mark, markOf uint64        // the highest number that was driven, and the instruction
	ahead        uint64        // the highest number that went ahead of its record, in this life
	off          uint64        // the highest number that was driven to the safe level
	stood        uint64        // the highest number towards safe whose end was told: it stands for all before it
	stoodAt      time.Duration // when that was told: what had begun by then may go on
	held         bool          // by a gpio.safe that was executed, until a release
	heldBy       uint64
	newest       *run // with the highest number that set it
	newestLevel  bool // to this
}

// pins is what the checker knows of outputs.
type pins struct {
	facts   map[lineKey]*lineFact
	leases  map[wire.Token]*lease
	cuts    map[wire.Token]lines.End // pulses that did not have their time
	bySeq   map[uint64][]*lease
	held    map[lineKey]*lease
	contact map[*agent]*contact
	reloads map[*agent]int
}

func newPins() pins {
	return pins{facts: map[lineKey]*lineFact{}, leases: map[wire.Token]*lease{}, cuts: map[wire.Token]lines.End{}, bySeq: map[uint64][]*lease{}, held: map[lineKey]*lease{},
		contact: map[*agent]*contact{}, reloads: map[*agent]int{}}
}

// Slack of the rules for pins.
const (
	// holdSlack is what the end of a lease may be late: rounding of clocks.
	holdSlack = 5 * time.Millisecond
	// againSlack is the time between two tries of a drive that does not work.
	againSlack = lines.FallAgain + holdSlack
	// crashSlack is how long after the end of a process its outputs may stay on.
	crashSlack = safeWithin*time.Millisecond + holdSlack
	// replacedWithin is how much earlier than its successor a lease may have ended
	// that is said to have been replaced: the end was on its way to the loop.
	replacedWithin = (endWay + resultWay) * time.Millisecond
)

func (c *checker) line(a *agent, l wire.LineKey) *lineFact {
	k := lineKey{a, l}
	f := c.pins.facts[k]
	if f == nil {
		f = &lineFact{}
		c.pins.facts[k] = f
	}
	return f
}

// moved notes the level of an output.
func (c *checker) moved(a *agent, l wire.LineKey, level bool) {
	f := c.line(a, l)
	if f.level != level {
		f.stuck = false
	}
	f.level = level
}

// asked checks a drive that somebody has asked for, right before the line moves. sure
// says that it is known to work: one that may have moved a line prolongs nothing.
func (c *checker) asked(a *agent, x *work, d lines.Drive, moves, sure bool) {
	p, f := a.pins.m.byLine[d.Line], c.line(a, d.Line)
	away, order := p.away(d.Level), x.Order
	if x.frame != 0 {
		order = x.frame
	}
	c.inOrder(a, x, p, f, order)
	switch {
	case a.local:
		c.fail("local", "instruction %d moves %s of %s, and its LOCAL switch is on", x.Seq, p.name, a.tag)
	case away && f.held:
		c.fail("held", "instruction %d (number %d) moves %s of %s away from its safe level, which number %d holds", x.Seq, order, p.name, a.tag, f.heldBy)
	case away && p.onLoss && c.lost(a):
		c.fail("on-loss", "instruction %d moves %s of %s away from its safe level, and the gateway has been gone since %v", x.Seq, p.name, a.tag, c.pins.contact[a].lostAt)
	}
	if x.ahead {
		f.ahead = max(f.ahead, order)
		c.orders.ahead.drove[order] = true
	}
	if x.frame == 0 {
		c.begun(a, x)
		if order >= f.mark {
			f.mark, f.markOf = order, x.Seq
		}
	}
	if x.Hold && p.hasSafe {
		f.held, f.heldBy = true, order
	}
	if p.hasSafe && !away && !x.act.Pulse && sure {
		f.off = max(f.off, order)
	}
	if !sure {
		if r := c.runs[x.Token]; r != nil {
			r.doubt = true
		}
		if l := c.pins.held[lineKey{a, d.Line}]; l != nil {
			l.doubt = true
		}
	}
	if moves && (!sure || x.frame != 0) || !sure && x.act.Pulse {
		// Nobody knows, and it is told so; a frame is told as driven. A pulse that may have
		// begun is ended at once, also where it found its level there.
		f.newest = nil
	}
	if !moves || !sure && (f.until != 0 || !away && !x.act.Pulse) {
		return
	}
	if sure {
		c.overFor(a, d.Line, wire.LeaseReplaced, d.Level)
	}
	f.by, f.until, f.pulse, f.cut, f.short = x.Token, 0, x.act.Pulse, false, x.EndsBy != 0
	if r := c.runs[x.Token]; r != nil && sure && x.frame == 0 {
		f.newest, f.newestLevel = r, d.Level
	}
	switch hold := x.act.MaxOn; {
	case x.act.Pulse:
		c.limit(a, p, f, x.act.Lasts, !d.Level)
	case away && (hold > 0 || p.maxOn > 0):
		if hold == 0 {
			hold = p.maxOn
		}
		if ends := c.orders.ends[x.Seq]; ends != 0 {
			late, _ := c.lateBy(a, ends)
			hold = max(0, min(hold, -late))
		}
		c.limit(a, p, f, hold, p.safe)
	}
}

// limit notes by when a line must have another level.
func (c *checker) limit(a *agent, p *pinDef, f *lineFact, hold time.Duration, end bool) {
	until := c.w.now + hold + hold/10_000 + holdSlack
	f.until, f.end = until, end
	c.w.after(until-c.w.now, func() { c.mustBeOver(a, p.line, f, until) })
}

// mustBeOver demands that a line has another level when the longest time is over for
// which it was set, whatever has become of the board since.
func (c *checker) mustBeOver(a *agent, l wire.LineKey, f *lineFact, until time.Duration) {
	switch {
	case f.until != until || f.level == f.end || a.life == nil: // see linesLeft
	case f.stuck: // it is tried again
		c.w.after(againSlack, func() {
			if f.stuck {
				c.mustBeOver(a, l, f, until)
			} else if f.until == until && f.level != f.end {
				c.fail("lease-held", "output %s of %s still has its level, and its time was over at %v", a.pins.name(l), a.tag, until)
			}
		})
	case a.local || c.w.now-c.localOver(a) < handSlack:
		// Left to whoever works there.
		c.w.after(handSlack, func() { c.mustBeOver(a, l, f, until) })
	default:
		c.fail("lease-held", "output %s of %s still has its level, and its time was over at %v", a.pins.name(l), a.tag, until)
	}
}

// leftovers demands that a process which has read its journal has ended the pulses that
// the end of the one before has cut.
func (c *checker) leftovers(a *agent) {
	for k := range a.pins.m.pins {
		p := &a.pins.m.pins[k]
		f := c.line(a, p.line)
		if f.cut && f.level != f.end && !p.hasSafe && !a.local && !f.stuck {
			c.fail("pulse-left", "%s of %s is %s since a pulse that the end of its process has cut", p.name, a.tag, onOff(f.level))
		}
		f.cut = false
	}
}

// stuck notes that an output could not be driven.
func (c *checker) stuck(a *agent, l wire.LineKey, t wire.Token) {
	c.line(a, l).stuck = true
	if l := c.pins.leases[t]; l != nil {
		l.failed = true
	}
}

// missed notes that a drive which somebody has asked for has failed. One to the safe
// level is tried again by the owner, and told to whoever has set the line.
func (c *checker) missed(a *agent, l wire.LineKey) {
	c.line(a, l).stuck = true
	if l := c.pins.held[lineKey{a, l}]; l != nil {
		l.failed = true
	}
}

// ends is what an act of the owner tells whoever has set the line.
var ends = map[lines.Why]wire.LeaseEnd{lines.WhyPulse: wire.LeaseExpired, lines.WhyExpired: wire.LeaseExpired, lines.WhySafe: wire.LeaseReplaced,
	lines.WhyLoss: wire.LeaseLoss, lines.WhyLocal: wire.LeaseLocal, lines.WhyStop: wire.LeaseStopped, lines.WhyReload: wire.LeaseReload, lines.WhyStart: wire.LeaseRestart}

// ownAct checks what the owner does by itself, right before the line moves. It leads to
// the safe level, but for the end of a pulse that began there.
func (c *checker) ownAct(a *agent, d lines.Drive) {
	p, f, t := a.pins.m.byLine[d.Line], c.line(a, d.Line), a.pins.causes[d.Cause]
	away := p.away(d.Level)
	switch {
	case away && d.Why != lines.WhyPulse:
		c.fail("own-act", "%s of %s leaves its safe level by itself (%s)", p.name, a.tag, why(&d))
	case away && (f.held || p.onLoss && c.lost(a) || a.local && c.w.now-c.localSince(a) > handSlack):
		c.fail("pulse-end", "a pulse of %s of %s ends away from the safe level (held %v, lost %v, LOCAL %v)", p.name, a.tag, f.held, c.lost(a), a.local)
	case a.local && c.w.now-c.localSince(a) > handSlack && d.Why != lines.WhyStop && d.Why != lines.WhyLocal:
		c.fail("local", "%s of %s is moved (%s), and its LOCAL switch has been on since %v", p.name, a.tag, why(&d), c.localSince(a))
	// One that nobody has set falls also where nobody knows its level: then it may be there.
	case d.Why == lines.WhyExpired && !f.by.IsZero() && f.by != t && !(t.IsZero() && f.level == d.Level) && !c.doubted(t) && !c.doubted(f.by):
		c.fail("lease-fell", "output %s of %s goes to its safe level because the time of token %v is over, and token %v has set it since", p.name, a.tag, t, f.by)
	case (d.Why == lines.WhyExpired || d.Why == lines.WhyPulse) && f.until != 0 && !f.short && c.w.now < f.until-2*holdSlack-f.until/5_000 && !c.cancelAsked(t) && f.by == t && !c.doubted(t):
		c.fail("lease-early", "the time of token %v at %s of %s is over at %v; it is ended now (%s)", t, p.name, a.tag, f.until, why(&d))
	}
	if s := c.pins.contact[a]; d.Why == lines.WhyLoss && s != nil && (s.up && c.w.now-s.upAt > stepSlack || c.w.now-s.since < a.autonomy/2) && c.w.now > a.hungUntil+a.autonomy {
		c.fail("false-loss", "%s of %s is taken to its safe level because the gateway is gone, and it is there", p.name, a.tag)
	}
	c.overFor(a, d.Line, ends[d.Why], d.Level)
	f.by, f.until = wire.Token{}, 0
	if d.Why == lines.WhySafe {
		f.newest = nil // the gateway holds it, which its alarm says
	}
	if r := f.newest; d.Why == lines.WhyPulse && r != nil && r.token == t {
		f.newestLevel = d.Level // what a pulse has left is a level like any other
		if away && p.maxOn > 0 {
			c.limit(a, p, f, p.maxOn, p.safe)
			f.by = t
		}
	}
}

// cut notes that a pulse has not had its time.
func (c *checker) cut(x *work) {
	if r := c.runs[x.Token]; r != nil {
		r.cut = true
	}
}

// aborted notes that a work was asked to stop.
func (c *checker) aborted(x *work) {
	if r := c.runs[x.Token]; r != nil {
		r.aborted = true
	}
}

// doubted reports whether what a token asked for may have happened or not.
func (c *checker) doubted(t wire.Token) bool {
	r := c.runs[t]
	return r != nil && r.doubt
}

// cancelAsked reports whether somebody wants the instruction of a token cancelled, or
// something newer stands for it.
func (c *checker) cancelAsked(t wire.Token) bool {
	r := c.runs[t]
	if r == nil || r.aborted {
		return true
	}
	i := c.book.last(r.seq)
	return c.asks[i.Task] || c.asks[seqName(r.seq)] || i.By != 0 || i.State.Settled() || c.memory.older
}

// linesLeft notes the end of a process, with which everything ends that it held.
func (c *checker) linesLeft(a *agent) {
	for k := range a.pins.m.pins {
		p := &a.pins.m.pins[k]
		if !p.output {
			continue
		}
		c.overFor(a, p.line, wire.LeaseRestart, p.safe)
		f := c.line(a, p.line)
		f.cut = !p.hasSafe && f.pulse && f.until != 0 && f.level != f.end && c.copies[a.id] == 0
		f.by, f.until, f.stuck, f.pulse, f.ahead = wire.Token{}, 0, false, false, 0
	}
	boots := a.boots
	c.w.after(crashSlack, func() {
		if a.boots == boots {
			c.allSafe(a, "after the end of its process")
		}
	})
}

// startedSafe demands safe levels before anything else.
func (c *checker) startedSafe(a *agent) {
	c.allSafe(a, "at the start")
	c.pins.contact[a] = &contact{lostAt: c.w.now, since: c.w.now}
	if c.boards.keeps[a] > c.w.now-10*time.Second { // it is in the journal, and its time begins anew
		c.boards.keeps[a] = c.w.now + wire.OrderWait + stepSlack
	}
}

func (c *checker) allSafe(a *agent, when string) {
	for k := range a.pins.m.pins {
		if p := &a.pins.m.pins[k]; p.away(c.line(a, p.line).level) {
			c.fail("safe-level", "output %s of %s is away from its safe level %s", p.name, a.tag, when)
		}
	}
}

// released notes that a release was executed.
func (c *checker) released(a *agent, x *work) {
	for k, f := range c.pins.facts {
		if k.board == a && (len(x.Lines) == 0 || slices.Contains(x.Lines, k.line)) && x.Order >= f.heldBy {
			f.held = false
		}
	}
}

// reloaded notes that the names of a board's lines change. Of a level that was set
// while its line had no safe level nobody waits for an end.
func (c *checker) reloaded(a *agent, next *pinMap) {
	c.pins.reloads[a]++
	for l, p := range next.byLine {
		if f := c.line(a, l); p.maxOn > 0 && p.away(f.level) && f.until > c.w.now+p.maxOn { // the new map allows less
			by := f.by
			c.limit(a, p, f, p.maxOn, p.safe)
			f.by = by
		}
		if was := a.pins.m.byLine[l]; p.hasSafe != was.hasSafe || p.safe != was.safe {
			f := c.line(a, l)
			f.newest, f.by = nil, wire.Token{}
			if !p.away(f.level) {
				f.until = 0 // it is the safe level now
			}
		}
	}
}

// unmarked notes that a board has lost what it knew of its lines.
func (c *checker) unmarked(a *agent) {
	for k, f := range c.pins.facts {
		if k.board == a {
			f.mark, f.markOf, f.off, f.stood, f.held, f.newest, f.cut = 0, 0, 0, 0, false, nil, false
		}
	}
}

// localSince and localOver are when the LOCAL switch was last thrown, and last released.
func (c *checker) localSince(a *agent) time.Duration {
	if list := c.boards.local[a]; len(list) > 0 {
		return list[len(list)-1].from
	}
	return c.w.now
}

func (c *checker) localOver(a *agent) time.Duration {
	if list := c.boards.local[a]; len(list) > 0 {
		return list[len(list)-1].to
	}
	return -time.Hour
}

// contact is whether a process can hear the gateway.
type contact struct {
	up     bool
	upAt   time.Duration // since when, while it is
	lostAt time.Duration // since when not, while it is not up
	// since is the same, but for a connection that was over before the loop can have
	// taken it: then since before that.
	since time.Duration
}

// contacts looks whether a board can hear the gateway, after something has changed
// there. It hears it where a welcome stands or the narrowband connection does.
func (c *checker) contacts(a *agent) {
	f := c.pins.contact[a]
	if f == nil || a.life == nil {
		return
	}
	// One that refuses the board can't command it.
	up := a.narrow.conn != nil && !c.knows(a).refused || a.link.agentEnd != nil && c.knows(a).in == a.link.agentEnd.session
	if up == f.up {
		return
	}
	if f.up = up; up {
		f.upAt = c.w.now
		return
	}
	f.lostAt = c.w.now
	if f.lostAt-f.upAt > stepSlack {
		f.since = f.lostAt
	}
	life, lostAt := a.life, f.lostAt
	c.w.after(a.autonomy+lossSlack, func() {
		if a.life == life && !f.up && f.lostAt == lostAt {
			c.fallen(a)
		}
	})
}

// lossSlack is what the end of the autonomy window may be late.
const lossSlack = stepSlack

// lost reports whether the autonomy window of a board has ended.
func (c *checker) lost(a *agent) bool {
	f := c.pins.contact[a]
	return f != nil && !f.up && c.w.now-f.lostAt > a.autonomy+lossSlack
}

// fallen demands that the outputs that fall with the gateway have fallen.
func (c *checker) fallen(a *agent) {
	if !c.lost(a) && c.w.now-c.pins.contact[a].lostAt < a.autonomy {
		return
	}
	for k := range a.pins.m.pins {
		p := &a.pins.m.pins[k]
		f := c.line(a, p.line)
		if !p.onLoss || !p.away(f.level) {
			continue
		}
		if f.stuck || a.local || c.w.now-c.localOver(a) < handSlack {
			life := a.life
			c.w.after(againSlack, func() {
				if a.life == life && c.lost(a) {
					c.fallen(a)
				}
			})
			continue
		}
		c.fail("on-loss", "%s of %s is away from its safe level, and the gateway has been gone since %v (window %v)", p.name, a.tag, c.pins.contact[a].lostAt, a.autonomy)
	}
}

// sorted are the outputs of all boards, in an order of their own.
func (p *pins) sorted() []lineKey {
	return slices.SortedFunc(maps.Keys(p.facts), func(a, b lineKey) int {
		return cmp.Or(cmp.Compare(a.board.index, b.board.index), cmp.Compare(a.board.tag, b.board.tag), cmp.Compare(a.line, b.line))
	})
}
