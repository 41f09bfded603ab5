package fieldagent

import (
	"context"
	"log/slog"
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

// accepted names the pin that an instruction holds, by its one name, so that
// instructions that use different names of a pin do not overlap. A read holds its
// pin too: it must come after the writes that arrived before it. A pulse is ended
// by a write of the level that it would end with.
func (w *works) accepted(name string, args wire.RawMap) executor.Verdict {
	m, err := wire.DecodeMap(args)
	if err != nil {
		return executor.Verdict{} // refused already
	}
	parsed, err := wire.ParseArgs(name, m)
	if err != nil {
		return executor.Verdict{} // not an intent of the board's pins
	}
	switch a := parsed.(type) {
	case wire.GPIOWrite:
		line := w.line(a.Pin, gpio.Output)
		return executor.Verdict{Lines: []string{line}, Ends: at(line, gpio.Level(a.Level)), Actuates: true}
	case wire.GPIOPulse:
		line := w.line(a.Pin, gpio.Output)
		return executor.Verdict{Lines: []string{line}, EndedBy: at(line, !gpio.Level(a.Level)), Actuates: true}
	case wire.GPIORead:
		return executor.Verdict{Lines: []string{w.line(a.Pin, gpio.Input)}}
	case wire.GPIOWatch:
		return executor.Verdict{Watch: true} // its pin can be read meanwhile
	case wire.Reboot:
		return executor.Verdict{Lines: w.allLines(), Reboots: true, Actuates: true}
	}
	return executor.Verdict{}
}

func (w *works) line(pin string, mode gpio.Mode) string {
	if one, err := w.pins.Resolve(pin, mode); err == nil {
		pin = one
	}
	return "pin " + pin
}

// allLines is every pin: a boot waits for what moves one, and nothing moves one
// while the board goes down.
func (w *works) allLines() []string {
	var lines []string
	for _, p := range w.pins.Names() {
		lines = append(lines, "pin "+p)
	}
	return lines
}

func at(line string, l gpio.Level) string { return line + " " + l.String() }

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
