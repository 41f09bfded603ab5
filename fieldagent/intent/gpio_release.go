package intent

import (
	"context"

	"github.com/apollo-11/apollo11/fieldagent/gpio"
	"github.com/apollo-11/apollo11/wire"
)

// gpio.release: what gpio.safe holds may be set again. It moves nothing.
var _ = builtIn(func(b Board) Intent { return Typed(wire.IntentRelease, b.checkRelease, b.release) })

func (b Board) checkRelease(a wire.GPIORelease) *Result {
	if a.Pin == "" {
		return nil
	}
	_, refused := b.resolve(a.Pin, gpio.Output)
	return refused
}

func (b Board) release(ctx context.Context, a wire.GPIORelease, r Request) Result {
	var lines []wire.LineKey
	if a.Pin != "" {
		line, err := b.Pins.Line(a.Pin)
		if err != nil {
			return pinResult(err)
		}
		lines = []wire.LineKey{line}
	}
	pins, err := b.Pins.Release(ctx, lines, r.Order)
	if err != nil {
		return pinResult(err)
	}
	return Result{Code: wire.CodeOK, Values: wire.SafeReport{Released: append([]string{}, pins...)}.Map()}
}
