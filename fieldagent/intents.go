package fieldagent

import (
	"context"
	"log/slog"
	"strings"

	"github.com/apollo-11/apollo11/fieldagent/executor"
	"github.com/apollo-11/apollo11/fieldagent/gpio"
	"github.com/apollo-11/apollo11/fieldagent/intent"
	"github.com/apollo-11/apollo11/wire"
)

// works is the intents of this agent as the loop and the core want them.
type works struct {
	registry *intent.Registry
	pins     *gpio.Owner
}

func newWorks(pins *gpio.Owner, version string, cfg Config, log *slog.Logger) (*works, error) {
	r, err := intent.New(log, intent.GPIO(pins), intent.Metrics(intent.MetricsOptions{Version: version, DataDir: cfg.Data}),
		intent.Reboot(intent.RebootOptions{Command: strings.Fields(cfg.RebootCommand), Root: cfg.root}))
	if err != nil {
		return nil, err
	}
	return &works{r, pins}, nil
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
		return executor.Verdict{Lines: []string{line}, Ends: at(line, gpio.Level(a.Level))}
	case wire.GPIOPulse:
		line := w.line(a.Pin, gpio.Output)
		return executor.Verdict{Lines: []string{line}, EndedBy: at(line, !gpio.Level(a.Level))}
	case wire.GPIORead:
		return executor.Verdict{Lines: []string{w.line(a.Pin, gpio.Input)}}
	case wire.Reboot:
		return executor.Verdict{Lines: w.allLines(), Reboots: true}
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

// Run implements Intents. None of the intents reports its progress yet.
func (w *works) Run(ctx context.Context, work executor.Work, _ func(uint8)) executor.Result {
	p := w.registry.Run(ctx, work.Intent, work.Args, work.Token.String())
	return executor.Result{Code: p.Code, Detail: p.Detail, Payload: p.Payload}
}
