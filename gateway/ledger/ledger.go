package ledger

import (
	"encoding/binary"
	"fmt"

	"github.com/apollo-11/apollo11/gateway/engine"
	"github.com/apollo-11/apollo11/storage"
	"github.com/apollo-11/apollo11/wire"
	"github.com/apollo-11/apollo11/wire/mutant"
)

// Ledger writes and reads the engine's records. Apply is for one goroutine; the
// lookups may be called from any.
type Ledger struct {
	store Store
	key   []byte // scratch of Apply
}

// New returns a ledger in an open store on disk.
func New(s *storage.Store) *Ledger { return Over(OnDisk(s)) }

// Over returns a ledger in any store.
func Over(s Store) *Ledger { return &Ledger{store: s} }

// Apply appends the records as one batch. They are visible at once and durable
// when Wait of the returned Pending returns nil.
func (l *Ledger) Apply(r *engine.Records) (Pending, error) {
	b := l.store.NewBatch()
	defer b.Close()
	if err := l.fill(b, r); err != nil {
		return nil, err
	}
	return l.store.Apply(b)
}

func (l *Ledger) fill(b Batch, r *engine.Records) error {
	if r.Counters != nil {
		if err := l.set(b, append(l.key[:0], tabCounters), r.Counters); err != nil {
			return err
		}
	}
	for k := range r.Tasks {
		t := &r.Tasks[k]
		if err := l.set(b, numKey(l.key, tabTask, t.First), t); err != nil {
			return err
		}
		if mutant.On(mutant.TaskIndexLost) {
			continue
		}
		b.Set(textKey(l.key, tabTaskID, t.ID), binary.BigEndian.AppendUint64(nil, t.First))
	}
	for _, first := range r.Opened {
		if mutant.On(mutant.IndexLost) {
			break
		}
		b.Set(numKey(l.key, tabOpen, first), nil)
	}
	for _, first := range r.Closed {
		b.Delete(numKey(l.key, tabOpen, first))
	}
	for k := range r.Instructions {
		w := &r.Instructions[k]
		i := &w.Instruction
		if err := l.set(b, numKey(l.key, tabInstruction, i.Seq), i); err != nil {
			return err
		}
		if err := l.set(b, timelineKey(l.key, i.Seq, i.Version), w.Entries); err != nil {
			return err
		}
		switch w.Queue {
		case engine.QueueEnter:
			b.Set(numKey(l.key, tabQueue, i.Seq), nil)
		case engine.QueueLeave:
			b.Delete(numKey(l.key, tabQueue, i.Seq))
		}
	}
	for k := range r.Nodes {
		if err := l.set(b, textKey(l.key, tabNode, r.Nodes[k].ID), &r.Nodes[k]); err != nil {
			return err
		}
	}
	for k := range r.Cursors {
		if err := l.set(b, textKey(l.key, tabCursor, r.Cursors[k].Node), &r.Cursors[k].Cursor); err != nil {
			return err
		}
		if g := r.Cursors[k].Given; g != nil {
			if err := l.set(b, textKey(l.key, tabGiven, r.Cursors[k].Node), g); err != nil {
				return err
			}
		}
	}
	for k := range r.Marks {
		m := &r.Marks[k]
		if err := l.set(b, markKey(l.key, m.Client, m.PacketID), m); err != nil {
			return err
		}
	}
	for k := range r.DeadLetters {
		if err := l.set(b, numKey(l.key, tabDead, r.DeadLetters[k].Number), &r.DeadLetters[k]); err != nil {
			return err
		}
	}
	return l.byHand(b, r)
}

// byHand fills in what operators did.
func (l *Ledger) byHand(b Batch, r *engine.Records) error {
	for _, n := range r.Dropped {
		b.Delete(numKey(l.key, tabDead, n))
	}
	for k := range r.Audits {
		if err := l.set(b, numKey(l.key, tabAudit, r.Audits[k].Number), &r.Audits[k]); err != nil {
			return err
		}
	}
	if r.Quiet != nil {
		if err := l.set(b, append(l.key[:0], tabQuiet), r.Quiet); err != nil {
			return err
		}
	}
	if r.Moved != nil {
		if err := l.set(b, append(l.key[:0], tabMoved), r.Moved); err != nil {
			return err
		}
	}
	if r.Reserved != nil {
		if err := l.set(b, append(l.key[:0], tabReserved), r.Reserved); err != nil {
			return err
		}
	}
	for k := range r.Holds {
		h := &r.Holds[k]
		if h.Ended() {
			b.Delete(textKey(l.key, tabHold, h.Node))
			continue
		}
		if err := l.set(b, textKey(l.key, tabHold, h.Node), h); err != nil {
			return err
		}
	}
	return nil
}

func (l *Ledger) set(b Batch, key []byte, v any) error {
	l.key = key
	val, err := wire.EncodeRecord(v)
	if err != nil {
		return fmt.Errorf("encode %T for key %x: %w", v, key, err)
	}
	b.Set(key, val)
	return nil
}

// get decodes the value of a key into v.
func (l *Ledger) get(key []byte, v any) (bool, error) {
	val, ok, err := l.store.Get(key)
	if err != nil || !ok {
		return false, err
	}
	if err := wire.DecodeRecord(val, v); err != nil {
		return false, fmt.Errorf("record %x cannot be read (%T): %w", key, v, err)
	}
	return true, nil
}

// Counters returns the log's counters; false for a fresh log.
func (l *Ledger) Counters() (engine.Counters, bool, error) {
	var c engine.Counters
	ok, err := l.get([]byte{tabCounters}, &c)
	return c, ok, err
}

// First returns the number under which a task stands.
func (l *Ledger) First(taskID string) (uint64, bool, error) {
	val, ok, err := l.store.Get(textKey(nil, tabTaskID, taskID))
	if err != nil || !ok {
		return 0, false, err
	}
	if len(val) != 8 {
		return 0, false, fmt.Errorf("index of task %s has %d bytes, want 8", taskID, len(val))
	}
	return binary.BigEndian.Uint64(val), true, nil
}

// Load returns the task that stands under a number, with its instructions.
// False means that there is none.
func (l *Ledger) Load(first uint64) (engine.TaskState, bool, error) {
	var s engine.TaskState
	ok, err := l.get(numKey(nil, tabTask, first), &s.Task)
	if err != nil || !ok {
		return s, false, err
	}
	lo, hi := numKey(nil, tabInstruction, first), numKey(nil, tabInstruction, first+uint64(s.Task.Count))
	err = l.store.Scan(lo, hi, false, func(k, v []byte) (bool, error) {
		var i engine.Instruction
		if err := wire.DecodeRecord(v, &i); err != nil {
			return false, fmt.Errorf("record %x, an instruction of task %s, cannot be read: %w", k, s.Task.ID, err)
		}
		s.Instructions = append(s.Instructions, i)
		return true, nil
	})
	if err != nil {
		return s, false, err
	}
	if len(s.Instructions) != int(s.Task.Count) {
		return s, false, fmt.Errorf("task %s has %d instructions in the log, want %d: the log is damaged", s.Task.ID, len(s.Instructions), s.Task.Count)
	}
	return s, true, nil
}

// Instruction returns one instruction; false means that there is none.
func (l *Ledger) Instruction(seq uint64) (engine.Instruction, bool, error) {
	var i engine.Instruction
	ok, err := l.get(numKey(nil, tabInstruction, seq), &i)
	return i, ok, err
}

// Open reports whether the task under a number is unfinished.
func (l *Ledger) Open(first uint64) (bool, error) {
	_, ok, err := l.store.Get(numKey(nil, tabOpen, first))
	return ok, err
}

// Mark returns what a client's publish with a packet id last became.
func (l *Ledger) Mark(client string, packet uint16) (*engine.Mark, error) {
	var m engine.Mark
	ok, err := l.get(markKey(nil, client, packet), &m)
	if err != nil || !ok {
		return nil, err
	}
	return &m, nil
}

// DeadLetter returns a dead letter, nil when there is none.
func (l *Ledger) DeadLetter(number uint64) (*engine.DeadLetter, error) {
	var d engine.DeadLetter
	ok, err := l.get(numKey(nil, tabDead, number), &d)
	if err != nil || !ok {
		return nil, err
	}
	return &d, nil
}
