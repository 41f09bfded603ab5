package engine

import (
	"fmt"

	"github.com/apollo-11/apollo11/wire"
	"github.com/apollo-11/apollo11/wire/mutant"
)

// Numbers in the order at a line (docs/safety.md 1, 2).

// Reserved are numbers that the log has set aside ahead: whatever is lost with the
// latest records, the next process begins above them, so that none is given out twice.
type Reserved struct {
	_          struct{} `cbor:",toarray"`
	Seq, Token uint64   // the first that are not reserved
}

// RestoreReserved takes in from the log what it had reserved. What it says of the end
// of the numbers that were given out stays as it is: that is what agents are held
// against.
func (e *Engine) RestoreReserved(r Reserved) {
	e.reserved = r
	if mutant.On(mutant.NumberTwice) {
		return
	}
	e.skipped = skipped{e.counters.NextSeq, r.Seq}
	e.counters.NextSeq = max(e.counters.NextSeq, r.Seq)
	e.counters.NextToken = max(e.counters.NextToken, r.Token)
}

// reserve sets the next block aside when less than half of the last one is left, so that
// what may not wait for its record (urgent.go) has numbers that are reserved on disk.
func (e *Engine) reserve(r *Records) {
	c, block := e.counters, uint64(max(e.cfg.Reserve, 0))
	if block == 0 || c.NextSeq+(block+1)/2 <= e.reserved.Seq && c.NextToken+(block+1)/2 <= e.reserved.Token {
		return
	}
	e.reserved = Reserved{Seq: c.NextSeq + block, Token: c.NextToken + block}
	v := e.reserved
	r.Reserved = &v
}

// newest is what was handed out last of a line, by its number, as far as this process
// knows.
type newest struct {
	order, seq uint64
	what       string // for people
	sum        actSum
}

// actSum tells whether two instructions ask for the same.
type actSum struct {
	pin    string
	level  bool
	pulse  bool
	maxOn  int64
	intent string
}

func sumOf(i *inst) actSum {
	a := i.task.act
	s := actSum{level: a.Level, pulse: a.Pulse, maxOn: int64(a.MaxOn), intent: i.Intent}
	if len(a.Pins) > 0 {
		s.pin = a.Pins[0]
	}
	return s
}

// noteHandedOut remembers an instruction at its lines. It costs the same however much
// waits there.
func (i *inst) noteHandedOut() {
	for k := range i.places {
		i.places[k].l.newest.note(i)
	}
}

// note remembers an instruction that was handed out, if it is the newest.
func (n *newest) note(i *inst) {
	if i.order() <= n.order {
		return
	}
	*n = newest{order: i.order(), seq: i.Seq, what: i.what(), sum: sumOf(i)}
}

// what names what an instruction does, for people.
func (i *inst) what() string {
	a := i.task.act
	if a.Sets && len(a.Pins) > 0 {
		level := 0
		if a.Level {
			level = 1
		}
		return fmt.Sprintf("%s of %s to %d", i.Intent, a.Pins[0], level)
	}
	if len(a.Pins) > 0 {
		return fmt.Sprintf("%s of %s", i.Intent, a.Pins[0])
	}
	return i.Intent
}

// newerThan returns the newest instruction of its lines that was handed out after it by
// its number, as far as the gateway knows; 0 for none.
func (e *Engine) newerThan(i *inst) (seq uint64, what string) {
	top := i.order()
	look := func(l *line) {
		if l.newest.order > top {
			top, seq, what = l.newest.order, l.newest.seq, l.newest.what
		}
	}
	n := i.node
	if !stands(i.task.act) {
		return 0, ""
	}
	keys, board := n.standsAt(i.task.act)
	for _, k := range keys {
		if l := n.lines[k]; l != nil {
			look(l)
		}
	}
	look(&n.board)
	if board {
		look(&n.all)
	}
	return seq, what
}

// superseded judges an agent's word that something newer has begun on the line. The
// gateway believes it only if it knows the newer one itself: otherwise a number has
// reached the agent that this log does not have, and every command would end there
// without a sound (docs/safety.md 2). It reports whether the word is believed.
func (e *Engine) superseded(now Now, i *inst) bool {
	if i.By != 0 || mutant.On(mutant.SupersededBelieved) {
		return true
	}
	if seq, _ := e.newerThan(i); seq != 0 {
		i.By = seq
		return true
	}
	e.alarm(now, "order_lost", i.node.ID, fmt.Sprintf(
		"the agent says that something newer than %s has begun on its line, and this log knows of none: was an older copy restored, or does a second gateway command it?",
		i.Key(e.cfg.Site)))
	return false
}

// mostRenumbered is how often in a row an instruction gets a number above the agent's
// top: an agent that refuses all the same needs somebody to look.
const mostRenumbered = 3

// renumber puts an instruction that is in no list behind everything that this log and
// its node know.
func (e *Engine) renumber(i *inst) {
	c := &e.counters
	i.Order = c.NextSeq
	c.NextSeq++
	e.topUsed = true
	i.node.behind(i)
	i.driven, i.Driven, i.whispers = false, false, 0 // that was under the old number: something newer may have moved the line since
}

// behind puts an instruction that is in no list behind everything that its node knows
// and that waits for it. What a node has seen moves the counters of the site within
// bounds only, at its hello; where they were not moved so far, the numbers are its own.
func (n *node) behind(i *inst) {
	if mutant.On(mutant.PriorityOvertakes) {
		return // the number is the priority's
	}
	if top := max(n.given.Seq, n.numbered); stands(i.task.act) && top >= i.order() && top < 1<<62 {
		i.Order = top + 1
	}
}

// again makes the next attempt at once and without a budget, of something towards safe
// whose last attempt has ended. It reports whether it could.
func (e *Engine) again(now Now, i *inst, why string) bool {
	if i.Attempt == wire.MaxAttempt || i.By != 0 || i.CancelBy != "" {
		return false
	}
	if !e.move(now, i, StateRetrying, Entry{What: WhatRetrying, Detail: why}) {
		return false
	}
	i.Operator = false
	i.RetryAt = max(now.Wall, 1)
	i.waitAt = now.in(0)
	e.supersede(now, i) // it may have got a new number
	e.effects.Counts.Retried++
	e.arm(now, i)
	return true
}

// mayRepeat reports whether an attempt with this end may be followed by another one
// without asking anybody. What an end of the agent or the board has ended on an output
// with a safe level is not: the output was taken to safe for a reason, and only what
// leads there goes on by itself (docs/safety.md 8).
func (e *Engine) mayRepeat(i *inst, code wire.Code, reason string) bool {
	if !repeatable(i) {
		return false
	}
	ended := code.Class() == wire.ClassUnknown || reason == ReasonForgotten
	return i.safe || !ended || mutant.On(mutant.OwnersActRetried) || !i.node.guarded(i.task.act)
}

// guarded reports whether an act moves an output that has a safe level.
func (n *node) guarded(a wire.Act) bool {
	if !a.Moves() {
		return false
	}
	for _, p := range a.Pins {
		if _, ok := n.safeLevel(p); ok {
			return true
		}
	}
	return false
}

// movedSince says what has been commanded on the lines of an instruction since it was,
// for the operator who has it tried again.
func (e *Engine) movedSince(i *inst) string {
	seq, what := e.newerThan(i)
	if seq == 0 {
		return ""
	}
	return fmt.Sprintf("since then %s (instruction %d) was sent on its line", what, seq)
}
