package engine

import (
	"slices"
	"time"

	"github.com/apollo-11/apollo11/wire"
)

// mostLetGo bounds the words to a node that are remembered to be said again: more lines
// than any board has. Whatever is lost beyond it, the agent keeps a line for no longer
// than wire.OrderWait.
const mostLetGo = wire.MaxLines

// letGone is an instruction whose lines an agent need not keep any more.
type letGone struct {
	seq   uint64
	until time.Duration // by then the agent has let go by itself
}

// mayBeKept reports whether the agent may keep the lines of an instruction, when nobody
// knows any more what it was told.
func (i *inst) mayBeKept() bool {
	return i.Attempt != 0 && i.node.Rules >= wire.RulesOrder && stands(i.task.act) && i.task.act.Moves() && !i.safe && i.Retry.Max > 0
}

// letGo tells the agent that it need not keep the lines of an instruction for a next
// attempt, which will not come. The word may be lost with the connection, so it is said
// again at each welcome for as long as the agent may keep them.
func (e *Engine) letGo(now Now, i *inst) {
	if !i.kept {
		return
	}
	i.kept = false
	if k := i.Code.Class(); k == wire.ClassSuccess || k == wire.ClassRefused {
		return
	}
	n := i.node
	n.keeps(i.Seq)
	if len(n.letGone) == mostLetGo {
		n.letGone = slices.Delete(n.letGone, 0, 1)
	}
	n.letGone = append(n.letGone, letGone{i.Seq, now.in(wire.OrderWait)})
	if n.online {
		e.sendRelease(n, i.Seq)
	}
}

func (e *Engine) sendRelease(n *node, seq uint64) {
	m := &wire.Release{Seq: seq}
	e.send(n, m, &m.Through)
}

// keeps notes that the agent is asked to keep the lines of an instruction anew.
func (n *node) keeps(seq uint64) {
	n.letGone = slices.DeleteFunc(n.letGone, func(l letGone) bool { return l.seq == seq })
}

// letGoAgain says it once more, in a new session.
func (e *Engine) letGoAgain(now Now, n *node) {
	n.letGone = slices.DeleteFunc(n.letGone, func(l letGone) bool { return now.in(0) >= l.until })
	if n.Rules < wire.RulesOrder {
		return
	}
	for _, l := range n.letGone {
		e.sendRelease(n, l.seq)
	}
}
