package engine

import (
	"fmt"
	"time"

	"github.com/apollo-11/apollo11/wire"
	"github.com/apollo-11/apollo11/wire/mutant"
)

// What a node says of numbers counts for that node alone. This log knows what it has
// given to each; a node that has seen more than that was given it by a log of which
// this one is an older copy (B9), or lies, or has come from elsewhere with its memory.
// Whatever it is, only what waits for this node is in doubt.
const (
	alarmRolledBack  = "log_rolled_back"     // incident, subject: node
	alarmImplausible = "implausible_numbers" // incident, subject: node

	// lostMargin is what the counters skip when agents know numbers that this log
	// does not: other agents may know higher ones still.
	lostMargin = 100_000
	// lostAttempts is likewise what the attempts of one instruction skip.
	lostAttempts = 100
	// mostLost is the most that the counters may be moved by the word of agents, in
	// sum over the life of a log, three years at a million a day: faulty agents must
	// not use up the numbers.
	mostLost = 1_000_000_000
	// mostAlone is how far one node's word moves the counters at once, and
	// mostAloneSum in sum; for more another node must have seen as much.
	mostAlone    = 1_000_000
	mostAloneSum = 10_000_000
	// lastSeq is where the word of agents moves the counters no further: the other
	// half of what compact frames can carry is for instructions.
	lastSeq = wire.MaxCompactSeq / 2
	// implausibleAgain is the least time between two alarms about numbers of a node
	// that are not believed: its hello may be repeated at will.
	implausibleAgain = time.Minute
)

// Top is how far instruction sequences and token sequences have come, 0 for none.
type Top struct{ Seq, Token uint64 }

// above reports whether t goes beyond u in either.
func (t Top) above(u Top) bool { return t.Seq > u.Seq || t.Token > u.Token }

// with is the higher of both, in each.
func (t Top) with(u Top) Top { return Top{max(t.Seq, u.Seq), max(t.Token, u.Token)} }

// both is the lower of both, in each: what two nodes have seen.
func (t Top) both(u Top) Top { return Top{min(t.Seq, u.Seq), min(t.Token, u.Token)} }

// Given is what this log has given to one node. It is written with the node's
// cursor, and whenever something that was handed out ends without an event: together
// with the tokens of what is open it is exact after a restart.
type Given struct {
	_ struct{} `cbor:",toarray"`
	// Seq and Token are the highest that were handed out to it, and the highest that
	// it has claimed.
	Seq, Token uint64
	// Lost is the highest instruction that was in doubt when it claimed more than it
	// had been given: it may know attempts of those up to here that this log does not.
	Lost uint64
	// Moved is how far its word alone has moved the counters.
	Moved uint64
	// Incarnation and Last are those of the cursor that it was written with. Where
	// they are not, a program that does not know this record has gone on with the log.
	Incarnation, Last uint64
}

func (g Given) top() Top { return Top{g.Seq, g.Token} }

// Moved is how far the counters were moved by the word of agents in the life of the
// log.
type Moved struct {
	Sum uint64 `cbor:"1,keyasint"`
}

// Lost are numbers that agents know and this log does not, as an older version of
// this program has noted them, for all nodes together.
type Lost struct {
	_ struct{} `cbor:",toarray"`
	// Seq is above every instruction that was in the log before it was noticed.
	Seq uint64
	// From and To are the token numbers, To excluded.
	From, To uint64
}

// RestoreLost takes in from the log what an older version has noted.
func (e *Engine) RestoreLost(l Lost) { e.lost = l }

// RestoreMoved takes in from the log how far the counters were moved.
func (e *Engine) RestoreMoved(m Moved) { e.moving = m }

// RestoreGiven takes in from the log what it has given to a node, after Restore. One
// that does not belong to the node's cursor is not taken.
func (e *Engine) RestoreGiven(id string, g Given) {
	n := e.nodes[id]
	if n == nil || g.Incarnation != n.cursor.Incarnation || g.Last != n.cursor.Last {
		return
	}
	was := n.given.top().with(g.top()) // what is open may have been adopted before
	n.given, n.counted = g, true
	n.given.Seq, n.given.Token = was.Seq, was.Token
}

// give notes what is handed out to a node.
func (n *node) give(t Top) {
	t = t.with(n.given.top())
	n.given.Seq, n.given.Token = t.Seq, t.Token
}

// given is what an instruction has given to its node, none before its first attempt.
func (i *Instruction) given() Top {
	if i.Attempt == 0 {
		return Top{}
	}
	return Top{max(i.Seq, i.Order), i.Token.Seq}
}

// lastWord has what the log has given to a node written down when an instruction ends:
// from now on it is no more among those that are open.
func (e *Engine) lastWord(i *inst) {
	if n := i.node; i.given().above(n.kept) {
		e.moveCursor(n)
	}
}

// moveCursor asks for the node's cursor to be written, with what was given to it.
func (e *Engine) moveCursor(n *node) {
	if !n.moved && !mutant.On(mutant.CursorLost) {
		n.moved = true
		e.moved = append(e.moved, n)
	}
}

// cursorOf is the node's cursor as it is written.
func (n *node) cursorOf() NodeCursor {
	n.given.Incarnation, n.given.Last = n.cursor.Incarnation, n.cursor.Last
	n.kept = n.given.top()
	c := NodeCursor{Node: n.ID, Cursor: n.cursor}
	if n.counted {
		g := n.given
		c.Given = &g
	}
	return c
}

// claim takes in how far a node says, in its hello, that it has seen numbers.
func (e *Engine) claim(now Now, n *node, m *wire.Hello) {
	word := Top{m.TopSeq, m.TopToken}
	n.word = word
	if mutant.On(mutant.RestoreUnseen) {
		return
	}
	unseen := word.above(n.given.top())
	if !n.counted {
		// An older version did not count for each node: it can only know what the log
		// had given out before this process began, and what that version has noted.
		c := e.began
		unseen = word.above(Top{c.NextSeq - 1, c.NextToken - 1}) || word.Token >= e.lost.From && word.Token < e.lost.To
	}
	told := e.follow(now, n, word)
	if unseen {
		e.mistrust(now, n, word, told)
	}
	n.counted = true
	n.give(word)
}

// mistrust ends all attempts that the gateway would make by itself of what a node may
// have been sent by the log that this one is an older copy of: it may have been
// executed, and the agent would not recognise a new token. It can be none that is
// above what the node has seen. What the copy knows to have been sent is asked after
// as ever. An operator decides about the rest.
func (e *Engine) mistrust(now Now, n *node, word Top, told bool) {
	if !told {
		e.alarm(now, alarmRolledBack, n.ID, fmt.Sprintf(
			"the agent has seen instruction %d and token %d, this log has given it up to %d and %d: was an older copy restored? "+
				"What was submitted in between must be submitted again", word.Seq, word.Token, n.given.Seq, n.given.Token))
	}
	n.given.Lost = max(n.given.Lost, min(word.Seq, e.counters.NextSeq-1))
	e.maybeDone(now, n, word.Seq)
	if mutant.On(mutant.HelloForAll) {
		for _, other := range e.nodes {
			e.maybeDone(now, other, word.Seq)
		}
	}
}

func (e *Engine) maybeDone(now Now, n *node, upTo uint64) {
	const why = "this log is an older copy: it may have been executed since the copy was made"
	for _, i := range n.opened() {
		if i.byHand || i.Seq > upTo || i.safe {
			continue // what leads to safe waits for no doubt: its agent judges it by its number
		}
		i.Doubted = true
		i.Retry.Max = min(i.Retry.Max, i.Retries)
		if e.unsent(i) {
			e.giveUp(now, i, ReasonRestored, why)
			e.arm(now, i)
		} else {
			e.log(now, i, Entry{What: WhatDoubted, Detail: why + "; only an operator may have it tried again"})
		}
	}
}

// aboveLost is the number of the last attempt that the node may know and this log may
// not, 0 for most instructions: compact acks name nothing but the attempt.
func (e *Engine) aboveLost(i *inst) uint8 {
	if i.Seq <= i.node.given.Lost || i.Seq < e.lost.Seq {
		return lostAttempts
	}
	return 0
}

// follow moves the counters above what a node has seen, so that no number is given out
// a second time. Numbers are one for the whole site, so this is where a node's word
// reaches others: it is bounded for one node alone and for all together, and leaves
// half of them whatever is said. It reports whether they were moved.
func (e *Engine) follow(now Now, n *node, word Top) bool {
	c := &e.counters
	next := Top{c.NextSeq - 1, c.NextToken - 1}
	if !word.above(next) {
		return false
	}
	to, alone := word, true
	if far := distance(next, to); far > mostAlone || n.given.Moved+far > mostAloneSum {
		to, alone = word.both(e.witness(n, word)), false
	}
	if mutant.On(mutant.NumbersUnbounded) {
		c.NextSeq, c.NextToken, e.topUsed = word.Seq+1+lostMargin, word.Token+1+lostMargin, true
		return true
	}
	far := distance(next, to)
	left := mostLost - min(mostLost, e.moving.Sum)
	if !to.above(next) || far > left || next.with(to).Seq+lostMargin > lastSeq {
		e.implausible(now, n, word, left)
		return false
	}
	if alone {
		n.given.Moved += far
	}
	e.incident(now, alarmRolledBack, n.ID, fmt.Sprintf(
		"the agent has seen instruction %d and token %d, this log had given out up to %d and %d: was an older copy restored? "+
			"Numbers go on above them; what was submitted in between must be submitted again",
		word.Seq, word.Token, next.Seq, next.Token))
	next = next.with(to)
	c.NextSeq, c.NextToken = next.Seq+1+lostMargin, next.Token+1+lostMargin
	e.topUsed = true
	e.moving.Sum += far
	e.movedNew = true
	return true
}

// distance is how far the counters move for a word, with the margin.
func distance(from, to Top) uint64 {
	far := max(to.Seq, from.Seq) - from.Seq
	far = max(far, max(to.Token, from.Token)-from.Token)
	return min(far, 1<<62) + lostMargin
}

// witness is what other nodes have seen, at most a node's word: the highest in each of
// both numbers.
func (e *Engine) witness(n *node, word Top) Top {
	var seen Top
	for _, other := range e.nodes {
		if other != n {
			seen = seen.with(other.word.both(word))
		}
	}
	return seen
}

// implausible alarms numbers that are not believed.
func (e *Engine) implausible(now Now, n *node, word Top, left uint64) {
	if n.oddAt != 0 && now.Mono-n.oddAt < implausibleAgain {
		return
	}
	n.oddAt = now.in(0)
	c := &e.counters
	e.incident(now, alarmImplausible, n.ID, fmt.Sprintf(
		"the agent has seen instruction %d and token %d, this log has given out up to %d and %d: that is not believed on its word alone; "+
			"%d more can have been lost, and instructions number up to %d", word.Seq, word.Token, c.NextSeq-1, c.NextToken-1, left, uint64(lastSeq)))
}

// replaced holds for an operator what waited for a board or a journal that is another
// one now: nobody knows what the new one moves. Only what leads to safe goes on
// (docs/safety.md 2).
func (e *Engine) replaced(now Now, n *node) {
	for _, i := range n.opened() {
		if i.byHand || i.safe || i.By != 0 || !i.task.act.Moves() {
			continue
		}
		i.Retry.Max = min(i.Retry.Max, i.Retries)
		switch {
		case i.waiting():
			e.giveUp(now, i, i.Reason, "its node's board or journal was replaced: somebody must say whether another attempt is wanted")
			e.arm(now, i)
		case e.unsent(i):
			e.giveUp(now, i, ReasonReplaced, "its node's board or journal was replaced while it waited: somebody must say whether it is still wanted")
			e.arm(now, i)
		}
	}
}

// know counts a node that has said hello.
func (e *Engine) know(n *node) {
	if !n.known {
		n.known = true
		e.known++
	}
}
