package executor

import (
	"fmt"

	"github.com/apollo-11/apollo11/wire"
	"github.com/apollo-11/apollo11/wire/mutant"
)

// maxEarlyEnds is how many ends of its lease an attempt may have before its
// result is known: one that failed, and the one that worked.
const maxEarlyEnds = 2

// lease is a lease whose end has not been told. It can outlive what the table
// remembers of its attempt.
type lease struct {
	Lease
	attempt attempt // what it was when it ended; its seq, token, times
	failed  bool    // that its end failed has been told
	// unmapped says that the pin map does not have the pin any more: nobody has set
	// it, and nobody knows its level.
	unmapped bool
	// line is the one that the pin was then; 0 if an older journal does not say. A
	// reload may exchange the lines of two names.
	line wire.LineKey
}

// sameLine reports whether a lease is of the same output as another one.
func (l *lease) sameLine(pin string, line wire.LineKey) bool {
	if l.line != 0 && line != 0 && !mutant.On(mutant.LeaseByName) {
		return l.line == line
	}
	return l.Pin == pin
}

// lineOf is the line of a lease that an attempt has begun: it has one alone.
func (a *attempt) lineOf() wire.LineKey {
	if len(a.lines) != 1 {
		return 0
	}
	return a.lines[0]
}

// leaseRecord says that a lease is open. The event that tells of its end closes
// it. It stands before the result of its attempt, so that a journal which was cut
// between the two still knows that there was a lease.
type leaseRecord struct {
	Kind       recordKind `cbor:"0,keyasint"`
	Seq        uint64     `cbor:"1,keyasint"`
	Token      wire.Token `cbor:"2,keyasint"`
	Attempt    uint8      `cbor:"3,keyasint"`
	Made       int64      `cbor:"4,keyasint"`
	Trace      wire.Trace `cbor:"5,keyasint"`
	Intent     string     `cbor:"6,keyasint,omitempty"`
	ReceivedAt int64      `cbor:"7,keyasint,omitempty"`
	StartedAt  int64      `cbor:"8,keyasint,omitempty"`
	Pin        string     `cbor:"9,keyasint"`
	Level      bool       `cbor:"10,keyasint,omitempty"`
	Failed     bool       `cbor:"11,keyasint,omitempty"`
	Plain      bool       `cbor:"12,keyasint,omitempty"`
	// Closed says that it has ended without being told.
	Closed bool         `cbor:"13,keyasint,omitempty"`
	Line   wire.LineKey `cbor:"14,keyasint,omitempty"`
}

func (l *lease) record() leaseRecord {
	a := &l.attempt
	return leaseRecord{kindLease, a.seq, a.token, a.attempt, a.made, a.trace, a.intent, a.receivedAt, a.startedAt, l.Pin, l.Level, l.failed, l.Plain, false, l.line}
}

// open notes a lease, before the result of its attempt is told. A pin has one at a
// time: one that is still open has been replaced, and should its own end come
// after this it is not told twice.
func (c *Core) open(a *attempt, of Lease, line wire.LineKey) {
	for _, l := range c.leases {
		if l.sameLine(of.Pin, line) {
			c.closeLease(l, wire.LeaseReplaced, c.clock.stamp(c.now), nil)
			break
		}
	}
	l := &lease{Lease: of, line: line, attempt: a.facts()}
	c.leases = append(c.leases, l)
	c.record(l.record())
}

// leaseEnded takes the word of the owner of the pins.
func (c *Core) leaseEnded(in LeaseEnded) {
	if in.Why == wire.LeaseReplaced && c.stop.fallen {
		in.Why = wire.LeaseStopped // by the safe levels, on our own word
	}
	at := max(c.clock.stamp(c.now)-max(in.Ago, 0).Milliseconds(), 1)
	for _, l := range c.leases {
		if l.attempt.token == in.Token {
			c.closeLease(l, in.Why, at, in.Level)
			return
		}
	}
	// A short lease may be over before the loop has the result of its attempt.
	if a := c.table.known[in.Token]; a != nil && a.state == running && len(a.early) < maxEarlyEnds && !mutant.On(mutant.EarlyEndLost) {
		a.early = append(a.early, earlyEnd{in.Why, at, in.Level})
		return
	}
	c.note(LevelDebug, "end of a lease that is not open", in.Token.String()+" "+in.Why.String())
}

// earlyEnd is the end of a lease whose attempt has not ended for the core.
type earlyEnd struct {
	why   wire.LeaseEnd
	at    int64
	level *bool
}

// closeLease tells the end of a lease. One that failed stays open: the owner goes
// on trying, and what comes of it is told as well. That a level without a time limit
// was replaced is what everybody expects of it: it is written down and not told.
// level is what the owner of the pins has driven, nil if it did not say.
func (c *Core) closeLease(l *lease, why wire.LeaseEnd, at int64, level *bool) {
	if why == wire.LeaseFailed && l.failed {
		return
	}
	a := &l.attempt
	if l.Plain && (why == wire.LeaseReplaced || mutant.On(mutant.PlainUntold)) {
		r := l.record()
		r.Closed = true
		c.record(r)
		c.leases = withoutLease(c.leases, a.token)
		return
	}
	c.tellEnd(l, why, at, level)
	weight := LevelInfo
	if why == wire.LeaseFailed {
		weight, l.failed = LevelWarn, true
	} else {
		c.leases = withoutLease(c.leases, a.token)
	}
	c.noteOf(weight, a, "lease ended", fmt.Sprintf("%s: %s", l.Pin, why))
}

// tellEnd tells the end of a level.
func (c *Core) tellEnd(l *lease, why wire.LeaseEnd, at int64, level *bool) {
	a := &l.attempt
	ev := &wire.Event{Seq: a.seq, Token: a.token, Attempt: a.attempt, Phase: wire.PhaseLease,
		ReceivedAt: a.receivedAt, StartedAt: a.startedAt, FinishedAt: max(at, a.startedAt), Lease: why, Payload: l.payload(why, level)}
	c.number(ev)
	r := c.eventRecord(ev)
	r.Made, r.Trace, r.Intent = a.made, a.trace, a.intent
	c.record(r)
}

// tellPulse tells, behind the result of a pulse, that the board has ended it by itself.
// That a newer instruction or a cancel has cut it the result says.
func (c *Core) tellPulse(a *attempt, r Result) {
	e := r.Ended
	if e == nil || r.Lease != nil {
		return // what it has left has an end of its own
	}
	switch e.Why {
	case wire.LeaseLoss, wire.LeaseStopped, wire.LeaseRestart, wire.LeaseLocal, wire.LeaseReload, wire.LeaseHand:
		c.tellEnd(&lease{Lease: Lease{Pin: e.Pin}, attempt: a.facts(), unmapped: e.Level == nil}, e.Why, a.finishedAt, e.Level)
		c.noteOf(LevelInfo, a, "the board has ended a pulse", fmt.Sprintf("%s: %s", e.Pin, e.Why))
	}
}

// facts are what the end of a level says of its attempt.
func (a *attempt) facts() attempt {
	return attempt{seq: a.seq, token: a.token, attempt: a.attempt, made: a.made, trace: a.trace,
		intent: a.intent, receivedAt: a.receivedAt, startedAt: a.startedAt}
}

// payload names the pin, and its level: what was driven, or what the reason says.
func (l *lease) payload(why wire.LeaseEnd, driven *bool) wire.RawMap {
	m := map[string]any{"pin": l.Pin}
	level, known := l.Level, !l.unmapped
	switch why {
	case wire.LeaseFailed, wire.LeaseReplaced, wire.LeaseHand:
		known = false
	}
	if driven != nil {
		level, known = *driven, true
	}
	if known {
		m["level"] = uint64(0)
		if level {
			m["level"] = uint64(1)
		}
	}
	b, err := wire.EncodeMap(m, wire.MaxPayloadBytes)
	if err != nil {
		return nil // a name that cannot be sent
	}
	return b
}

// closeAllLeases tells, after a restart, that every lease has ended: the pins were
// set to their safe levels before anything else.
func (c *Core) closeAllLeases() {
	if mutant.On(mutant.LeaseForgotten) {
		c.leases = nil
	}
	for len(c.leases) > 0 {
		l := c.leases[0]
		if c.cfg.Safe != nil {
			level, ok := c.cfg.Safe(l.Pin)
			l.Level, l.unmapped = level, !ok
		}
		c.closeLease(l, wire.LeaseRestart, max(c.clock.stamp(c.now), l.attempt.startedAt), nil)
	}
}

func withoutLease(list []*lease, t wire.Token) []*lease {
	for i, l := range list {
		if l.attempt.token == t {
			return append(list[:i:i], list[i+1:]...)
		}
	}
	return list
}

func (c *Core) replayLease(r leaseRecord) error {
	if r.Closed {
		c.leases = withoutLease(c.leases, r.Token)
		return nil
	}
	c.leases = append(withoutLease(c.leases, r.Token), &lease{Lease: Lease{Pin: r.Pin, Level: r.Level, Plain: r.Plain}, failed: r.Failed, line: r.Line,
		attempt: attempt{seq: r.Seq, token: r.Token, attempt: r.Attempt, made: r.Made, trace: r.Trace, intent: r.Intent,
			receivedAt: r.ReceivedAt, startedAt: r.StartedAt}})
	c.table.see(r.Seq, r.Token.Seq)
	return nil
}

// replayLeaseEnd takes an event that told of the end of a lease.
func (c *Core) replayLeaseEnd(ev *wire.Event) {
	if ev.Lease != wire.LeaseFailed {
		c.leases = withoutLease(c.leases, ev.Token)
		return
	}
	for _, l := range c.leases {
		if l.attempt.token == ev.Token {
			l.failed = true
		}
	}
}

// readable returns an event as the gateway of this session can read it. One that
// knows no ends of leases gets something in its place that changes nothing there,
// because numbers may have no holes; one without Rules gets the nearest code or end
// that it knows, with the same sentence.
func (c *Core) readable(ev *wire.Event) *wire.Event {
	if ev.Phase > max(c.session.phases, wire.OldMaxPhase) {
		return &wire.Event{Number: ev.Number, Seq: ev.Seq, Token: ev.Token, Attempt: ev.Attempt, Phase: wire.PhaseReceived, ReceivedAt: ev.ReceivedAt}
	}
	code, end := c.told(ev.Code), ev.Lease
	if !c.ordered() {
		end = end.OldLeaseEnd()
	}
	if code == ev.Code && end == ev.Lease {
		return ev
	}
	old := *ev
	old.Code, old.Lease = code, end
	return &old
}

// Leases returns how many leases are open, whose ends are still to be told.
func (c *Core) Leases() int { return len(c.leases) }
