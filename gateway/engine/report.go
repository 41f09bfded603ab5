package engine

import (
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

// take applies a report that is known to be about the current attempt. It
// returns whether the report brought anything new.
func (e *Engine) take(now Now, i *inst, r report) bool {
	defer e.arm(now, i)
	e.arrived(now, i, r)
	if r.event >= i.node.begins && r.event != 0 {
		i.offerSeen() // the agent was given it in this session, or has begun
	}
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
		i.Retries -= min(i.Retries, 1) // by hand it has begun anew
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
	e.watchOffer(now, i)
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
	i.queries, i.offers.at = 0, 0
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
	i.leased(r)
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
	e.letGo(now, i)
	i.Operator = i.By == 0 && !mutant.On(mutant.OperatorForgotten)
	if to == StateFailed {
		e.effects.Counts.Failed++
	} else {
		e.effects.Counts.TimedOut++
	}
}
