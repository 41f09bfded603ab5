package intent

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/apollo-11/apollo11/fieldagent/gpio"
	"github.com/apollo-11/apollo11/wire"
)

// Putting a pin back is tried harder than anything else: it has a time limit of
// its own, which the end of the task does not shorten.
const (
	putBackTries = 5
	putBackPause = 200 * time.Millisecond
	putBackLimit = 10 * time.Second // for all tries together
)

// pulser is gpio.pulse: the pin goes to a level for a time and then to the other
// one. The time is kept here, so that the end never depends on a second message.
type pulser struct{ l *lines }

func (p pulser) Check(args map[string]any) *Result {
	_, refused := p.parse(args)
	return refused
}

func (p pulser) parse(args map[string]any) (a wire.GPIOPulse, refused *Result) {
	a, refused = parse[wire.GPIOPulse](wire.IntentGPIOPulse, args)
	if refused != nil {
		return a, refused
	}
	a.Pin, refused = p.l.resolve(a.Pin, gpio.Output)
	if refused != nil {
		return a, refused
	}
	if limit := p.l.limit(a.Pin, gpio.Level(a.Level)); limit > 0 && a.Width > limit {
		return a, tooLong("width", a.Pin, a.Width, limit)
	}
	return a, nil
}

func (p pulser) Run(ctx context.Context, r Request) Result {
	a, refused := p.parse(r.Args)
	if refused != nil {
		return *refused
	}
	if end, ok := ctx.Deadline(); ok && time.Until(end) < a.Width {
		return *badArgs(fmt.Errorf("a pulse of %v does not fit into the %v that the task has left: give it a longer timeout",
			a.Width, max(0, time.Until(end)).Round(time.Millisecond)))
	}
	on := gpio.Level(a.Level)
	if busy := p.l.hold(a.Pin, pulse{cause: r.Cause, off: !on}); busy != nil {
		return *busy
	}
	defer p.l.release(a.Pin)

	if err := p.l.pins.Set(ctx, a.Pin, on, r.Cause); err != nil {
		return p.neverOn(ctx, a, r.Cause, err)
	}
	begun := time.Now()
	whole := keepOn(ctx, a.Width)
	if err := p.putBack(ctx, a.Pin, !on, r.Cause); err != nil {
		return Result{Code: wire.CodeUnknown,
			Detail: fmt.Sprintf("%s went %s and may still be so, go and look: %v", a.Pin, on, err)}
	}
	took := time.Since(begun)
	result := Result{Code: wire.CodeOK, Values: map[string]any{
		"pin": a.Pin, "level": levelNumber(!on), "width_ms": uint64(took.Milliseconds())}}
	if !whole {
		result.Code = wire.CodeCancelled
		result.Detail = fmt.Sprintf("the pulse was cut short after %v of %v; %s is %s again", took.Round(time.Millisecond), a.Width, a.Pin, !on)
	}
	return result
}

// neverOn ends a pulse whose beginning was refused. If the pin may have moved
// all the same it is put back.
func (p pulser) neverOn(ctx context.Context, a wire.GPIOPulse, cause string, err error) Result {
	if !errors.Is(err, gpio.ErrUnknown) && !errors.Is(err, gpio.ErrIO) {
		return pinResult(err)
	}
	off := !gpio.Level(a.Level)
	if back := p.putBack(ctx, a.Pin, off, cause); back != nil {
		return Result{Code: wire.CodeUnknown, Detail: fmt.Sprintf("%v; and it could not be put back, go and look: %v", err, back)}
	}
	return Result{Code: pinCode(err), Detail: fmt.Sprintf("%v; %s is %s", err, a.Pin, off)}
}

// putBack drives the off level, again and again within limits, even if ctx has
// ended.
func (p pulser) putBack(ctx context.Context, pin string, off gpio.Level, cause string) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), putBackLimit)
	defer cancel()
	for try := 1; ; try++ {
		err := p.l.pins.Set(ctx, pin, off, cause)
		if err == nil || try == putBackTries || !wait(ctx, putBackPause) {
			return err
		}
	}
}

// keepOn waits for the end of the pulse and reports whether it came before
// somebody cancelled it. The task's time limit does not cut a pulse: it had room
// when it began, so what is left when the limit passes is only the time that
// setting the pin took, and a "timeout" would have the pulse repeated.
func keepOn(ctx context.Context, width time.Duration) bool {
	t := time.NewTimer(width)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		if !errors.Is(ctx.Err(), context.DeadlineExceeded) {
			return false
		}
		<-t.C
		return true
	}
}

// wait waits and reports whether it waited to the end.
func wait(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
