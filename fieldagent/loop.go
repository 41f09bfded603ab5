package fieldagent

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/apollo-11/apollo11/fieldagent/executor"
	"github.com/apollo-11/apollo11/fieldagent/journal"
	"github.com/apollo-11/apollo11/wire"
)

// Limits of the loop.
const (
	// inputQueue is how many inputs wait for the loop. A gateway has at most a
	// few dozen messages under way to one node; more is dropped and sent again.
	inputQueue = 1024
	// batchInputs and batchBytes bound what is decided before one sync.
	batchInputs = 256
	batchBytes  = 64 << 10
	// The journal is rewritten when it is larger than both.
	rewriteBytes  = 4 << 20
	rewriteFactor = 4
	// rewriteRetry is how much the journal grows before a rewrite that found no
	// room is tried again.
	rewriteRetry = 1 << 20
	// workLimit bounds the wait for aborted work when the loop ends.
	workLimit = time.Second
)

// recorder is the part of the journal that the loop needs.
type recorder interface {
	Append(records ...[]byte) error
	Rewrite(records [][]byte) error
	Size() int64
}

// Intents is what the board can do.
type Intents interface {
	// Check judges an instruction without touching the board.
	Check(intent string, args wire.RawMap) executor.Verdict
	// Run executes one attempt. It returns soon after ctx ends.
	Run(ctx context.Context, w executor.Work, progress func(percent uint8)) executor.Result
}

// loop is the single owner of the core. It takes all inputs that wait, writes
// what follows from them with one sync, and only then acts.
type loop struct {
	core    *executor.Core
	journal recorder
	intents Intents
	// The two paths. They never block and may lose what they are given.
	primary    func([]byte) bool
	narrowband func([]byte) bool
	now        func() executor.Now
	log        *slog.Logger

	inputs chan executor.Input
	closed chan struct{} // the loop takes no more inputs

	works     sync.WaitGroup
	cancels   map[wire.Token]context.CancelFunc
	rewriteAt int64
}

func newLoop() *loop {
	return &loop{
		inputs: make(chan executor.Input, inputQueue), closed: make(chan struct{}),
		cancels: map[wire.Token]context.CancelFunc{}, rewriteAt: rewriteBytes,
	}
}

// offer gives an input to the loop if there is room.
func (l *loop) offer(in executor.Input) bool {
	select {
	case l.inputs <- in:
		return true
	default:
		return false
	}
}

// give gives an input to the loop; it is lost only when the loop or ctx ends.
func (l *loop) give(ctx context.Context, in executor.Input) {
	select {
	case l.inputs <- in:
	case <-l.closed:
	case <-ctx.Done():
	}
}

// run performs first and then whatever inputs lead to, until ctx ends and the
// agent has taken its leave. It returns an error if it must not go on.
func (l *loop) run(ctx context.Context, first executor.Output) error {
	base, abandon := context.WithCancel(context.WithoutCancel(ctx))
	defer l.end(abandon)
	stop := ctx.Done()
	timer := time.NewTimer(0)
	defer timer.Stop()
	out := first
	for {
		if err := l.perform(base, out); err != nil {
			return err
		}
		if out.Stopped {
			return nil
		}
		timer.Reset(l.until(out.Deadline))
		var in executor.Input
		select {
		case in = <-l.inputs:
		case <-timer.C:
			in = executor.Tick{}
		case <-stop:
			stop = nil
			in = executor.Stop{Reason: "the agent was stopped"}
		}
		out = l.batch(in)
	}
}

func (l *loop) until(deadline time.Duration) time.Duration {
	if deadline == executor.NoDeadline {
		return time.Hour // a tick too many does no harm
	}
	return max(deadline-l.now().Mono, 0)
}

// batch steps the core for in and for everything that waits behind it.
func (l *loop) batch(in executor.Input) executor.Output {
	var all executor.Output
	bytes := 0
	for i := 0; ; {
		if f, ok := in.(executor.Finished); ok {
			delete(l.cancels, f.Token)
		}
		out := l.core.Step(l.now(), in)
		for _, r := range out.Records {
			bytes += len(r)
		}
		join(&all, out)
		if i++; i >= batchInputs || bytes >= batchBytes || out.Stopped || out.Fatal != "" {
			return all
		}
		select {
		case in = <-l.inputs:
		default:
			return all
		}
	}
}

// join adds a later output to all. Each kind keeps its order, and the kinds keep
// theirs.
func join(all *executor.Output, out executor.Output) {
	all.Records = append(all.Records, out.Records...)
	all.Start = append(all.Start, out.Start...)
	all.Abort = append(all.Abort, out.Abort...)
	all.Primary = append(all.Primary, out.Primary...)
	all.Narrowband = append(all.Narrowband, out.Narrowband...)
	all.Notes = append(all.Notes, out.Notes...)
	all.Deadline, all.Stopped, all.Fatal = out.Deadline, out.Stopped, out.Fatal
}

// perform does what the core decided, in the order that the core's package
// documents: nothing happens before the records are durable.
func (l *loop) perform(base context.Context, out executor.Output) error {
	if err := l.keep(out.Records); err != nil {
		return fmt.Errorf("the agent stops, because it can't write down what it does: %w", err)
	}
	for _, w := range out.Start {
		l.start(base, w)
	}
	for _, t := range out.Abort {
		if cancel := l.cancels[t]; cancel != nil {
			cancel()
		}
	}
	for _, m := range out.Primary {
		b, err := wire.Encode(m)
		if err != nil {
			l.log.Error("message can't be encoded", "err", err)
			continue
		}
		l.primary(b)
	}
	for _, a := range out.Narrowband {
		b, err := a.Encode()
		if err != nil {
			l.log.Error("compact ack can't be encoded", "err", err)
			continue
		}
		l.narrowband(b)
	}
	for _, n := range out.Notes {
		l.say(n)
	}
	if out.Fatal != "" {
		return errors.New(out.Fatal)
	}
	return nil
}

// keep makes records durable. The core's state contains them already, so a
// rewrite is as good as an append.
func (l *loop) keep(records [][]byte) error {
	for len(records) > 0 {
		n, bytes := 0, 0
		for n < len(records) && bytes+len(records[n])+8 <= journal.MaxBatch {
			bytes += len(records[n]) + 8
			n++
		}
		err := l.journal.Append(records[:n]...)
		if errors.Is(err, journal.ErrFull) {
			return l.journal.Rewrite(l.core.Snapshot())
		}
		if err != nil {
			return err
		}
		records = records[n:]
	}
	return l.shorten()
}

// shorten rewrites the journal when most of it is of no use any more.
func (l *loop) shorten() error {
	size := l.journal.Size()
	if size <= l.rewriteAt {
		return nil
	}
	err := l.journal.Rewrite(l.core.Snapshot())
	if errors.Is(err, journal.ErrDead) {
		return err
	}
	if err != nil {
		l.rewriteAt = size + rewriteRetry
		l.log.Warn("journal not shortened", "bytes", size, "err", err)
		return nil
	}
	l.rewriteAt = max(rewriteBytes, rewriteFactor*l.journal.Size())
	l.log.Debug("journal shortened", "bytes", l.journal.Size(), "from", size)
	return nil
}

// start runs one attempt on a goroutine of its own.
func (l *loop) start(base context.Context, w executor.Work) {
	ctx, cancel := context.WithTimeout(base, w.Timeout)
	l.cancels[w.Token] = cancel
	l.works.Go(func() {
		defer cancel()
		r := l.intents.Run(ctx, w, func(percent uint8) {
			l.offer(executor.Progressed{Token: w.Token, Percent: percent})
		})
		l.give(context.WithoutCancel(ctx), executor.Finished{Token: w.Token, Result: r})
	})
}

// end waits for what the loop started.
func (l *loop) end(abandon context.CancelFunc) {
	close(l.closed)
	abandon()
	done := make(chan struct{})
	go func() {
		defer close(done)
		l.works.Wait()
	}()
	select {
	case <-done:
	case <-time.After(workLimit):
		l.log.Warn("work does not stop; it ends with the process", "after", workLimit)
	}
}

// say logs a note of the core.
func (l *loop) say(n executor.Note) {
	level := slog.LevelDebug
	switch n.Level {
	case executor.LevelInfo:
		level = slog.LevelInfo
	case executor.LevelWarn:
		level = slog.LevelWarn
	}
	attrs := make([]slog.Attr, 0, 8)
	if n.Seq != 0 {
		attrs = append(attrs, slog.Uint64("instruction", n.Seq), slog.String("token", n.Token.String()), slog.Int("attempt", int(n.Attempt)))
	}
	if !n.Trace.IsZero() {
		attrs = append(attrs, slog.String("trace", n.Trace.String()))
	}
	if n.Intent != "" {
		attrs = append(attrs, slog.String("intent", n.Intent))
	}
	if n.Code != wire.CodeNone {
		attrs = append(attrs, slog.String("code", n.Code.String()))
	}
	if n.Detail != "" {
		attrs = append(attrs, slog.String("detail", n.Detail))
	}
	l.log.LogAttrs(context.Background(), level, n.Text, attrs...)
}
