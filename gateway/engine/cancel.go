package engine

import (
	"fmt"

	"github.com/apollo-11/apollo11/wire"
	"github.com/apollo-11/apollo11/wire/mutant"
)

// cancel stops what has not been handed out and asks the agents for the rest:
// something that may be running is CANCELLED only when its agent says so.
func (e *Engine) cancel(now Now, in *Cancel) {
	fit := *in
	fit.Actor, fit.Reason = wire.FitText(in.Actor), wire.FitText(in.Reason)
	in = &fit
	var list []*inst
	id := in.TaskID
	switch {
	case id != "":
		if t := e.tasks[id]; t != nil {
			list = t.insts
		}
	case in.Seq != 0:
		if i := e.insts[in.Seq]; i != nil {
			list, id = []*inst{i}, i.Task
		}
	}
	if len(list) == 0 {
		what := fmt.Sprintf("task %s", in.TaskID)
		if in.TaskID == "" {
			what = fmt.Sprintf("instruction %d", in.Seq)
		}
		if in.Reply != nil {
			e.effects.Replies = append(e.effects.Replies, Reply{To: in.Reply, Refused: &Refusal{
				RefusedNotFound, what + " is not known", "see `apollo task list`"}})
		}
		return
	}
	out := &Cancelled{TaskID: id}
	subject := id
	if in.TaskID == "" {
		subject = list[0].Key(e.cfg.Site)
	}
	e.audit(now, Audit{Actor: in.Actor, Path: in.Path, Action: ActionCancel, Subject: subject, Note: in.Reason})
	for _, i := range list {
		switch {
		case in.Seq != 0 && i.Operator && i.MayHaveRun():
			e.abandon(now, i, in)
			out.Asked++
		case in.Seq != 0 && i.Operator && Allowed(i.State, StateRetrying):
			// Out of the operator queue, by the only way that the table knows.
			e.move(now, i, StateRetrying, Entry{What: WhatRetrying, Implied: true, Actor: in.Actor, Path: in.Path})
			i.Operator = false
			e.cancelled(now, i, in)
			out.Done++
		case e.stoppable(i):
			e.wish(now, i, in) // its lease lives: told once
			e.stopOnce(now, i, "cancelled by "+i.CancelBy)
			out.Asked++
		case i.State.Settled():
			out.Final++
		case i.waiting() && i.MayHaveRun() && !mutant.On(mutant.CancelHides):
			e.withdraw(now, i, in)
			out.Asked++
		case e.unsent(i):
			e.cancelled(now, i, in)
			out.Done++
		default:
			if i.CancelBy == "" {
				e.wish(now, i, in)
				if !mutant.On(mutant.CancelUnasked) {
					e.askCancel(now, i)
				}
			}
			out.Asked++
		}
		e.arm(now, i)
	}
	if in.Reply != nil {
		e.effects.Replies = append(e.effects.Replies, Reply{To: in.Reply, Cancelled: out})
	}
}

// unsent reports whether no agent can have the current attempt.
func (e *Engine) unsent(i *inst) bool {
	return i.State == StatePending && i.Attempt == 0 || i.waiting()
}

// waiting reports whether the last attempt is over and the next one is still to
// be made.
func (i *inst) waiting() bool { return i.State == StateRetrying && i.RetryAt != 0 }

// abandon takes an attempt with an unknown outcome out of the operator queue. It
// would be false to call that CANCELLED; the agent is told to stop it, unless it has
// forgotten it, and what it reports still counts.
func (e *Engine) abandon(now Now, i *inst, in *Cancel) {
	i.Operator = false
	e.wish(now, i, in)
	if i.Attempt != 0 && i.Code == wire.CodeNone && i.Reason != ReasonForgotten {
		e.stopOnce(now, i, "cancelled by "+i.CancelBy)
	}
}

// wish notes who wants the cancellation.
func (e *Engine) wish(now Now, i *inst, in *Cancel) {
	i.CancelBy = in.Actor
	if i.CancelBy == "" {
		i.CancelBy = in.Path.String()
	}
	e.log(now, i, Entry{What: WhatCancelAsk, Actor: in.Actor, Path: in.Path, Detail: in.Reason})
}

// withdraw takes back a retry after an attempt whose outcome is not known. It
// would be false to call that CANCELLED: the attempt may have done it, or still
// be running. It is TIMEOUT, and a report of that attempt settles it.
func (e *Engine) withdraw(now Now, i *inst, in *Cancel) {
	e.wish(now, i, in)
	if i.Attempt != 0 && i.Code == wire.CodeNone && i.Reason != ReasonForgotten {
		e.stopOnce(now, i, "cancelled by "+i.CancelBy)
	}
	e.giveUp(now, i, i.Reason, "its retry was cancelled; what the last attempt did is not known")
}

func (e *Engine) cancelled(now Now, i *inst, in *Cancel) {
	if !e.move(now, i, StateCancelled, Entry{What: WhatCancelled, Actor: in.Actor, Path: in.Path, Detail: in.Reason}) {
		return
	}
	i.Reason, i.SettledAt = ReasonCancelled, now.Wall
	e.effects.Counts.Cancelled++
}

// askCancel sends the wish to the agent, and again until it is answered.
func (e *Engine) askCancel(now Now, i *inst) {
	if i.CancelBy == "" && i.By == 0 || i.State.Settled() || i.Attempt == 0 {
		return
	}
	e.wantStop(now, i)
	if !i.node.online {
		return // the hello brings it back
	}
	why := ReasonSuperseded
	if i.CancelBy != "" {
		why = "cancelled by " + i.CancelBy
	}
	e.sendCancel(now, i, why)
	i.cancelAt = now.in(e.jitter(e.cfg.ConfirmTimeout))
}

func (e *Engine) sendCancel(_ Now, i *inst, reason string) {
	m := &wire.Cancel{Seq: i.Seq, Token: i.Token, Reason: reason, Trace: i.Trace}
	e.send(i.node, m, &m.Through)
}
