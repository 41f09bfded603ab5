package gateway

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/apollo-11/apollo11/gateway/engine"
	"github.com/apollo-11/apollo11/gateway/round"
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

// Log is what the loop needs of the ledger, or of what stands in its place.
type Log = round.Log

// Pending is a batch on its way to the disk.
type Pending = round.Pending

// Found is what a lookup brought.
type Found = round.Found

// job is one round on its way to the disk and then out.
type job struct {
	round.Job
	after func() // may be nil
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
	deliver   func(*round.Job)
	// urgent lets out what may leave before its record; on the loop's goroutine.
	urgent func([]engine.Urgent)
	ahead  round.Ahead
	held   int // inputs since the latest flush that have led to something
	// settled counts the jobs that are on disk and out; room says that one more is.
	settled atomic.Uint64
	room    chan struct{} // holds one
}

func newLoop(eng *engine.Engine, log Log, start time.Time, deliver func(*round.Job), urgent func([]engine.Urgent)) *loop {
	return &loop{eng: eng, log: log, start: start, deliver: deliver, urgent: urgent, room: make(chan struct{}, 1),
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
	timer, early := time.NewTimer(0), time.NewTimer(time.Hour)
	defer timer.Stop()
	defer early.Stop()
	for {
		inputs, questions, deadline, settled := l.inputs, l.questions, timer.C, l.room
		switch {
		case !l.full():
			if !l.ahead.Waits() {
				settled = nil // nobody needs to know
			}
		case l.held < round.Held:
			questions, deadline = nil, nil
		default:
			inputs, questions, deadline = nil, nil, nil
		}
		var after func()
		select {
		case in := <-inputs:
			if err := l.round(in); err != nil {
				return err
			}
		case q := <-questions:
			q.ask(l.eng)
			after = q.done
		case <-deadline:
		case <-settled:
		case <-early.C:
		case <-ctx.Done():
			return nil
		}
		l.ahead.Settled(l.settled.Load())
		if l.full() {
			now := l.now()
			l.ahead.Take(now.Mono, l.eng.Urgent(now))
		} else {
			l.held = 0
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
		due, next := l.ahead.Due(l.now().Mono)
		if len(due) > 0 {
			l.urgent(due)
		}
		if next != 0 {
			early.Reset(next - time.Since(l.start))
		}
	}
}

// full reports whether the committer takes no more: the disk is slow, or hangs. Only the
// loop fills it.
func (l *loop) full() bool { return len(l.jobs) == cap(l.jobs) }

// round takes in the first input and whatever else is waiting. While the committer takes
// no more, it stops when enough has collected.
func (l *loop) round(in engine.Input) error {
	for n := 1; ; n++ {
		before := l.eng.Collected()
		if err := l.step(in); err != nil {
			return err
		}
		if l.eng.Collected() > before {
			l.held++
		}
		if n == roundInputs || l.held >= round.Held {
			return nil
		}
		select {
		case in = <-l.inputs:
		default:
			return nil
		}
	}
}

func (l *loop) step(in engine.Input) error { return round.Step(l.eng, l.log, l.now(), in) }

// flush hands what has collected to the disk and to the committer.
func (l *loop) flush(after func()) (deadline time.Duration, err error) {
	j, deadline, err := round.Flush(l.eng, l.log, l.now())
	if err != nil {
		return 0, err
	}
	if after != nil || !j.Empty() {
		l.ahead.Flushed(l.now().Mono, &j)
		l.jobs <- job{j, after}
	}
	return deadline, nil
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
		if failed = j.Settle(l.deliver); failed == nil && j.after != nil {
			j.after()
		}
		if failed == nil {
			l.settled.Add(1)
		}
		select {
		case l.room <- struct{}{}:
		default:
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
