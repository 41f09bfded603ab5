package engine

import (
	"fmt"

	"github.com/apollo-11/apollo11/wire"
)

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
	switch {
	case correctable && r.path == PathNarrowband && r.code == wire.CodeCancelled:
		// A board that has taken the place of another says so of what it never had.
		return false
	case !correctable:
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
	// That it need not keep its lines may have been decided while nobody could tell it.
	i.kept = i.kept || i.mayBeKept()
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
		i.leased(r)
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
