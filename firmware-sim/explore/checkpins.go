package explore

import (
	"strings"
	"time"

	"github.com/apollo-11/apollo11/gateway/engine"
	"github.com/apollo-11/apollo11/wire"
)

// pinKey names an output of a board.
type pinKey struct {
	board *agent
	pin   string
}

// pinFact is what is known of an output: what it has, and by when it must be off.
type pinFact struct {
	on    bool
	by    wire.Token    // the command that stands, zero for none
	until time.Duration // when its time is over, 0 for never
	stuck bool          // it could not be set to its safe level, and is tried again
}

// lease is an output that an attempt has set for a time.
type lease struct {
	token wire.Token
	seq   uint64
	by    *agent
	life  *identity
	pin   string
	at    time.Duration
	// How it ended; 0 while it is held.
	over   wire.LeaseEnd
	overAt time.Duration
	failed bool // a try to end it did not work

	told     wire.LeaseEnd // what its board has told as the end, 0 for nothing
	toldAs   eventKey
	forgiven bool // its end may never be told: see docs/simulation.md
}

// pins is what the checker knows of outputs.
type pins struct {
	facts  map[pinKey]*pinFact
	leases map[wire.Token]*lease
	bySeq  map[uint64][]*lease
	held   map[pinKey]*lease
}

func newPins() pins {
	return pins{facts: map[pinKey]*pinFact{}, leases: map[wire.Token]*lease{}, bySeq: map[uint64][]*lease{}, held: map[pinKey]*lease{}}
}

// Slack of the rules for pins.
const (
	// holdSlack is what the end of a lease may be late: rounding of clocks.
	holdSlack = 5 * time.Millisecond
	// crashSlack is how long after the end of a process its outputs may stay on.
	crashSlack = safeWithin*time.Millisecond + holdSlack
	// replacedWithin is how much earlier than its successor a lease may have ended
	// that is said to have been replaced: the end was on its way to the loop.
	replacedWithin = (endWay + resultWay) * time.Millisecond
)

func (c *checker) pin(a *agent, name string) *pinFact {
	k := pinKey{a, name}
	f := c.pins.facts[k]
	if f == nil {
		f = &pinFact{}
		c.pins.facts[k] = f
	}
	return f
}

// moved notes the level of an output.
func (c *checker) moved(a *agent, pin string, on bool) {
	f := c.pin(a, pin)
	f.on = on
	if !on {
		f.stuck = false
	}
}

// commanded notes a command for an output, and until when it is good at most. One
// that was refused may have moved the output: it prolongs nothing, and where nothing
// has a limit its own counts.
func (c *checker) commanded(a *agent, pin string, on bool, t wire.Token, hold time.Duration, refused bool) {
	f := c.pin(a, pin)
	if refused && (f.until != 0 || hold == 0) {
		return
	}
	f.by, f.until = t, 0
	if !on || hold == 0 {
		return
	}
	until := c.w.now + hold + hold/10_000 + holdSlack
	f.until = until
	c.w.after(until-c.w.now, func() { c.mustBeOff(a, pin, f, until) })
}

// mustBeOff demands that an output is off when the longest time is over for which
// it was set on, whatever has become of the board since.
func (c *checker) mustBeOff(a *agent, pin string, f *pinFact, until time.Duration) {
	if f.until != until || !f.on {
		return
	}
	if f.stuck { // it is tried again
		c.w.after(fallAgain+holdSlack, func() {
			if f.stuck {
				c.mustBeOff(a, pin, f, until)
			} else if f.until == until && f.on {
				c.fail("lease-held", "output %s of %s is still on, and its lease was over at %v", pin, a.tag, until)
			}
		})
		return
	}
	if a.life == nil {
		return // see pinsLeft
	}
	c.fail("lease-held", "output %s of %s is still on, and its lease was over at %v", pin, a.tag, until)
}

// stuck notes that an output could not be set to its safe level.
func (c *checker) stuck(a *agent, pin string, t wire.Token) {
	if f := c.pin(a, pin); f.on {
		f.stuck = true
	}
	if l := c.pins.leases[t]; l != nil {
		l.failed = true
	}
}

// fell checks an output that goes to its safe level by itself: not under a command
// that came later.
func (c *checker) fell(a *agent, pin string, t wire.Token, why wire.LeaseEnd) {
	f := c.pin(a, pin)
	if why == wire.LeaseExpired && !f.by.IsZero() && f.by != t {
		c.fail("lease-fell", "output %s of %s goes to its safe level because the time of token %v is over, and token %v has set it since", pin, a.tag, t, f.by)
	}
	f.by, f.until = wire.Token{}, 0
}

// leased notes that a lease has begun.
func (c *checker) leased(a *agent, pin string, t wire.Token) {
	r := c.runs[t]
	if r == nil {
		c.fail("invented", "output %s of %s is leased for token %v, which was never started", pin, a.tag, t)
		return
	}
	c.w.counts.Leases++
	l := &lease{token: t, seq: r.seq, by: a, life: a.life, pin: pin, at: c.w.now}
	c.pins.leases[t], c.pins.held[pinKey{a, pin}] = l, l
	c.pins.bySeq[l.seq] = append(c.pins.bySeq[l.seq], l)
}

// leaseOver notes the end of a lease.
func (c *checker) leaseOver(a *agent, pin string, t wire.Token, why wire.LeaseEnd) {
	k := pinKey{a, pin}
	if l := c.pins.held[k]; l != nil && l.token == t {
		l.over, l.overAt = why, c.w.now
		delete(c.pins.held, k)
	}
}

// pinsLeft notes the end of a process, with which all its leases end.
func (c *checker) pinsLeft(a *agent) {
	for k := range outputs {
		key := pinKey{a, outputs[k].name}
		if l := c.pins.held[key]; l != nil {
			l.over, l.overAt = wire.LeaseRestart, c.w.now
			delete(c.pins.held, key)
		}
		f := c.pin(a, key.pin)
		f.by, f.until = wire.Token{}, 0
	}
	boots := a.boots
	c.w.after(crashSlack, func() {
		if a.boots == boots {
			c.allOff(a, "after the end of its process")
		}
	})
}

// startedSafe demands safe levels before anything else.
func (c *checker) startedSafe(a *agent) { c.allOff(a, "at the start") }

func (c *checker) allOff(a *agent, when string) {
	for k := range outputs {
		if c.pin(a, outputs[k].name).on {
			c.fail("safe-level", "output %s of %s is on %s", outputs[k].name, a.tag, when)
		}
	}
}

// leaseTold checks the end of a lease as its board tells it.
func (c *checker) leaseTold(a *agent, m *wire.Event, key eventKey) {
	l := c.pins.leases[m.Token]
	if l == nil {
		if !c.memory.unsure[m.Token] {
			c.fail("false-lease", "%s tells the end of a lease of token %v, which has none: %v", a.id, m.Token, m.Lease)
		}
		return
	}
	switch {
	case m.Lease == wire.LeaseFailed:
		if !l.failed {
			c.fail("false-lease", "%s tells that the lease of token %v could not be ended, and nothing has failed", a.id, m.Token)
		}
		return
	case l.by != a || l.forgiven: // another board or an older card has its own view
		return
	case !c.leaseAgrees(l, m.Lease):
		c.fail("false-lease", "%s tells %v as the end of the lease of token %v on %s; it was %v, at %v", a.id, m.Lease, m.Token, l.pin, l.over, l.overAt)
	case l.told != 0 && l.toldAs != key:
		c.fail("lease-twice", "%s tells the end of the lease of token %v as event %d (%v), and has told it as event %d (%v)", a.id, m.Token, m.Number, m.Lease, l.toldAs.number, l.told)
	}
	l.told, l.toldAs = m.Lease, key
}

// leaseAgrees reports whether a reason is true, as far as the board could know. What
// was not written down before the end of a process is told as its end.
func (c *checker) leaseAgrees(l *lease, why wire.LeaseEnd) bool {
	switch why {
	case wire.LeaseRestart:
		return l.by.life != l.life
	case wire.LeaseStopped: // the safe levels at a stop replace what was there
		return l.over == wire.LeaseReplaced
	case wire.LeaseReplaced:
		return l.over == wire.LeaseReplaced || l.over != 0 && c.succeededBy(l)
	}
	return l.over == why
}

// succeededBy reports whether another lease of the output began so soon after the
// end of this one that the word of that was still on its way, or is about to.
func (c *checker) succeededBy(l *lease) bool {
	for _, o := range c.pins.leases {
		if o.pin == l.pin && o.by == l.by && o.at > l.at && o.at-l.overAt < replacedWithin {
			return true
		}
	}
	return false
}

// forgiveLeases notes that what a board had to tell of leases until now it may never
// tell, or once more.
func (c *checker) forgiveLeases(a *agent) {
	for _, l := range c.pins.leases {
		l.forgiven = l.forgiven || a == nil || l.by == a
	}
}

// finalLeases holds the log against what became of an instruction's leases.
func (c *checker) finalLeases(i *engine.Instruction, entries []engine.Entry) {
	ends := map[wire.Token]int{}
	for k := range entries {
		e := &entries[k]
		if e.What != engine.WhatLease {
			continue
		}
		failed := strings.HasPrefix(e.Detail, wire.LeaseFailed.String())
		if ends[e.Token] > 0 && c.copies[i.Node] == 0 {
			c.fail("lease-log", "the timeline of instruction %d goes on after the end of the lease of token %v: %s", i.Seq, e.Token, e.Detail)
		}
		if !failed {
			ends[e.Token]++
		}
		if l := c.pins.leases[e.Token]; l != nil && !l.forgiven && !failed && !strings.HasPrefix(e.Detail, l.told.String()) {
			c.fail("lease-log", "the timeline of instruction %d says of the lease of token %v %q, its board has told %v", i.Seq, e.Token, e.Detail, l.told)
		}
	}
	for _, l := range c.pins.bySeq[i.Seq] {
		_, lost := c.memory.lost[l.token]
		// A process that died before it had the result knows of no lease.
		if l.forgiven || lost || l.told == 0 && c.reported[l.token] != wire.CodeOK {
			continue
		}
		c.w.counts.LeaseEnds[l.told]++
		if l.told == 0 || ends[l.token] == 0 {
			c.fail("lease-log", "instruction %d (%v, %v): the lease of token %v on %s began at %v and ended at %v (%v); told was %v, the timeline has %d ends",
				i.Seq, i.State, i.Code, l.token, l.pin, l.at, l.overAt, l.over, l.told, ends[l.token])
		}
		if i.State != engine.StateSucceeded || i.Token != l.token {
			continue
		}
		switch {
		case i.Lease == nil || !i.Lease.Over():
			c.fail("lease-log", "instruction %d has SUCCEEDED with a lease of %s, which ended at %v (%v), and shows %+v", i.Seq, l.pin, l.overAt, l.over, i.Lease)
		case i.Lease.Pin != l.pin || i.Lease.End != l.told:
			c.fail("lease-log", "instruction %d has a lease of %s that ended as %v, and shows %+v", i.Seq, l.pin, l.told, *i.Lease)
		case (i.Lease.Level == nil) != (l.told == wire.LeaseReplaced) || i.Lease.Level != nil && *i.Lease.Level != 0:
			c.fail("lease-log", "instruction %d says of %s after its lease (%v) another level than it has", i.Seq, l.pin, l.told)
		}
	}
}
