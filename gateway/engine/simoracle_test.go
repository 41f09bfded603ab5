package engine_test

import (
	"maps"
	"slices"

	"github.com/apollo-11/apollo11/gateway/engine"
	"github.com/apollo-11/apollo11/wire"
)

// oracle knows what really happened at the pins, and holds the gateway's words
// against it.
type oracle struct {
	w        *world
	sent     []*publish // by number, from 1
	taken    map[int]*publish
	runs     map[wire.Token]*run
	bySeq    map[uint64][]*run
	reported map[wire.Token]wire.Code // ends that an agent has in its journal
	begun    map[lineOf]uint64        // the highest number that was executed there
	older    bool                     // an older copy of the log was restored
	lost     map[wire.Token]bool      // given out by the log in between
}

// run is one execution.
type run struct {
	token  wire.Token
	number int // of the submission
	node   string
	code   wire.Code // CodeNone while it runs
	lost   bool      // its journal was wiped while it ran
}

func newOracle(w *world) *oracle {
	return &oracle{w: w, taken: map[int]*publish{}, runs: map[wire.Token]*run{}, bySeq: map[uint64][]*run{}, reported: map[wire.Token]wire.Code{}, lost: map[wire.Token]bool{}, begun: map[lineOf]uint64{}}
}

// submission gives a task its number, which its arguments carry.
func (o *oracle) submission(p *publish) {
	o.sent = append(o.sent, p)
	p.number = len(o.sent)
}

// order finds what a client asked for, by the number in the trace.
func (o *oracle) order(t wire.Trace) *publish {
	for _, p := range o.sent {
		if p.spec.Trace == t {
			return p
		}
	}
	o.w.fail("an agent was given a trace that nobody sent: %v", t)
	return nil
}

// refusedHeld checks that what was refused would have moved something away from safe.
func (o *oracle) refusedHeld(p *publish) {
	if p.spec.Intent == wire.IntentSafe || p.spec.Intent == wire.IntentRelease {
		o.w.fail("submission %d, %s, is refused because something is held", p.number, p.spec.Intent)
	}
}

// accepted notes an acknowledged submission: it must be on disk.
func (o *oracle) accepted(p *publish) {
	o.taken[p.number] = p
	d := o.w.gateway.durable
	if _, ok := d.ids[p.taskID]; !ok {
		o.w.fail("submission %d is acknowledged as task %s, which is not on disk", p.number, p.taskID)
	}
}

// harmless reports whether an attempt that ended with the code may be followed
// by another one although the intent must not be executed twice.
func harmless(c wire.Code) bool { return c.Class() == wire.ClassRetryable }

// started holds an execution against everything before it.
func (o *oracle) started(a *simAgent, t *attempt) {
	i, ok := o.w.gateway.durable.insts[t.ref.Seq]
	if o.runs[t.ref.Token] != nil {
		o.w.fail("token %v of instruction %d is executed twice", t.ref.Token, t.ref.Seq)
	}
	lost := o.lost[t.ref.Token] // it was on disk once
	if !ok && !lost {
		o.w.fail("instruction %d is executed and not on disk", t.ref.Seq)
		return
	}
	if lost {
		i = engine.Instruction{Seq: t.ref.Seq, NotAfter: t.msg.NotAfter, Node: a.id}
	}
	if mayLeadToSafe(t.msg) {
		i.NotAfter = max(i.NotAfter, t.msg.NotAfter)
	}
	if i.NotAfter != 0 && o.w.wall() >= i.NotAfter {
		o.w.fail("instruction %d is started %d ms after its limit", i.Seq, o.w.wall()-i.NotAfter)
	}
	if i.Node != a.id {
		o.w.fail("instruction %d of %s is executed by %s", i.Seq, i.Node, a.id)
	}
	p := o.order(t.msg.Trace)
	o.inTurn(a, t, &i)
	for _, r := range o.bySeq[i.Seq] {
		if p != nil && !lost && r.number == p.number && r.node == a.id && !o.repeatable(p) && (r.lost || !harmless(r.code)) && !o.asked(i.Seq) {
			o.w.fail("%s of instruction %d is executed again (%v) after an attempt (%v) that ended with %v, lost %v",
				p.spec.Intent, i.Seq, t.ref.Token, r.token, r.code, r.lost)
		}
	}
	r := &run{token: t.ref.Token, number: p.number, node: a.id}
	o.runs[r.token] = r
	o.bySeq[i.Seq] = append(o.bySeq[i.Seq], r)
}

// repeatable reports whether twice has the effect of once.
func (o *oracle) repeatable(p *publish) bool {
	switch p.spec.Intent {
	case wire.IntentGPIOWrite, wire.IntentSafe, wire.IntentRelease:
		return true
	}
	return false
}

// asked reports whether an operator has asked for an attempt.
func (o *oracle) asked(seq uint64) bool {
	return slices.ContainsFunc(o.w.gateway.durable.lines[seq], func(e engine.Entry) bool {
		return e.What == engine.WhatRetrying && !e.Implied && e.Actor != ""
	})
}

// restored forgives what an older copy d of the log does not hold.
func (o *oracle) restored(old, d *modelLog) {
	o.older = true
	for t := range old.tokens {
		if _, ok := d.tokens[t]; !ok {
			o.lost[t] = true
		}
	}
	for n, p := range o.taken {
		if first := d.ids[p.taskID]; first == 0 || o.order(d.tasks[first].Trace) != p {
			delete(o.taken, n)
		}
	}
}

// inTurn demands that what is executed on a line is newer than everything that was
// executed there before, whatever was lost, resent or tried again in between. An agent
// with a wiped journal knows no order, nor does one without rules that runs late what
// the gateway has given up.
func (o *oracle) inTurn(a *simAgent, t *attempt, i *engine.Instruction) {
	n := t.order()
	if !a.rules && i.Order != 0 {
		n = i.Order // which it was not told
	}
	for _, k := range a.linesOf(t.msg) {
		b := o.begun[lineOf{a.id, k}]
		if n < b && a.rules && a.towards(t.msg) && len(a.linesOf(t.msg)) > 1 {
			continue // it drives its other lines
		}
		if n < b && !o.older && a.w.plant == plantNone && (a.rules || !i.State.Settled() && i.By == 0) {
			o.w.fail("instruction %d of %s (order %d) begins on line %x after number %d: %+v", i.Seq, a.id, n, k, b, *i)
		}
		o.begun[lineOf{a.id, k}] = max(b, n)
	}
}

type lineOf struct {
	node string
	key  wire.LineKey
}

func (o *oracle) ended(t *attempt) {
	if r := o.runs[t.ref.Token]; r != nil {
		r.code = t.code
	}
	o.reported[t.ref.Token] = t.code
}

func (o *oracle) wiped(m map[wire.Token]*attempt) {
	for token := range m {
		if r := o.runs[token]; r != nil && r.code == wire.CodeNone {
			r.lost = true
		}
		delete(o.reported, token) // it may never be told now
	}
}

// recorded holds what the gateway believes against what happened.
func (o *oracle) recorded(i *engine.Instruction) {
	r := o.runs[i.Token]
	told := wire.CodeNone
	if r != nil {
		told = r.code
	}
	if c, ok := o.reported[i.Token]; ok {
		told = c
	}
	if i.Code != wire.CodeNone && i.Code != told && (r == nil || !r.lost) && told != wire.CodeNone {
		o.w.fail("instruction %d is recorded as %v, its attempt %v ended with %v", i.Seq, i.Code, i.Token, told)
	}
	switch i.State {
	case engine.StateSucceeded:
		if (r == nil || r.code != wire.CodeOK) && i.Intent != wire.IntentRelease {
			o.w.fail("instruction %d is SUCCEEDED, and its attempt %v was never executed with success: %+v", i.Seq, i.Token, r)
		}
	case engine.StateFailed:
		if k := i.Code.Class(); k != wire.ClassRetryable && k != wire.ClassPermanent && k != wire.ClassRefused {
			o.w.fail("instruction %d is FAILED with the code %v", i.Seq, i.Code)
		}
	case engine.StateCancelled:
		if i.CancelBy == "" && i.By == 0 && i.Code == wire.CodeCancelled && !o.older {
			o.w.fail("instruction %d is CANCELLED, and nobody asked", i.Seq)
		}
	}
}

// mayLeadToSafe reports whether a clock that is set forward takes nothing of an
// instruction's time.
func mayLeadToSafe(m *wire.Instruction) bool {
	act, err := wire.ParseAct(m.Intent, m.Args)
	return err == nil && (act.Safe || act.Sets && !act.Pulse)
}

// delivered holds the effects of a batch against the disk as it is at this
// moment: they may speak of nothing else.
func (o *oracle) delivered(f *engine.Effects) {
	d := o.w.gateway.durable
	for _, s := range f.Sends {
		switch m := s.Msg.(type) {
		case *wire.Instruction:
			i := d.insts[m.Seq]
			if i.Token != m.Token || i.Attempt != m.Attempt || i.NotAfter != m.NotAfter && (m.NotAfter < i.NotAfter || !mayLeadToSafe(m)) || i.Node != s.Node || d.tokens[m.Token] != m.Seq {
				o.w.fail("instruction %d is sent with token %v, attempt %d, limit %d to %s; the disk says %+v", m.Seq, m.Token, m.Attempt, m.NotAfter, s.Node, i)
			}
		case *wire.Cancel:
			if d.tokens[m.Token] != m.Seq {
				o.w.fail("the cancel of instruction %d has the token %v, which is not on disk", m.Seq, m.Token)
			}
		case *wire.Query:
			for _, r := range m.Refs {
				if d.tokens[r.Token] != r.Seq {
					o.w.fail("the query of instruction %d has the token %v, which is not on disk", r.Seq, r.Token)
				}
			}
		case *wire.Welcome:
			o.through(s.Node, m.Through)
		case *wire.EventAck:
			o.through(s.Node, m.Through)
		}
	}
	for _, s := range f.Statuses {
		for _, i := range s.Instructions {
			if have := d.insts[i.Seq]; have.Version != i.Version || have.State != i.State {
				o.w.fail("the status of instruction %d says v%d %v, the disk v%d %v", i.Seq, i.Version, i.State, have.Version, have.State)
			}
		}
	}
}

func (o *oracle) through(node string, n uint64) {
	if have := o.w.gateway.durable.cursors[node].Last; n > have {
		o.w.fail("%s is told that its events up to %d are on disk, they are up to %d", node, n, have)
	}
}

// final is asked when everything has settled.
func (o *oracle) final() {
	d := o.w.gateway.durable
	count := map[int]int{}
	for _, t := range d.tasks {
		if p := o.order(t.Trace); p != nil {
			count[p.number]++
		}
	}
	for n, p := range o.taken {
		if count[n] != 1 {
			o.w.fail("submission %d was acknowledged as task %s; the log holds it %d times", n, p.taskID, count[n])
		}
	}
	for _, n := range slices.Sorted(maps.Keys(count)) {
		if count[n] > 1 {
			o.w.fail("submission %d became %d tasks", n, count[n])
		}
	}
	for _, seq := range slices.Sorted(maps.Keys(d.insts)) {
		i := d.insts[seq]
		if !i.State.Settled() || d.open[d.ids[i.Task]] {
			o.w.fail("instruction %d ended as %v, its task open %v", seq, i.State, d.open[d.ids[i.Task]])
		}
		// An end that was acknowledged in a log of which an older copy was restored is
		// not told again: it stays unknown.
		untold := o.older && i.State == engine.StateTimeout && i.Code == wire.CodeNone
		if c, ok := o.reported[i.Token]; ok && i.Code != c && i.Attempt != 0 && !untold {
			o.w.fail("instruction %d ended as %v with the code %v, its agent has reported %v", seq, i.State, i.Code, c)
		}
		if o.w.gateway.log.lines[seq][len(o.w.gateway.log.lines[seq])-1].To != i.State {
			o.w.fail("the timeline of instruction %d does not end with its state", seq)
		}
	}
	s := o.w.gateway.eng.Sizes()
	if s.Tasks != 0 || s.Instructions != 0 || s.Queued != 0 || s.Flying != 0 || s.Open != 0 || s.Timers > s.Nodes {
		o.w.fail("memory is not empty: %+v", s)
	}
}
