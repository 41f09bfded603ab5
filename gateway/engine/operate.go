package engine

import (
	"fmt"
	"slices"

	"github.com/apollo-11/apollo11/wire"
	"github.com/apollo-11/apollo11/wire/mutant"
)

// Action is something that an operator does by hand. Every one that has an
// effect is entered in the audit trail (B11).
type Action string

const (
	ActionRetry    Action = "retry"     // instruction: another attempt with a fresh budget
	ActionResolve  Action = "resolve"   // instruction: settled by hand, out of the queue
	ActionCancel   Action = "cancel"    // task or instruction: see Cancel; also out of the queue
	ActionQuietOn  Action = "quiet_on"  // pause compensation until a time
	ActionQuietOff Action = "quiet_off" // end the pause
	ActionDeadDrop Action = "dead_drop" // dead letter: forget it
	// ActionDeadReplay notes that a dead letter was submitted anew, and forgets it.
	ActionDeadReplay Action = "dead_replay"
)

// Operate is an operator's action on one thing.
type Operate struct {
	Action Action
	Seq    uint64 // of the instruction, for retry and resolve
	Dead   uint64 // number of the dead letter
	Until  int64  // Unix ms at which a quiet period ends by itself; required
	Actor  string
	Note   string // why; required for resolve and quiet_on
	Path   Path
	// AcceptUnknown is the yes to a retry after which the same may have happened twice
	// (Instruction.OutcomeUnknown). Without it that is refused.
	AcceptUnknown bool
	// Found is the dead letter, which the caller looks up when Wants asks for it.
	Found *DeadLetter
	Reply any
}

func (*Operate) input() {}

// Done answers an Operate that was carried out.
type Done struct {
	Action  Action
	Subject string // instruction id, or dead letter number
	Text    string // what follows, for people
}

// MaxQuiet bounds a quiet period: longer than any work by hand, short enough that
// one that was forgotten does not outlast the week.
const MaxQuiet = 7 * 24 * 3600 * 1000

// Quiet is the quiet period: no resend, no retry and no draining of backlogs
// while an operator works by hand (A8). New tasks are still sent, and with them what
// is older on their lines: quiet holds no line against newer work.
type Quiet struct {
	On     bool   `cbor:"1,keyasint"`
	Since  int64  `cbor:"2,keyasint,omitempty"` // Unix ms
	Until  int64  `cbor:"3,keyasint,omitempty"` // Unix ms
	By     string `cbor:"4,keyasint,omitempty"`
	Reason string `cbor:"5,keyasint,omitempty"`
}

// RestoreQuiet takes in the quiet period from the log. What is left of it is told
// by the wall clock, and is no more than it was to last: the clock may have been
// set back.
func (e *Engine) RestoreQuiet(now Now, q Quiet) {
	e.quiet = q
	if q.On {
		e.quietEnd = now.in(min(until(now, q.Until), between(q.Since, q.Until)))
		e.alarmQuiet(now)
	}
}

// Quiet is the quiet period as it stands.
func (e *Engine) Quiet() Quiet { return e.quiet }

// operate carries out an operator's action.
func (e *Engine) operate(now Now, in *Operate) {
	fit := *in
	fit.Actor, fit.Note = wire.FitText(in.Actor), wire.FitText(in.Note)
	in = &fit
	switch in.Action {
	case ActionRetry, ActionResolve:
		e.operateQueue(now, in)
	case ActionQuietOn, ActionQuietOff:
		e.operateQuiet(now, in)
	case ActionDeadDrop, ActionDeadReplay:
		e.operateDead(now, in)
	default:
		e.refuse(in.Reply, RefusedInvalid, fmt.Sprintf("%q is not an action", in.Action), "")
	}
}

func (e *Engine) done(now Now, in *Operate, subject, text string) {
	e.audit(now, Audit{Actor: in.Actor, Path: in.Path, Action: in.Action, Subject: subject, Note: in.Note})
	if in.Reply != nil {
		e.effects.Replies = append(e.effects.Replies, Reply{To: in.Reply, Done: &Done{in.Action, subject, text}})
	}
}

// operateQueue moves what stands in the operator queue.
func (e *Engine) operateQueue(now Now, in *Operate) {
	i := e.insts[in.Seq]
	if i == nil {
		e.refuse(in.Reply, RefusedNotFound, fmt.Sprintf("instruction %d is not known", in.Seq), "see `apollo queue list`")
		return
	}
	id := i.Key(e.cfg.Site)
	if !i.Operator {
		e.refuse(in.Reply, RefusedConflict, fmt.Sprintf("%s is %v and does not wait for an operator", id, i.State), "see `apollo queue list`")
		return
	}
	if in.Action == ActionResolve {
		if in.Note == "" {
			e.refuse(in.Reply, RefusedInvalid, "a resolution needs a note", "say how it was settled, for example --note \"closed by hand\"")
			return
		}
		i.Operator = false
		e.log(now, i, Entry{What: WhatResolved, Actor: in.Actor, Path: in.Path, Detail: in.Note})
		e.done(now, in, id, "out of the operator queue; its state stays "+i.State.String())
		return
	}
	switch {
	case i.NotAfter != 0 && now.Wall >= i.NotAfter:
		e.refuse(in.Reply, RefusedConflict, id+" may not run any more: its time limit has passed", "submit a new task")
		return
	case i.Attempt == wire.MaxAttempt:
		e.refuse(in.Reply, RefusedConflict, fmt.Sprintf("%s has had %d attempts, more cannot be numbered", id, i.Attempt), "submit a new task")
		return
	}
	if i.OutcomeUnknown() && !in.AcceptUnknown && !mutant.On(mutant.UnknownUnasked) {
		e.refuse(in.Reply, RefusedUnknown, fmt.Sprintf("nobody knows whether %s has already happened on %s: another attempt may do it a second time", i.Intent, i.Node),
			"look at the machine first; then resolve the instruction if it was done, or accept that it may happen twice")
		return
	}
	if r := i.node.refusedHeld(i.task.act); r != nil {
		e.refuse(in.Reply, r.Kind, r.Text, r.Hint)
		return
	}
	moved := e.movedSince(i)
	if stands(i.task.act) {
		e.holdSafe(now, i, in.Actor) // a gpio.safe holds anew, whatever was released since
		e.renumber(i)                // by hand it goes behind what has moved since, which the answer shows
	}
	i.By = 0
	if !e.move(now, i, StateRetrying, Entry{What: WhatRetrying, Actor: in.Actor, Path: in.Path, Detail: in.Note}) {
		e.refuse(in.Reply, RefusedConflict, fmt.Sprintf("%s cannot be retried from %v", id, i.State), "")
		return
	}
	i.Operator, i.CancelBy, i.Retries, i.RetryAt = false, "", 0, max(now.Wall, 1)
	i.byHand = true
	if i.safe {
		e.supersede(now, i)
	}
	e.holdSafe(now, i, in.Actor)
	i.waitAt = now.in(0)
	e.watchSafe(now, i)
	e.arm(now, i)
	if moved != "" {
		moved = "; " + moved
	}
	e.done(now, in, id, "another attempt will be sent, with a fresh budget"+moved)
}

// operateQuiet begins or ends a quiet period.
func (e *Engine) operateQuiet(now Now, in *Operate) {
	if in.Action == ActionQuietOff {
		if !e.quiet.On {
			e.refuse(in.Reply, RefusedConflict, "there is no quiet period", "")
			return
		}
		e.setQuiet(now, Quiet{})
		e.done(now, in, "", "compensation goes on")
		return
	}
	switch {
	case in.Note == "":
		e.refuse(in.Reply, RefusedInvalid, "a quiet period needs a reason", "for example --reason \"valve 3 is being replaced\"")
		return
	case in.Until <= now.Wall || in.Until > now.Wall+MaxQuiet:
		e.refuse(in.Reply, RefusedInvalid, "a quiet period needs an end within a week", "for example --for 2h")
		return
	}
	e.setQuiet(now, Quiet{On: true, Since: now.Wall, Until: in.Until, By: in.Actor, Reason: in.Note})
	e.done(now, in, "", "no resends, retries or draining of backlogs until then; new tasks are still sent, behind what is older on their lines")
}

func (e *Engine) setQuiet(now Now, q Quiet) {
	e.clear(now, alarmQuiet, subjectGateway)
	e.quiet, e.quietNew = q, true
	if q.On {
		e.quietEnd = now.in(until(now, q.Until))
		e.alarmQuiet(now)
		e.reconsider()
		return
	}
	e.unpause()
}

func (e *Engine) alarmQuiet(now Now) {
	e.condition(now, alarmQuiet, subjectGateway, fmt.Sprintf("quiet period by %s: %s", e.quiet.By, e.quiet.Reason))
}

// endQuiet ends a quiet period whose time has come.
func (e *Engine) endQuiet(now Now) {
	if !e.quiet.On || now.in(0) < e.quietEnd {
		return
	}
	e.audit(now, Audit{Actor: subjectGateway, Action: ActionQuietOff, Note: "its time was over"})
	e.setQuiet(now, Quiet{})
}

// operateDead forgets a dead letter.
func (e *Engine) operateDead(now Now, in *Operate) {
	// Found is from before this batch, in which somebody may have dropped it.
	if in.Found == nil || in.Found.Number != in.Dead || slices.Contains(e.dropped, in.Dead) {
		e.refuse(in.Reply, RefusedNotFound, fmt.Sprintf("dead letter %d is not known", in.Dead), "see `apollo deadletters list`")
		return
	}
	e.dropped = append(e.dropped, in.Dead)
	e.done(now, in, fmt.Sprint(in.Dead), "forgotten")
}
