package round

import (
	"fmt"
	"time"

	"github.com/apollo-11/apollo11/gateway/engine"
	"github.com/apollo-11/apollo11/gateway/ledger"
	"github.com/apollo-11/apollo11/wire/mutant"
)

// Log is what a round needs of the ledger. The second implementation, which
// forgets everything, is the yardstick of the benchmarks.
type Log interface {
	// Apply appends one round's records. They are visible to Lookup at once.
	Apply(*engine.Records) (Pending, error)
	// Lookup loads what the engine wants before an input; see engine.Want.
	Lookup(engine.Want) (Found, error)
}

// Pending is a batch on its way to the disk.
type Pending interface {
	// Wait returns nil when the batch is on disk.
	Wait() error
}

// Found is what a lookup brought; nil fields were not found.
type Found struct {
	Task *engine.TaskState
	Open bool
	Mark *engine.Mark
	Dead *engine.DeadLetter
}

// OnDisk returns a ledger as a Log.
func OnDisk(l *ledger.Ledger) Log { return onDisk{l} }

type onDisk struct{ *ledger.Ledger }

func (l onDisk) Apply(r *engine.Records) (Pending, error) {
	p, err := l.Ledger.Apply(r)
	if err != nil {
		return nil, err
	}
	return p, nil
}

func (l onDisk) Lookup(w engine.Want) (f Found, err error) {
	first, ok := uint64(0), false
	switch {
	case w.TaskID != "":
		if first, ok, err = l.First(w.TaskID); err != nil {
			return f, err
		}
	case w.Seq != 0:
		i, found, err := l.Instruction(w.Seq)
		if err != nil {
			return f, err
		}
		if found {
			if first, ok, err = l.First(i.Task); err != nil {
				return f, err
			}
		}
	}
	if ok {
		s, found, err := l.Load(first)
		if err != nil {
			return f, err
		}
		if found {
			f.Task = &s
			if f.Open, err = l.Open(first); err != nil {
				return f, err
			}
		}
	}
	if w.Dead != 0 {
		if f.Dead, err = l.DeadLetter(w.Dead); err != nil {
			return f, err
		}
	}
	if w.Client != "" {
		if f.Mark, err = l.Mark(w.Client, w.PacketID); err != nil {
			return f, err
		}
	}
	return f, nil
}

// Step looks up what the engine wants for an input, and lets it take the input.
func Step(eng *engine.Engine, log Log, now engine.Now, in engine.Input) error {
	if w := eng.Wants(in); !w.Empty() {
		f, err := log.Lookup(w)
		if err != nil {
			return fmt.Errorf("read the log: %w", err)
		}
		if s, ok := in.(*engine.Submit); ok && f.Mark != nil {
			// A retransmitted publish becomes its task again, which may have to
			// be loaded as well.
			s.Found = f.Mark
			if eng.Retransmitted(now, s) {
				s.Spec.TaskID = f.Mark.TaskID
				return Step(eng, log, now, in)
			}
		}
		if o, ok := in.(*engine.Operate); ok {
			o.Found = f.Dead
		}
		if f.Task != nil {
			eng.Adopt(now, f.Task.Task, f.Task.Instructions, f.Open)
		}
	}
	eng.Step(now, in)
	return nil
}

// Job is one round on its way to the disk and then out.
type Job struct {
	pending  Pending          // nil when nothing was written
	reserved *engine.Reserved // that are reserved when it is on disk; nil for as before
	Effects  engine.Effects
	Writes   []engine.Write // for the log of steps
	Open     int            // unfinished instructions after it
}

// Flush lets time pass for the engine and hands what has collected to the log.
// deadline is when it has to be called again, 0 for never.
func Flush(eng *engine.Engine, log Log, now engine.Now) (j Job, deadline time.Duration, err error) {
	r := eng.Ready(now)
	j = Job{Effects: r.Effects, Writes: r.Records.Instructions, Open: eng.Open(), reserved: r.Records.Reserved}
	if !r.Records.Empty() {
		if j.pending, err = log.Apply(&r.Records); err != nil {
			return j, 0, fmt.Errorf("write the log: %w", err)
		}
	}
	return j, r.Deadline, nil
}

// Written reports whether the job has anything to wait for on the disk.
func (j *Job) Written() bool { return j.pending != nil }

// Empty reports whether the job neither writes nor tells anything.
func (j *Job) Empty() bool { return j.pending == nil && j.Effects.Empty() }

// Settle waits until the job is on disk and then lets its effects out. After an
// error nothing was let out, and nothing that comes after the job may be.
func (j *Job) Settle(deliver func(*Job)) error {
	if mutant.On(mutant.EffectsFirst) {
		deliver(j)
		deliver = func(*Job) {}
	}
	if j.pending != nil {
		if err := j.pending.Wait(); err != nil {
			return fmt.Errorf("make the log durable: %w", err)
		}
	}
	deliver(j)
	return nil
}
