package intent

import (
	"context"

	"github.com/apollo-11/apollo11/fieldagent/gpio"
	"github.com/apollo-11/apollo11/wire"
)

// read is gpio.read: the level of an input, or the commanded level of an output.
type read struct{ l *lines }

func (r read) Check(args map[string]any) *Result {
	_, refused := r.parse(args)
	return refused
}

func (r read) parse(args map[string]any) (pin string, refused *Result) {
	a, refused := parse[wire.GPIORead](wire.IntentGPIORead, args)
	if refused != nil {
		return "", refused
	}
	return r.l.resolve(a.Pin, gpio.Input)
}

func (r read) Run(ctx context.Context, req Request) Result {
	pin, refused := r.parse(req.Args)
	if refused != nil {
		return *refused
	}
	level, err := r.l.pins.Get(ctx, pin)
	if err != nil {
		return pinResult(err)
	}
	return Result{Code: wire.CodeOK, Values: map[string]any{"pin": pin, "level": levelNumber(level)}}
}
