package intent

import (
	"context"

	"github.com/apollo-11/apollo11/fieldagent/gpio"
	"github.com/apollo-11/apollo11/wire"
)

// write is gpio.write: the pin has the level afterwards, whatever it had before.
type write struct{ l *lines }

func (w write) Check(args map[string]any) *Result {
	_, _, refused := w.parse(args)
	return refused
}

func (w write) parse(args map[string]any) (pin string, level gpio.Level, refused *Result) {
	a, refused := parse[wire.GPIOWrite](wire.IntentGPIOWrite, args)
	if refused != nil {
		return "", gpio.Low, refused
	}
	pin, refused = w.l.resolve(a.Pin, gpio.Output)
	return pin, gpio.Level(a.Level), refused
}

func (w write) Run(ctx context.Context, r Request) Result {
	pin, level, refused := w.parse(r.Args)
	if refused == nil {
		refused = w.l.allow(pin, level)
	}
	if refused != nil {
		return *refused
	}
	if err := w.l.pins.Set(ctx, pin, level, r.Cause); err != nil {
		return pinResult(err)
	}
	return Result{Code: wire.CodeOK, Values: map[string]any{"pin": pin, "level": levelNumber(level)}}
}
