package gpio_test

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/apollo-11/apollo11/fieldagent/gpio"
)

// I8: a reload moves nothing that stays, and lines come and go at their safe
// levels.
func TestI8_ReloadTouchesOnlyWhatChanges(t *testing.T) {
	inBubble(t, func(t *testing.T, b *gpio.Sim, start time.Time) {
		b.Drive("GPIO5", gpio.High)
		lamp := gpio.PinConfig{Name: "lamp", Line: "GPIO3", Mode: gpio.Output, Safe: ptr(gpio.Low)}
		fan := gpio.PinConfig{Name: "fan", Line: "GPIO5", Mode: gpio.Output, ActiveLow: true, Safe: ptr(gpio.Low)}
		door := gpio.PinConfig{Name: "door", Line: "GPIO4", Mode: gpio.Input}
		o, _ := run(t, b, valve, lamp, door)
		ctx := t.Context()
		must(t, o.Lease(ctx, "valve", gpio.High, time.Hour, "t1"))
		must(t, o.Set(ctx, "lamp", gpio.High, "t2"))
		edges, err := o.Watch(ctx, "door")
		must(t, err)

		renamed := valve
		renamed.Name, renamed.OnLoss = "inlet", gpio.FallSafe
		must(t, o.Reload(ctx, []gpio.PinConfig{fan, renamed, door})) // without the lamp
		if got := strings.Join(o.Names(), " "); got != "fan inlet door" {
			t.Errorf("names %s", got)
		}
		if c, ok := o.Config("inlet"); !ok || c.OnLoss != gpio.FallSafe {
			t.Errorf("configuration %+v", c)
		}
		if _, ok := o.Config("valve"); ok {
			t.Error("the old name is still there")
		}
		b.Drive("GPIO4", gpio.High)
		if e := <-edges; e.Pin != "door" {
			t.Errorf("edge %+v", e)
		}
		if b.Flips("GPIO5") != 1 {
			t.Error("the new active-low output has clicked")
		}
		time.Sleep(2 * time.Hour)
		want(t, "ends", ends(o, start), "lamp t2 low reload @0s; inlet t1 low expired @1h0m0s")
		want(t, "pins", timed(b, start), "GPIO2 low safe:start @0s; GPIO3 low safe:start @0s; GPIO2 high t1 @0s; GPIO3 high t2 @0s; "+
			"GPIO5 low safe:reload @0s; GPIO3 low safe:reload @0s; GPIO2 low safe:lease:t1 @1h0m0s")
		p, err := b.Open("GPIO3", gpio.Request{Mode: gpio.Look})
		must(t, err)
		must(t, p.Close())
	})
}

func TestReloadIsAllOrNothing(t *testing.T) {
	inBubble(t, func(t *testing.T, b *gpio.Sim, start time.Time) {
		lamp := gpio.PinConfig{Name: "lamp", Line: "GPIO3", Mode: gpio.Output, Safe: ptr(gpio.Low)}
		o, _ := run(t, b, valve, lamp)
		ctx := t.Context()
		must(t, o.Lease(ctx, "valve", gpio.High, time.Hour, "t1"))
		b.Hold("GPIO7", "spi")
		asInput := gpio.PinConfig{Name: "lamp", Line: "GPIO3", Mode: gpio.Input}
		unsafe := valve
		unsafe.Safe = nil
		for name, c := range map[string]struct {
			pins []gpio.PinConfig
			says []string
		}{
			"faults in the map": {[]gpio.PinConfig{valve, {Name: "x", Line: "GPIO99", Mode: gpio.Output}, {Name: "y"}}, []string{`"GPIO99"`, `"y"`}},
			"a line in use": {[]gpio.PinConfig{asInput, {Name: "new", Line: "GPIO6", Mode: gpio.Output, Safe: ptr(gpio.Low)},
				{Name: "spi", Line: "GPIO7", Mode: gpio.Output}}, []string{`pin "spi"`, `by "spi"`}},
			"no map":                      {nil, []string{"restart the agent"}},
			"no safe level under a lease": {[]gpio.PinConfig{unsafe, lamp}, []string{`pin "valve" is on until`}},
		} {
			err := o.Reload(ctx, c.pins)
			for _, says := range c.says {
				if err == nil || !strings.Contains(err.Error(), says) {
					t.Errorf("%s: %v, want %q", name, err, says)
				}
			}
			if got := strings.Join(o.Names(), " "); got != "valve lamp" {
				t.Errorf("%s: names %s", name, got)
			}
			must(t, o.Set(ctx, "lamp", gpio.Low, "t"))
			p, err := b.Open("GPIO6", gpio.Request{Mode: gpio.Look})
			must(t, err)
			must(t, p.Close())
		}
		time.Sleep(2 * time.Hour)
		want(t, "ends", ends(o, start), "valve t1 low expired @1h0m0s")
		if b.Flips("GPIO2") != 3 {
			t.Errorf("%d edges", b.Flips("GPIO2"))
		}
	})
}

func TestReloadOfAnOutputThatCannotBeMadeSafeIsRefused(t *testing.T) {
	b := newSim(t, gpio.SimOptions{})
	lamp := gpio.PinConfig{Name: "lamp", Line: "GPIO3", Mode: gpio.Output, Safe: ptr(gpio.Low)}
	o, _ := run(t, b, valve, lamp)
	must(t, o.Set(t.Context(), "lamp", gpio.High, "t"))
	b.Fail(func(pin string, _ gpio.Level) error {
		if pin == "GPIO3" {
			return gpio.ErrIO
		}
		return nil
	})
	fan := gpio.PinConfig{Name: "fan", Line: "GPIO5", Mode: gpio.Output}
	if err := o.Reload(t.Context(), []gpio.PinConfig{valve, fan}); !errors.Is(err, gpio.ErrIO) || !strings.Contains(err.Error(), `"lamp" can't be set to its safe level`) {
		t.Errorf("%v", err)
	}
	if _, ok := o.Config("lamp"); !ok {
		t.Error("it was forgotten while it is on")
	}
	b.Fail(nil)
	must(t, o.Reload(t.Context(), []gpio.PinConfig{valve, fan}))
	if b.Level("GPIO3") != gpio.Low {
		t.Error("it was left on")
	}
}

func TestReloadChangesHowALineIsUsed(t *testing.T) {
	b := newSim(t, gpio.SimOptions{})
	o, _ := run(t, b, valve)
	must(t, o.Set(t.Context(), "valve", gpio.High, "t"))
	normal := valve
	normal.ActiveLow = false
	must(t, o.Reload(t.Context(), []gpio.PinConfig{normal}))
	if b.Level("GPIO2") != gpio.Low {
		t.Error("it is not at the safe level of the new polarity")
	}
	in := gpio.PinConfig{Name: "valve", Line: "GPIO2", Mode: gpio.Input}
	must(t, o.Reload(t.Context(), []gpio.PinConfig{in}))
	if err := o.Set(t.Context(), "valve", gpio.High, "t"); !errors.Is(err, gpio.ErrUnsupported) {
		t.Errorf("set of an input: %v", err)
	}
}

func TestNewLimitHoldsForWhatIsOnAlready(t *testing.T) {
	inBubble(t, func(t *testing.T, b *gpio.Sim, start time.Time) {
		lamp := gpio.PinConfig{Name: "lamp", Line: "GPIO3", Mode: gpio.Output, Safe: ptr(gpio.Low)}
		o, _ := run(t, b, valve, lamp)
		must(t, o.Lease(t.Context(), "valve", gpio.High, time.Hour, "t1"))
		must(t, o.Set(t.Context(), "lamp", gpio.High, "t2"))
		limited, short := valve, lamp
		limited.MaxOn, short.MaxOn = time.Minute, time.Second
		must(t, o.Reload(t.Context(), []gpio.PinConfig{limited, short}))
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		want(t, "ends", ends(o, start), "lamp t2 low expired @1s; valve t1 low expired @1m0s")
	})
}

// A line that somebody else has can be taken out of the map, as whoever reads of it in
// the log will do.
func TestReloadTakesOutALineThatSomebodyElseHas(t *testing.T) {
	inBubble(t, func(t *testing.T, b *gpio.Sim, start time.Time) {
		lamp := gpio.PinConfig{Name: "lamp", Line: "GPIO3", Mode: gpio.Output, Safe: ptr(gpio.Low)}
		b.Hold("GPIO3", "spi0")
		o, _ := run(t, b, valve, lamp)
		if len(o.Missing()) != 1 {
			t.Fatalf("missing %v", o.Missing())
		}
		must(t, o.Reload(t.Context(), []gpio.PinConfig{valve}))
		time.Sleep(2 * time.Second)
		if len(o.Missing()) != 0 {
			t.Errorf("missing %v", o.Missing())
		}
	})
}
