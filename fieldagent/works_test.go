package fieldagent

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/apollo-11/apollo11/fieldagent/executor"
	"github.com/apollo-11/apollo11/fieldagent/gpio"
	"github.com/apollo-11/apollo11/fieldagent/intent"
	"github.com/apollo-11/apollo11/wire"
)

// odd is an intent of an agent's own that says nothing of itself.
type odd struct{}

func (odd) Check(wire.Args) *intent.Result { return nil }

func (odd) Run(context.Context, intent.Request) intent.Result {
	return intent.Result{Code: wire.CodeOK}
}

// A19: an intent that declares nothing is refused under LOCAL and holds the whole board,
// so that it does not cut into a running pulse.
func TestA19_UndeclaredIntentActuatesAndHoldsTheBoard(t *testing.T) {
	sim, err := gpio.NewSim(gpio.SimOptions{Names: []string{"a", "b"}})
	if err != nil {
		t.Fatal(err)
	}
	off := gpio.Low
	pins, err := gpio.NewOwner(sim, []gpio.PinConfig{{Name: "a", Mode: gpio.Output, Safe: &off}, {Name: "b", Mode: gpio.Output}}, gpio.OwnerOptions{})
	if err != nil {
		t.Fatal(err)
	}
	log := slog.New(slog.NewTextHandler(io.Discard, nil))
	r, err := intent.New(log, intent.BuiltIn(intent.Board{Pins: pins}), []intent.Intent{{Name: "mix.paint", Executor: odd{}}})
	if err != nil {
		t.Fatal(err)
	}
	w := &works{registry: r, pins: pins, log: log}
	if v := w.Check("mix.paint", nil); v.Code != wire.CodeNone || !v.Actuates || !v.Board || v.Towards || v.Watch {
		t.Errorf("%+v", v)
	}
	args := func(m map[string]any) wire.RawMap {
		raw, err := wire.EncodeMap(m, wire.MaxArgsBytes)
		if err != nil {
			t.Fatal(err)
		}
		return raw
	}
	a, b := wire.LineOf("a"), wire.LineOf("b")
	if v := w.Check(wire.IntentGPIOWrite, args(map[string]any{"pin": "a", "level": 0})); !v.Towards || !v.Safe || v.Board || v.Lines[0] != a {
		t.Errorf("off: %+v", v)
	}
	if v := w.Check(wire.IntentGPIOWrite, args(map[string]any{"pin": "b", "level": 0})); v.Towards || v.Safe || v.Lines[0] != b {
		t.Errorf("off without a safe level: %+v", v)
	}
	if v := w.Check(wire.IntentGPIOPulse, args(map[string]any{"pin": "b", "width": "1s"})); v.Towards || v.Pulse == nil || v.Pulse.Off || v.Pulse.Line != b {
		t.Errorf("pulse: %+v", v)
	}
	// What Check has read is what is run: nobody reads the arguments a second time.
	read := w.Check(wire.IntentGPIOPulse, args(map[string]any{"pin": "b", "width": "2m"}))
	if read.Parsed != (wire.GPIOPulse{Pin: "b", Level: true, Width: 2 * time.Minute}) || read.Lasts != 2*time.Minute {
		t.Errorf("pulse: %+v", read)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if r := w.Run(ctx, executor.Work{Intent: wire.IntentGPIOPulse, Args: wire.RawMap{0x80}, Parsed: read.Parsed}, nil); r.Code != wire.CodeBadArgs || !strings.Contains(r.Detail, "does not fit") {
		t.Errorf("what Check has read was not run: %+v", r)
	}
	if v := w.Check(wire.IntentSafe, nil); !v.Towards || !v.Hold || len(v.Lines) != 1 || v.Lines[0] != a {
		t.Errorf("safe: %+v", v)
	}
	if v := w.Check(wire.IntentRelease, args(map[string]any{"pin": "a"})); v.Actuates || !v.Release || len(v.Lines) != 1 {
		t.Errorf("release: %+v", v)
	}
	if v := w.Check(wire.IntentRelease, nil); !v.Release || len(v.Lines) != 0 {
		t.Errorf("release of all: %+v", v)
	}
}

// A12: what can't be said to be late, nor not to be, is not done, and not refused for
// good: only what is late for certain is expired.
func TestA12_TimeInDoubtIsNoExpiry(t *testing.T) {
	for name, c := range map[string]struct {
		late, past bool
		code       wire.Code
	}{
		"in time":     {false, false, wire.CodeOK},
		"in doubt":    {true, false, wire.CodeDependency},
		"for certain": {true, true, wire.CodeExpired},
	} {
		odd := oddDriver{}
		r, err := intent.New(slog.New(slog.DiscardHandler), nil, []intent.Intent{{Name: "mix.paint", Executor: odd}})
		if err != nil {
			t.Fatal(err)
		}
		sim, err := gpio.NewSim(gpio.SimOptions{Names: []string{"a"}})
		if err != nil {
			t.Fatal(err)
		}
		pins, err := gpio.NewOwner(sim, nil, gpio.OwnerOptions{})
		if err != nil {
			t.Fatal(err)
		}
		w := &works{registry: r, pins: pins, late: func(_ int64, towards bool) bool {
			if towards {
				return c.past
			}
			return c.late
		}}
		if got := w.Run(t.Context(), executor.Work{Intent: "mix.paint", NotAfter: 1}, nil); got.Code != c.code {
			t.Errorf("%s: %v, %s", name, got.Code, got.Detail)
		}
	}
}

// oddDriver asks right before it would drive.
type oddDriver struct{ odd }

func (oddDriver) Run(_ context.Context, r intent.Request) intent.Result {
	switch err := r.Check(); {
	case errors.Is(err, gpio.ErrLate):
		return intent.Result{Code: wire.CodeExpired}
	case errors.Is(err, gpio.ErrTimeDoubt):
		return intent.Result{Code: wire.CodeDependency}
	}
	return intent.Result{Code: wire.CodeOK}
}
