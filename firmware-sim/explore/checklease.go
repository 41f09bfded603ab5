package explore

import (
	"strings"
	"time"

	"github.com/apollo-11/apollo11/fieldagent/lines"
	"github.com/apollo-11/apollo11/gateway/engine"
	"github.com/apollo-11/apollo11/wire"
)

// lease is an output that an attempt has set away from its safe level and that the
// board may end by itself.
type lease struct {
	token wire.Token
	seq   uint64
	by    *agent
	life  *identity
	pin   string
	line  wire.LineKey
	plain bool // without a time
	at    time.Duration
	// How it ended; 0 while it is held.
	over   wire.LeaseEnd
	overAt time.Duration
	level  bool // that the line had then
	failed bool // a try to end it did not work
	doubt  bool // something newer may have set the line

	told     wire.LeaseEnd // what its board has told as the end, 0 for nothing
	toldAs   eventKey
	forgiven bool // its end may never be told: see docs/simulation.md
}

// leased notes that a lease has begun.
func (c *checker) leased(a *agent, p *pinDef, x *work, plain bool) {
	r := c.runs[x.Token]
	if r == nil {
		c.fail("invented", "output %s of %s is leased for token %v, which was never started", p.name, a.tag, x.Token)
		return
	}
	c.w.counts.Leases++
	l := &lease{token: x.Token, seq: r.seq, by: a, life: a.life, pin: p.name, line: p.line, plain: plain, at: c.w.now}
	c.pins.leases[x.Token], c.pins.held[lineKey{a, p.line}] = l, l
	c.pins.bySeq[l.seq] = append(c.pins.bySeq[l.seq], l)
}

// renews holds a renewal against the log: its lease ends its own length after it was
// taken, and so its agent is told.
func (c *checker) renews(m *wire.Instruction) {
	i := c.book.insts[m.Seq]
	if i.EndsBy == 0 {
		return
	}
	if act, err := wire.ParseAct(i.Intent, i.Args); err != nil || i.EndsBy > i.Created+act.MaxOn.Milliseconds() || i.NotAfter == 0 || i.NotAfter > i.EndsBy {
		c.fail("renewal", "instruction %d was taken at %d, is to begin by %d and its lease to end by %d (%v)", i.Seq, i.Created, i.NotAfter, i.EndsBy, err)
	}
	c.orders.ends[m.Seq] = i.EndsBy
}

// overFor notes that what held a line has ended, because of what happens to it now.
func (c *checker) overFor(a *agent, key wire.LineKey, why wire.LeaseEnd, level bool) {
	k := lineKey{a, key}
	if l := c.pins.held[k]; l != nil {
		l.over, l.overAt, l.level = why, c.w.now, level
		delete(c.pins.held, k)
	}
}

// leaseOver takes the word of the owner where nothing moves: the map says now that the
// level is a safe one, or a hand has moved the line.
func (c *checker) leaseOver(a *agent, e lines.End, t wire.Token) {
	k := lineKey{a, e.Line}
	l := c.pins.held[k]
	if f := c.line(a, e.Line); e.Why == wire.LeaseReload && f.by == t {
		f.by, f.until = wire.Token{}, 0
	}
	if l == nil || l.token != t || e.Why != wire.LeaseReload && e.Why != wire.LeaseHand {
		return
	}
	if e.Why == wire.LeaseReload && c.pins.reloads[a] == 0 {
		c.fail("false-lease", "%s ends the lease of token %v for a reload, and there was none", a.id, t)
	}
	l.over, l.overAt, l.level = e.Why, c.w.now, e.Level
	delete(c.pins.held, k)
}

// leaseTold checks the end of a lease as its board tells it.
func (c *checker) leaseTold(a *agent, m *wire.Event, key eventKey) {
	l := c.pins.leases[m.Token]
	if l == nil && c.pulseTold(a, m) {
		return
	}
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
	if at, ok := toldLevel(m.Payload); ok && at != l.level && m.Lease != wire.LeaseRestart && m.Lease == l.over {
		c.fail("told-level", "%s tells that %s is %s after the lease of token %v (%v), it was %s", a.id, l.pin, onOff(at), m.Token, m.Lease, onOff(l.level))
	}
	l.told, l.toldAs = m.Lease, key
}

// pulseTold reports whether what is told is the end of a pulse that the board has ended
// by itself, or that the end of a process has cut.
func (c *checker) pulseTold(a *agent, m *wire.Event) bool {
	if r := c.runs[m.Token]; m.Lease == wire.LeaseRestart {
		return r == nil || r.life != a.life
	}
	e, ok := c.pins.cuts[m.Token]
	level, known := toldLevel(m.Payload)
	return ok && (e.Why == m.Lease || m.Lease == wire.LeaseStopped && e.Why == wire.LeaseCancelled) && known && level == e.Level
}

func toldLevel(payload wire.RawMap) (level, ok bool) {
	m, err := wire.DecodeMap(payload)
	if err != nil {
		return false, false
	}
	n, ok := m["level"].(uint64)
	return n == 1, ok
}

// leaseAgrees reports whether a reason is true, as far as the board could know. What
// was not written down before the end of a process is told as its end.
func (c *checker) leaseAgrees(l *lease, why wire.LeaseEnd) bool {
	switch why {
	case wire.LeaseRestart:
		return l.by.life != l.life
	case wire.LeaseStopped: // the safe levels at a stop replace what was there
		return l.over == wire.LeaseReplaced || l.over == wire.LeaseStopped
	case wire.LeaseReplaced:
		return l.over == wire.LeaseReplaced || l.over != 0 && (l.doubt || c.succeededBy(l))
	case wire.LeaseCancelled:
		return l.over == wire.LeaseExpired && c.cancelAsked(l.token)
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

// finalLeases holds the log against what became of an instruction's leases: each end
// that no instruction has caused is told.
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
		// A process that died before it had the result knows of no lease. That a level
		// without a time was replaced is told nobody.
		if l.forgiven || lost || l.told == 0 && (c.reported[l.token] != wire.CodeOK || l.plain && (l.over == 0 || l.over == wire.LeaseReplaced || l.doubt || c.succeededBy(l))) {
			continue
		}
		c.w.counts.LeaseEnds[l.told]++
		if l.told == 0 || ends[l.token] == 0 {
			c.fail("lease-log", "instruction %d (%v, %v): what token %v has set at %s at %v ended at %v (%v, without a time %v); told was %v, the timeline has %d ends",
				i.Seq, i.State, i.Code, l.token, l.pin, l.at, l.overAt, l.over, l.plain, l.told, ends[l.token])
		}
		if i.State != engine.StateSucceeded || i.Token != l.token {
			continue
		}
		switch {
		case i.Lease == nil || !i.Lease.Over():
			c.fail("lease-log", "instruction %d has SUCCEEDED with a lease of %s, which ended at %v (%v), and shows %+v", i.Seq, l.pin, l.overAt, l.over, i.Lease)
		case i.Lease.Pin != l.pin || i.Lease.End != l.told:
			c.fail("lease-log", "instruction %d has a lease of %s that ended as %v, and shows %+v", i.Seq, l.pin, l.told, *i.Lease)
		case i.Lease.Level != nil && (*i.Lease.Level == 1) != l.level && l.told == l.over:
			c.fail("lease-log", "instruction %d says of %s after its lease (%v) another level than it has", i.Seq, l.pin, l.told)
		}
	}
}

// finalLevels holds the outputs against what the gateway shows of the newest command of
// each: its level, or an end that was told.
func (c *checker) finalLevels() {
	for _, k := range c.pins.sorted() {
		f := c.pins.facts[k]
		r := f.newest
		if r == nil || c.memory.older || c.copies[k.board.id] > 0 || c.wipes[k.board.id] {
			continue
		}
		i := c.book.insts[r.seq]
		if i.State != engine.StateSucceeded || i.Token != r.token || f.level == f.newestLevel || i.Lease != nil && i.Lease.Over() {
			continue
		}
		if p := k.board.pins.m.byLine[k.line]; p.hasSafe {
			c.fail("untold", "%s of %s is %s; instruction %d, the newest there, is SUCCEEDED with %s, and nothing says what has ended it", p.name, k.board.id, onOff(f.level), r.seq, onOff(f.newestLevel))
		}
	}
}
