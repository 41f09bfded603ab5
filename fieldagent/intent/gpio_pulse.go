package intent

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/apollo-11/apollo11/fieldagent/gpio"
	"github.com/apollo-11/apollo11/wire"
)

// gpio.pulse: the pin goes to a level for a time and then to the other one. The owner of
// the pins keeps the time, so that the end depends neither on a second message nor on
// anything here.
var _ = builtIn(func(b Board) Intent { return Typed(wire.IntentGPIOPulse, b.checkPulse, b.pulse) })

func (b Board) checkPulse(a wire.GPIOPulse) *Result {
	pin, refused := b.resolve(a.Pin, gpio.Output)
	if refused != nil {
		return refused
	}
	if limit := b.limit(pin, gpio.Level(a.Level)); limit > 0 && a.Width > limit {
		return tooLong("width", pin, a.Width, limit)
	}
	return nil
}

func (b Board) pulse(ctx context.Context, a wire.GPIOPulse, r Request) Result {
	if end, ok := ctx.Deadline(); ok && time.Until(end) < a.Width {
		return *badArgs(fmt.Errorf("a pulse of %v does not fit into the %v that the task has left: give it a longer timeout",
			a.Width, max(0, time.Until(end)).Round(time.Millisecond)))
	}
	on := gpio.Level(a.Level)
	safe, hasSafe := b.safe(a.Pin)
	e, err := b.Pins.Pulse(ctx, r.drive(a.Pin, a.Level), a.Width)
	if err != nil {
		result := pinResult(err)
		if errors.Is(err, gpio.ErrUnknown) || errors.Is(err, gpio.ErrIO) {
			result.Detail += "; what may have begun is ended as soon as that works"
		}
		if errors.Is(err, gpio.ErrUnknown) && hasSafe {
			result.Lease = &Lease{Pin: a.Pin, After: safe, Plain: true} // when it has ended, that is told
		}
		return result
	}
	result := Result{Code: wire.CodeOK, Values: map[string]any{
		"pin": a.Pin, "level": levelNumber(e.Level), "width_ms": uint64(e.Took.Milliseconds())}}
	if e.Why != wire.LeaseExpired || e.Level == on {
		// By a newer instruction, a cancel, or the board itself: nobody tries it again.
		result.Code = wire.CodeCancelled
		result.Ended = &Ended{Pin: a.Pin, Why: e.Why, Level: e.Level}
		result.Detail = fmt.Sprintf("the pulse was cut short after %v of %v: %s; %s is %s", e.Took.Round(time.Millisecond), a.Width, cut(e.Why), a.Pin, e.Level)
	}
	if hasSafe && e.Level != safe && e.Why != wire.LeaseHand {
		result.Lease = &Lease{Pin: a.Pin, After: safe, Plain: b.limit(a.Pin, e.Level) == 0}
	}
	return result
}

// cut says why a pulse did not have its whole time.
func cut(why wire.LeaseEnd) string {
	switch why {
	case wire.LeaseReplaced:
		return "something newer drives the safe level"
	case wire.LeaseLoss:
		return "the gateway is lost"
	case wire.LeaseStopped:
		return "the agent stops"
	case wire.LeaseRestart:
		return "the line had gone"
	case wire.LeaseLocal:
		return "the LOCAL switch was thrown"
	case wire.LeaseReload:
		return "the pin map was reloaded"
	case wire.LeaseCancelled:
		return "it was cancelled"
	case wire.LeaseHand:
		return "the LOCAL switch was thrown, and the pin is left to the hand that has moved it"
	}
	return "its end could not be driven at first"
}
