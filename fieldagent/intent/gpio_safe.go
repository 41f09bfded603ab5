package intent

import (
	"context"
	"fmt"

	"github.com/apollo-11/apollo11/fieldagent/gpio"
	"github.com/apollo-11/apollo11/wire"
)

// gpio.safe: outputs go to their safe levels and stay there until a gpio.release. Those
// without a safe level are named and not moved.
var _ = builtIn(func(b Board) Intent { return Typed(wire.IntentSafe, b.checkSafe, b.driveSafe) })

func (b Board) checkSafe(a wire.GPIOSafe) *Result {
	if a.Pin == "" {
		return nil
	}
	pin, refused := b.resolve(a.Pin, gpio.Output)
	if refused != nil {
		return refused
	}
	if _, ok := b.safe(pin); !ok {
		return &Result{Code: wire.CodeUnsupported, Detail: fmt.Sprintf("pin %s has no safe level: it was not moved; give it one in agent.yaml", pin)}
	}
	return nil
}

func (b Board) driveSafe(ctx context.Context, a wire.GPIOSafe, r Request) Result {
	s := gpio.Safe{Cause: r.Cause, Order: r.Order, Check: r.Check, Hold: r.Hold}
	if a.Pin != "" {
		line, err := b.Pins.Line(a.Pin)
		if err != nil {
			return pinResult(err)
		}
		// The line that the gateway meant as well, if the name has moved since.
		if s.Lines = r.Lines; s.Lines == nil {
			s.Lines = []wire.LineKey{line}
		}
	}
	done, err := b.Pins.Safe(ctx, s)
	result := Result{Code: wire.CodeOK, Values: wire.SafeReport{Driven: done.Pins, Newer: done.Newer, NotMoved: done.Without}.Map()}
	if err != nil {
		result.Code, result.Detail = pinCode(err), err.Error()
	}
	return result
}
