package ledger

import (
	"context"
	"fmt"

	"github.com/apollo-11/apollo11/gateway/engine"
	"github.com/apollo-11/apollo11/storage"
	"github.com/apollo-11/apollo11/wire"
)

// MaxPage bounds one page of any listing.
const MaxPage = 1000

// Reader shows the log to the outside. Everything it returns is durable: each
// method reads and then waits until what it read is on disk (A3).
type Reader struct{ l *Ledger }

// Reader returns the ledger's face to the outside.
func (l *Ledger) Reader() *Reader { return &Reader{l} }

// Task returns a task with its instructions; false when it is not known.
func (r *Reader) Task(ctx context.Context, id string) (engine.TaskState, bool, error) {
	first, ok, err := r.l.First(id)
	if err != nil || !ok {
		return engine.TaskState{}, false, err
	}
	s, ok, err := r.l.Load(first)
	if err != nil || !ok {
		return s, ok, err
	}
	return s, true, r.l.store.Barrier(ctx)
}

// Tasks returns tasks, newest first. before is the First of the last one of the
// page before, 0 for the newest; next is what to pass for the next page, 0 at
// the end.
func (r *Reader) Tasks(ctx context.Context, before uint64, limit int) (list []engine.TaskState, next uint64, err error) {
	limit = min(max(limit, 1), MaxPage)
	hi := storage.PrefixEnd([]byte{tabTask})
	if before != 0 {
		hi = numKey(nil, tabTask, before)
	}
	var firsts []uint64
	err = r.l.store.Scan([]byte{tabTask}, hi, true, func(k, _ []byte) (bool, error) {
		first, err := number(k)
		if err != nil {
			return false, err
		}
		firsts = append(firsts, first)
		return len(firsts) <= limit, nil
	})
	if err != nil {
		return nil, 0, err
	}
	if len(firsts) > limit {
		firsts = firsts[:limit]
		next = firsts[limit-1]
	}
	for _, first := range firsts {
		s, ok, err := r.l.Load(first)
		if err != nil {
			return nil, 0, err
		}
		if ok { // retention may have removed it in between
			list = append(list, s)
		}
	}
	return list, next, r.l.store.Barrier(ctx)
}

// Timeline returns an instruction and all its entries, oldest first; false when
// it is not known.
func (r *Reader) Timeline(ctx context.Context, seq uint64) (engine.Instruction, []engine.Entry, bool, error) {
	i, ok, err := r.l.Instruction(seq)
	if err != nil || !ok {
		return i, nil, ok, err
	}
	var entries []engine.Entry
	lo := numKey(nil, tabTimeline, seq)
	err = r.l.store.Scan(lo, storage.PrefixEnd(lo), false, func(k, v []byte) (bool, error) {
		var part []engine.Entry
		if err := wire.DecodeRecord(v, &part); err != nil {
			return false, fmt.Errorf("record %x, of the timeline of instruction %d, cannot be read: %w", k, seq, err)
		}
		entries = append(entries, part...)
		return true, nil
	})
	if err != nil {
		return i, nil, false, err
	}
	return i, entries, true, r.l.store.Barrier(ctx)
}

// DeadLetters returns dead letters with numbers above after, oldest first.
func (r *Reader) DeadLetters(ctx context.Context, after uint64, limit int) ([]engine.DeadLetter, error) {
	limit = min(max(limit, 1), MaxPage)
	var list []engine.DeadLetter
	err := r.l.store.Scan(numKey(nil, tabDead, after+1), storage.PrefixEnd([]byte{tabDead}), false, func(k, v []byte) (bool, error) {
		var d engine.DeadLetter
		if err := wire.DecodeRecord(v, &d); err != nil {
			return false, fmt.Errorf("record %x, a dead letter, cannot be read: %w", k, err)
		}
		list = append(list, d)
		return len(list) < limit, nil
	})
	if err != nil {
		return nil, err
	}
	return list, r.l.store.Barrier(ctx)
}

// DeadLetter returns one dead letter, nil when there is none.
func (r *Reader) DeadLetter(ctx context.Context, number uint64) (*engine.DeadLetter, error) {
	d, err := r.l.DeadLetter(number)
	if err != nil || d == nil {
		return nil, err
	}
	return d, r.l.store.Barrier(ctx)
}

// Queue returns instructions that wait for an operator, with sequences above
// after, oldest first. next is what to pass for the next page, 0 at the end.
func (r *Reader) Queue(ctx context.Context, after uint64, limit int) (list []engine.Instruction, next uint64, err error) {
	limit = min(max(limit, 1), MaxPage)
	var seqs []uint64
	err = r.l.store.Scan(numKey(nil, tabQueue, after+1), storage.PrefixEnd([]byte{tabQueue}), false, func(k, _ []byte) (bool, error) {
		seq, err := number(k)
		if err != nil {
			return false, err
		}
		seqs = append(seqs, seq)
		return len(seqs) <= limit, nil
	})
	if err != nil {
		return nil, 0, err
	}
	if len(seqs) > limit {
		seqs = seqs[:limit]
		next = seqs[limit-1]
	}
	for _, seq := range seqs {
		i, ok, err := r.l.Instruction(seq)
		if err != nil {
			return nil, 0, err
		}
		if ok {
			list = append(list, i)
		}
	}
	return list, next, r.l.store.Barrier(ctx)
}

// auditEntry decodes an entry of the audit trail, which stands under its number.
func auditEntry(k, v []byte) (engine.Audit, error) {
	var a engine.Audit
	no, err := number(k)
	if err != nil {
		return a, fmt.Errorf("audit trail: %w", err)
	}
	if err := wire.DecodeRecord(v, &a); err != nil {
		return a, fmt.Errorf("record %x, audit entry %d, cannot be read: %w", k, no, err)
	}
	if a.Number != no {
		return a, fmt.Errorf("record %x holds audit entry %d in the place of %d: the log was changed", k, a.Number, no)
	}
	return a, nil
}

// Audit returns audit entries with numbers above after, oldest first.
func (r *Reader) Audit(ctx context.Context, after uint64, limit int) ([]engine.Audit, error) {
	limit = min(max(limit, 1), MaxPage)
	var list []engine.Audit
	err := r.l.store.Scan(numKey(nil, tabAudit, after+1), storage.PrefixEnd([]byte{tabAudit}), false, func(k, v []byte) (bool, error) {
		a, err := auditEntry(k, v)
		if err != nil {
			return false, err
		}
		list = append(list, a)
		return len(list) < limit, nil
	})
	if err != nil {
		return nil, err
	}
	return list, r.l.store.Barrier(ctx)
}
