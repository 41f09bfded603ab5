package intent

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/apollo-11/apollo11/fieldagent/gpio"
	"github.com/apollo-11/apollo11/wire"
)

// gpio.write: the pin has the level afterwards, whatever it had before. With a time it
// is a lease: the owner of the pins sets the safe level at its end.
var _ = builtIn(func(b Board) Intent { return Typed(wire.IntentGPIOWrite, b.checkWrite, b.write) })

func (b Board) checkWrite(a wire.GPIOWrite) *Result {
	_, refused := b.setting(a)
	return refused
}

// setting is a checked request.
type setting struct {
	pin  string
	hold time.Duration // 0 for a level that stays
	safe *gpio.Level   // of the pin, nil for none
}

// towards reports whether the request asks for the safe level.
func (s setting) towards(level bool) bool { return s.safe != nil && gpio.Level(level) == *s.safe }

func (b Board) setting(a wire.GPIOWrite) (s setting, refused *Result) {
	if s.pin, refused = b.resolve(a.Pin, gpio.Output); refused != nil {
		return s, refused
	}
	safe, ok := b.safe(s.pin)
	if !ok {
		if a.MaxOn > 0 {
			return s, noSafeLevel(s.pin)
		}
		return s, nil
	}
	s.safe = &safe
	if s.towards(a.Level) {
		return s, nil // it may stay as long as it likes
	}
	s.hold = a.MaxOn
	switch limit := b.limit(s.pin, gpio.Level(a.Level)); {
	case s.hold == 0:
		s.hold = limit
	case limit > 0 && s.hold > limit:
		return s, tooLong("max_on", s.pin, s.hold, limit)
	}
	return s, nil
}

func noSafeLevel(pin string) *Result {
	return badArgs(&wire.ArgError{Field: "max_on", Problem: fmt.Sprintf("pin %s has no safe level to go back to", pin),
		Hint: fmt.Sprintf("give pin %s a safe level in agent.yaml", pin)})
}

func (b Board) write(ctx context.Context, a wire.GPIOWrite, r Request) Result {
	s, refused := b.setting(a)
	if refused != nil {
		return *refused
	}
	if s.towards(a.Level) {
		return b.writeSafe(ctx, s.pin, r)
	}
	values := map[string]any{"pin": s.pin, "level": levelNumber(gpio.Level(a.Level))}
	var lease *Lease
	if s.safe != nil {
		lease = &Lease{Pin: s.pin, After: *s.safe, Plain: s.hold == 0}
	}
	if s.hold > 0 && r.Left != nil {
		if s.hold = r.Left(s.hold).Truncate(time.Millisecond); s.hold < gpio.MinHold {
			if err := r.check(); err != nil {
				return pinResult(err)
			}
			return Result{Code: wire.CodeDependency, Detail: "its lease may be over by now: it was not begun"}
		}
	}
	if s.hold > 0 {
		values["max_on_ms"] = uint64(s.hold.Milliseconds())
		values["until_ms"] = uint64(max(r.now(), 0) + s.hold.Milliseconds())
	}
	d := r.drive(s.pin, a.Level)
	d.For = s.hold
	err := b.Pins.Do(ctx, d)
	if err == nil {
		return Result{Code: wire.CodeOK, Values: values, Lease: lease}
	}
	result := pinResult(err)
	if errors.Is(err, gpio.ErrUnknown) {
		result.Lease = lease // it may have begun, and then its end will come
	}
	return result
}

// writeSafe drives the safe level: the pin's, and that of the line which the gateway
// took it for, if the name has moved since.
func (b Board) writeSafe(ctx context.Context, pin string, r Request) Result {
	lines := r.Lines
	if lines == nil {
		line, err := b.Pins.Line(pin)
		if err != nil {
			return pinResult(err)
		}
		lines = []wire.LineKey{line}
	}
	done, err := b.Pins.Safe(ctx, gpio.Safe{Lines: lines, Cause: r.Cause, Order: r.Order, Check: r.Check})
	if err != nil {
		return pinResult(err)
	}
	level, _ := b.safe(pin)
	values := map[string]any{"pin": pin, "level": levelNumber(level)}
	if len(done.Pins) > 1 {
		values["pins"] = texts(done.Pins)
	}
	return Result{Code: wire.CodeOK, Values: values}
}

// texts is a list of names as it stands in payloads.
func texts(names []string) []any {
	list := make([]any, 0, len(names))
	for _, n := range names {
		list = append(list, n)
	}
	return list
}
