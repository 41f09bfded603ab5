package engine

import (
	"fmt"
	"slices"

	"github.com/apollo-11/apollo11/wire"
	"github.com/apollo-11/apollo11/wire/mutant"
)

// uplink takes in what a node says on the primary path.
func (e *Engine) uplink(now Now, in *Uplink) {
	n := e.nodes[in.Node]
	if n != nil && n.other(in.Msg) {
		return
	}
	switch m := in.Msg.(type) {
	case *wire.Hello:
		e.hello(now, in.Node, m)
	case *wire.Goodbye:
		if n != nil && n.session != 0 && m.Session == n.session {
			e.goodbye(now, n, m)
		}
	case *wire.Heartbeat:
		if n := e.hear(now, in.Node); n != nil {
			n.tells(now, m.Next)
			e.skew(now, n, m.Clock, true)
			e.hand(now, n, m)
			e.room(n, m)
		}
	case *wire.Digest:
		if n := e.hear(now, in.Node); n != nil {
			n.tells(now, m.Next)
			e.digest(n, m)
		}
	case *wire.Event:
		if n := e.hear(now, in.Node); n != nil {
			e.event(now, n, m)
		}
	case *wire.Report:
		if n := e.hear(now, in.Node); n != nil {
			e.states(now, n, m)
		}
	}
}

// other reports whether a message is not the node's, but that of a board that was not
// welcomed under its name or of a session that is over: it is no sign of life, and
// nothing that it says of attempts is taken. A board that is connected stays the one that
// speaks until another one says hello, or somebody names the node's session.
func (n *node) other(m wire.Message) bool {
	switch m := m.(type) {
	case *wire.Hello:
		if !slices.Contains(n.ended[:], m.Session) { // else it was overtaken by its own end
			n.voice = m.Session
		}
		return false
	case *wire.Goodbye:
		return false // it counts for its own session alone
	case *wire.Heartbeat:
		return n.names(m.Session)
	case *wire.Digest:
		return n.names(m.Session)
	}
	return n.unheard(m) || n.voice != n.session
}

// names notes whose session a word names. It reports whether that is another one than
// the node's.
func (n *node) names(session uint64) (other bool) {
	if session != n.session {
		return true
	}
	n.voice = session
	return false
}

// hear notes a sign of life of a node that is in a session, and puts it online
// if it had been silent. It returns nil for any other: the node's hello was lost
// or is still to come, and the agent repeats it.
func (e *Engine) hear(now Now, id string) *node {
	n := e.nodes[id]
	if n == nil || n.session == 0 {
		return nil
	}
	n.heard, n.met = now.Mono, true
	e.speaks(now, n)
	e.believe(now, n)
	e.forgive(now, n)
	if !n.online {
		e.comeback(now, n)
	}
	return n
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
	if in.Ack.Attempt == 0 || in.Ack.Attempt != i.Attempt && !mutant.On(mutant.OtherAttempt) {
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
			i.offerSeen() // it answers a copy or a question
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
