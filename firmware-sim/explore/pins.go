package explore

import (
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/apollo-11/apollo11/fieldagent/executor"
	"github.com/apollo-11/apollo11/fieldagent/lines"
	"github.com/apollo-11/apollo11/wire"
)

const (
	// endWay and resultWay bound how long the end of a lease, and the result of the
	// work that began it, take to the agent's loop: either may come first.
	endWay, resultWay = 5, 30 // ms
	// safeWithin bounds how long after a crash the service manager has the outputs
	// set to their safe levels.
	safeWithin = 1_000 // ms
)

// owner is the owner of a board's outputs: the real core of fieldagent/lines in virtual
// time, over lines that fail on request. It waits for neither loop nor disk nor link.
type owner struct {
	a   *agent
	rnd *rand.Rand
	m   *pinMap
	// level is what the lines have really. It outlives processes.
	level map[wire.LineKey]bool

	core   *lines.Core // nil while no process runs
	wakeAt time.Duration
	hands  bool   // what the core knows of the LOCAL switch
	throws uint64 // how often it was found thrown
	packed string
	pulses map[uint64]*work // that wait for the end of their pulse
	lastID uint64
	causes map[string]wire.Token
	tries  map[string]int // how often the end of what a cause has set still fails
	asked  *asked
}

// asked is a request while its drives are made.
type asked struct {
	x    *work
	code wire.Code // how it is to go
	fate lines.Fate
}

func newOwner(a *agent) *owner {
	o := &owner{a: a, rnd: a.w.stream("pins " + a.tag), m: newPinMap(), level: map[wire.LineKey]bool{}}
	o.rest()
	return o
}

// rest gives the lines the levels that a resistor decides when there is no power.
func (o *owner) rest() {
	for k := range o.m.pins {
		if p := &o.m.pins[k]; p.output {
			o.set(p.line, p.safe, nil)
		}
	}
}

// start is the start of the process: the lines are opened at their safe levels, before
// anything else.
func (o *owner) start() {
	o.core = lines.New(lines.Config{Autonomy: o.a.autonomy, Lines: o.m.lines()}, o.a.clock.mono())
	o.wakeAt, o.hands, o.throws, o.packed = 0, false, 0, ""
	o.pulses, o.causes, o.tries = map[uint64]*work{}, map[string]wire.Token{}, map[string]int{}
	o.allSafe()
	o.a.w.check.startedSafe(o.a)
}

// seed gives the core what the journal knows, before anything is driven.
func (o *owner) seed(c *executor.Core) {
	o.readHand()
	o.step(lines.Seed{Marks: c.Marks(), Holds: c.Holds(), Released: c.Released()})
	for _, p := range c.Pulses() {
		o.step(lines.Leftover{Line: p.Line, Off: p.Off})
	}
	o.a.w.check.leftovers(o.a)
}

// gone is the end of the process. Without power a resistor decides; an orderly end sets
// the safe levels; after a crash the lines stay as they were until the service manager
// has them set.
func (o *owner) gone(power, killed bool) {
	o.core = nil
	if power {
		o.rest()
		return
	}
	if !killed {
		o.allSafe()
		return
	}
	boots := o.a.boots
	o.a.w.after(between(o.rnd, 20, safeWithin), func() {
		if o.a.boots == boots && o.a.life == nil {
			o.allSafe()
		}
	})
}

// allSafe drives the safe levels when no core decides.
func (o *owner) allSafe() {
	for k := range o.m.pins {
		if p := &o.m.pins[k]; p.hasSafe {
			o.set(p.line, p.safe, nil)
		}
	}
}

// set gives a line a level. d is the drive that asks for it, nil for none.
func (o *owner) set(l wire.LineKey, level bool, d *lines.Drive) {
	if o.level[l] != level {
		o.a.w.log(o.a.tag, "line %s goes %v: %s", o.name(l), onOff(level), why(d))
		o.a.w.mix("pin", uint64(o.a.index), uint64(l))
	}
	o.level[l] = level
	o.a.w.check.moved(o.a, l, level)
}

func (o *owner) name(l wire.LineKey) string {
	if p := o.m.byLine[l]; p != nil {
		return p.name
	}
	return "?"
}

func why(d *lines.Drive) string {
	if d == nil {
		return "no process"
	}
	return [...]string{"asked", "pulse ends", "lease ends", "owed", "loss", "LOCAL", "stop", "reload", "left over"}[d.Why] + " " + d.Cause
}

func onOff(on bool) string {
	if on {
		return "on"
	}
	return "off"
}

// step gives an input to the core and does what it decides.
func (o *owner) step(in lines.Input) lines.Output {
	if o.core == nil {
		return lines.Output{Deadline: lines.NoDeadline}
	}
	out := lines.Play(o.core, o.a.clock.mono, in, o.drive)
	for _, e := range out.Ends {
		o.ended(e)
	}
	o.wake(out.Deadline)
	o.tellLevels()
	return out
}

// wake ticks at the core's deadline.
func (o *owner) wake(at time.Duration) {
	if at == lines.NoDeadline || at == o.wakeAt {
		return
	}
	o.wakeAt = at
	o.a.later(o.a.clock.truly(at), func() {
		if o.wakeAt == at {
			o.wakeAt = 0
			o.step(lines.Tick{})
		}
	})
}

// drive moves one line and says what became of it.
func (o *owner) drive(d lines.Drive) lines.Fate {
	if d.Why == lines.WhyWant {
		return o.driveAsked(d)
	}
	if o.fails(d.Cause) {
		o.a.w.check.stuck(o.a, d.Line, o.causes[d.Cause])
		return lines.Unmoved
	}
	o.a.w.check.ownAct(o.a, d)
	o.set(d.Line, d.Level, &d)
	return lines.Moved
}

func (o *owner) driveAsked(d lines.Drive) lines.Fate {
	q := o.asked
	o.causes[d.Cause] = q.x.Token
	if q.code != wire.CodeIO {
		o.a.w.check.asked(o.a, q.x, d, true, true)
		o.set(d.Line, d.Level, &d)
		q.fate = lines.Moved
		return q.fate
	}
	o.a.w.check.missed(o.a, d.Line)
	if q.fate = lines.Unmoved; chance(o.rnd, 0.6) {
		q.fate = lines.Doubtful
		moves := chance(o.rnd, 0.5)
		o.a.w.check.asked(o.a, q.x, d, moves, false)
		if moves {
			o.set(d.Line, d.Level, &d)
		}
	}
	return q.fate
}

// fails reports whether a drive of the core's own fails: mostly never, and sometimes a
// few times for the end of what one cause has set.
func (o *owner) fails(cause string) bool {
	n, ok := o.tries[cause]
	if t := o.causes[cause]; !ok && cause != "" {
		n = tries(o.a.w.seed, t)
	}
	o.tries[cause] = max(n-1, 0)
	return n > 0
}

// tries is how often the fall-back of what a token set fails at first.
func tries(seed uint64, t wire.Token) int {
	r := rand.New(rand.NewPCG(seed^t.Seq, uint64(t.Shard)+77))
	if r.IntN(20) > 0 {
		return 0
	}
	return 1 + r.IntN(4)
}

// want asks the core for a level and returns how that went. Right before the line moves
// the switch is read, and the time limit is looked at once more (A15).
func (o *owner) want(x *work, code wire.Code, w lines.Want) (wire.Code, lines.Fate) {
	o.readHand()
	if clock := o.a.core.Clock(); x.NotAfter != 0 && clock.Late(o.a.now(), x.NotAfter, x.Towards) {
		if clock.Late(o.a.now(), x.NotAfter, true) {
			return wire.CodeExpired, lines.Unmoved
		}
		return wire.CodeDependency, lines.Unmoved // the time is in doubt
	}
	if !x.Towards && x.Throws != o.throws {
		return wire.CodeLocal, lines.Unmoved // thrown since it came, and perhaps off again
	}
	o.asked = &asked{x: x, code: code}
	w.Cause, w.Order = x.Token.String(), x.Order
	out := o.step(w)
	q := o.asked
	o.asked = nil
	if out.Refused.Reason != lines.NotRefused {
		return refusedAs(out.Refused), lines.Unmoved
	}
	return code, q.fate
}

// refusedAs is the code of a refusal by the owner.
func refusedAs(r lines.Refusal) wire.Code {
	switch r.Reason {
	case lines.NoLine:
		return wire.CodeNoSuchPin
	case lines.TooLong:
		return wire.CodeBadArgs
	case lines.Superseded:
		return wire.CodeSuperseded
	case lines.HeldSafe:
		return wire.CodeHeldSafe
	case lines.ByHand, lines.HandsDoubt:
		return wire.CodeLocal
	case lines.Lost:
		return wire.CodeDependency
	case lines.Busy:
		return wire.CodeBusy
	case lines.Stopping:
		return wire.CodeCancelled
	}
	return wire.CodeUnsupported
}

// ended passes on the end of a level: to the pulse that waits for it, or to the loop.
func (o *owner) ended(e lines.End) {
	t := o.causes[e.Cause]
	o.a.w.check.leaseOver(o.a, e, t)
	if x := o.pulses[e.ID]; e.ID != 0 && x != nil {
		if e.Why == wire.LeaseFailed {
			return
		}
		delete(o.pulses, e.ID)
		o.pulseOver(x, e)
		return
	}
	at, level := o.a.clock.mono(), e.Level
	o.a.later(between(o.rnd, 0, endWay), func() {
		o.a.input(executor.LeaseEnded{Token: t, Why: e.Why, Ago: o.a.clock.mono() - at, Level: &level})
	})
}

// pulseOver ends the work of a pulse.
func (o *owner) pulseOver(x *work, e lines.End) {
	code := wire.CodeCancelled // by a newer instruction, a cancel, or the board itself
	switch {
	case e.Why != wire.LeaseExpired:
		o.a.w.check.cut(x)
		o.a.w.check.pins.cuts[x.Token] = e
	case x.fate.code == wire.CodeUnknown:
		code = wire.CodeUnknown
	default:
		code = wire.CodeOK
	}
	r := executor.Result{Code: code}
	if p := o.m.byLine[e.Line]; p != nil && e.Why != wire.LeaseExpired {
		r.Ended = &executor.Ended{Pin: p.name, Why: e.Why, Level: &e.Level}
	}
	if p := o.m.byLine[e.Line]; p != nil && p.away(e.Level) {
		r.Lease = &executor.Lease{Pin: p.name, Level: p.safe, Plain: p.maxOn == 0}
		o.a.w.check.leased(o.a, p, x, p.maxOn == 0)
	}
	x.pulsing = false
	o.a.finish(x, r)
}

// tellLevels tells the loop how the outputs stand, if that is news.
func (o *owner) tellLevels() {
	var list []wire.Level
	for k := range o.m.pins {
		list = append(list, o.core.Level(o.m.pins[k].line))
	}
	b := wire.PackLevels(list)
	if string(b) == o.packed {
		return
	}
	o.packed = string(b)
	o.a.input(executor.Levels{Levels: b})
}

// readHand reads the LOCAL switch, and the lines if it was thrown.
func (o *owner) readHand() {
	if o.hands == o.a.local || o.core == nil {
		return
	}
	o.hands = o.a.local
	in := lines.Local{Read: map[wire.LineKey]bool{}}
	if o.hands {
		in.Hands = lines.HandsOn
		o.throws++
	}
	for l, level := range o.level {
		in.Read[l] = level
	}
	o.step(in)
}

// Fall implements round.Hands.
func (a *agent) Fall(executor.Fall) {
	a.later(between(a.pins.rnd, 0, endWay), func() { a.pins.step(lines.Stop{}) })
}

// Contact implements round.Hands.
func (a *agent) Contact() { a.pins.step(lines.Heard{At: a.clock.mono()}) }

// Hold implements round.Hands.
func (a *agent) Hold(keys []wire.LineKey) { a.pins.step(lines.Hold{Lines: keys}) }

// EndLease implements round.Hands.
func (a *agent) EndLease(t wire.Token) { a.pins.step(lines.Cancel{Cause: t.String()}) }

// safeFrame is a compact frame towards safe: it is for the owner, whatever the loop does.
func (a *agent) safeFrame(f wire.CompactSafe) {
	if a.pins.core == nil {
		return
	}
	code := wire.CodeNone
	a.pins.readHand()
	for k := range a.pins.m.pins {
		p := &a.pins.m.pins[k]
		if !p.hasSafe || f.Line != 0 && f.Line != p.line.Hash() {
			continue
		}
		a.pins.asked = &asked{x: &work{frame: f.Seq}, code: wire.CodeOK}
		out := a.pins.step(lines.Want{Line: p.line, Safe: true, Order: f.Seq, Unmarked: true})
		a.pins.asked = nil
		if c := refusedAs(out.Refused); out.Refused.Reason == lines.NotRefused {
			code = wire.CodeDriven
		} else if code == wire.CodeNone {
			code = c
		}
	}
	if code != wire.CodeNone {
		a.narrow.up(wire.CompactAck{Seq: f.Seq, Attempt: 1, Code: code})
	}
}

// urgentAfter is how long the loop has to take something towards safe; then it is
// stuck, and the pins do not wait for it.
const urgentAfter = 300 * time.Millisecond

// urgent brings what is towards safe to the owner if the loop does not take it, as
// fieldagent does it: the loop gets the same message and settles it when it can.
func (a *agent) urgent(in *wire.Instruction) {
	act, err := wire.ParseAct(in.Intent, in.Args)
	if err != nil || !act.Towards(a.pins.m.safe) || a.pins.core == nil {
		return
	}
	a.untaken[in.Token] = true
	a.later(urgentAfter, func() {
		if a.untaken[in.Token] && !(in.NotAfter != 0 && a.core.Clock().Late(a.now(), in.NotAfter, true)) {
			delete(a.untaken, in.Token)
			a.drivePast(in, act)
		}
	})
}

// drivePast drives past the loop, and says so.
func (a *agent) drivePast(in *wire.Instruction, act wire.Act) {
	order := in.Order
	if order == 0 {
		order = in.Seq
	}
	keys := slices.Clone(in.Lines)
	for _, p := range a.pins.m.of(act) {
		if !slices.Contains(keys, p.line) {
			keys = append(keys, p.line)
		}
	}
	done := false
	x := &work{Work: executor.Work{Token: in.Token, Seq: in.Seq, Order: order, Hold: act.Traits.Safe, Towards: true, Again: true}, act: act}
	a.pins.readHand()
	for _, l := range keys {
		if p := a.pins.m.byLine[l]; p == nil || !p.hasSafe {
			continue
		}
		a.pins.asked = &asked{x: x, code: wire.CodeOK}
		out := a.pins.step(lines.Want{Line: l, Safe: true, Order: order, Hold: x.Hold, Cause: "safe:urgent:" + in.Token.String()})
		a.pins.asked = nil
		done = done || out.Refused.Reason == lines.NotRefused
	}
	a.w.log(a.tag, "drives %d past the loop: %v", in.Seq, done)
	if done {
		a.Primary(&wire.Report{States: []wire.State{{Seq: in.Seq, Token: in.Token, Status: wire.StatusDriven}}})
	}
}

// reload exchanges the lines of two names, as the shell does it: what runs stays at its
// line.
func (a *agent) reload(x, y string) {
	o := a.pins
	if o.core == nil || o.keepsOpen(x, y) {
		return
	}
	a.w.log(a.tag, "the pin map is reloaded: %s and %s exchange their lines", x, y)
	next := o.m.exchanged(x, y)
	a.w.check.reloaded(a, next)
	o.m = next
	o.step(lines.Remap{Lines: o.m.lines()})
	o.packed = ""
	a.input(executor.Pins{Names: o.m.names(), Traits: o.m.traits()})
	o.tellLevels()
}

// keepsOpen reports whether an exchange would take the safe level from a line that
// still has to go there: the shell refuses that.
func (o *owner) keepsOpen(x, y string) bool {
	open := o.core.Unsettled()
	p, q := o.m.byName[x], o.m.byName[y]
	_, left := open[p.line]
	_, right := open[q.line]
	return left && p.hasSafe && !q.hasSafe || right && q.hasSafe && !p.hasSafe
}

// pinFate is how a write or a pulse of an output ends if nobody interferes.
func pinFate(seed uint64, w executor.Work) (f fate) {
	h := fnv.New64a()
	_, _ = fmt.Fprintf(h, "pin %d %d %s", w.Seq, w.Attempt, w.Intent) // a hash has no errors
	r := rand.New(rand.NewPCG(seed, h.Sum64()))
	f = fate{takes: between(r, 1, 20), code: wire.CodeOK}
	switch r.IntN(12) {
	case 0: // the owner is busy
		f.takes = between(r, 200, 4_000)
	case 1:
		f.code = wire.CodeIO
	case 2:
		f.code = wire.CodeUnknown // the owner has not answered
	case 3:
		f.code = []wire.Code{wire.CodeBusy, wire.CodeFailed, wire.CodeDependency}[r.IntN(3)]
	}
	return f
}
