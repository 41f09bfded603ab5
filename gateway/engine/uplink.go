package engine

import (
	"github.com/apollo-11/apollo11/wire"
)

// uplink takes in what a node says on the primary path.
func (e *Engine) uplink(now Now, in *Uplink) {
	if n := e.nodes[in.Node]; n != nil && n.unheard(in.Msg) {
		return
	}
	switch m := in.Msg.(type) {
	case *wire.Hello:
		e.hello(now, in.Node, m)
	case *wire.Goodbye:
		if n := e.nodes[in.Node]; n != nil && n.session != 0 && m.Session == n.session {
			e.goodbye(now, n, m)
		}
	case *wire.Heartbeat:
		if n := e.alive(now, in.Node, m.Session); n != nil {
			n.tells(now, m.Next)
			e.skew(now, n, m.Clock, true)
			e.hand(now, n, m)
			e.room(n, m)
		}
	case *wire.Digest:
		if n := e.alive(now, in.Node, m.Session); n != nil {
			n.tells(now, m.Next)
			e.digest(n, m)
		}
	case *wire.Event:
		if n := e.hear(now, in.Node); n != nil {
			e.event(now, n, m)
		}
	case *wire.Report:
		// It names no session: while another board was refused under the name just now, its
		// word of what it has driven must not keep the silence from coming for which it is
		// told to wait.
		n := e.nodes[in.Node]
		if n == nil || n.session == 0 || n.refusedAt == 0 {
			n = e.hear(now, in.Node)
		}
		if n != nil {
			e.states(now, n, m)
		}
	}
}

// alive notes a sign of life that names its session: another one's is old news.
func (e *Engine) alive(now Now, id string, session uint64) *node {
	if n := e.nodes[id]; n != nil && n.session == session {
		return e.hear(now, id)
	}
	return nil
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
