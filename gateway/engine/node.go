package engine

import (
	"fmt"
	"slices"
	"time"

	"github.com/apollo-11/apollo11/wire"
)

// gapPause is the least time between two requests to send events again: the
// agent's answer needs a round trip, and each request costs it a window.
const gapPause = time.Second

// node is a Node in memory. It exists from the first instruction or hello that
// names it; known says that it has said hello once.
type node struct {
	Node
	cursor  Cursor
	known   bool
	online  bool
	since   int64
	reason  string
	session uint64 // of the latest hello; 0 after a goodbye
	heard   time.Duration
	due     time.Duration // when its silence is looked at; 0 for not

	queue  queue
	queued int
	flying int
	open   map[uint64]*inst // unsettled

	pumped  bool
	owed    bool
	gap     bool
	gapAt   time.Duration
	carrier *uint64 // field of this round's latest message that can carry an EventAck
	changed bool
	renewed bool // Node and cursor have to be written
	moved   bool // cursor has to be written
}

func (e *Engine) node(id string) *node {
	n := e.nodes[id]
	if n == nil {
		n = &node{Node: Node{ID: id}, open: map[uint64]*inst{}}
		e.nodes[id] = n
	}
	return n
}

func (n *node) draining() bool { return len(n.queue) > 0 }

func (n *node) state() NodeState {
	s := NodeState{Node: n.Node, Online: n.online, Since: n.since, Reason: n.reason, Queued: n.queued, Flying: n.flying}
	for _, i := range n.open {
		if i.ReceivedAt != 0 {
			s.Running++
		}
	}
	return s
}

// opened returns the node's unsettled instructions in order of submission.
func (n *node) opened() []*inst {
	list := make([]*inst, 0, len(n.open))
	for _, i := range n.open {
		list = append(list, i)
	}
	slices.SortFunc(list, func(a, b *inst) int {
		if a.Seq < b.Seq {
			return -1
		}
		return 1
	})
	return list
}

// show asks for the node's state to be published.
func (e *Engine) show(n *node) {
	if !n.changed {
		n.changed = true
		e.changed = append(e.changed, n)
	}
}

// renew asks for the node's record to be written.
func (e *Engine) renew(n *node) {
	if !n.renewed {
		n.renewed = true
		e.newNodes = append(e.newNodes, n)
	}
}

func (e *Engine) uplink(now Now, in *Uplink) {
	n := e.node(in.Node)
	if m, ok := in.Msg.(*wire.Hello); ok {
		e.hello(now, n, m)
		return
	}
	if !n.known || n.session == 0 {
		return // its hello was lost or is still to come; the agent repeats it
	}
	switch m := in.Msg.(type) {
	case *wire.Goodbye:
		if m.Session == n.session {
			e.goodbye(now, n, m)
		}
		return
	case *wire.Heartbeat:
		if m.Session != n.session {
			return
		}
	case *wire.Digest:
		if m.Session != n.session {
			return
		}
	}
	n.heard = now.Mono
	if !n.online {
		e.comeback(now, n)
	}
	switch m := in.Msg.(type) {
	case *wire.Event:
		e.event(now, n, m)
	case *wire.Report:
		e.states(now, n, m)
	}
}

// hello starts a session: the agent is told how far its events have come and is
// sent what it has missed.
func (e *Engine) hello(now Now, n *node, m *wire.Hello) {
	if why := e.unwelcome(n, m); why != "" {
		e.alarm(now, "node_refused", n.ID, why)
		w := &wire.Welcome{Session: m.Session, Epoch: e.counters.Epoch, Now: now.Wall, Refused: why}
		e.send(n, w, &w.Through)
		return
	}
	if n.online && n.session != m.Session {
		e.offline(now, n, "connected anew")
	}
	repeated := n.online
	e.shorts[m.Short] = n.ID
	e.align(now, n, m)
	if n.FirstSeen == 0 {
		n.FirstSeen = now.Wall
	}
	n.known = true
	n.Short, n.Labels, n.Incarnation, n.Version = m.Short, m.Labels, m.Incarnation, m.Version
	n.Intents, n.Pins, n.Board, n.Workers, n.LastHello = m.Intents, m.Pins, m.Board, m.Workers, now.Wall
	e.renew(n)
	n.session, n.heard = m.Session, now.Mono
	w := &wire.Welcome{Session: m.Session, Epoch: e.counters.Epoch, Now: now.Wall,
		HeartbeatMs: uint32(e.cfg.Heartbeat.Milliseconds()), Through: n.cursor.Last}
	e.send(n, w, &w.Through)
	if !repeated {
		e.comeback(now, n)
	}
}

// unwelcome says why a node cannot be worked with; empty when it can.
func (e *Engine) unwelcome(n *node, m *wire.Hello) string {
	if want := wire.Short(n.ID); m.Short != want {
		return fmt.Sprintf("the short id of %s is %s, not %s", n.ID, want, m.Short)
	}
	if other := e.shorts[m.Short]; other != "" && other != n.ID {
		return fmt.Sprintf("%s has the same short id %s as %s; give it another name", n.ID, m.Short, other)
	}
	return ""
}

// align compares what the agent remembers with what the log has of it.
func (e *Engine) align(now Now, n *node, m *wire.Hello) {
	c := &n.cursor
	switch {
	case c.Incarnation != m.Incarnation:
		if c.Incarnation != 0 {
			e.alarm(now, "agent_reset", n.ID, "the agent has lost its journal and with it what it had done")
			e.forgotten(now, n)
		}
		*c = Cursor{Incarnation: m.Incarnation, Last: m.First - 1}
	case m.First > c.Last+1:
		e.alarm(now, "events_lost", n.ID, fmt.Sprintf(
			"the agent was told to forget events up to %d, the log has them up to %d: was an older copy of the log restored?", m.First-1, c.Last))
		c.Last = m.First - 1
	case m.Next <= c.Last:
		e.alarm(now, "agent_rolled_back", n.ID, fmt.Sprintf(
			"the agent's next event is %d, the log has %d already: has it lost its latest records?", m.Next, c.Last))
		c.Last = m.First - 1
	}
}

// forgotten ends what the agent can no longer answer for. Nothing is sent again
// under its old token: the agent would not recognise it.
func (e *Engine) forgotten(now Now, n *node) {
	for _, i := range n.opened() {
		if i.Attempt == 0 || i.State == StateRetrying && i.RetryAt != 0 {
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
	e.alarmOff(now, "node_offline", n.ID)
	var refs []wire.Ref
	for _, i := range n.opened() {
		switch {
		case i.Attempt == 0 || i.State == StateRetrying && i.RetryAt != 0:
		case i.ReceivedAt == 0:
			e.enqueue(i)
		default:
			refs = append(refs, wire.Ref{Seq: i.Seq, Token: i.Token})
		}
		if i.CancelBy != "" && i.Attempt != 0 {
			e.askCancel(now, i)
		}
		e.arm(now, i)
	}
	for part := range slices.Chunk(refs, wire.MaxRefs) {
		m := &wire.Query{Refs: part}
		e.send(n, m, &m.Through)
	}
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
	if n.online {
		e.offline(now, n, reason)
	}
	n.session = 0
	for _, r := range m.Unstarted {
		i := e.insts[r.Seq]
		if i == nil || i.node != n || i.Token != r.Token || i.StartedAt != 0 {
			continue
		}
		e.requeue(now, i, "its node stopped before starting it")
	}
}

// offline takes back what the node has not confirmed: it stays with its token,
// so that a copy which did arrive is recognised.
func (e *Engine) offline(now Now, n *node, reason string) {
	n.online, n.since, n.reason = false, now.Wall, reason
	n.due = 0
	e.show(n)
	for _, i := range n.opened() {
		i.cancelAt = 0
		if i.flying {
			e.ground(i)
			e.requeue(now, i, reason)
		}
		e.arm(now, i)
	}
}

func (e *Engine) requeue(now Now, i *inst, why string) {
	i.ReceivedAt = 0
	i.resends = 0
	switch i.State {
	case StateDispatched:
		e.move(now, i, StatePending, Entry{What: WhatRequeued, Detail: why})
		e.enqueue(i)
	case StateRetrying:
		e.log(now, i, Entry{What: WhatRequeued, Detail: why})
		e.enqueue(i)
	}
}

// watch sets the timer that looks at the node's silence.
func (e *Engine) watch(now Now, n *node) {
	n.due = max(n.heard+e.cfg.OfflineAfter, now.Mono+1)
	e.timers.add(timer{at: n.due, n: n})
}

func (e *Engine) checkNode(now Now, n *node) {
	if !n.online {
		return
	}
	if now.Mono-n.heard >= e.cfg.OfflineAfter {
		e.alarm(now, "node_offline", n.ID, fmt.Sprintf("no sign of life for %v", e.cfg.OfflineAfter))
		e.offline(now, n, "silent")
		return
	}
	e.watch(now, n)
}

// owe promises the node an EventAck with the next Ready.
func (e *Engine) owe(n *node) {
	if !n.owed {
		n.owed = true
		e.owing = append(e.owing, n)
	}
}

// payAcks lets EventAcks ride on what goes to the node anyway, or sends them by
// themselves.
func (e *Engine) payAcks(now Now) {
	for _, n := range e.owing {
		n.owed = false
		gap := n.gap && now.Mono-n.gapAt >= gapPause
		n.gap = false
		switch {
		case !n.online:
		case gap:
			n.gapAt = now.Mono
			e.effects.Sends = append(e.effects.Sends, Send{n.ID, &wire.EventAck{Through: n.cursor.Last, Gap: true}})
		case n.carrier != nil:
			*n.carrier = n.cursor.Last
		default:
			e.effects.Sends = append(e.effects.Sends, Send{n.ID, &wire.EventAck{Through: n.cursor.Last}})
		}
	}
	e.owing = e.owing[:0]
	for _, s := range e.effects.Sends {
		e.nodes[s.Node].carrier = nil
	}
}

func (e *Engine) collectNodes(r *Ready) {
	for _, n := range e.newNodes {
		n.renewed = false
		if n.known {
			r.Records.Nodes = append(r.Records.Nodes, n.Node)
			r.Records.Cursors = append(r.Records.Cursors, NodeCursor{n.ID, n.cursor})
			n.moved = false
		}
	}
	e.newNodes = e.newNodes[:0]
	for _, n := range e.moved {
		if n.moved {
			n.moved = false
			r.Records.Cursors = append(r.Records.Cursors, NodeCursor{n.ID, n.cursor})
		}
	}
	e.moved = e.moved[:0]
	for _, n := range e.changed {
		n.changed = false
		if n.known {
			r.Effects.Nodes = append(r.Effects.Nodes, n.state())
		}
	}
	e.changed = e.changed[:0]
}
