package engine

import (
	"github.com/apollo-11/apollo11/wire"
	"github.com/apollo-11/apollo11/wire/mutant"
)

// Flow control (B26): the gateway never hands a node more than its agent can hold.
// What was sent counts until the agent has ended it or is known to run it: a pulse of
// an hour or a watch takes no place. One line has few places while another one waits,
// so that what stands behind a long pulse stops nobody else.

// insideWindows is how many windows of a node may be inside its agent at most: sent or
// received, not running, not ended. An agent's queue holds a thousand.
const insideWindows = 4

// setInside counts what is inside an agent.
func (e *Engine) setInside(i *inst, in bool) {
	if i.inside == in || in && (i.safe || i.StartedAt != 0) {
		return
	}
	d := 1
	if !in {
		d = -1
	}
	i.inside = in
	i.node.inside += d
	for k := range i.places {
		i.places[k].l.inside += d
	}
	e.touchLines(i)
	e.wantPump(i.node)
}

// crowded reports whether a line has all the places that it may have.
func (e *Engine) crowded(n *node, l *line) bool {
	if n.waiting > 1 {
		return l.inside >= wire.LinePlaces
	}
	return l.inside >= e.cfg.Window
}

// recrowd looks at the lines of a node again when the number of those that wait has
// become one, or was.
func (e *Engine) recrowd(n *node, before int) {
	if (before > 1) != (n.waiting > 1) {
		e.touchNode(n)
	}
}

// mayFly reports whether something waits for the node and may be sent as far as
// the node goes.
func (e *Engine) mayFly(n *node) bool {
	window := e.cfg.Window
	if e.highWater() {
		window = 1
	}
	inside := n.inside
	if mutant.On(mutant.WindowForgets) {
		inside = 0
	}
	if !n.online || n.doubtful || n.twins.on || n.flying >= window || len(n.queue) == 0 {
		return false
	}
	return n.queue[0].comesBack() || !n.full && inside < insideWindows*e.cfg.Window
}

// comesBack reports whether the agent may keep lines for the next attempt: that has its
// place there, all that is inside may be waiting for it.
func (i *inst) comesBack() bool {
	return i.State == StateRetrying && stands(i.task.act) && !i.noRoom
}

// noRoom takes back an attempt that the agent had no room for. That is no failure: it
// keeps its place in the order, its token and its budgets, and waits until the agent
// tells of room.
func (e *Engine) noRoom(now Now, i *inst) {
	if i.ReceivedAt != 0 || i.By != 0 {
		return
	}
	i.node.full, i.noRoom = true, true
	e.ground(i)
	e.requeue(now, i, "the agent's queue is full")
}

// room takes in how many more instructions may wait in the agent.
func (e *Engine) room(n *node, m *wire.Heartbeat) {
	if m.Room > 1 && n.full {
		n.full = false
		e.wantPump(n)
	}
}
