package engine

import (
	"fmt"
	"slices"

	"github.com/apollo-11/apollo11/wire"
)

// pastSessions is how many ended sessions of a node are remembered. A hello of
// one of them was overtaken by its own end, and would put the node online in a
// session whose heartbeats will never come.
const pastSessions = 4

// hello starts a session: the agent is told how far its events have come and is
// sent what it has missed.
func (e *Engine) hello(now Now, id string, m *wire.Hello) {
	why := e.unwelcome(id, m)
	if n := e.nodes[id]; why == "" && n != nil {
		why = e.otherBoard(now, n, m)
	}
	if why != "" {
		e.effects.Sends = append(e.effects.Sends, Send{id, &wire.Welcome{
			Session: m.Session, Epoch: e.counters.Epoch, Now: now.Wall, Rules: wire.NewestRules, Refused: why}})
		switch n := e.nodes[id]; {
		case n != nil && n.twins.on:
			e.toTwin(now, n, false)
		case n == nil && len(e.alarms.standing) >= maxStrangeAlarms:
			e.condition(now, alarmRefused, subjectGateway, "so many alarms stand that refused names are told together: "+why)
		default:
			e.condition(now, alarmRefused, id, why)
		}
		return
	}
	n := e.node(id)
	if n.twins.seen[n.twins.speaker].nonce == 0 {
		e.meet(now, n, m)
	}
	if slices.Contains(n.ended[:], m.Session) {
		return
	}
	if n.cursor.Incarnation != m.Incarnation {
		n.refusedAt = 0 // the one that was refused has been let in
	}
	e.forgive(now, n)
	e.shorts[m.Short] = n.ID
	old := false // then it begins anew at the welcome, and would not take what comes before
	switch {
	case n.session != m.Session:
		// The same hello once more may be older than events that came since.
		e.part(now, n, "connected anew")
		old = e.align(now, n, m)
		n.doubt = doubt{}
		e.clear(now, alarmPathDead, n.ID)
	case n.cursor.Incarnation != m.Incarnation:
		e.align(now, n, m) // it has found out itself that its journal is an old copy
	}
	repeated := n.online
	if n.FirstSeen == 0 {
		n.FirstSeen = now.Wall
	}
	e.know(n)
	n.Short, n.Labels, n.Incarnation, n.Version = m.Short, m.Labels, m.Incarnation, m.Version
	n.Intents, n.Pins, n.Board, n.Workers, n.LastHello = m.Intents, m.Pins, m.Board, m.Workers, now.Wall
	n.Rules, n.Traits = m.Rules, m.Traits
	e.learn(now, n)
	e.adoptHolds(now, n)
	e.helloLevels(n, m)
	e.helloLocal(now, n, m)
	e.renew(n)
	n.session, n.voice, n.heard, n.met, n.Left, n.missed = m.Session, m.Session, now.Mono, true, false, false
	n.told = 0
	n.tells(now, m.Next)
	e.claim(now, n, m)
	e.skew(now, n, m.Clock, m.ClockSet)
	w := &wire.Welcome{Session: m.Session, Epoch: e.counters.Epoch, Now: now.Wall,
		HeartbeatMs: uint32(e.cfg.Heartbeat.Milliseconds()), Phases: wire.MaxPhase,
		Rules: wire.NewestRules, Holds: n.heldLines(), Through: n.cursor.Last}
	e.send(n, w, &w.Through)
	e.toTwin(now, n, true)
	switch {
	case old:
	case !repeated:
		e.comeback(now, n)
	default:
		e.offerAgain(n)
	}
}

// offerAgain is for a hello that is repeated: the welcome before may have been lost, and
// its agent has taken nothing that came behind that.
func (e *Engine) offerAgain(n *node) {
	var refs []wire.Ref
	for _, i := range n.opened() {
		if i.ReceivedAt != 0 && i.StartedAt == 0 && !i.waiting() && i.offerable() {
			refs = append(refs, wire.Ref{Seq: i.Seq, Token: i.Token})
		}
	}
	e.query(n, refs)
}

// unwelcome says why a node cannot be worked with; empty when it can.
func (e *Engine) unwelcome(id string, m *wire.Hello) string {
	if want := wire.Short(id); m.Short != want {
		return fmt.Sprintf("the short id of %s is %s, not %s", id, want, m.Short)
	}
	if n := e.nodes[id]; (n == nil || !n.known) && e.known >= maxNodes {
		return fmt.Sprintf("%d nodes have said hello to this gateway, and it remembers no more", e.known)
	}
	if other := e.shorts[m.Short]; other != "" && other != id {
		return fmt.Sprintf("%s has the same short id %s as %s; give it another name", id, m.Short, other)
	}
	return ""
}

// align compares what the agent remembers with what the log has of it. It reports
// whether the agent's journal is an older copy of itself.
func (e *Engine) align(now Now, n *node, m *wire.Hello) (old bool) {
	c := &n.cursor
	switch {
	case c.Incarnation != m.Incarnation:
		if c.Incarnation != 0 {
			e.incident(now, "agent_reset", n.ID, "the agent has lost its journal and with it what it had done")
			e.replaced(now, n)
			e.forgotten(now, n)
		}
		*c = Cursor{Incarnation: m.Incarnation, Last: m.First - 1}
	case m.First > c.Last+1:
		e.incident(now, "events_lost", n.ID, fmt.Sprintf(
			"the agent was told to forget events up to %d, the log has them up to %d: was an older copy of the log restored?", m.First-1, c.Last))
		c.Last = m.First - 1
	case m.Next <= c.Last:
		e.incident(now, "agent_rolled_back", n.ID, fmt.Sprintf(
			"the agent's next event is %d, the log has %d already: has it lost its latest records?", m.Next, c.Last))
		// The cursor stays: by the welcome the agent learns that its journal is an
		// old copy, ends what waits in it, and begins a new incarnation.
		e.forgotten(now, n)
		return true
	}
	return false
}

// forgotten ends what the agent can no longer answer for. Nothing is sent again
// under its old token: the agent would not recognise it.
func (e *Engine) forgotten(now Now, n *node) {
	for _, i := range n.opened() {
		if e.unsent(i) && (n.Rules < wire.RulesOrder || !i.task.act.Moves() || i.safe || i.byHand) {
			continue
		}
		if e.unsent(i) { // it would go to a board that knows no order any more
			i.overdue = true // no further attempt by itself
			e.giveUp(now, i, ReasonForgotten, "the agent lost its memory: whether this still holds is for an operator to say")
			i.overdue = false
			e.arm(now, i)
			continue
		}
		e.giveUp(now, i, ReasonForgotten, "the agent lost its memory while it had the instruction")
		e.arm(now, i)
	}
}

// comeback puts a node online and asks after, or sends again, everything that it
// might have.
func (e *Engine) comeback(now Now, n *node) {
	n.online, n.since, n.reason = true, now.Wall, ""
	e.show(n)
	e.watch(now, n)
	e.clear(now, alarmOffline, n.ID)
	e.letGoAgain(now, n)
	var refs []wire.Ref
	for _, i := range n.opened() {
		switch {
		case e.unsent(i):
		case i.By != 0: // a question would offer it again
			i.blockAt = now.in(wire.OrderWait)
			e.askCancel(now, i)
		case i.ReceivedAt == 0:
			i.resends = 0
			e.enqueue(i)
		case i.CancelBy != "" && i.StartedAt == 0: // so it would be: the cancel asks as well
		default:
			if i.execAt == 0 {
				e.watchExec(now, i) // the answer may be lost
			}
			refs = append(refs, wire.Ref{Seq: i.Seq, Token: i.Token})
		}
		if i.CancelBy != "" && i.By == 0 && i.Attempt != 0 {
			e.askCancel(now, i)
		}
		e.touchLines(i)
		e.arm(now, i)
	}
	e.startDrain(n)
	e.query(n, refs)
	e.wantPump(n)
}

// goodbye ends a session in order, or by the broker's last will.
func (e *Engine) goodbye(now Now, n *node, m *wire.Goodbye) {
	reason := m.Reason
	if reason == "" {
		reason = "stopped"
		if m.Lost {
			reason = "connection lost"
		}
	}
	if m.Lost {
		e.lose(now, n, reason)
	} else {
		e.part(now, n, reason)
	}
	if left := !m.Lost; left != n.Left {
		n.Left = left
		e.renew(n)
	}
	for _, r := range m.Unstarted {
		i := e.insts[r.Seq]
		if i == nil || i.node != n || i.Token != r.Token || i.StartedAt != 0 {
			continue
		}
		e.requeue(now, i, "its node stopped before starting it")
		e.arm(now, i)
	}
}

// lose ends a session that the node has not ended itself: that is an alarm until the
// next hello (C1).
func (e *Engine) lose(now Now, n *node, reason string) {
	if !n.twins.on { // two throw each other out all the time: their silence is looked at
		e.condition(now, alarmOffline, n.ID, reason)
	}
	e.part(now, n, reason)
	if n.twins.on {
		e.watch(now, n)
	}
}

// part ends a node's session.
func (e *Engine) part(now Now, n *node, reason string) {
	if n.session != 0 {
		n.ended[n.past] = n.session
		n.past = (n.past + 1) % pastSessions
		n.session = 0
	}
	if n.online {
		e.offline(now, n, reason)
		return
	}
	for _, i := range n.opened() { // towards safe, which was sent to the silent
		if i.safe && i.sendAt != 0 {
			e.ground(i)
			e.requeue(now, i, reason)
			e.arm(now, i)
		}
	}
}

// offline takes back what the node has not confirmed: it stays with its token,
// so that a copy which did arrive is recognised.
func (e *Engine) offline(now Now, n *node, reason string) {
	n.online, n.since, n.reason = false, now.Wall, reason
	n.doubtful, n.full = false, false
	e.stopDrain(n)
	e.timers.put(&n.timer, 0)
	e.show(n)
	for _, i := range n.opened() {
		i.cancelAt = 0
		e.wantStop(now, i) // the path that is left
		i.unblock(now)
		if i.waiting() {
			e.watchSafe(now, i)
		}
		if i.flying || i.safe && i.sendAt != 0 {
			e.ground(i)
			e.requeue(now, i, reason)
		}
		e.arm(now, i)
	}
}

// requeue puts an attempt that was sent and has not started back into the queue.
// An attempt that came after a failure keeps its state, for which the table has
// no way back to PENDING.
func (e *Engine) requeue(now Now, i *inst, why string) {
	if e.unsent(i) || i.State.Settled() || i.State == StatePending {
		return
	}
	i.ReceivedAt, i.execAt, i.firstAt = 0, 0, 0
	i.resends, i.queries = 0, 0
	e.setInside(i, false)
	en := Entry{What: WhatRequeued, Detail: why}
	if i.State == StateDispatched {
		e.move(now, i, StatePending, en)
	} else {
		e.log(now, i, en)
	}
	e.enqueue(i)
}
