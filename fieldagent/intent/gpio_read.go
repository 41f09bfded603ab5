package intent

import (
	"context"

	"github.com/apollo-11/apollo11/fieldagent/gpio"
	"github.com/apollo-11/apollo11/wire"
)

// gpio.read: the level of an input, or the commanded level of an output.
var _ = builtIn(func(b Board) Intent { return Typed(wire.IntentGPIORead, b.checkRead, b.read) })

func (b Board) checkRead(a wire.GPIORead) *Result {
	_, refused := b.resolve(a.Pin, gpio.Input)
	return refused
}

func (b Board) read(ctx context.Context, a wire.GPIORead, _ Request) Result {
	level, err := b.Pins.Get(ctx, a.Pin)
	if err != nil {
		return pinResult(err)
	}
	return Result{Code: wire.CodeOK, Values: map[string]any{"pin": a.Pin, "level": levelNumber(level)}}
}
