package gateway

import (
	"context"
	"fmt"
	"time"

	"github.com/apollo-11/apollo11/gateway/engine"
	"github.com/apollo-11/apollo11/gateway/ledger"
)

const (
	// inputQueue is how many inputs may wait for the loop. When it is full the
	// doors wait, and with them their clients.
	inputQueue = 4096
	// roundInputs bounds the inputs of one batch, so that a batch stays near
	// 64 KiB, the size from which sharing an fsync gains nothing more.
	roundInputs = 128
	// commitQueue is how many batches may wait for the disk. More would not hide
	// more of its latency, but make the batches of a busy moment small: with 64 they
	// held four submissions of 256 that were waiting, and cost twice the CPU.
	commitQueue = 8
)

// Log is what the loop needs of the ledger. The second implementation, which
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

// ledgerLog is the Log on disk.
type ledgerLog struct{ *ledger.Ledger }

func (l ledgerLog) Apply(r *engine.Records) (Pending, error) { return l.Ledger.Apply(r) }

func (l ledgerLog) Lookup(w engine.Want) (f Found, err error) {
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

// job is one round on its way to the disk and then out.
type job struct {
	pending Pending // nil when nothing was written
	effects engine.Effects
	writes  []engine.Write // for the log of steps
	after   func()         // may be nil
	open    int            // unfinished instructions after it
}

// question is something to be asked of the engine on its own goroutine.
type question struct {
	ask  func(*engine.Engine)
	done func() // called after everything that the question may have seen is durable
}

// loop owns the engine.
type loop struct {
	eng       *engine.Engine
	log       Log
	start     time.Time
	inputs    chan engine.Input
	questions chan question
	jobs      chan job
	deliver   func(*job)
}

func newLoop(eng *engine.Engine, log Log, start time.Time, deliver func(*job)) *loop {
	return &loop{eng: eng, log: log, start: start, deliver: deliver,
		inputs: make(chan engine.Input, inputQueue), questions: make(chan question), jobs: make(chan job, commitQueue)}
}

// now is the time for the engine: monotonic since the start, and the wall clock.
func (l *loop) now() engine.Now {
	t := time.Now()
	return engine.Now{Mono: t.Sub(l.start), Wall: t.UnixMilli()}
}

// put hands an input to the loop. It waits while the queue is full.
func (l *loop) put(ctx context.Context, in engine.Input) error {
	select {
	case l.inputs <- in:
		return nil
	default:
	}
	select {
	case l.inputs <- in:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// run steps the engine until ctx ends or the log fails.
func (l *loop) run(ctx context.Context) error {
	defer close(l.jobs)
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		var after func()
		select {
		case in := <-l.inputs:
			if err := l.round(in); err != nil {
				return err
			}
		case q := <-l.questions:
			q.ask(l.eng)
			after = q.done
		case <-timer.C:
		case <-ctx.Done():
			return nil
		}
		deadline, err := l.flush(after)
		if err != nil {
			return err
		}
		if deadline == 0 {
			timer.Stop()
		} else {
			timer.Reset(deadline - time.Since(l.start))
		}
	}
}

// round takes in the first input and whatever else is waiting.
func (l *loop) round(in engine.Input) error {
	for n := 1; ; n++ {
		if err := l.step(in); err != nil {
			return err
		}
		if n == roundInputs {
			return nil
		}
		select {
		case in = <-l.inputs:
		default:
			return nil
		}
	}
}

func (l *loop) step(in engine.Input) error {
	now := l.now()
	if w := l.eng.Wants(in); !w.Empty() {
		f, err := l.log.Lookup(w)
		if err != nil {
			return fmt.Errorf("read the log: %w", err)
		}
		if s, ok := in.(*engine.Submit); ok && f.Mark != nil {
			// A retransmitted publish becomes its task again, which may have to
			// be loaded as well.
			s.Found = f.Mark
			if l.eng.Retransmitted(now, s) {
				s.Spec.TaskID = f.Mark.TaskID
				return l.step(in)
			}
		}
		if o, ok := in.(*engine.Operate); ok {
			o.Found = f.Dead
		}
		if f.Task != nil {
			l.eng.Adopt(now, f.Task.Task, f.Task.Instructions, f.Open)
		}
	}
	l.eng.Step(now, in)
	return nil
}

// flush hands what has collected to the disk and to the committer.
func (l *loop) flush(after func()) (deadline time.Duration, err error) {
	r := l.eng.Ready(l.now())
	j := job{effects: r.Effects, writes: r.Records.Instructions, after: after, open: l.eng.Open()}
	if !r.Records.Empty() {
		if j.pending, err = l.log.Apply(&r.Records); err != nil {
			return 0, fmt.Errorf("write the log: %w", err)
		}
	}
	if j.pending != nil || after != nil || !j.effects.Empty() {
		l.jobs <- j
	}
	return r.Deadline, nil
}

// commit waits for each batch and lets its effects out, in order. It returns
// when the loop has ended, or with the error of a batch that did not reach the
// disk: nothing after it may leave.
func (l *loop) commit() error {
	var failed error
	for j := range l.jobs {
		if failed != nil {
			continue // drain, so that the loop can end
		}
		if j.pending != nil {
			if err := j.pending.Wait(); err != nil {
				failed = fmt.Errorf("make the log durable: %w", err)
				continue
			}
		}
		l.deliver(&j)
		if j.after != nil {
			j.after()
		}
	}
	return failed
}

// ask runs f on the loop's goroutine and waits until what it saw is durable.
func (l *loop) ask(ctx context.Context, f func(*engine.Engine)) error {
	done := make(chan struct{})
	select {
	case l.questions <- question{f, func() { close(done) }}:
	case <-ctx.Done():
		return ctx.Err()
	}
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
