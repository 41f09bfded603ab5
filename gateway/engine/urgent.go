package engine

import (
	"fmt"

	"github.com/apollo-11/apollo11/wire"
)

// What may leave before its record (docs/safety.md 1, 5). Towards safe does not wait for
// the disk of the gateway: a copy of what is handed out goes ahead of it, under numbers
// that the log has reserved before. Which of them is let out, and when, is for package
// round to say: mostly the record is on disk before anybody misses it.

// alarmSafeLost tells of something that was driven and of which the log knows nothing.
const alarmSafeLost = "safe_record_lost" // incident, subject: node

// Urgent is a message towards safe that may leave before the record of what it is a copy
// of, if the log had reserved its numbers before. The record follows, with the
// instruction.
type Urgent struct {
	Node string
	Msg  *wire.SafeNow
}

// Numbers are the highest that it uses.
func (u Urgent) Numbers() Top { return Top{max(u.Msg.Seq, u.Msg.Order), u.Msg.Token.Seq} }

// Below reports whether both numbers lie below what the log has reserved.
func (r Reserved) Below(t Top) bool { return t.Seq < r.Seq && t.Token < r.Token }

// urge has a copy of an instruction towards safe that is handed out go ahead of its
// record. It carries nothing that the record alone justifies: no acknowledgement of events.
func (e *Engine) urge(now Now, i *inst) {
	if !i.safe || i.node.Rules < wire.RulesUrgent || i.ReceivedAt != 0 || i.driven || i.By != 0 {
		return
	}
	m := &wire.SafeNow{Seq: i.Seq, Token: i.Token, NotAfter: i.notAfter(now), Order: i.Order}
	if keys, board := i.node.keysOf(i.task.act); !board && len(i.task.act.Pins) > 0 {
		m.Lines = keys
	}
	e.effects.Urgent = append(e.effects.Urgent, Urgent{i.Node, m})
}

// Urgent hands out what is towards safe, and returns the copies of it that may go ahead
// of their records. It is for a caller whose disk takes no more rounds: everything else
// that has collected waits for the next Ready.
func (e *Engine) Urgent(now Now) []Urgent {
	for _, n := range e.pumps {
		e.sendSafe(now, n)
	}
	list := e.effects.Urgent
	e.effects.Urgent = nil
	return list
}

// Collected is how much waits for the next Ready: it grows with what an input leads to,
// but for what replaces something that waits already.
func (e *Engine) Collected() int {
	f := &e.effects
	return e.logged + len(e.touched) + len(e.dirty) + len(e.owing) + len(e.changed) + len(e.moved) + len(e.newTasks) + len(e.newNodes) +
		len(e.newMarks) + len(e.newDead) + len(e.newAudit) + len(e.newHolds) + len(e.dropped) +
		len(f.Replies) + len(f.Sends) + len(f.Alarms) + len(f.Confirms) + len(f.Compacts) + len(f.Pins)
}

// lostRecord judges an agent's word that it has driven something by an instruction of
// which this log knows nothing, though it had reserved the number: it was let out ahead of
// a record that a process before this one did not get to the disk. That is no older copy
// of the log, and the number is not given out again.
func (e *Engine) lostRecord(now Now, n *node, seq uint64) {
	if seq < e.skipped.from || seq >= e.skipped.to {
		return
	}
	e.alarm(now, alarmSafeLost, n.ID, fmt.Sprintf(
		"the agent has driven outputs to their safe levels by instruction %d, whose record was lost when the gateway died before it was on disk: "+
			"no receipt was given for it, and what is older may be tried again; submit it once more", seq))
}

// skipped are the numbers that this process began above: from the first that the log had
// not given out, to the first that it had not reserved.
type skipped struct{ from, to uint64 }
