package intent_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/apollo-11/apollo11/fieldagent/gpio"
	"github.com/apollo-11/apollo11/fieldagent/intent"
	"github.com/apollo-11/apollo11/wire"
)

// TestA19_ExecutorsKeepTheirRules plays what is no matter of a declaration: what every
// executor does when the owner of the pins refuses or fails, when it is over, and with
// what is certain to be refused.
func TestA19_ExecutorsKeepTheirRules(t *testing.T) {
	for _, d := range wire.Declarations() {
		for _, fault := range breaches(t, d, nil) {
			t.Errorf("%s: %s", d.Name, fault)
		}
	}
}

// breaches are the rules that an intent does not keep.
func breaches(t *testing.T, d wire.Declaration, wrong plant) []string {
	faults := map[string]bool{}
	if d.Reboots { // nothing boots here
		return nil
	}
	collect := func(before gpio.Level, all bool, f func(*play), pins []gpio.PinConfig) {
		synctest.Test(t, func(t *testing.T) {
			p := playOn(t, d, all, before, wrong, pins)
			f(p)
			for _, fault := range p.faults {
				faults[fault] = true
			}
		})
	}
	for _, all := range []bool{true, false} {
		pins := valves()
		pins[0].MaxOn = longest(d, all)
		for _, before := range []gpio.Level{gpio.Low, gpio.High} {
			for _, method := range []string{"Get", "Do", "Pulse", "Safe", "Release", "Watch"} {
				collect(before, all, func(p *play) { p.failing(method) }, pins)
			}
			collect(before, all, func(p *play) { p.afterwards(false) }, pins)
			collect(before, all, func(p *play) { p.afterwards(true) }, pins)
		}
		for what, pins := range refusalMaps(d, all) {
			collect(gpio.Low, all, func(p *play) { p.refusals(what) }, pins)
		}
		collect(gpio.Low, all, (*play).itsLines, towardsMap(d, all))
	}
	return slices.Sorted(maps.Keys(faults))
}

// failures are the errors of the owner, in the forms in which it gives them.
func failures() (list []error) {
	list = append(list, errors.New("something that nobody has thought of"))
	for _, err := range intent.PinErrors() {
		list = append(list, err, fmt.Errorf("set %s: %w", valve, err))
		if !errors.Is(err, gpio.ErrUnknown) {
			list = append(list, fmt.Errorf("%w: %w", gpio.ErrNotDone, err))
		}
	}
	return list
}

// failing lets a method of the owner fail in every way: the result says what that means,
// for by its code the gateway decides whether it is done again.
func (p *play) failing(method string) {
	for _, err := range failures() {
		p.w.fails, p.w.err, p.w.asked, p.w.drives, p.w.safes = method, err, 0, nil, nil
		r, _ := p.execute(7, nil)
		if p.w.asked == 0 {
			return // it does not need that
		}
		if method == "Get" && !p.d.Still {
			// Nothing has moved by that: what it means for what is to move is its own affair.
			p.fault(r.Code.Class() != wire.ClassSuccess || len(p.w.drives)+len(p.w.safes) > 0, "the owner's Get fails with %q, and it is %v without having driven anything", err, r.Code)
			continue
		}
		want := intent.PinCode(err)
		p.fault(r.Code == want, "the owner's %s fails with %q, which means %v (pinResult), and it says %v", method, err, want, r.Code)
		p.fault(r.Detail != "", "the owner's %s fails with %q, and it does not say why it is %v", method, err, r.Code)
		p.fault(p.w.asked == 1, "the owner's %s fails with %q, and it asks %d times: whether to try again is the gateway's affair", method, err, p.w.asked)
		if n := len(p.w.drives); n > 0 && errors.Is(err, gpio.ErrUnknown) && p.w.drives[n-1].Level == gpio.High {
			p.fault(r.Lease != nil, "the owner's %s fails with %q: the output may be away from safe, and its end is not told", method, err)
		}
	}
}

// longest is a limit of the pin map that no example is beyond.
func longest(d wire.Declaration, all bool) time.Duration {
	act := actOf(d, all)
	return 2 * max(act.MaxOn, act.Lasts, 10*time.Minute)
}

// afterwards is the time when the execution is over, beyond max_on of its arguments and of
// the pin map: what happens then is the owner's.
func (p *play) afterwards(newer bool) {
	limit := longest(p.d, p.all)
	r, _ := p.execute(7, nil)
	p.w.returned = true
	n := len(p.board.Actuations())
	if newer {
		time.Sleep(time.Minute)
		err := p.owner.Do(p.t.Context(), gpio.Drive{Pin: valve, Level: gpio.High, Cause: "newer", Order: 9})
		if newer = !errors.Is(err, gpio.ErrHeldSafe); newer {
			must(p.t, err)
		}
	}
	time.Sleep(limit - 30*time.Second) // the newer one ends 30 s later
	if newer {
		p.fault(p.board.Level(valve) == gpio.High, "it was over, and has driven %s after a newer command", valve)
	}
	time.Sleep(5 * time.Minute)
	synctest.Wait()
	p.fault(len(p.w.late) == 0, "it was over, with %v, and still asks the owner of the pins: %v", r.Code, p.w.late)
	for _, a := range p.board.Actuations()[n:] {
		p.fault(a.Cause == "newer" || strings.HasPrefix(a.Cause, "safe:"), "it was over, and %s was driven to %v by %q: what ends later is a lease of the owner", a.Pin, a.Level, a.Cause)
	}
	for _, x := range p.w.drives {
		p.fault(x.Order == 7 && x.Check != nil, "it drives without number or question: %s to %v", x.Pin, x.Level)
	}
	for _, x := range p.w.safes {
		p.fault(x.Order == 7 && x.Check != nil, "it drives the safe level without number or question")
	}
}

// What the test above is for: faults of gpio.write that its declaration does not show.
func TestA19_WrongExecutorsAreNoticed(t *testing.T) {
	run := func(f func(pins intent.Pins, right intent.Executor, ctx context.Context, r intent.Request) intent.Result) plant {
		return func(pins intent.Pins, right intent.Executor) intent.Executor {
			return planted{Executor: right, run: func(ctx context.Context, r intent.Request) intent.Result { return f(pins, right, ctx, r) }}
		}
	}
	for what, c := range map[string]struct {
		noticed string
		wrong   plant
	}{
		"it drives the level that the pin has": {"moves a pin that it holds: false, declared true", run(func(pins intent.Pins, right intent.Executor, ctx context.Context, r intent.Request) intent.Result {
			a := r.Args.(wire.GPIOWrite)
			now, err := pins.Get(ctx, a.Pin)
			if err == nil {
				a.Level = bool(now)
			}
			r.Args = a
			return right.Run(ctx, r)
		})},
		"it says another level than it drives": {"its answer does not say that GPIO17 has the level 1", run(func(_ intent.Pins, right intent.Executor, ctx context.Context, r intent.Request) intent.Result {
			result := right.Run(ctx, r)
			if result.Values != nil {
				result.Values["level"] = uint64(0)
			}
			return result
		})},
		"every failure is io": {"which means unknown (pinResult), and it says io", run(func(_ intent.Pins, right intent.Executor, ctx context.Context, r intent.Request) intent.Result {
			result := right.Run(ctx, r)
			if c := result.Code; c == wire.CodeUnknown || c == wire.CodeFailed || c == wire.CodeBusy {
				result.Code = wire.CodeIO
			}
			return result
		})},
		"a lease of unknown outcome is forgotten": {"its end is not told", run(func(_ intent.Pins, right intent.Executor, ctx context.Context, r intent.Request) intent.Result {
			result := right.Run(ctx, r)
			if result.Code == wire.CodeUnknown {
				result.Lease = nil
			}
			return result
		})},
		"it tries again by itself": {"asks 2 times", run(func(_ intent.Pins, right intent.Executor, ctx context.Context, r intent.Request) intent.Result {
			result := right.Run(ctx, r)
			if result.Code == wire.CodeBusy {
				result = right.Run(ctx, r)
			}
			return result
		})},
		"it keeps the time itself": {"what ends later is a lease of the owner", run(func(pins intent.Pins, right intent.Executor, ctx context.Context, r intent.Request) intent.Result {
			a := r.Args.(wire.GPIOWrite)
			if a.MaxOn > 0 {
				time.AfterFunc(a.MaxOn, func() { _ = pins.Do(context.Background(), gpio.Drive{Pin: a.Pin, Cause: r.Cause}) })
				a.MaxOn, r.Args = 0, nil
			}
			r.Args = a
			return right.Run(ctx, r)
		})},
		"it keeps the time of the pin map itself": {"still asks the owner of the pins: [Do]", run(func(pins intent.Pins, right intent.Executor, ctx context.Context, r intent.Request) intent.Result {
			a := r.Args.(wire.GPIOWrite)
			c, _ := pins.Config(a.Pin)
			time.AfterFunc(c.MaxOn, func() { _ = pins.Do(context.Background(), gpio.Drive{Pin: a.Pin, Cause: r.Cause}) })
			return right.Run(ctx, r)
		})},
		"it drives the lines that its name means now": {"drives others (Request.Lines)", run(func(_ intent.Pins, right intent.Executor, ctx context.Context, r intent.Request) intent.Result {
			r.Lines = nil
			return right.Run(ctx, r)
		})},
		"it checks nothing": {"its Check takes an input", func(_ intent.Pins, right intent.Executor) intent.Executor {
			return planted{Executor: right, check: func(wire.Args) *intent.Result { return nil }}
		}},
		"it moves the pin to see whether it can": {"its Check of its own example asks the pins", func(pins intent.Pins, right intent.Executor) intent.Executor {
			return planted{Executor: right, check: func(a wire.Args) *intent.Result {
				_ = pins.Do(context.Background(), gpio.Drive{Pin: a.(wire.GPIOWrite).Pin, Level: gpio.High})
				return right.Check(a)
			}}
		}},
	} {
		d, _ := wire.Declared(wire.IntentGPIOWrite)
		faults := strings.Join(append(breaches(t, d, c.wrong), misfits(t, d, c.wrong)...), "\n")
		if !strings.Contains(faults, c.noticed) {
			t.Errorf("%s was planted, and nobody noticed %q, but:\n%s", what, c.noticed, faults)
		}
	}
}
