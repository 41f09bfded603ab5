package executor

import (
	"fmt"
	"slices"
	"time"

	"github.com/apollo-11/apollo11/wire"
	"github.com/apollo-11/apollo11/wire/mutant"
)

func (c *Core) newAttempt(in *wire.Instruction) *attempt {
	c.arrivals++
	a := &attempt{
		came: c.arrivals,
		seq:  in.Seq, token: in.Token, attempt: in.Attempt, trace: in.Trace, intent: in.Intent,
		state: queued, work: in, arrivedMono: c.now.Mono, timeout: c.timeoutOf(in), order: orderOf(in), keeps: in.Keep,
		throws: c.now.Throws,
	}
	// The key was checked when the message was decoded.
	if k, err := wire.ParseKey(in.Key); err == nil {
		a.made = k.Millis
	}
	return a
}

func (c *Core) timeoutOf(in *wire.Instruction) time.Duration {
	if in.TimeoutMs > 0 {
		return time.Duration(in.TimeoutMs) * time.Millisecond
	}
	return c.cfg.DefaultTimeout // an older gateway
}

// deliver takes an instruction. The token is looked up before anything else.
func (c *Core) deliver(in *wire.Instruction) {
	if a := c.table.known[in.Token]; a != nil {
		a.offered = true
		c.repeated(a)
		if a.state == ended {
			c.driveAgain(a, in)
		}
		return
	}
	if mutant.On(mutant.LateStarts) {
		forever := *in
		forever.NotAfter = 0
		in = &forever
	}
	a := c.newAttempt(in)
	a.offered, a.epoch = true, c.session.epoch
	if in.Throws != 0 {
		a.throws = in.Throws - 1 // those that the gateway had heard of
	}
	v := c.judge(a)
	safe := a.towards // and fit
	switch {
	case c.stop.stopping && (!safe || c.stop.done):
		c.noteOf(LevelDebug, a, "instruction ignored", "the agent is stopping")
		return
	case c.session.refused != "":
		c.noteOf(LevelDebug, a, "instruction ignored", "the gateway has refused this node")
		return
	}
	if !c.roomFor(a) {
		return
	}
	forgotten := c.table.forgotten(in.Token, a.made) // also by the room that was just made for it
	a.receivedAt = c.clock.stamp(c.now)
	before := c.table.newest[a.seq]
	c.table.add(a)
	c.unkeep(a.seq)
	if o := a.older; o != nil && o.state == queued {
		c.end(o, Result{Code: wire.CodeStaleToken,
			Detail: fmt.Sprintf("attempt %d of this instruction arrived before this one had started", a.attempt)})
	}
	r := c.unfit(a, v, before, forgotten)
	if safe && (r.Code == wire.CodeNone || !mutant.On(mutant.RefusalSpares)) {
		c.withdraw(a)
	}
	switch {
	case r.Code != wire.CodeNone:
		c.end(a, r)
		if safe && forgotten {
			c.driveAgain(a, in)
		}
	case safe && !mutant.On(mutant.OffWaitsForWorker):
		c.startSafe(a)
	default:
		a.seat(c.queue)
		c.queue = append(c.queue, a)
	}
}

// judge asks the board about an attempt. What it can't do, or what means another line
// by now, is not towards safe either.
func (c *Core) judge(a *attempt) Verdict {
	v := c.cfg.Check(a.intent, a.work.Args)
	if v.Lasts > 0 && a.work.TimeoutMs == 0 {
		a.timeout = max(a.timeout, wire.TimeoutFor(wire.Act{Lasts: v.Lasts}))
	}
	switch {
	case v.Code != wire.CodeNone:
		v.Towards = false
	case v.Towards:
		v.Lines = c.safeLines(a.work, v)
	default:
		if why := mapChanged(a.work, v); why != "" {
			v.Code, v.Detail = wire.CodeMapChanged, why
		}
	}
	a.take(v)
	return v
}

// roomFor reports whether a new attempt can be taken in. If not it leaves no trace.
func (c *Core) roomFor(a *attempt) bool {
	reserve := 0
	if a.towards && !mutant.On(mutant.OffWaitsForRoom) {
		reserve = safeReserve
	}
	table := c.table.room(c.now.Mono, c.through, reserve) && c.tellable(reserve)
	switch {
	case table && (a.towards && reserve > 0 || !c.ordered() || len(c.queue) < c.cfg.MaxQueue || c.replaces(a) || c.keepsFor(a.seq)):
		return true
	case a.towards && reserve > 0:
		c.driveAndTell(a)
	case c.ordered():
		c.full(a)
	default:
		c.noteOf(LevelWarn, a, "instruction ignored", "too many results wait for the gateway's acknowledgement; it will be sent again")
	}
	return false
}

// replaces reports whether an earlier attempt of the same instruction waits: the new one
// takes its place.
func (c *Core) replaces(a *attempt) bool {
	o := c.table.newest[a.seq]
	return o != nil && o.state == queued && o.staleAfter(a)
}

// unfit says why a new attempt is not queued; CodeNone if it is. What is towards safe
// is hindered by its own expiry, its cancel and the LOCAL switch alone.
func (c *Core) unfit(a *attempt, v Verdict, before *attempt, forgotten bool) Result {
	if forgotten {
		return Result{Code: wire.CodeUnknown,
			Detail: "this token is older than what the agent remembers: it may have run before, so it is not run now; retry the instruction if it must run"}
	}
	if c.dropAhead(a.seq, a.attempt) && !mutant.On(mutant.AheadForgotten) {
		return Result{Code: wire.CodeCancelled, Detail: "cancelled before it arrived"}
	}
	if a.staleAfter(before) {
		return Result{Code: wire.CodeStaleToken, Detail: fmt.Sprintf("attempt %d of this instruction is already known", before.attempt)}
	}
	// What is towards safe is driven once more, unless that would be too late.
	if o := a.succeeded(); o != nil && (!a.towards || c.overtaken(a) != 0) {
		return c.resultOf(a, o)
	}
	if mutant.On(mutant.EasyBusy) && a.attempt == 1 && a.seq%2 == 0 && !a.towards {
		return Result{Code: wire.CodeBusy, Detail: "busy"}
	}
	if v.Code != wire.CodeNone {
		return Result{Code: v.Code, Detail: v.Detail}
	}
	if by := c.overtaken(a); by != 0 {
		return superseded(by)
	}
	if c.heldSafe(a) {
		return Result{Code: wire.CodeHeldSafe, Detail: "its line is held at the safe level until somebody releases it"}
	}
	if a.actuates && c.local {
		return c.byHand()
	}
	if c.disturbed(c.now, a) && !mutant.On(mutant.LocalOnArrival) {
		return c.wasByHand()
	}
	if a.watch && c.watches() >= MaxWatches {
		return Result{Code: wire.CodeResources, Detail: fmt.Sprintf("%d watches run or wait already", MaxWatches)}
	}
	if c.late(a) {
		return c.expired(a, "when it arrived")
	}
	if len(c.queue) >= c.cfg.MaxQueue && !a.towards && !c.ordered() {
		return Result{Code: wire.CodeResources, Detail: fmt.Sprintf("%d instructions are waiting already", len(c.queue))}
	}
	return Result{}
}

// resultOf answers an attempt with the success of an earlier one of the same
// instruction.
func (c *Core) resultOf(a, o *attempt) Result {
	a.startedAt = o.startedAt
	detail := fmt.Sprintf("attempt %d of this instruction has done it already, so it was not run again", o.attempt)
	if o.detail != "" {
		detail += ": " + o.detail
	}
	return Result{Code: wire.CodeOK, Detail: detail}
}

// expired is the refusal of what has come too late. It is said only of what is late
// for certain.
func (c *Core) expired(a *attempt, when string) Result {
	ms, _ := c.clock.earliest(c.now)
	return Result{Code: wire.CodeExpired, Detail: fmt.Sprintf("not_after had passed %v before, %s", span(ms, a.work.NotAfter), when)}
}

// late reports whether a waiting attempt must not start any more. It is not late
// while the time is not known; nor may it start then.
func (c *Core) late(a *attempt) bool {
	if mutant.On(mutant.DoubtIsExpired) {
		return !c.clock.ahead(c.now, a.work.NotAfter)
	}
	return c.clock.past(c.now, a.work.NotAfter)
}

// timely reports whether a waiting attempt may start as far as time goes.
func (c *Core) timely(a *attempt) bool { return c.clock.ahead(c.now, a.work.NotAfter) }

// repeated answers a token that is known: a resend, a duplicate, or a question.
func (c *Core) repeated(a *attempt) {
	c.hear(a)
	c.retell(a)
	c.send(&wire.Report{States: []wire.State{c.status(a)}})
}

// hear puts a waiting attempt in the journal with its received event, so that the
// agent may speak of it.
func (c *Core) hear(a *attempt) {
	if a.state != queued || a.stored {
		return
	}
	a.stored, a.first = true, c.next
	c.record(a.queuedRecord())
	c.emit(a, &wire.Event{Phase: wire.PhaseReceived})
}

// retell tells the end of an attempt again, if the gateway seems to need it:
// under way events are sent again, and one that was acknowledged is told under a
// new number. So at most one telling is ever under way.
func (c *Core) retell(a *attempt) {
	if a.state != ended {
		return
	}
	if a.last > c.through {
		c.goBackSoon()
		return
	}
	if c.tellable(0) {
		c.emit(a, &wire.Event{Phase: wire.PhaseProcessed, Code: a.code, Detail: a.detail})
	}
}

func (c *Core) query(m *wire.Query) {
	states := make([]wire.State, 0, len(m.Refs))
	for _, r := range m.Refs {
		a := c.table.known[r.Token]
		if a == nil {
			states = append(states, wire.State{Seq: r.Seq, Token: r.Token, Status: wire.StatusNever})
			continue
		}
		a.offered = true
		c.hear(a)
		c.retell(a)
		states = append(states, c.status(a))
	}
	c.send(&wire.Report{States: states})
}

func (c *Core) cancel(m *wire.Cancel) {
	c.unkeep(m.Seq)
	a := c.table.known[m.Token]
	if a != nil {
		c.cancelAttempt(a, m.Reason)
		return
	}
	if c.endLease(m.Token) {
		return // of an attempt that is forgotten; the end of the lease answers
	}
	if c.stop.stopping || !c.table.room(c.now.Mono, c.through, 0) {
		return // it will be sent again
	}
	// Remember the token, so that it is not run if it arrives later. A cancel
	// does not say which attempt it is: the one after the newest known.
	a = &attempt{seq: m.Seq, token: m.Token, attempt: 1, trace: m.Trace, state: queued, receivedAt: c.clock.stamp(c.now)}
	if b := c.table.newest[m.Seq]; b != nil {
		a.made = b.made
		if b.attempt < wire.MaxAttempt {
			a.attempt = b.attempt + 1
		}
	}
	c.table.add(a)
	c.end(a, Result{Code: wire.CodeCancelled, Detail: "cancelled before it arrived: " + m.Reason})
}

func (c *Core) cancelAttempt(a *attempt, reason string) {
	switch a.state {
	case queued:
		c.end(a, Result{Code: wire.CodeCancelled, Detail: "cancelled before it started: " + reason})
	case running:
		c.abort(a)
	case ended:
		c.endLease(a.token)
		c.retell(a)
	}
}

// endLease ends the living lease of an attempt that has ended, and reports whether it
// has one. That of a newer instruction is not its own.
func (c *Core) endLease(t wire.Token) bool {
	for _, l := range c.leases {
		if l.attempt.token == t && !l.Plain {
			c.out.EndLease = append(c.out.EndLease, t)
			return true
		}
	}
	return false
}

// queryCompact says what became of exactly that attempt. A question leaves no
// trace; one about an attempt that waits brings that into the journal first.
func (c *Core) queryCompact(f wire.CompactQuery) {
	code := wire.CodeNever
	if a := c.table.attemptOf(f.Seq, f.Attempt); a != nil {
		c.hear(a)
		code = a.progress()
	} else if c.isAhead(f.Seq, f.Attempt) {
		code = wire.CodeCancelled // as the cancel was answered
	}
	c.answerCompact(f.Seq, f.Attempt, code)
}

func (c *Core) cancelCompact(f wire.CompactCancel) {
	if a := c.table.attemptOf(f.Seq, f.Attempt); a != nil {
		c.unkeep(f.Seq)
		c.cancelAttempt(a, "by narrowband")
		c.answerCompact(f.Seq, f.Attempt, a.progress())
		return
	}
	if c.stop.stopping || f.Attempt == 0 || !c.session.met {
		// Of another board under this name, or of a life that the gateway has not met,
		// "cancelled" would be false: somebody else may be running it.
		return
	}
	c.dropAhead(f.Seq, f.Attempt)
	c.addAhead(cancelAhead{f.Seq, f.Attempt, c.now.Mono})
	c.record(aheadRecord{kindAhead, f.Seq, f.Attempt})
	c.answerCompact(f.Seq, f.Attempt, wire.CodeCancelled)
}

func (c *Core) addAhead(r cancelAhead) {
	c.table.see(r.seq, 0)
	if len(c.ahead) >= MaxCancelledAhead {
		c.ahead = c.ahead[1:]
	}
	c.ahead = append(c.ahead, r)
}

// isAhead reports whether a cancel waits for that attempt.
func (c *Core) isAhead(seq uint64, attempt uint8) bool {
	return slices.ContainsFunc(c.ahead, func(r cancelAhead) bool {
		return r.seq == seq && r.attempt == attempt && c.now.Mono-r.at < AheadFor
	})
}

// dropAhead forgets the cancel of an attempt that had not arrived, and those that
// are too old, and reports whether it was there.
func (c *Core) dropAhead(seq uint64, attempt uint8) (found bool) {
	c.ahead = slices.DeleteFunc(c.ahead, func(r cancelAhead) bool {
		same := r.seq == seq && r.attempt == attempt
		found = found || same
		return same || c.now.Mono-r.at >= AheadFor
	})
	return found
}

// clip shortens a sentence to most bytes, at a character boundary.
func clip(s string, most int) string {
	if len(s) <= most {
		return s
	}
	n := most
	for n > 0 && s[n]&0xc0 == 0x80 {
		n--
	}
	return s[:n]
}
