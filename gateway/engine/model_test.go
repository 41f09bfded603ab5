package engine_test

import (
	"fmt"
	"maps"
	"slices"

	"github.com/apollo-11/apollo11/gateway/engine"
	"github.com/apollo-11/apollo11/wire"
)

// modelLog is the log as the engine's records describe it. It refuses every
// record that breaks a rule of the log, whatever made it.
type modelLog struct {
	counters engine.Counters
	tasks    map[uint64]engine.Task
	ids      map[string]uint64
	open     map[uint64]bool
	insts    map[uint64]engine.Instruction
	lines    map[uint64][]engine.Entry
	nodes    map[string]engine.Node
	cursors  map[string]engine.Cursor
	marks    map[string]engine.Mark
	dead     map[uint64]engine.DeadLetter
	tokens   map[wire.Token]uint64 // every token that was ever allotted
	queue    map[uint64]bool       // waits for an operator
	audits   []engine.Audit
	trail    engine.Trail
	quiet    engine.Quiet
	given    map[string]engine.Given
	moved    engine.Moved
	reserved engine.Reserved
	holds    map[string]engine.Hold
}

func newModelLog() *modelLog {
	return &modelLog{
		counters: engine.Counters{Epoch: 7, Shard: 1, NextSeq: 1, NextToken: 1, NextDead: 1},
		tasks:    map[uint64]engine.Task{}, ids: map[string]uint64{}, open: map[uint64]bool{},
		insts: map[uint64]engine.Instruction{}, lines: map[uint64][]engine.Entry{},
		nodes: map[string]engine.Node{}, cursors: map[string]engine.Cursor{},
		marks: map[string]engine.Mark{}, dead: map[uint64]engine.DeadLetter{}, tokens: map[wire.Token]uint64{},
		queue: map[uint64]bool{}, given: map[string]engine.Given{}, holds: map[string]engine.Hold{},
	}
}

// clone is a copy that later writes to either do not touch.
func (l *modelLog) clone() *modelLog {
	return &modelLog{counters: l.counters, tasks: maps.Clone(l.tasks), ids: maps.Clone(l.ids), open: maps.Clone(l.open),
		insts: maps.Clone(l.insts), lines: maps.Clone(l.lines), nodes: maps.Clone(l.nodes), cursors: maps.Clone(l.cursors),
		marks: maps.Clone(l.marks), dead: maps.Clone(l.dead), tokens: maps.Clone(l.tokens),
		queue: maps.Clone(l.queue), audits: slices.Clip(l.audits), trail: l.trail, quiet: l.quiet, given: maps.Clone(l.given), moved: l.moved, reserved: l.reserved, holds: maps.Clone(l.holds)}
}

// stored is what comes back from a disk: nothing is shared with the engine, and
// what cannot be encoded is found out.
func stored[T any](v T) T {
	var out T
	b, err := wire.EncodeRecord(&v)
	if err != nil {
		panic(fmt.Sprintf("bug: encode %T: %v", v, err))
	}
	if err := wire.DecodeRecord(b, &out); err != nil {
		panic(fmt.Sprintf("bug: decode %T: %v", v, err))
	}
	return out
}

func markName(client string, packet uint16) string { return fmt.Sprintf("%s/%d", client, packet) }

// apply takes in one batch, or says which rule of the log it breaks.
func (l *modelLog) apply(r *engine.Records) error {
	if c := r.Counters; c != nil {
		o := l.counters
		if c.Epoch != o.Epoch || c.Shard != o.Shard || c.NextSeq < o.NextSeq || c.NextToken < o.NextToken || c.NextDead < o.NextDead {
			return fmt.Errorf("counters went from %+v to %+v", o, *c)
		}
		l.counters = *c
	}
	for _, t := range r.Tasks {
		if first, ok := l.ids[t.ID]; ok {
			return fmt.Errorf("task %s is written as %d and stands as %d already", t.ID, t.First, first)
		}
		if t.First+uint64(t.Count) > l.counters.NextSeq || t.Count == 0 {
			return fmt.Errorf("task %s takes the numbers %d+%d, which the counters (%d) do not cover", t.ID, t.First, t.Count, l.counters.NextSeq)
		}
		l.ids[t.ID], l.tasks[t.First] = t.First, stored(t)
	}
	seen := map[uint64]bool{}
	for _, w := range r.Instructions {
		if seen[w.Instruction.Seq] {
			return fmt.Errorf("instruction %d is written twice in one batch", w.Instruction.Seq)
		}
		seen[w.Instruction.Seq] = true
		if err := l.write(w); err != nil {
			return fmt.Errorf("instruction %d: %w", w.Instruction.Seq, err)
		}
	}
	if err := l.openings(r); err != nil {
		return err
	}
	for _, n := range r.Nodes {
		l.nodes[n.ID] = stored(n)
	}
	for _, c := range r.Cursors {
		l.cursors[c.Node] = c.Cursor
		if g := c.Given; g != nil {
			if o := l.given[c.Node]; g.Seq < o.Seq || g.Token < o.Token || g.Lost < o.Lost || g.Moved < o.Moved {
				return fmt.Errorf("what node %s was given went from %+v to %+v", c.Node, o, *g)
			}
			l.given[c.Node] = stored(*g)
		}
	}
	for _, m := range r.Marks {
		if _, ok := l.ids[m.TaskID]; !ok {
			return fmt.Errorf("a mark of %s names the task %s, which is not in the log", m.Client, m.TaskID)
		}
		l.marks[markName(m.Client, m.PacketID)] = m
	}
	for _, d := range r.DeadLetters {
		if _, ok := l.dead[d.Number]; ok || d.Number >= l.counters.NextDead {
			return fmt.Errorf("dead letter %d is written twice or above the counter %d", d.Number, l.counters.NextDead)
		}
		l.dead[d.Number] = stored(d)
	}
	return l.byHand(r)
}

// byHand takes in what operators did.
func (l *modelLog) byHand(r *engine.Records) error {
	for _, n := range r.Dropped {
		if _, ok := l.dead[n]; !ok {
			return fmt.Errorf("dead letter %d is dropped and does not exist", n)
		}
		delete(l.dead, n)
	}
	for _, a := range r.Audits {
		a = stored(a)
		if err := l.trail.Check(a); err != nil {
			return err
		}
		l.audits = append(l.audits, a)
	}
	if q := r.Quiet; q != nil {
		if q.On && (q.Reason == "" || q.Until <= q.Since) {
			return fmt.Errorf("a quiet period without reason or end: %+v", *q)
		}
		l.quiet = stored(*q)
	}
	if r.Moved != nil {
		if r.Moved.Sum <= l.moved.Sum {
			return fmt.Errorf("the counters were moved by %d, and now by %d", l.moved.Sum, r.Moved.Sum)
		}
		l.moved = stored(*r.Moved)
	}
	if v := r.Reserved; v != nil {
		if v.Seq < l.counters.NextSeq || v.Token < l.counters.NextToken || v.Seq < l.reserved.Seq || v.Token < l.reserved.Token {
			return fmt.Errorf("reserved %+v after %+v, the counters are %+v", *v, l.reserved, l.counters)
		}
		l.reserved = stored(*v)
	}
	if v := l.reserved; v.Seq != 0 && (v.Seq < l.counters.NextSeq || v.Token < l.counters.NextToken) {
		return fmt.Errorf("given out up to %+v, reserved is only %+v", l.counters, v)
	}
	for _, h := range r.Holds {
		if delete(l.holds, h.Node); !h.Ended() {
			l.holds[h.Node] = stored(h)
		}
	}
	return nil
}

// write checks one version of an instruction against the one before it.
func (l *modelLog) write(w engine.Write) error {
	i := stored(w.Instruction)
	old, known := l.insts[i.Seq]
	if i.Version != old.Version+1 {
		return fmt.Errorf("version %d follows %d", i.Version, old.Version)
	}
	t, ok := l.tasks[l.ids[i.Task]]
	if !ok || i.Seq < t.First || i.Seq >= t.First+uint64(t.Count) {
		return fmt.Errorf("its task %s is not in the log or does not hold it", i.Task)
	}
	if known && (old.Task != i.Task || old.Node != i.Node || old.Intent != i.Intent || old.NotAfter != i.NotAfter || old.Trace != i.Trace || old.Created != i.Created) {
		return fmt.Errorf("its identity changed from %+v to %+v", old, i)
	}
	state := old.State
	for _, e := range w.Entries {
		if e.From != state {
			return fmt.Errorf("a timeline entry %v starts at %v, the one before ended at %v", e.What, e.From, state)
		}
		if e.To != state && !engine.Allowed(state, e.To) {
			return fmt.Errorf("the step from %v to %v (%v) is not allowed", state, e.To, e.What)
		}
		state = e.To
	}
	if len(w.Entries) == 0 || state != i.State {
		return fmt.Errorf("its timeline has %d entries and ends at %v, the record says %v", len(w.Entries), state, i.State)
	}
	if err := l.attempt(old, i); err != nil {
		return err
	}
	switch {
	case w.Queue == engine.QueueEnter && l.queue[i.Seq], w.Queue == engine.QueueLeave && !l.queue[i.Seq]:
		return fmt.Errorf("it enters or leaves (%d) the operator queue, where it is %v", w.Queue, l.queue[i.Seq])
	case w.Queue == engine.QueueEnter:
		l.queue[i.Seq] = true
	case w.Queue == engine.QueueLeave:
		delete(l.queue, i.Seq)
	}
	if l.queue[i.Seq] != i.Operator || i.Operator && !i.State.Settled() {
		return fmt.Errorf("%v, for an operator %v, in the operator queue %v", i.State, i.Operator, l.queue[i.Seq])
	}
	l.insts[i.Seq] = i
	l.lines[i.Seq] = append(slices.Clip(l.lines[i.Seq]), stored(w.Entries)...)
	return nil
}

func (l *modelLog) attempt(old, i engine.Instruction) error {
	if i.Attempt == old.Attempt {
		if i.Token != old.Token {
			return fmt.Errorf("attempt %d changed its token from %v to %v", i.Attempt, old.Token, i.Token)
		}
		return nil
	}
	// Several attempts may pass within one batch; each took a token.
	if i.Attempt < old.Attempt || i.Token.Seq <= old.Token.Seq || i.Token.Seq >= l.counters.NextToken {
		return fmt.Errorf("attempt %d with token %v follows attempt %d with %v; the counters say %d", i.Attempt, i.Token, old.Attempt, old.Token, l.counters.NextToken)
	}
	if seq, ok := l.tokens[i.Token]; ok {
		return fmt.Errorf("token %v was allotted to instruction %d already", i.Token, seq)
	}
	l.tokens[i.Token] = i.Seq
	return nil
}

func (l *modelLog) unfinished(first uint64) bool {
	t := l.tasks[first]
	for seq := first; seq < first+uint64(t.Count); seq++ {
		if !l.insts[seq].State.Settled() {
			return true
		}
	}
	return false
}

func (l *modelLog) openings(r *engine.Records) error {
	for _, first := range r.Opened {
		if l.open[first] {
			return fmt.Errorf("task %d is opened and is open already", first)
		}
		l.open[first] = true
	}
	for _, first := range r.Closed {
		if !l.open[first] {
			return fmt.Errorf("task %d is closed and is not open", first)
		}
		delete(l.open, first)
	}
	check := slices.Concat(r.Opened, r.Closed)
	for _, t := range r.Tasks {
		check = append(check, t.First)
	}
	for _, w := range r.Instructions {
		check = append(check, l.ids[w.Instruction.Task])
	}
	for _, first := range check {
		if l.open[first] != l.unfinished(first) {
			return fmt.Errorf("task %d stands as open %v, its instructions say %v", first, l.open[first], l.unfinished(first))
		}
	}
	return nil
}

// load is the task under a number.
func (l *modelLog) load(first uint64) engine.TaskState {
	s := engine.TaskState{Task: l.tasks[first]}
	for seq := first; seq < first+uint64(s.Task.Count); seq++ {
		s.Instructions = append(s.Instructions, l.insts[seq])
	}
	return s
}

// recover builds an engine as the ledger does after a restart.
func (l *modelLog) recover(e *engine.Engine, now engine.Now) {
	e.RestoreQuiet(now, l.quiet)
	e.RestoreMoved(l.moved)
	e.RestoreReserved(l.reserved)
	if n := len(l.audits); n > 0 {
		e.RestoreAudit(l.audits[n-1])
	}
	for _, id := range slices.Sorted(maps.Keys(l.nodes)) {
		e.Restore(l.nodes[id], l.cursors[id])
		if g, ok := l.given[id]; ok {
			e.RestoreGiven(id, g)
		}
	}
	for _, id := range slices.Sorted(maps.Keys(l.holds)) {
		e.RestoreHold(now, l.holds[id])
	}
	for _, first := range slices.Sorted(maps.Keys(l.open)) {
		s := l.load(first)
		e.Adopt(now, s.Task, s.Instructions, true)
	}
}

// step gives the engine an input, after what it wants from the log.
func (l *modelLog) step(e *engine.Engine, now engine.Now, in engine.Input) {
	w := e.Wants(in)
	if w.Client != "" {
		if m, ok := l.marks[markName(w.Client, w.PacketID)]; ok {
			if s, ok := in.(*engine.Submit); ok {
				s.Found = &m
				if e.Retransmitted(now, s) {
					s.Spec.TaskID = m.TaskID
					l.step(e, now, in)
					return
				}
			}
		}
	}
	first := l.ids[w.TaskID]
	if w.Seq != 0 {
		first = l.ids[l.insts[w.Seq].Task]
	}
	if first != 0 {
		s := l.load(first)
		e.Adopt(now, s.Task, s.Instructions, l.open[first])
	}
	if d, ok := l.dead[w.Dead]; ok {
		if o, ok := in.(*engine.Operate); ok {
			o.Found = &d
		}
	}
	e.Step(now, in)
}
