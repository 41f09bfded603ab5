package fieldagent

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/apollo-11/apollo11/fieldagent/executor"
	"github.com/apollo-11/apollo11/fieldagent/round"
	"github.com/apollo-11/apollo11/wire"
)

// Limits of the loop.
const (
	// inputQueue is how many inputs wait for the loop. A gateway has at most a
	// few dozen messages under way to one node; more is dropped and sent again.
	inputQueue = 1024
	// workLimit bounds the wait for aborted work when the loop ends.
	workLimit = time.Second
)

// Intents is what the board can do.
type Intents interface {
	// Check judges an instruction without touching the board.
	Check(intent string, args wire.RawMap) executor.Verdict
	// Run executes one attempt. It returns soon after ctx ends.
	Run(ctx context.Context, w executor.Work, tell Tell) executor.Result
}

// Tell says how far an execution is, in percent, or with seen what it has seen: an
// encoded map, nil for none. It returns false when there is no room for that; it
// never blocks.
type Tell func(percent uint8, seen wire.RawMap) bool

// keeper is told what keeps outputs away from their safe levels, or brings them back
// there. It never blocks. *gpio.Owner is one.
type keeper interface {
	Heard()
	Cancel(cause string)
	Hold(lines []wire.LineKey)
}

// loop is the single owner of the core. It takes all inputs that wait, writes
// what follows from them with one sync, and only then acts.
type loop struct {
	core    *executor.Core
	journal round.Recorder
	intents Intents
	// The two paths. They never block and may lose what they are given.
	primary    func([]byte) bool
	narrowband func([]byte) bool
	// pins is what the owner of the pins is told and nobody waits for; nil for none.
	pins keeper
	// stopPins sets all outputs to their safe levels; nil for none. It does not block.
	stopPins func()
	// taken is told what the loop has taken; nil for nobody. So is linked.
	taken  func(executor.Input)
	linked *linked
	now    func() executor.Now
	log    *slog.Logger

	// clock is what is known of the gateway's time.
	clock atomic.Pointer[executor.ClockView]
	// roomy says that there is room for what running work has seen.
	roomy atomic.Bool

	inputs chan executor.Input
	closed chan struct{} // the loop takes no more inputs
	asked  chan struct{} // whether the loop turns

	works   sync.WaitGroup
	cancels map[wire.Token]context.CancelFunc

	rewriteAt int64 // size at which the journal is rewritten, 0 for the usual one
}

func newLoop() *loop {
	return &loop{
		inputs: make(chan executor.Input, inputQueue), closed: make(chan struct{}),
		asked:   make(chan struct{}),
		cancels: map[wire.Token]context.CancelFunc{},
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

// answer returns when the loop has turned, or an error when ctx or the loop ends.
func (l *loop) answer(ctx context.Context) error {
	select {
	case l.asked <- struct{}{}:
		return nil
	case <-l.closed:
		return errors.New("the loop has ended")
	case <-ctx.Done():
		return ctx.Err()
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
	performer := round.New(l.core, l.journal, worker{l, base}, l.now, l.rewriteAt)
	for {
		l.roomy.Store(l.core.Roomy())
		clock := l.core.Clock()
		l.clock.Store(&clock)
		late, err := performer.Perform(out)
		if err != nil {
			return err
		}
		if out.Stopped {
			return nil
		}
		if len(late) > 0 {
			out = l.batch(executor.Unstarted{Tokens: late})
			continue
		}
		timer.Reset(l.until(out.Deadline))
		var in executor.Input
		select {
		case in = <-l.inputs:
			l.saw(in)
		case <-timer.C:
			in = executor.Tick{}
		case <-l.asked:
			in = executor.Tick{}
		case <-stop:
			stop = nil
			in = executor.Stop{Reason: "the agent was stopped"}
		}
		out = l.batch(in)
	}
}

// late says whether the time of something has passed, by what is known now. It is for
// whoever moves a pin, at any time.
func (l *loop) late(notAfter int64, towards bool) bool {
	clock := l.clock.Load()
	return clock != nil && clock.Late(l.now(), notAfter, towards)
}

// left says how much is left of a length that has to end by a time of the gateway's.
func (l *loop) left(endsBy int64, length time.Duration) time.Duration {
	clock := l.clock.Load()
	if clock == nil {
		return length
	}
	return clock.Left(l.now(), endsBy, length)
}

func (l *loop) until(deadline time.Duration) time.Duration {
	if deadline == executor.NoDeadline {
		return time.Hour // a tick too many does no harm
	}
	return max(deadline-l.now().Mono, 0)
}

// batch steps the core for in and for everything that waits behind it.
func (l *loop) batch(in executor.Input) executor.Output {
	return round.Collect(l.core, l.now, in, func() (executor.Input, bool) {
		select {
		case in := <-l.inputs:
			l.saw(in)
			return in, true
		default:
			return nil, false
		}
	})
}

// saw forgets how to stop work that has ended.
func (l *loop) saw(in executor.Input) {
	if l.taken != nil {
		l.taken(in)
	}
	if l.linked != nil {
		l.linked.taken(in)
	}
	if f, ok := in.(executor.Finished); ok && !f.Again {
		delete(l.cancels, f.Token)
	}
}

// worker carries out what the core decided. base outlives the wish to stop.
type worker struct {
	*loop
	base context.Context
}

func (k worker) Start(w executor.Work) { k.start(k.base, w) }

func (k worker) Abort(t wire.Token) {
	if cancel := k.cancels[t]; cancel != nil {
		cancel()
	}
}

func (k worker) Contact() {
	if k.pins != nil {
		k.pins.Heard()
	}
}

func (k worker) EndLease(t wire.Token) {
	if k.pins != nil {
		k.pins.Cancel(t.String())
	}
}

func (k worker) Hold(lines []wire.LineKey) {
	if k.pins != nil {
		k.pins.Hold(lines)
	}
}

func (k worker) Fall(f executor.Fall) {
	if f == executor.FallStop && k.stopPins != nil {
		k.stopPins()
	}
}

func (k worker) Primary(m wire.Message) {
	b, err := wire.Encode(m)
	if err != nil {
		k.log.Error("message can't be encoded", "err", err)
		return
	}
	k.primary(b)
}

func (k worker) Narrowband(a wire.CompactAck) {
	b, err := a.Encode()
	if err != nil {
		k.log.Error("compact ack can't be encoded", "err", err)
		return
	}
	k.narrowband(b)
}

func (k worker) Note(n executor.Note) { k.say(n) }

// start runs one attempt on a goroutine of its own.
func (l *loop) start(base context.Context, w executor.Work) {
	ctx, cancel := context.WithTimeout(base, w.Timeout)
	if !w.Again { // else there may be an attempt of that token, and nobody cancels this
		l.cancels[w.Token] = cancel
	}
	l.works.Go(func() {
		defer cancel()
		r := l.intents.Run(ctx, w, func(percent uint8, seen wire.RawMap) bool {
			if seen != nil && !l.roomy.Load() {
				return false
			}
			return l.offer(executor.Progressed{Token: w.Token, Percent: percent, Payload: seen})
		})
		l.give(context.WithoutCancel(ctx), executor.Finished{Token: w.Token, Result: r, Again: w.Again})
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
