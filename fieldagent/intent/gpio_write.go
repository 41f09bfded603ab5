package intent

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/apollo-11/apollo11/fieldagent/gpio"
	"github.com/apollo-11/apollo11/wire"
)

// write is gpio.write: the pin has the level afterwards, whatever it had before.
// With a time it is a lease: the owner of the pins sets the safe level at its end.
type write struct{ l *lines }

// setting is a checked request.
type setting struct {
	pin   string
	level gpio.Level
	hold  time.Duration // 0 for a level that stays
	safe  gpio.Level    // with hold, the level afterwards
}

func (w write) Check(args map[string]any) *Result {
	_, refused := w.parse(args)
	return refused
}

func (w write) parse(args map[string]any) (s setting, refused *Result) {
	a, refused := parse[wire.GPIOWrite](wire.IntentGPIOWrite, args)
	if refused != nil {
		return s, refused
	}
	s.level, s.hold = gpio.Level(a.Level), a.MaxOn
	if s.pin, refused = w.l.resolve(a.Pin, gpio.Output); refused != nil {
		return s, refused
	}
	c, mapped := w.l.pins.Config(s.pin)
	if !mapped || c.Safe == nil {
		if s.hold > 0 {
			return s, noSafeLevel(s.pin)
		}
		return s, nil
	}
	if s.safe = *c.Safe; s.level == s.safe {
		s.hold = 0 // it may stay as long as it likes
		return s, nil
	}
	switch limit := w.l.limit(s.pin, s.level); {
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

func (w write) Run(ctx context.Context, r Request) Result {
	s, refused := w.parse(r.Args)
	if refused == nil {
		refused = w.l.allow(s.pin, s.level)
	}
	if refused != nil {
		return *refused
	}
	values := map[string]any{"pin": s.pin, "level": levelNumber(s.level)}
	if s.hold == 0 {
		if err := w.l.pins.Set(ctx, s.pin, s.level, r.Cause); err != nil {
			return pinResult(err)
		}
		return Result{Code: wire.CodeOK, Values: values}
	}
	values["max_on_ms"] = uint64(s.hold.Milliseconds())
	values["until_ms"] = uint64(max(r.now(), 0) + s.hold.Milliseconds())
	lease := &Lease{Pin: s.pin, After: s.safe}
	err := w.l.pins.Lease(ctx, s.pin, s.level, s.hold, r.Cause)
	if err == nil {
		return Result{Code: wire.CodeOK, Values: values, Lease: lease}
	}
	result := pinResult(err)
	if errors.Is(err, gpio.ErrUnknown) {
		result.Lease = lease // it may have begun, and then its end will come
	}
	return result
}
