package explore

import (
	"fmt"
	"time"

	"github.com/apollo-11/apollo11/gateway/engine"
	"github.com/apollo-11/apollo11/gateway/round"
	"github.com/apollo-11/apollo11/wire"
)

// Violation is a broken rule.
type Violation struct {
	Rule string        // a short word for the invariant
	At   time.Duration // virtual time
	Text string
}

func (v *Violation) String() string {
	return fmt.Sprintf("%s, at %.3f s: %s", v.Rule, v.At.Seconds(), v.Text)
}

// checker knows what really happened, and holds the site's words against it.
type checker struct {
	w *world

	// What clients want and have been promised.
	subs  []*submission // by number, from 1
	acked map[int]string
	asks  map[string]bool // tasks, and instructions as "#seq", somebody wants cancelled

	byHand map[uint64]hand // instructions that an operator has dealt with

	book book // what the gateway has written

	// What happened at the agents.
	runs     map[wire.Token]*run
	bySeq    map[uint64][]*run
	reported map[wire.Token]wire.Code // results in events that were sent
	events   map[eventKey]eventFact
	heard    map[nodeLife]*arrivals
	lifeOf   map[*engine.Uplink]nodeLife // of the sender
	most     map[nodeLife]uint64         // event that was ever on disk at the gateway
	clocks   map[*agent]*knowledge
	wipes    map[string]bool

	saidBy     map[wire.Token]*agent // who reported
	retold     map[wire.Token]bool   // reported before a card was restored, and perhaps differently since
	copies     map[string]int        // how often a node's card was restored
	mustNotice map[string]bool       // nodes whose next hello shows that
	memory     memories
	pins       pins
	orders     orders
	saidCode   map[wire.Token]wire.Code // refusals as expired that were held against the time
	boards     boards
	pace       pace
	keeps      keeps
}

func newChecker(w *world) *checker {
	return &checker{w: w, acked: map[int]string{}, asks: map[string]bool{}, byHand: map[uint64]hand{}, book: newBook(),
		runs: map[wire.Token]*run{}, bySeq: map[uint64][]*run{}, reported: map[wire.Token]wire.Code{},
		events: map[eventKey]eventFact{}, heard: map[nodeLife]*arrivals{}, lifeOf: map[*engine.Uplink]nodeLife{},
		clocks: map[*agent]*knowledge{}, most: map[nodeLife]uint64{}, wipes: map[string]bool{},
		saidBy: map[wire.Token]*agent{}, retold: map[wire.Token]bool{}, copies: map[string]int{}, mustNotice: map[string]bool{}, memory: newMemories(), pins: newPins(), orders: newOrders(), saidCode: map[wire.Token]wire.Code{}, boards: newBoards(), pace: newPace(), keeps: newKeeps()}
}

func (c *checker) fail(rule, format string, args ...any) { c.w.fail(rule, format, args...) }

// wanted gives a submission its place; its number is in its arguments.
func (c *checker) wanted(p *submission) {
	for len(c.subs) < p.number {
		c.subs = append(c.subs, nil)
	}
	c.subs[p.number-1] = p
}

// traceOf is the trace id of a submission: it carries its number.
func traceOf(number int) wire.Trace { return wire.NewTrace(uint64(number)<<16, 1) }

// order finds what a client wanted by the number in the trace id.
func (c *checker) order(t wire.Trace) *submission {
	n := 0
	for _, b := range t[:6] {
		n = n<<8 | int(b)
	}
	if n >= 1 && n <= len(c.subs) && c.subs[n-1] != nil && t == traceOf(n) {
		return c.subs[n-1]
	}
	c.fail("invented", "a trace id that nobody sent: %v", t)
	return nil
}

// replied checks an answer as it leaves the gateway: what it promises is on disk.
func (c *checker) replied(p *submission, r engine.Reply) {
	switch {
	case r.Accepted != nil:
		t, ok := c.book.tasks[r.Accepted.TaskID]
		if !ok {
			c.fail("durable-ack", "%v is acknowledged as task %s, which is not on disk", p, r.Accepted.TaskID)
			return
		}
		if own := c.book.numbers[p.number]; own != r.Accepted.TaskID {
			if !r.Accepted.Existing || !c.sharesTask(p, &t) {
				c.fail("one-task", "%v is acknowledged as task %s of another submission", p, r.Accepted.TaskID)
			}
			c.orders.shared[p.number] = r.Accepted.TaskID
		}
	case r.Refused == nil:
		c.fail("answer", "%v is answered with nothing: %+v", p, r)
	case !c.mayRefuse(p, r.Refused):
		c.fail("answer", "%v is refused: %v", p, r.Refused)
	}
}

// acknowledged notes that a client has its answer.
func (c *checker) acknowledged(p *submission) {
	if have, ok := c.acked[p.number]; ok && have != p.taskID {
		c.fail("one-task", "%v is acknowledged as %s and as %s", p, have, p.taskID)
	}
	c.acked[p.number] = p.taskID
}

// hand is what an operator has done to an instruction. It may overrule what is
// known of it.
type hand struct {
	retried  bool // although the outcome was not known
	resolved bool // out of the operator queue in whatever state
}

// handled notes an operator's entries in a timeline.
func (c *checker) handled(w *engine.Write) {
	h := c.byHand[w.Instruction.Seq]
	for k := range w.Entries {
		e := &w.Entries[k]
		h.retried = h.retried || e.What == engine.WhatRetrying && e.Path == engine.PathHTTP && !e.Implied
		h.resolved = h.resolved || e.What == engine.WhatResolved
	}
	if h != (hand{}) {
		c.byHand[w.Instruction.Seq] = h
	}
}

// waiting returns the operator queue as it is on disk, in order.
func (c *checker) waiting() (list []uint64) {
	for _, seq := range c.book.seqs() {
		if c.book.insts[seq].Operator {
			list = append(list, seq)
		}
	}
	return list
}

// cancelling notes that somebody wants a task or an instruction cancelled.
func (c *checker) cancelling(task string, seq uint64) {
	if seq != 0 {
		c.asks[seqName(seq)] = true
		return
	}
	c.asks[task] = true
}

func seqName(seq uint64) string { return fmt.Sprintf("#%d", seq) }

// unfinished returns the instructions that are on disk and not settled, in order;
// only those that wait for another attempt if there are any.
func (c *checker) unfinished() (list []uint64) {
	var retrying []uint64
	for _, seq := range c.book.seqs() {
		i := c.book.insts[seq]
		if i.State == engine.StateRetrying && i.RetryAt != 0 {
			retrying = append(retrying, seq)
		}
		if i.Version != 0 && !i.State.Settled() {
			list = append(list, seq)
		}
	}
	if len(retrying) > 0 {
		return retrying
	}
	return list
}

// flushed checks what a round is about to do against the time at which it was decided.
func (c *checker) flushed(j *round.Job) {
	c.pace.since = 0
	c.paced(j)
	for _, s := range j.Effects.Sends {
		m, ok := s.Msg.(*wire.Instruction)
		if ok && m.Resend == 0 && m.NotAfter != 0 && m.SentAt >= m.NotAfter {
			c.fail("late-dispatch", "instruction %d is handed out %d ms after its limit", m.Seq, m.SentAt-m.NotAfter)
		}
	}
}

// limitHolds reports whether an instruction that is sent has the limit that is on disk.
// What may lead to safe may have a later one: a clock that is set forward takes nothing
// of its time (docs/safety.md 12).
func limitHolds(m *wire.Instruction, disk int64) bool {
	if m.NotAfter == disk {
		return true
	}
	act, err := wire.ParseAct(m.Intent, m.Args)
	return err == nil && disk != 0 && m.NotAfter > disk && (act.Safe || act.Sets && !act.Pulse && act.MaxOn == 0)
}

// delivered holds the effects of a round against the disk as it is at this
// moment: they may speak of nothing else.
func (c *checker) delivered(e *engine.Effects) {
	for _, s := range e.Sends {
		switch m := s.Msg.(type) {
		case *wire.Instruction:
			i := c.book.insts[m.Seq]
			c.orders.limits[m.Seq] = max(c.orders.limits[m.Seq], m.NotAfter)
			if have := c.book.tokens[m.Token]; have != (attemptOf{m.Seq, m.Attempt}) || !limitHolds(m, i.NotAfter) || i.Node != s.Node {
				c.fail("effect-before-commit", "instruction %d is sent to %s with token %v, attempt %d, limit %d; on disk the token is %+v, the limit %d for %s",
					m.Seq, s.Node, m.Token, m.Attempt, m.NotAfter, have, i.NotAfter, i.Node)
			}
			c.renews(m)
			c.unused(s.Node, m)
			c.inside(s.Node, m)
		case *wire.Cancel:
			c.known("cancel", m.Seq, m.Token)
		case *wire.Query:
			for _, r := range m.Refs {
				c.known("query", r.Seq, r.Token)
			}
		case *wire.Welcome:
			if !c.ofOldLife(s.Node, m.Through) {
				c.covered(s.Node, m.Through)
			}
			if m.Through <= c.book.cursors[s.Node].Last {
				delete(c.orders.ahead.unmet, s.Node)
			}
		case *wire.EventAck:
			c.covered(s.Node, m.Through)
		}
		if through := throughOf(s.Msg); through != 0 {
			c.covered(s.Node, through)
		}
	}
	for _, r := range e.Replies {
		c.done(r)
	}
	for _, f := range e.Confirms {
		c.w.counts.Windows.note(f.Window)
	}
	for _, s := range e.Statuses {
		for k := range s.Instructions {
			i := &s.Instructions[k]
			have := c.book.insts[i.Seq] // later rounds may be on disk as well
			if have.Version < i.Version || have.Version == i.Version && have.State != i.State {
				c.fail("effect-before-commit", "the status of instruction %d says version %d %v, on disk is version %d %v", i.Seq, i.Version, i.State, have.Version, have.State)
			}
		}
	}
}

// known demands that a token is on disk.
func (c *checker) known(what string, seq uint64, t wire.Token) {
	if c.book.tokens[t].seq != seq {
		c.fail("effect-before-commit", "the %s of instruction %d has the token %v, which is not on disk", what, seq, t)
	}
}

// throughOf is the acknowledgement that rides on another message.
func throughOf(m wire.Message) uint64 {
	switch m := m.(type) {
	case *wire.Instruction:
		return m.Through
	case *wire.Cancel:
		return m.Through
	case *wire.Query:
		return m.Through
	}
	return 0
}

// covered demands that the events a node is told about are on disk.
func (c *checker) covered(node string, through uint64) {
	have := c.book.cursors[node].Last
	if c.orders.ahead.unmet[node] && through > have && through <= c.book.before[node].Last {
		return // of its old life; what comes before the welcome of the new one it does not take
	}
	if through > have {
		c.fail("effect-before-commit", "%s is told that its events up to %d are on disk, they are up to %d", node, through, have)
	}
}

// alarm knows which alarms tell of a fault in the site itself.
func (c *checker) alarm(a engine.Alarm) {
	c.raised(a)
	if !a.Raised {
		return
	}
	switch a.Kind {
	case "events_lost", "unknown_report", "log_rolled_back":
		if !c.memory.older && !c.memory.liars[a.Subject] {
			c.fail("alarm", "%s of %s: %s", a.Kind, a.Subject, a.Text)
		}
	case "agent_rolled_back":
		if c.copies[a.Subject] == 0 {
			c.fail("alarm", "%s of %s: %s", a.Kind, a.Subject, a.Text)
		}
	case "implausible_numbers":
		if !c.memory.liars[a.Subject] {
			c.fail("alarm", "%s of %s: %s", a.Kind, a.Subject, a.Text)
		}
	case "illegal_transition", "unreadable_event":
		c.fail("alarm", "%s of %s: %s", a.Kind, a.Subject, a.Text)
	case "safe_record_lost":
		c.falseLost(a)
	case "agent_reset":
		if !c.wipes[a.Subject] && c.copies[a.Subject] == 0 {
			c.fail("alarm", "%s of %s, whose card was never replaced: %s", a.Kind, a.Subject, a.Text)
		}
	}
}
