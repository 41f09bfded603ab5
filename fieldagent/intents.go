package fieldagent

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/apollo-11/apollo11/fieldagent/executor"
	"github.com/apollo-11/apollo11/fieldagent/gpio"
	"github.com/apollo-11/apollo11/fieldagent/intent"
	"github.com/apollo-11/apollo11/wire"
)

// works is the intents of this agent as the loop and the core want them.
type works struct {
	registry *intent.Registry
	pins     *gpio.Owner
	log      *slog.Logger
}

func newWorks(pins *gpio.Owner, version string, cfg Config, log *slog.Logger) (*works, error) {
	r, err := intent.New(log, intent.GPIO(pins), intent.Metrics(intent.MetricsOptions{Version: version, DataDir: cfg.Data}),
		intent.Reboot(intent.RebootOptions{Command: strings.Fields(cfg.RebootCommand), Root: cfg.root}))
	if err != nil {
		return nil, err
	}
	return &works{r, pins, log}, nil
}

// Check implements Intents.
func (w *works) Check(name string, args wire.RawMap) executor.Verdict {
	if refused := w.registry.Check(name, args); refused != nil {
		return executor.Verdict{Code: refused.Code, Detail: refused.Detail}
	}
	return w.accepted(name, args)
}

// accepted says what an instruction that the registry takes does with the board: its
// lines by what they are and not by their names, so that two names of one line do not
// overlap.
func (w *works) accepted(name string, args wire.RawMap) executor.Verdict {
	act, err := wire.ParseAct(name, args)
	if err != nil {
		return executor.Verdict{Code: wire.CodeBadArgs, Detail: err.Error()}
	}
	v := executor.Verdict{Actuates: act.Moves(), Watch: act.Watch, Reboots: act.Reboots, Board: act.Holds == wire.HoldsBoard,
		Towards: act.Towards(w.safe), Hold: act.Traits.Safe, Release: act.Release}
	if act.Holds != wire.HoldsPins {
		return v
	}
	pins := act.Pins
	if len(pins) == 0 {
		pins = w.withSafe()
	}
	v.Safe = true
	for _, p := range pins {
		_, ok := w.safe(p)
		v.Safe = v.Safe && ok
		v.Lines = append(v.Lines, w.line(p))
	}
	return v
}

// safe returns the safe level of a pin, and false if it has none.
func (w *works) safe(pin string) (level, ok bool) {
	c, mapped := w.pins.Config(pin)
	if !mapped || c.Safe == nil {
		return false, false
	}
	return bool(*c.Safe), true
}

// withSafe lists the pins that have a safe level.
func (w *works) withSafe() []string {
	return slices.DeleteFunc(w.pins.Names(), func(p string) bool { _, ok := w.safe(p); return !ok })
}

// line is the key of the line that a pin's name means.
func (w *works) line(pin string) wire.LineKey {
	if one, err := w.pins.Resolve(pin, gpio.Look); err == nil {
		pin = one
	}
	return wire.LineOf(pin)
}

// Run implements Intents. Only what has been seen is told meanwhile; no intent
// knows how far it is.
func (w *works) Run(ctx context.Context, work executor.Work, tell Tell) executor.Result {
	began := time.Now()
	p := w.registry.Run(ctx, work.Intent, work.Args, intent.Request{
		Cause: work.Token.String(),
		Clock: func() int64 { return work.At + time.Since(began).Milliseconds() },
		Tell: func(values map[string]any) bool {
			payload, err := wire.EncodeMap(values, wire.MaxPayloadBytes)
			if err != nil {
				w.log.Error("what was seen can't be told", "intent", work.Intent, "err", err)
				return true // it would not get better
			}
			return tell(0, payload)
		},
	})
	r := executor.Result{Code: p.Code, Detail: p.Detail, Payload: p.Payload}
	if p.Lease != nil {
		r.Lease = &executor.Lease{Pin: p.Lease.Pin, Level: bool(p.Lease.After)}
	}
	return r
}
