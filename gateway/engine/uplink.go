package engine

import (
	"slices"

	"github.com/apollo-11/apollo11/wire"
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
