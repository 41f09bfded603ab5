package engine_test

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/apollo-11/apollo11/wire"
)

// simWorkers is how many attempts a simulated agent runs at a time.
const simWorkers = 2

// simAgent is an agent as the gateway may expect one: it knows every token in its
// journal, reports what happened from there, and forgets the rest in a crash.
type simAgent struct {
	w  *world
	id string
	simLink

	up      bool
	life    *identity // identity of the running process
	journal journal
	rules   bool       // it follows the rules for order at a line
	queue   []*attempt // received, not started, by priority
	running map[wire.Token]*attempt
}

// journal is what an agent keeps across a crash.
type journal struct {
	incarnation uint64
	attempts    map[wire.Token]*attempt
	events      []*wire.Event // not acknowledged yet
	next        uint64
	topSeq      uint64
	topToken    uint64
	marks       map[wire.LineKey]uint64 // the highest number that has begun there
	keeps       map[wire.LineKey]kept   // lines that are kept for a next attempt
}

type attempt struct {
	msg     *wire.Instruction
	ref     wire.Ref
	number  uint8
	stored  bool   // in the journal
	first   uint64 // number of its first event
	started int64
	code    wire.Code // of its end
	offered bool      // in this life
}

func newSimAgent(w *world, id string) *simAgent {
	a := &simAgent{w: w, id: id, rules: w.rules}
	a.wipe()
	return a
}

// wipe makes a fresh journal.
func (a *simAgent) wipe() {
	a.journal = journal{incarnation: a.w.rnd.Uint64() | 1, attempts: map[wire.Token]*attempt{}, next: 1,
		marks: map[wire.LineKey]uint64{}, keeps: map[wire.LineKey]kept{}}
}

// boot starts the agent: what had started and not ended was interrupted, what
// was stored and not started is still to be done.
func (a *simAgent) boot() {
	a.up, a.life = true, new(identity)
	a.queue, a.running = nil, map[wire.Token]*attempt{}
	known := slices.SortedFunc(maps.Values(a.journal.attempts), func(x, y *attempt) int { return cmp.Compare(x.ref.Token.Seq, y.ref.Token.Seq) })
	for _, t := range known {
		switch {
		case t.code != wire.CodeNone:
		case t.started != 0:
			a.end(t, wire.CodeInterrupted)
		default:
			t.offered = !a.rules // it begins nothing that was not offered again
			a.queue = append(a.queue, t)
		}
	}
	a.w.trace(a.id + " starts")
	a.connect()
	a.tellNarrow()
	a.work()
}

// crash ends the agent's process at once; wiped, its journal is lost as well.
func (a *simAgent) crash(wiped bool) {
	if !a.up {
		return
	}
	a.w.trace(a.id + " loses power")
	a.die()
	if wiped {
		a.w.oracle.wiped(a.journal.attempts)
		a.wipe()
	}
}

func (a *simAgent) die() {
	a.up, a.life = false, nil
	a.tellNarrow()
	a.dropped()
	a.w.after(a.w.span(100, 8000), a.boot)
}

// stop ends the agent in order: it gives back what it has not started.
func (a *simAgent) stop() {
	if !a.up {
		return
	}
	m := &wire.Goodbye{Session: a.session, Reason: "maintenance"}
	for _, t := range a.queue {
		m.Unstarted = append(m.Unstarted, t.ref)
		delete(a.journal.attempts, t.ref.Token)
	}
	if a.welcomed {
		a.say(m)
	}
	a.w.trace(a.id + " stops in order")
	a.die()
}

func (a *simAgent) heal() {
	a.quiet = 0
	a.narrowbandDown = false
	a.tellNarrow()
}

// later does something if the same process still runs.
func (a *simAgent) later(d time.Duration, do func()) {
	life := a.life
	a.w.after(d, func() {
		if a.life == life && a.up {
			do()
		}
	})
}

// receive takes in a message of the gateway. Before its welcome an agent answers
// nothing: the gateway would take that for a word of the one that it knows.
func (a *simAgent) receive(m wire.Message) {
	if _, ok := m.(*wire.Welcome); !ok && !a.welcomed && a.w.plant != plantHasty {
		return
	}
	switch m := m.(type) {
	case *wire.Welcome:
		if m.Session == a.session && m.Refused == "" {
			a.welcomed = true
			a.acked(m.Through)
			a.sendEvents()
			a.digest()
			return
		}
	case *wire.EventAck:
		a.acked(m.Through)
		if m.Gap {
			a.sendEvents()
		}
	case *wire.Instruction:
		// What was sent before the gateway knew of this session may carry a token
		// that a lost journal does not know any more.
		if a.welcomed || a.w.plant == plantHasty {
			a.acked(m.Through)
			a.instruction(m)
		}
	case *wire.Cancel:
		a.acked(m.Through)
		a.cancel(m)
	case *wire.Query:
		a.acked(m.Through)
		r := &wire.Report{}
		for _, ref := range m.Refs {
			if t := a.find(ref); t != nil {
				t.offered = true
			}
			r.States = append(r.States, a.state(ref))
		}
		a.say(r)
		a.work()
	case *wire.Release:
		a.acked(m.Through)
		a.release(m.Seq)
		a.work()
	}
}

func (a *simAgent) acked(through uint64) {
	if through >= a.journal.next {
		a.w.fail("%s is told that event %d is on disk, its next one is %d", a.id, through, a.journal.next)
	}
	for len(a.journal.events) > 0 && a.journal.events[0].Number <= through {
		a.journal.events = a.journal.events[1:]
	}
}

// instruction takes in an attempt, or answers for one that it knows.
func (a *simAgent) instruction(m *wire.Instruction) {
	ref := wire.Ref{Seq: m.Seq, Token: m.Token}
	if t := a.find(ref); t != nil && a.w.plant != plantTwice {
		t.offered = true
		a.later(0, a.work)
		if t.code != wire.CodeNone && slices.ContainsFunc(a.journal.events, func(e *wire.Event) bool { return e.Token == m.Token }) {
			a.sendEvents()
			return
		}
		a.say(&wire.Report{States: []wire.State{a.state(ref)}})
		return
	}
	j := &a.journal
	j.topSeq, j.topToken = max(j.topSeq, m.Seq), max(j.topToken, m.Token.Seq)
	t := &attempt{msg: m, ref: ref, number: m.Attempt, offered: true}
	for _, o := range a.journal.attempts {
		if o.ref.Seq == m.Seq && o.ref.Token.Seq > m.Token.Seq {
			a.end(t, wire.CodeStaleToken)
			return
		}
	}
	if a.late(m) {
		a.end(t, wire.CodeExpired)
		return
	}
	if a.rules && !a.orderly(t) {
		return
	}
	a.queue = append(a.queue, t)
	slices.SortStableFunc(a.queue, func(x, y *attempt) int { return cmp.Compare(rank(x), rank(y)) })
	a.work()
	if t.started == 0 && t.code == wire.CodeNone {
		a.later(250*time.Millisecond, func() {
			if t.started == 0 && t.code == wire.CodeNone && !t.stored && slices.Contains(a.queue, t) {
				a.store(t)
				a.event(t, wire.PhaseReceived)
			}
		})
	}
}

// late reports whether the limit of an instruction has passed.
func (a *simAgent) late(m *wire.Instruction) bool {
	return m.NotAfter != 0 && a.w.wall() >= m.NotAfter && a.w.plant != plantLate
}

func rank(t *attempt) wire.Priority {
	if t.msg.Priority == 0 {
		return wire.PriorityNormal
	}
	return t.msg.Priority
}

func (a *simAgent) store(t *attempt) {
	t.stored = true
	a.journal.attempts[t.ref.Token] = t
}

func (a *simAgent) find(ref wire.Ref) *attempt {
	if t := a.journal.attempts[ref.Token]; t != nil {
		return t
	}
	for _, t := range a.queue {
		if t.ref == ref {
			return t
		}
	}
	return nil
}

func (a *simAgent) state(ref wire.Ref) wire.State {
	s := wire.State{Seq: ref.Seq, Token: ref.Token, Status: wire.StatusNever}
	if t := a.find(ref); t != nil {
		switch {
		case t.code != wire.CodeNone:
			s.Status, s.Code = wire.StatusDone, t.code
		case t.started != 0:
			s.Status = wire.StatusRunning
		default:
			s.Status = wire.StatusQueued
		}
	}
	return s
}

// becameOf answers a question over narrowband. What waits is brought into the
// journal first, so that the answer stays true.
func (a *simAgent) becameOf(q wire.CompactQuery) wire.Code {
	for _, t := range a.queue {
		if t.ref.Seq == q.Seq && t.number == q.Attempt && !t.stored {
			a.store(t)
			a.event(t, wire.PhaseReceived)
		}
	}
	for _, t := range a.journal.attempts {
		switch {
		case t.ref.Seq != q.Seq || t.number != q.Attempt:
		case t.code != wire.CodeNone:
			return t.code
		case t.started != 0:
			return wire.CodeStarted
		default:
			return wire.CodeReceived
		}
	}
	return wire.CodeNever
}

// digest sums up what the agent holds and the gateway has acknowledged to know of.
func (a *simAgent) digest() {
	through := a.journal.next - 1
	if len(a.journal.events) > 0 {
		through = a.journal.events[0].Number - 1
	}
	var refs []wire.Ref
	for _, t := range a.journal.attempts {
		if t.code == wire.CodeNone && t.first != 0 && t.first <= through {
			refs = append(refs, t.ref)
		}
	}
	m := &wire.Digest{Session: a.session}
	m.Hash, m.Count = wire.DigestOf(refs)
	a.say(m)
}

// work starts what there are workers for; never two attempts of one instruction
// at a time.
func (a *simAgent) work() {
	for k := 0; k < len(a.queue) && len(a.running) < simWorkers; {
		t := a.queue[k]
		busy := a.rules && !a.itsTurn(t)
		for _, o := range a.running {
			busy = busy || o.ref.Seq == t.ref.Seq
		}
		if busy {
			k++
			continue
		}
		a.queue = slices.Delete(a.queue, k, k+1)
		if a.late(t.msg) {
			a.end(t, wire.CodeExpired)
			continue
		}
		a.start(t)
	}
}

// start executes an attempt: in the journal first.
func (a *simAgent) start(t *attempt) {
	t.started = a.w.wall()
	a.store(t)
	a.running[t.ref.Token] = t
	a.w.oracle.started(a, t)
	for _, k := range a.linesOf(t.msg) {
		a.journal.marks[k] = max(a.journal.marks[k], t.order())
		delete(a.journal.keeps, k)
	}
	limit := time.Duration(t.msg.TimeoutMs) * time.Millisecond
	took := a.w.span(1, 800)
	code := wire.CodeOK
	switch a.w.rnd.IntN(10) {
	case 0:
		code = wire.CodeBusy
	case 1:
		code = wire.CodeFailed
	case 2, 3:
		took = a.w.span(1000, 50_000)
		if took > limit && a.w.chance(0.5) {
			took, code = limit, wire.CodeTimeout
		}
	case 4:
		took, code = time.Millisecond, wire.CodeNoSuchPin
	}
	if took > 250*time.Millisecond {
		a.later(250*time.Millisecond, func() {
			if t.code == wire.CodeNone {
				a.event(t, wire.PhaseStarted)
			}
		})
		a.later(took/2, func() {
			if t.code == wire.CodeNone && took > time.Second {
				a.event(t, wire.PhaseProgress)
			}
		})
	}
	a.later(took, func() { a.end(t, code) })
}

// end stores a result with its event.
func (a *simAgent) end(t *attempt, code wire.Code) {
	if t.code != wire.CodeNone {
		return
	}
	t.code = code
	a.store(t)
	delete(a.running, t.ref.Token)
	if k := slices.Index(a.queue, t); k >= 0 {
		a.queue = slices.Delete(a.queue, k, k+1)
	}
	a.w.oracle.ended(t)
	a.keep(t)
	a.event(t, wire.PhaseProcessed)
	a.work()
}

func (a *simAgent) cancel(m *wire.Cancel) {
	t := a.find(wire.Ref{Seq: m.Seq, Token: m.Token})
	switch {
	case t == nil:
		a.end(&attempt{msg: &wire.Instruction{}, ref: wire.Ref{Seq: m.Seq, Token: m.Token}, number: wire.MaxAttempt}, wire.CodeCancelled)
	case t.code != wire.CodeNone:
		a.sendEvents()
	case t.started == 0:
		a.end(t, wire.CodeCancelled)
	case a.w.chance(0.8):
		a.later(10*time.Millisecond, func() { a.end(t, wire.CodeCancelled) })
	}
}

// event journals a step and sends it; by narrowband as well if the primary path
// does not confirm it soon.
func (a *simAgent) event(t *attempt, p wire.Phase) {
	e := &wire.Event{Number: a.journal.next, Seq: t.ref.Seq, Token: t.ref.Token, Attempt: t.number, Phase: p, StartedAt: t.started}
	a.journal.next++
	if t.first == 0 {
		t.first = e.Number
	}
	ack := wire.CompactAck{Seq: t.ref.Seq, Attempt: t.number, Code: wire.CodeStarted}
	switch p {
	case wire.PhaseReceived:
		e.ReceivedAt, ack.Code = a.w.wall(), wire.CodeReceived
	case wire.PhaseProcessed:
		e.Code, e.FinishedAt, ack.Code = t.code, a.w.wall(), t.code
	case wire.PhaseProgress:
		e.Percent = 50
	}
	a.journal.events = append(a.journal.events, e)
	if a.welcomed {
		a.say(e)
	}
	if t.msg.Seq != 0 {
		a.hedge(e, ack, 750*time.Millisecond)
	}
}

func (a *simAgent) hedge(e *wire.Event, ack wire.CompactAck, d time.Duration) {
	a.later(d, func() {
		if slices.Contains(a.journal.events, e) {
			a.whisper(ack)
			a.hedge(e, ack, 5*time.Second)
		}
	})
}

// sendEvents sends again everything that is not acknowledged.
func (a *simAgent) sendEvents() {
	for _, e := range a.journal.events {
		a.say(e)
	}
}
