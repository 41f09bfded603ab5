package engine

import (
	"github.com/apollo-11/apollo11/wire"
	"github.com/apollo-11/apollo11/wire/mutant"
)

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
		gap := n.gap && now.Mono >= n.gapAt
		n.gap = false
		switch {
		case !n.online:
		case gap:
			n.gapAt = now.Mono + gapPause
			e.effects.Sends = append(e.effects.Sends, Send{n.ID, &wire.EventAck{Through: n.cursor.Last, Gap: true}})
		case n.carrier != nil:
			*n.carrier = n.cursor.Last
		default:
			e.effects.Sends = append(e.effects.Sends, Send{n.ID, &wire.EventAck{Through: n.cursor.Last + ahead()}})
		}
	}
	e.owing = e.owing[:0]
	for _, s := range e.effects.Sends {
		if n := e.nodes[s.Node]; n != nil {
			n.carrier = nil
		}
	}
}

func (e *Engine) collectNodes(r *Ready) {
	for _, n := range e.newNodes {
		n.renewed = false
		if n.known {
			r.Records.Nodes = append(r.Records.Nodes, n.Node)
			r.Records.Cursors = append(r.Records.Cursors, n.cursorOf())
			n.moved = false
		}
	}
	e.newNodes = e.newNodes[:0]
	for _, n := range e.moved {
		if n.moved {
			n.moved = false
			r.Records.Cursors = append(r.Records.Cursors, n.cursorOf())
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

// ahead is by how many events an acknowledgement is ahead of the log: by none.
func ahead() uint64 {
	if mutant.On(mutant.AckAhead) {
		return 1
	}
	return 0
}
