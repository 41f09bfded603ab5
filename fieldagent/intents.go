package fieldagent

import (
	"context"
	"errors"
	"time"

	"github.com/apollo-11/apollo11/fieldagent/executor"
	"github.com/apollo-11/apollo11/fieldagent/gpio"
	"github.com/apollo-11/apollo11/wire"
)

// provisional stands in until the intent registry is merged.
type provisional struct{ pins *gpio.Owner }

func (p provisional) Check(intent string, args wire.RawMap) executor.Verdict {
	if !wire.BuiltIn(intent) {
		return executor.Verdict{Code: wire.CodeUnknownIntent, Detail: "no such intent: " + intent}
	}
	m, err := wire.DecodeMap(args)
	if err != nil {
		return executor.Verdict{Code: wire.CodeBadArgs, Detail: err.Error()}
	}
	a, err := wire.ParseArgs(intent, m)
	if err != nil {
		return executor.Verdict{Code: wire.CodeBadArgs, Detail: err.Error()}
	}
	switch a := a.(type) {
	case wire.GPIOWrite:
		return p.pin(a.Pin, gpio.Output)
	case wire.GPIOPulse:
		return p.pin(a.Pin, gpio.Output)
	case wire.GPIORead:
		return p.pin(a.Pin, gpio.Input)
	}
	return executor.Verdict{}
}

func (p provisional) pin(name string, mode gpio.Mode) executor.Verdict {
	if err := p.pins.Check(name, mode); err != nil {
		c := wire.CodeUnsupported
		if errors.Is(err, gpio.ErrNoSuchPin) {
			c = wire.CodeNoSuchPin
		}
		return executor.Verdict{Code: c, Detail: err.Error()}
	}
	return executor.Verdict{Lines: []string{name}}
}

func (p provisional) Run(ctx context.Context, w executor.Work, _ func(uint8)) executor.Result {
	m, _ := wire.DecodeMap(w.Args)
	a, _ := wire.ParseArgs(w.Intent, m)
	var err error
	switch a := a.(type) {
	case wire.GPIOWrite:
		err = p.pins.Set(ctx, a.Pin, gpio.Level(a.Level), w.Token.String())
	case wire.GPIOPulse:
		err = p.pins.Set(ctx, a.Pin, gpio.Level(a.Level), w.Token.String())
		t := time.NewTimer(a.Width)
		select {
		case <-ctx.Done():
		case <-t.C:
		}
		err = errors.Join(err, p.pins.Set(context.WithoutCancel(ctx), a.Pin, gpio.Level(!a.Level), w.Token.String()))
	}
	if err != nil {
		return executor.Result{Code: wire.CodeIO, Detail: err.Error()}
	}
	return executor.Result{Code: wire.CodeOK}
}
