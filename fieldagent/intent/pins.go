package intent

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/apollo-11/apollo11/fieldagent/gpio"
	"github.com/apollo-11/apollo11/wire"
)

// Board is what the gpio intents need; *gpio.Owner is it.
type Board interface {
	Pins
	Leases
	Edges
}

// Pins are set and read.
type Pins interface {
	// Resolve returns the one name of a pin that may be used in this mode.
	Resolve(name string, mode gpio.Mode) (string, error)
	Set(ctx context.Context, name string, level gpio.Level, cause string) error
	Get(ctx context.Context, name string) (gpio.Level, error)
}

// Leases are outputs that are set for a limited time (C13).
type Leases interface {
	// Config returns what the pin map says of a pin, false if it is not there.
	Config(name string) (gpio.PinConfig, bool)
	// Lease sets a pin, and hold later to its safe level.
	Lease(ctx context.Context, name string, level gpio.Level, hold time.Duration, cause string) error
}

// Edges are what happens at inputs.
type Edges interface {
	// Watch delivers edges until ctx ends, or until the pin can't be watched any
	// more; then the channel is closed.
	Watch(ctx context.Context, name string) (<-chan gpio.Edge, error)
}

// GPIO returns gpio.write, gpio.read, gpio.pulse and gpio.watch on these pins.
//
// While a pulse holds a pin, the pin can be read and set to the pulse's off
// level, so that a person can always stop it; anything else is refused as busy,
// because the end of the pulse would undo it.
func GPIO(pins Board) []Intent {
	l := &lines{pins: pins, pulses: map[string]pulse{}}
	return []Intent{
		{Name: wire.IntentGPIOWrite, Idempotent: true, Executor: write{l}},
		{Name: wire.IntentGPIORead, Idempotent: true, Executor: read{l}},
		{Name: wire.IntentGPIOPulse, Executor: pulser{l}},
		{Name: wire.IntentGPIOWatch, Idempotent: true, Executor: watcher{l}},
	}
}

// lines are the pins and the pulses that hold some of them.
type lines struct {
	pins Board

	mu     sync.Mutex
	pulses map[string]pulse // by resolved name
}

// pulse is a pulse that is going on.
type pulse struct {
	cause string
	off   gpio.Level
}

// hold notes a pulse, or returns why the pin can't have one now.
func (l *lines) hold(pin string, p pulse) *Result {
	l.mu.Lock()
	defer l.mu.Unlock()
	if other, ok := l.pulses[pin]; ok {
		return busy(pin, other)
	}
	l.pulses[pin] = p
	return nil
}

func (l *lines) release(pin string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.pulses, pin)
}

// allow returns why a pin can't be set to this level now, or nil.
func (l *lines) allow(pin string, level gpio.Level) *Result {
	l.mu.Lock()
	defer l.mu.Unlock()
	if p, ok := l.pulses[pin]; ok && level != p.off {
		return busy(pin, p)
	}
	return nil
}

func busy(pin string, p pulse) *Result {
	return &Result{Code: wire.CodeBusy,
		Detail: fmt.Sprintf("%s is in a pulse (token %s) and will go %s: wait, or cancel that first", pin, p.cause, p.off)}
}

// resolve finds a pin for a mode, or says why not.
func (l *lines) resolve(name string, mode gpio.Mode) (string, *Result) {
	pin, err := l.pins.Resolve(name, mode)
	if err != nil {
		return "", &Result{Code: pinCode(err), Detail: err.Error()}
	}
	return pin, nil
}

// limit returns the longest time that the pin map lets a pin have this level, 0 for
// no limit.
func (l *lines) limit(pin string, level gpio.Level) time.Duration {
	c, mapped := l.pins.Config(pin)
	if !mapped || c.Safe == nil || level == *c.Safe {
		return 0
	}
	return c.MaxOn
}

// tooLong refuses a time that the pin map does not allow.
func tooLong(arg, pin string, d, limit time.Duration) *Result {
	return badArgs(&wire.ArgError{Field: arg, Problem: fmt.Sprintf("%v is too long for pin %s", d, pin),
		Hint: fmt.Sprintf("agent.yaml allows max_on: %v", limit)})
}

// pinCode translates an error of package gpio.
func pinCode(err error) wire.Code {
	for _, c := range []struct {
		is   error
		code wire.Code
	}{
		{gpio.ErrUnknown, wire.CodeUnknown}, // first: whatever else it was, nobody knows
		{gpio.ErrNoSuchPin, wire.CodeNoSuchPin},
		{gpio.ErrNotPermitted, wire.CodeNotPermitted},
		{gpio.ErrUnsupported, wire.CodeUnsupported},
		{gpio.ErrBusy, wire.CodeBusy},
		{gpio.ErrIO, wire.CodeIO},
		{context.Canceled, wire.CodeCancelled},
		{context.DeadlineExceeded, wire.CodeTimeout},
		{gpio.ErrNotDone, wire.CodeDependency}, // the owner is stuck or has stopped
	} {
		if errors.Is(err, c.is) {
			return c.code
		}
	}
	return wire.CodeFailed
}

func pinResult(err error) Result { return Result{Code: pinCode(err), Detail: err.Error()} }

// levelNumber is a level as it stands in payloads.
func levelNumber(l gpio.Level) uint64 {
	if l {
		return 1
	}
	return 0
}

// parse checks arguments and returns them in the intent's own type.
func parse[A wire.Args](intent string, args map[string]any) (a A, refused *Result) {
	parsed, err := wire.ParseArgs(intent, args)
	if err != nil {
		return a, badArgs(err)
	}
	a, ok := parsed.(A)
	if !ok {
		return a, badArgs(fmt.Errorf("arguments of another kind: %T", parsed))
	}
	return a, nil
}
