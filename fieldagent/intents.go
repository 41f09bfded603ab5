package fieldagent

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/apollo-11/apollo11/fieldagent/executor"
	"github.com/apollo-11/apollo11/fieldagent/gpio"
	"github.com/apollo-11/apollo11/fieldagent/intent"
	"github.com/apollo-11/apollo11/fieldagent/lines"
	"github.com/apollo-11/apollo11/wire"
)

// works is the intents of this agent as the loop and the core want them.
type works struct {
	registry *intent.Registry
	pins     *gpio.Owner
	log      *slog.Logger
	// late says whether the time of something has passed, by what is known now.
	late func(notAfter int64, towards bool) bool
	// left says how much is left of a length that has to end by a certain time.
	left func(endsBy int64, length time.Duration) time.Duration
}

func newWorks(pins *gpio.Owner, version string, cfg Config, log *slog.Logger) (*works, error) {
	r, err := intent.New(log, intent.BuiltIn(intent.Board{Pins: pins, Metrics: intent.MetricsOptions{Version: version, DataDir: cfg.Data},
		Reboot: intent.RebootOptions{Command: strings.Fields(cfg.RebootCommand), Root: cfg.root}}))
	if err != nil {
		return nil, err
	}
	return &works{registry: r, pins: pins, log: log, late: func(int64, bool) bool { return false },
		left: func(_ int64, length time.Duration) time.Duration { return length }}, nil
}

// Check implements Intents.
func (w *works) Check(name string, args wire.RawMap) executor.Verdict {
	parsed, act, refused := w.registry.Read(name, args)
	if refused != nil {
		return executor.Verdict{Code: refused.Code, Detail: refused.Detail}
	}
	v := w.accepted(act)
	v.Parsed, v.Lasts = parsed, act.Lasts
	return v
}

// accepted says what an instruction that the registry takes does with the board: its
// lines by what they are and not by their names, so that two names of one line do not
// overlap.
func (w *works) accepted(act wire.Act) executor.Verdict {
	v := executor.Verdict{Actuates: act.Moves(), Watch: act.Watch, Reboots: act.Reboots, Board: act.Holds == wire.HoldsBoard,
		Towards: act.Towards(w.safe), Hold: act.Traits.Safe, Release: act.Release}
	if act.Holds != wire.HoldsPins {
		if act.Release {
			v.Lines = w.lines(act.Pins)
		}
		return v
	}
	pins := act.Pins
	if len(pins) == 0 {
		if pins = w.withSafe(); len(pins) == 0 {
			return executor.Verdict{Code: wire.CodeUnsupported, Detail: "no output of this board has a safe level in agent.yaml: nothing was moved"}
		}
	}
	v.Lines, v.Safe = w.lines(pins), true
	for _, p := range pins {
		safe, ok := w.safe(p)
		v.Safe = v.Safe && ok
		if act.Pulse {
			v.Pulse = &executor.Pulse{Pin: p, Line: w.line(p), Off: !act.Level}
			if ok {
				v.Pulse.Off = safe
			}
		}
	}
	return v
}

func (w *works) lines(pins []string) (keys []wire.LineKey) {
	for _, p := range pins {
		keys = append(keys, w.line(p))
	}
	return keys
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
	key, err := w.pins.Line(pin)
	if err != nil {
		return wire.LineOf(pin)
	}
	return key
}

// Run implements Intents. Only what has been seen is told meanwhile; no intent
// knows how far it is.
func (w *works) Run(ctx context.Context, work executor.Work, tell Tell) executor.Result {
	began := time.Now()
	q := intent.Request{
		Args: work.Parsed, Cause: work.Token.String(), Order: work.Order, Hold: work.Hold,
		Check: func() error {
			if w.late(work.NotAfter, work.Towards) {
				if !w.late(work.NotAfter, true) {
					return gpio.ErrTimeDoubt // not late for certain: nothing is refused for good
				}
				return gpio.ErrLate
			}
			if !work.Towards && w.pins.Throws() != work.Throws {
				return gpio.ErrLocal // it was thrown meanwhile, and may be off again
			}
			if w.moved(work) {
				return gpio.ErrMapChanged
			}
			return nil
		},
		Left:  func(length time.Duration) time.Duration { return w.left(work.EndsBy, length) },
		Clock: func() int64 { return work.At + time.Since(began).Milliseconds() },
		Tell: func(values map[string]any) bool {
			payload, err := wire.EncodeMap(values, wire.MaxPayloadBytes)
			if err != nil {
				w.log.Error("what was seen can't be told", "intent", work.Intent, "err", err)
				return true // it would not get better
			}
			return tell(0, payload)
		},
	}
	if work.Towards {
		q.Lines = work.Lines
	}
	p := w.registry.Run(ctx, work.Intent, work.Args, q)
	r := executor.Result{Code: p.Code, Detail: p.Detail, Payload: p.Payload}
	if p.Lease != nil {
		r.Lease = &executor.Lease{Pin: p.Lease.Pin, Level: bool(p.Lease.After), Plain: p.Lease.Plain}
	}
	if e := p.Ended; e != nil {
		level := bool(e.Level)
		r.Ended = &executor.Ended{Pin: e.Pin, Why: e.Why, Level: &level}
	}
	return r
}

// moved reports whether a reload has given the pins of a work other lines than those that
// it holds. What leads to safe is driven by its lines.
func (w *works) moved(work executor.Work) bool {
	act := wire.ActOf(work.Intent, work.Parsed)
	return !work.Towards && act.Holds == wire.HoldsPins && len(act.Pins) > 0 && len(work.Lines) > 0 && !slices.Equal(w.lines(act.Pins), work.Lines)
}

// seed gives the owner of the pins what the journal knows: before anything is driven.
func (w *works) seed(ctx context.Context, core *executor.Core) error {
	var pulses []gpio.CutPulse
	for _, p := range core.Pulses() {
		pulses = append(pulses, gpio.CutPulse{Pin: p.Pin, Line: p.Line, Off: gpio.Level(p.Off)})
		w.log.Info("a pulse was cut by the end of the agent; its pin goes to its off level", "pin", p.Pin, "token", p.Token.String())
	}
	if err := w.pins.Seed(ctx, lines.Seed{Marks: core.Marks(), Holds: core.Holds(), Released: core.Released()}, pulses); err != nil {
		w.log.Error("a pulse of an earlier process could not be ended; it is tried again", "err", err)
		if errors.Is(err, gpio.ErrNotDone) {
			return err
		}
	}
	return nil
}
