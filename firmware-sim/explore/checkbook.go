package explore

import (
	"maps"
	"slices"

	"github.com/apollo-11/apollo11/gateway/engine"
	"github.com/apollo-11/apollo11/gateway/round"
	"github.com/apollo-11/apollo11/wire"
)

// book is the checker's own copy of what the gateway has written: what is
// durable, and above it what has been applied and may still be lost.
type book struct {
	insts   map[uint64]engine.Instruction
	tokens  map[wire.Token]attemptOf
	tasks   map[string]engine.Task
	numbers map[int]string // submission -> task
	cursors map[string]engine.Cursor
	top     uint64 // highest instruction
	trail   trail

	inThree map[wire.Token]bool // confirmed by the third compensation round

	copy *book // an older copy, nil for none

	before map[string]engine.Cursor // of the life of a node before this one

	pending []page
	moved   map[string]engine.Cursor      // applied, not durable
	newer   map[uint64]engine.Instruction // applied, not durable
	fresh   map[wire.Token]attemptOf
	begun   map[int]string
}

type attemptOf struct {
	seq     uint64
	attempt uint8
}

// page is one batch that is not durable.
type page struct {
	head    uint64
	records *engine.Records
}

func newBook() book {
	b := book{insts: map[uint64]engine.Instruction{}, tokens: map[wire.Token]attemptOf{}, tasks: map[string]engine.Task{},
		numbers: map[int]string{}, cursors: map[string]engine.Cursor{}, before: map[string]engine.Cursor{}, inThree: map[wire.Token]bool{}, trail: trail{acts: map[string]bool{}}}
	b.forget()
	return b
}

func (b *book) forget() {
	b.pending = nil
	b.trail.last = b.trail.durable
	b.moved = map[string]engine.Cursor{}
	b.newer, b.fresh, b.begun = map[uint64]engine.Instruction{}, map[wire.Token]attemptOf{}, map[int]string{}
}

// last is an instruction as it was last written.
func (b *book) last(seq uint64) engine.Instruction {
	if i, ok := b.newer[seq]; ok {
		return i
	}
	return b.insts[seq]
}

// seqs are the instructions on disk, in order. Their numbers may have wide gaps.
func (b *book) seqs() []uint64 { return slices.Sorted(maps.Keys(b.insts)) }

// watch returns a log that shows the checker what goes through it.
func (c *checker) watch(log round.Log, d disk) round.Log { return watched{log, c, d} }

type watched struct {
	round.Log
	c *checker
	d disk
}

func (l watched) Apply(r *engine.Records) (round.Pending, error) {
	p, err := l.Log.Apply(r)
	if err == nil {
		l.c.applied(l.d.applied(), r)
	}
	return p, err
}

// applied checks a batch against everything before it.
func (c *checker) applied(head uint64, r *engine.Records) {
	b := &c.book
	for k := range r.Tasks {
		t := &r.Tasks[k]
		p := c.order(t.Trace)
		if p == nil {
			return
		}
		for _, m := range []map[int]string{b.numbers, b.begun} {
			if other, ok := m[p.number]; ok {
				c.fail("one-task", "%v became task %s and task %s", p, other, t.ID)
			}
		}
		b.begun[p.number] = t.ID
	}
	for k := range r.Instructions {
		w := &r.Instructions[k]
		prev := b.last(w.Instruction.Seq)
		c.handled(w)
		c.retries(&prev, w)
		c.numbered(&w.Instruction)
		c.write(&prev, w)
		if prev.Version == 0 {
			c.boards.throws.taken[w.Instruction.Seq] = c.w.now
		}
		c.trace(w)
		b.newer[w.Instruction.Seq] = w.Instruction
	}
	for _, n := range r.Cursors {
		c.cursor(n)
		c.usurped(n)
		b.moved[n.Node] = n.Cursor
	}
	if r.Quiet != nil {
		c.pace.quiet = r.Quiet.On
	}
	for k := range r.Audits {
		c.audited(&r.Audits[k])
	}
	b.pending = append(b.pending, page{head, r})
}

// trace shows what a version adds to an instruction's timeline.
func (c *checker) trace(w *engine.Write) {
	if c.w.trace == nil {
		return
	}
	for k := range w.Entries {
		e := &w.Entries[k]
		c.w.log("gateway", "#%d v%d %v -> %v: %v attempt %d %v %v implied %v %s", w.Instruction.Seq, w.Instruction.Version,
			e.From, e.To, e.What, e.Attempt, e.Path, e.Code, e.Implied, e.Detail)
	}
}

// durable notes that everything up to a batch is on disk.
func (c *checker) durable(head uint64) {
	b := &c.book
	for len(b.pending) > 0 && b.pending[0].head <= head {
		r := b.pending[0].records
		b.pending = b.pending[1:]
		for k := range r.Tasks {
			t := r.Tasks[k]
			b.tasks[t.ID] = t
			if p := c.order(t.Trace); p != nil {
				b.numbers[p.number] = t.ID
			}
		}
		for k := range r.Instructions {
			i := r.Instructions[k].Instruction
			news := b.insts[i.Seq].Version == 0
			b.insts[i.Seq] = i
			b.top = max(b.top, i.Seq)
			if i.Attempt != 0 {
				b.tokens[i.Token] = attemptOf{i.Seq, i.Attempt}
			}
			c.recorded(&i)
			c.hasIt(&i)
			c.numbersLeft(&i)
			c.wantStopped(&i)
			if news {
				c.owed(&i)
				c.atTheDoor(&i)
			}
		}
		for _, n := range r.Cursors {
			if was := b.cursors[n.Node]; was.Incarnation != n.Incarnation {
				b.before[n.Node] = was
				c.orders.ahead.unmet[n.Node] = true
			}
			b.cursors[n.Node] = n.Cursor
			if _, ok := c.orders.known[n.Node]; !ok {
				c.orders.known[n.Node] = c.w.now
			}
			life := nodeLife{n.Node, n.Incarnation, c.copies[n.Node]}
			c.most[life] = max(c.most[life], n.Last)
		}
		if r.Reserved != nil {
			c.orders.ahead.reserved = *r.Reserved
		}
		for k := range r.Audits {
			b.trail.durable = r.Audits[k]
			b.trail.acts[act(r.Audits[k].Action, r.Audits[k].Subject)] = true
		}
	}
	if len(b.pending) == 0 {
		b.forget()
	}
}

// crashed notes that the gateway has died and what of its log survived.
func (c *checker) crashed(kept uint64) {
	c.durable(kept)
	c.book.forget()
	c.pace.restarted()
	c.numbersLost()
	clear(c.boards.throws.since)
	c.aheadLost()
	clear(c.lifeOf)
	c.memory.due, c.memory.heard, c.memory.stands = nil, map[string]voice{}, map[alarmOf]bool{} // it may have died before it told
}

// moves is the checker's own copy of the lifecycle in the design: from each state
// to which.
var moves = map[engine.State][]engine.State{
	engine.StateNone:       {engine.StatePending},
	engine.StatePending:    {engine.StateDispatched, engine.StateCancelled, engine.StateTimeout},
	engine.StateDispatched: {engine.StateRunning, engine.StateCancelled, engine.StatePending, engine.StateTimeout},
	engine.StateRunning:    {engine.StateSucceeded, engine.StateFailed, engine.StateTimeout, engine.StateCancelled},
	engine.StateFailed:     {engine.StateRetrying},
	engine.StateTimeout:    {engine.StateRetrying},
	engine.StateRetrying:   {engine.StateRunning, engine.StateCancelled, engine.StateTimeout},
}

func legal(from, to engine.State) bool {
	for _, s := range moves[from] {
		if s == to {
			return true
		}
	}
	return false
}

// write checks one version of an instruction against the one before.
func (c *checker) write(prev *engine.Instruction, w *engine.Write) {
	i := &w.Instruction
	if i.Version != prev.Version+1 {
		c.fail("version", "instruction %d goes from version %d to %d", i.Seq, prev.Version, i.Version)
	}
	if len(w.Entries) == 0 {
		c.fail("timeline", "instruction %d is written as version %d and its timeline says nothing", i.Seq, i.Version)
	}
	state := prev.State
	for k := range w.Entries {
		e := &w.Entries[k]
		if e.From != state {
			c.fail("timeline", "an entry of instruction %d goes from %v, where it stood at %v (%v)", i.Seq, e.From, state, e.What)
		}
		if e.From != e.To && !legal(e.From, e.To) {
			c.fail("transition", "instruction %d goes from %v to %v (%v)", i.Seq, e.From, e.To, e.What)
		}
		if e.What == engine.WhatLease && e.From != e.To {
			c.fail("transition", "the end of a lease moves instruction %d from %v to %v", i.Seq, e.From, e.To)
		}
		state = e.To
	}
	if state != i.State {
		c.fail("timeline", "instruction %d is %v, its timeline ends with %v", i.Seq, i.State, state)
	}
	c.attempt(prev, i)
	if i.NotAfter == 0 && i.ReceivedAt != 0 && (prev.ReceivedAt == 0 || prev.Attempt != i.Attempt) && i.Sends <= 1+compensationRounds && !c.book.inThree[i.Token] {
		c.book.inThree[i.Token] = true
		c.w.counts.InThree++
	}
	if prev.Version != 0 && (i.Node != prev.Node || i.Task != prev.Task || i.NotAfter != prev.NotAfter || i.Intent != prev.Intent) {
		c.fail("changed", "instruction %d has become another one: %+v, was %+v", i.Seq, i, prev)
	}
	if (i.State == engine.StateFailed || i.State == engine.StateTimeout) && !i.Operator && i.CancelBy == "" && !c.byHand[i.Seq].resolved && i.By == 0 {
		c.fail("dropped", "instruction %d is %v (%s), will not be retried and is not in the operator queue", i.Seq, i.State, i.Reason)
	}
}

// lostAttempts is what a restored log skips of an instruction's attempts.
const lostAttempts = 100

// attempt checks that each attempt has a token of its own.
func (c *checker) attempt(prev, i *engine.Instruction) {
	most := prev.Attempt + 1
	if c.memory.older || c.memory.liars[i.Node] {
		most = max(most, lostAttempts+1)
	}
	if i.Attempt < prev.Attempt || i.Attempt > most {
		c.fail("token", "instruction %d goes from attempt %d to %d", i.Seq, prev.Attempt, i.Attempt)
	}
	if (i.Attempt == prev.Attempt) != (i.Token == prev.Token) {
		c.fail("token", "instruction %d: attempt %d had the token %v, attempt %d has %v", i.Seq, prev.Attempt, prev.Token, i.Attempt, i.Token)
	}
	if i.Attempt == 0 || i.Attempt == prev.Attempt {
		return
	}
	for _, m := range []map[wire.Token]attemptOf{c.book.tokens, c.book.fresh} {
		if o, ok := m[i.Token]; ok {
			c.fail("token", "instruction %d, attempt %d has the token %v of instruction %d, attempt %d", i.Seq, i.Attempt, i.Token, o.seq, o.attempt)
		}
	}
	c.book.fresh[i.Token] = attemptOf{i.Seq, i.Attempt}
	if i.NotAfter == 0 {
		c.w.counts.Attempts++
	}
}
