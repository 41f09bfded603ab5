package intent

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/apollo-11/apollo11/fieldagent/gpio"
	"github.com/apollo-11/apollo11/wire"
)

// Board is what the intents that are built in need. What it lacks, it can't do.
type Board struct {
	Pins    Pins
	Metrics MetricsOptions
	Reboot  RebootOptions
}

// Pins are the pins of a board; *gpio.Owner is it. It has more methods than an
// interface should: it is one thing, and the tests use the real one.
type Pins interface {
	// Resolve returns the one name of a pin that may be used in this mode, and Config
	// what the pin map says of it, false if it is not there. Line is its line now.
	Resolve(name string, mode gpio.Mode) (string, error)
	Config(name string) (gpio.PinConfig, bool)
	Line(name string) (wire.LineKey, error)

	// Get returns the level of an input, or the level that an output was last commanded
	// to have: gpio.ErrNoLevel if it was never set, which only an output without a safe
	// level can be.
	Get(ctx context.Context, name string) (gpio.Level, error)
	// Do drives an output, and with For ends that by itself. The error says whether
	// something has happened: gpio.ErrUnknown if nobody knows.
	Do(ctx context.Context, d gpio.Drive) error
	// Pulse drives an output for a time and then to the other level, and returns when that
	// is over, also by something newer, a cancel or the board.
	Pulse(ctx context.Context, d gpio.Drive, width time.Duration) (gpio.PulseEnd, error)
	// Safe drives lines to their safe levels, before other requests. What it has driven is
	// known with an error as well.
	Safe(ctx context.Context, s gpio.Safe) (gpio.SafeDone, error)
	// Release lets lines be set again that Safe holds, nil for all, and returns the names
	// of those that were held. It moves nothing.
	Release(ctx context.Context, lines []wire.LineKey, order uint64) ([]string, error)
	// Watch delivers edges until ctx ends, or until the pin can't be watched any
	// more; then the channel is closed.
	Watch(ctx context.Context, name string) (<-chan gpio.Edge, error)
}

// drive is what all requests that move a pin have in common.
func (r Request) drive(pin string, level bool) gpio.Drive {
	return gpio.Drive{Pin: pin, Level: gpio.Level(level), Cause: r.Cause, Order: r.Order, Check: r.Check}
}

// resolve finds a pin for a mode, or says why not.
func (b Board) resolve(name string, mode gpio.Mode) (string, *Result) {
	pin, err := b.Pins.Resolve(name, mode)
	if err != nil {
		return "", &Result{Code: pinCode(err), Detail: err.Error()}
	}
	return pin, nil
}

// safe returns the safe level of a pin, and false if it has none.
func (b Board) safe(pin string) (level gpio.Level, ok bool) {
	c, mapped := b.Pins.Config(pin)
	if !mapped || c.Safe == nil {
		return gpio.Low, false
	}
	return *c.Safe, true
}

// limit returns the longest time that the pin map lets a pin have this level, 0 for
// no limit.
func (b Board) limit(pin string, level gpio.Level) time.Duration {
	c, mapped := b.Pins.Config(pin)
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

// pinError says what an error of package gpio means.
type pinError struct {
	is   error
	code wire.Code
}

// pinErrors are those of package gpio that mean something by themselves; the first that
// fits counts.
func pinErrors() []pinError {
	return []pinError{
		{gpio.ErrUnknown, wire.CodeUnknown}, // first: whatever else it was, nobody knows
		{gpio.ErrSuperseded, wire.CodeSuperseded},
		{gpio.ErrHeldSafe, wire.CodeHeldSafe},
		{gpio.ErrLocal, wire.CodeLocal},
		{gpio.ErrLost, wire.CodeDependency}, // it may run when the gateway is back
		{gpio.ErrLate, wire.CodeExpired},
		{gpio.ErrTimeDoubt, wire.CodeDependency}, // it may run when the gateway has told the time
		{gpio.ErrMapChanged, wire.CodeMapChanged},
		{gpio.ErrNoSuchPin, wire.CodeNoSuchPin},
		{gpio.ErrNotPermitted, wire.CodeNotPermitted},
		{gpio.ErrUnsupported, wire.CodeUnsupported},
		{gpio.ErrNoLevel, wire.CodeUnsupported}, // it has none by waiting either
		{gpio.ErrBusy, wire.CodeBusy},
		{gpio.ErrIO, wire.CodeIO},
		{context.Canceled, wire.CodeCancelled},
		{context.DeadlineExceeded, wire.CodeTimeout},
		{gpio.ErrNotDone, wire.CodeDependency}, // the owner is stuck or has stopped
	}
}

// pinCode translates an error of package gpio.
func pinCode(err error) wire.Code {
	for _, e := range pinErrors() {
		if errors.Is(err, e.is) {
			return e.code
		}
	}
	return wire.CodeFailed
}

// pinResult is the result of a request that ended with an error of Pins: its code is what
// the error means, so that what nobody knows stays unknown and a refusal is not tried again.
func pinResult(err error) Result {
	r := Result{Code: pinCode(err), Detail: err.Error()}
	if errors.Is(err, gpio.ErrNoLevel) {
		r.Detail += ": set it first, or give it a safe level in agent.yaml"
	}
	return r
}

// levelNumber is a level as it stands in payloads.
func levelNumber(l gpio.Level) uint64 {
	if l {
		return 1
	}
	return 0
}
