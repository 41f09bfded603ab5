package engine

import (
	"fmt"
	"time"

	"github.com/apollo-11/apollo11/wire"
	"github.com/apollo-11/apollo11/wire/mutant"
)

// receivedCheck is how often an instruction that waits inside an agent is asked
// after.
const receivedCheck = 60 * time.Second

// report is what an agent says of one attempt, whatever the path.
type report struct {
	phase   wire.Phase
	code    wire.Code
	detail  string
	payload wire.RawMap
	// Agent's times, Unix ms, 0 when not told.
	received, started, finished int64
	percent                     uint8
	event                       uint64
	fresh                       bool // an event that was not told before
	path                        Path
}

// inOrder takes the number of an event: only the one after the last is taken; a
// lower one was taken before, a higher one means that something is missing (B7).
func (e *Engine) inOrder(n *node, number uint64) bool {
	e.effects.Counts.Events++
	e.owe(n)
	if number <= n.cursor.Last {
		e.effects.Counts.DuplicateEvents++
		return false
	}
	if number > n.cursor.Last+1 && !mutant.On(mutant.GapAccepted) {
		e.effects.Counts.EventGaps++
		n.gap = true
		return false
	}
	n.cursor.Last = number
	e.moveCursor(n)
	return true
}

// event takes in the next event of a node.
func (e *Engine) event(now Now, n *node, m *wire.Event) {
	fresh := n.untold(now, m.Number)
	n.told = max(n.told, m.Number)
	if !e.inOrder(n, m.Number) {
		return
	}
	if m.Phase == wire.PhaseLease {
		e.leaseEnded(now, n, m)
		return
	}
	i := e.reported(now, n, m)
	if i == nil {
		return
	}
	if m.Phase == wire.PhaseProgress && m.Payload != nil {
		pin, _ := pinOf(m.Payload)
		e.pinNews(now, i, PinNews{Pin: pin, Edges: m.Payload, Event: m.Number})
	}
	e.take(now, i, report{phase: m.Phase, code: m.Code, detail: m.Detail, payload: m.Payload,
		received: m.ReceivedAt, started: m.StartedAt, finished: m.FinishedAt, percent: m.Percent,
		event: m.Number, fresh: fresh, path: PathPrimary})
}

// reported finds the instruction of a report and checks that the node may speak
// of it. A report with another token than the current one is refused and
// alarmed (A5).
func (e *Engine) reported(now Now, n *node, m *wire.Event) *inst {
	i := e.insts[m.Seq]
	if i == nil || i.node != n {
		why := fmt.Sprintf("%s speaks of instruction %d, which is not this node's", wire.EventID(n.ID, m.Number), m.Seq)
		e.effects.Counts.UnknownReports++
		e.alarm(now, "unknown_report", n.ID, why)
		e.garbage(now, &Garbage{Kind: "event", From: n.ID, Reason: why})
		return nil
	}
	if i.Token != m.Token && m.Code == wire.CodeStaleToken {
		// The agent says itself that a newer attempt has overtaken this one.
		e.log(now, i, Entry{What: WhatRefused, Path: PathPrimary, Actor: n.ID, Token: m.Token, Attempt: m.Attempt,
			Code: m.Code, Event: m.Number, Detail: m.Detail})
		return nil
	}
	if i.Token != m.Token && !mutant.On(mutant.StaleAccepted) {
		e.stale(now, i, Entry{What: WhatRefused, Path: PathPrimary, Actor: n.ID, Token: m.Token, Attempt: m.Attempt,
			Code: m.Code, Event: m.Number, Detail: fmt.Sprintf("%s carries the token %v, which is not the current one", wire.EventID(n.ID, m.Number), m.Token)})
		return nil
	}
	return i
}

func (e *Engine) stale(now Now, i *inst, en Entry) {
	e.effects.Counts.StaleReports++
	e.alarm(now, "stale_report", i.Key(e.cfg.Site), en.Detail)
	e.log(now, i, en)
}

// compact takes in a compact ack (B3). It is idempotent: the agent repeats it
// until the primary path has confirmed the same.
func (e *Engine) compact(now Now, in *Compact) {
	e.effects.Counts.CompactAcks++
	n := e.nodes[e.shorts[in.Short]]
	if e.compactSafe(now, n, in.Ack) {
		return
	}
	i := e.insts[in.Ack.Seq]
	if n == nil || i == nil || i.node != n {
		e.effects.Counts.UnknownReports++
		e.alarm(now, "unknown_report", in.Short, fmt.Sprintf("a compact ack speaks of instruction %d, which is not this node's", in.Ack.Seq))
		return
	}
	if in.Ack.Attempt == 0 || in.Ack.Attempt != i.Attempt {
		// Before the first dispatch Attempt is 0: then no ack can be true.
		e.stale(now, i, Entry{What: WhatRefused, Path: PathNarrowband, Actor: n.ID, Attempt: in.Ack.Attempt,
			Detail: fmt.Sprintf("a compact ack of attempt %d; the current one is %d", in.Ack.Attempt, i.Attempt)})
		return
	}
	r := report{path: PathNarrowband, code: in.Ack.Code}
	switch {
	case in.Ack.Code == wire.CodeNever:
		e.never(now, i)
		return
	case in.Ack.Code == wire.CodeReceived:
		r.phase, r.code = wire.PhaseReceived, wire.CodeNone
	case in.Ack.Code == wire.CodeStarted:
		r.phase, r.code = wire.PhaseStarted, wire.CodeNone
	case in.Ack.Code.Class() == wire.ClassProgress:
		return // never: the answer to a question that is not asked on this path
	default:
		r.phase = wire.PhaseProcessed
	}
	if e.take(now, i, r) {
		e.effects.Counts.CompactFirst++
	}
}

// states takes in the answer to a query.
func (e *Engine) states(now Now, n *node, m *wire.Report) {
	for _, s := range m.States {
		i := e.insts[s.Seq]
		if i == nil && s.Status == wire.StatusDriven {
			e.lostRecord(now, n, s.Seq)
		}
		if i == nil || i.node != n || i.Token != s.Token || i.State.Settled() || i.waiting() {
			continue
		}
		r := report{path: PathPrimary}
		switch s.Status {
		case wire.StatusNever:
			if i.ReceivedAt != 0 {
				e.giveUp(now, i, ReasonForgotten, "the node had confirmed it and now does not know it")
				e.arm(now, i)
			}
			continue
		case wire.StatusFull:
			e.noRoom(now, i)
			e.arm(now, i)
			continue
		case wire.StatusDriven:
			e.drive(now, i, PathPrimary)
			continue
		case wire.StatusQueued:
			r.phase = wire.PhaseReceived
			i.queries = 0
		case wire.StatusRunning:
			r.phase = wire.PhaseStarted
		case wire.StatusDone:
			if s.Code.Class() == wire.ClassProgress {
				continue // it ended, and only its event will say how
			}
			r.phase, r.code, r.detail = wire.PhaseProcessed, s.Code, "from the node's answer to a query"
		}
		e.take(now, i, r)
	}
}

// take applies a report that is known to be about the current attempt. It
// returns whether the report brought anything new.
func (e *Engine) take(now Now, i *inst, r report) bool {
	defer e.arm(now, i)
	e.arrived(now, i, r)
	if e.stopped(now, i, r) {
		return true
	}
	if i.Code != wire.CodeNone || i.State.Settled() || i.waiting() && r.phase != wire.PhaseProcessed {
		return e.late(now, i, r)
	}
	news := e.confirm(now, i, r)
	switch r.phase {
	case wire.PhaseReceived:
		if i.StartedAt == 0 {
			e.watchExec(now, i)
		}
		return news
	case wire.PhaseStarted:
		return e.started(now, i, r) || news
	case wire.PhaseProgress:
		e.started(now, i, r)
		e.progress(now, i, r)
		return true
	}
	e.processed(now, i, r)
	return true
}

// stopped notes that the agent has stopped an execution because the engine told
// it to when its time was over: that was no cancellation. The timeout stands, and
// so does the next attempt if one was decided.
func (e *Engine) stopped(now Now, i *inst, r report) bool {
	if r.phase != wire.PhaseProcessed || r.code.Class() != wire.ClassCancelled || i.CancelBy != "" || i.By != 0 || i.Code != wire.CodeNone {
		return false
	}
	if !i.waiting() && i.State != StateTimeout {
		return false
	}
	i.Code, i.Detail, i.Payload, i.Path, i.FinishedAt = r.code, r.detail, r.payload, r.path, r.finished
	e.log(now, i, Entry{What: WhatProcessed, Path: r.path, Actor: i.Node, AgentAt: r.finished, Event: r.event,
		Code: r.code, Detail: r.detail})
	return true
}

// windowEnds ends the window in which nobody knew what became of what was handed out.
func (e *Engine) windowEnds(now Now, i *inst, path Path) {
	if i.firstAt != 0 {
		e.effects.Confirms = append(e.effects.Confirms, Confirm{path, max(0, now.Mono-i.firstAt)})
	}
}

// confirm enters the received step, told or implied.
func (e *Engine) confirm(now Now, i *inst, r report) bool {
	if i.State == StatePending {
		// It was taken back when the link died, but had arrived after all.
		e.move(now, i, StateDispatched, Entry{What: WhatDispatched, Implied: true, Path: r.path})
	}
	if i.waiting() {
		// The attempt that was given up has ended after all, before the next one
		// was made.
		i.RetryAt, i.waitAt = 0, 0
		i.Retries--
	}
	if i.flying && i.ReceivedAt == 0 {
		e.acks.confirm(now)
		e.windowEnds(now, i, r.path)
	}
	e.ground(i)
	e.unwant(i)
	if i.ReceivedAt != 0 {
		return false
	}
	e.onTime(now, i)
	i.whisperAt = 0
	e.setInside(i, true)
	i.ReceivedAt = r.received
	if i.ReceivedAt == 0 {
		i.ReceivedAt = now.Wall
	}
	en := Entry{What: WhatReceived, Path: r.path, Actor: i.Node, AgentAt: r.received, Event: r.event,
		Implied: r.received == 0 && r.phase != wire.PhaseReceived}
	if i.sentAt != 0 { // else it was sent before a restart
		en.DurationMs = (now.Mono - i.sentAt).Milliseconds()
	}
	e.log(now, i, en)
	return true
}

// started enters the step to RUNNING, told or implied.
func (e *Engine) started(now Now, i *inst, r report) bool {
	if i.StartedAt != 0 && i.State == StateRunning {
		return false
	}
	implied := r.started == 0 && r.phase != wire.PhaseStarted
	if i.StartedAt = r.started; i.StartedAt == 0 {
		i.StartedAt = now.Wall
	}
	en := Entry{What: WhatStarted, Path: r.path, Actor: i.Node, AgentAt: r.started, Event: r.event, Implied: implied}
	if r.started != 0 && i.ReceivedAt != 0 {
		en.DurationMs = max(0, r.started-i.ReceivedAt)
	}
	if i.State == StateRunning {
		e.log(now, i, en)
	} else {
		e.run(now, i, en)
	}
	e.setInside(i, false)
	e.watchExec(now, i)
	i.queries = 0
	return true
}

func (e *Engine) run(now Now, i *inst, en Entry) {
	if en.Actor == "" {
		en.Actor = i.Node
	}
	e.move(now, i, StateRunning, en)
	e.watchExec(now, i)
}

// watchExec sets when the agent is asked after an attempt that it has: as long
// as it waits there now and then, once it runs when it should have ended.
func (e *Engine) watchExec(now Now, i *inst) {
	if i.StartedAt == 0 {
		i.execAt = now.in(receivedCheck)
		return
	}
	i.execAt = now.in(i.execLimit(e.cfg))
}

// processed enters the agent's result.
func (e *Engine) processed(now Now, i *inst, r report) {
	class := r.code.Class()
	to := StateFailed
	switch class {
	case wire.ClassSuccess:
		to = StateSucceeded
	case wire.ClassCancelled:
		to = StateCancelled
	case wire.ClassUnknown, wire.ClassInvalid:
		to = StateTimeout
		if mutant.On(mutant.UnknownIsSuccess) {
			to = StateSucceeded
		}
	}
	lost := r.code == wire.CodeSuperseded && !e.superseded(now, i)
	switch {
	case r.code == wire.CodeExpired, lost:
		to = StateTimeout
	case class == wire.ClassCancelled && i.Begun && !mutant.On(mutant.UnknownCancelled):
		to = StateTimeout // this attempt has not had its effect; one before it may have
	}
	switch {
	case mutant.On(mutant.TableIgnored):
	case r.started == 0 && Allowed(i.State, to):
	case r.started == 0 && class == wire.ClassRefused:
		// The table knows no other way, but nothing was started.
		e.run(now, i, Entry{What: WhatStarted, Implied: true, Path: r.path})
	default:
		e.started(now, i, r)
	}
	e.sumProgress(now, i)
	en := Entry{What: WhatProcessed, Path: r.path, Actor: i.Node, AgentAt: r.finished, Event: r.event, Code: r.code, Detail: r.detail}
	if r.finished != 0 && r.started != 0 {
		en.DurationMs = max(0, r.finished-r.started)
	}
	if !e.move(now, i, to, en) {
		return
	}
	i.Code, i.Detail, i.Payload, i.Path = r.code, r.detail, r.payload, r.path
	i.Lease = leased(i.Intent, r.code, r.payload)
	i.FinishedAt, i.SettledAt, i.Percent = r.finished, now.Wall, 0
	i.Operator, i.Reason = false, ""
	e.safeEnded(now, i)
	e.levelsMoved(i)
	switch {
	case to == StateSucceeded:
		e.effects.Counts.Succeeded++
		return
	case to == StateCancelled:
		i.Reason = ReasonCancelled
		if i.By != 0 {
			i.Reason = ReasonSuperseded
		}
		e.effects.Counts.Cancelled++
		return
	}
	if i.Reason = r.code.String(); lost {
		i.Reason = ReasonUnordered
		if i.renumbered++; i.safe && i.renumbered <= mostRenumbered {
			e.renumber(i)
			if e.again(now, i, "with a number above all that its node knows") {
				return
			}
		}
	}
	unknown := class == wire.ClassUnknown || class == wire.ClassInvalid
	if (class == wire.ClassRetryable || unknown && e.mayRepeat(i, r.code, "")) && e.retry(now, i) {
		return
	}
	e.letGo(i)
	i.Operator = i.By == 0
	if to == StateFailed {
		e.effects.Counts.Failed++
	} else {
		e.effects.Counts.TimedOut++
	}
}

// late applies a report about an attempt that has a result, or was given up.
func (e *Engine) late(now Now, i *inst, r report) bool {
	if r.phase == wire.PhaseProgress && r.payload != nil {
		// What was seen is told once: the board forgets it when this is on disk.
		if i.Code == wire.CodeNone {
			i.revived(now, r)
		}
		e.progress(now, i, r)
		return true
	}
	if r.phase != wire.PhaseProcessed {
		if (i.State == StateTimeout || i.waiting()) && i.Code == wire.CodeNone && i.revived(now, r) {
			// A sign of life of something given up: note it, wait for its end. It
			// does not take back a retry, for it may have been told to stop.
			e.log(now, i, Entry{What: WhatProgress, Path: r.path, Actor: i.Node, Event: r.event,
				Detail: fmt.Sprintf("%s, after the gateway had given it up", r.phase)})
			return true
		}
		return false
	}
	if i.Code == r.code {
		return e.join(now, i, r)
	}
	correctable := i.State == StateTimeout && (i.Code == wire.CodeNone || i.Code.Class() == wire.ClassUnknown)
	if !correctable {
		e.stale(now, i, Entry{What: WhatRefused, Path: r.path, Actor: i.Node, Code: r.code, Event: r.event,
			Detail: fmt.Sprintf("a second result, %s, after %s", r.code, i.Code)})
		return false
	}
	e.move(now, i, StateRetrying, Entry{What: WhatRetrying, Implied: true, Path: r.path, Detail: "a late report corrects the timeout"})
	i.Code = wire.CodeNone
	e.confirm(now, i, r)
	// Something newer may have run on its lines meanwhile: a late report corrects the
	// state and moves no pin (docs/safety.md 4).
	i.overdue = stands(i.task.act) && !i.safe
	e.processed(now, i, r)
	i.overdue = false
	return true
}

// revived notes how far an attempt that was given up has come. It returns false
// when that was known: compact acks are repeated.
func (i *inst) revived(now Now, r report) bool {
	note := func(at *int64, told int64) bool {
		if *at != 0 {
			return false
		}
		if *at = told; told == 0 {
			*at = now.Wall
		}
		return true
	}
	news := note(&i.ReceivedAt, r.received)
	if r.phase != wire.PhaseReceived {
		news = note(&i.StartedAt, r.started) || news
	}
	return news
}

// join adds what a second path brings to a result that is known: the payload,
// the times.
func (e *Engine) join(now Now, i *inst, r report) bool {
	news := r.path != i.Path || i.Payload == nil && r.payload != nil || i.FinishedAt == 0 && r.finished != 0
	if !news || r.path == PathNarrowband {
		return false
	}
	if i.Payload == nil {
		i.Payload = r.payload
	}
	if i.Lease == nil {
		i.Lease = leased(i.Intent, r.code, r.payload)
	}
	if i.Detail == "" {
		i.Detail = r.detail
	}
	if r.received != 0 {
		i.ReceivedAt = r.received
	}
	if r.started != 0 {
		i.StartedAt = r.started
	}
	if i.FinishedAt == 0 {
		i.FinishedAt = r.finished
	}
	e.log(now, i, Entry{What: WhatJoined, Path: r.path, Actor: i.Node, AgentAt: r.finished, Code: r.code, Event: r.event,
		Detail: "the same result once more, with what it lacked"})
	return true
}
