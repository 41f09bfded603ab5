package gpio_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/apollo-11/apollo11/fieldagent/gpio"
	core "github.com/apollo-11/apollo11/fieldagent/lines"
	"github.com/apollo-11/apollo11/wire"
)

// What an earlier process knew is in force before anything else: marks, holds and by whom,
// pulses that were cut.
func TestSeedIsInForce(t *testing.T) {
	b := newSim(t, gpio.SimOptions{})
	o, _ := run(t, b, valve, lampOut, hornOut)
	ctx := t.Context()
	must(t, o.Set(ctx, "horn", gpio.High, "t"))
	line := wire.LineOf("GPIO3")
	must(t, o.Seed(ctx, core.Seed{Marks: map[wire.LineKey]uint64{wire.LineOf("GPIO2"): 7}, Holds: map[wire.LineKey]uint64{line: 5}},
		[]gpio.CutPulse{{Pin: "horn", Line: wire.LineOf("GPIO5"), Off: gpio.Low}}))
	if b.Level("GPIO5") != gpio.Low {
		t.Error("the pulse goes on")
	}
	if err := o.Do(ctx, gpio.Drive{Pin: "valve", Level: gpio.High, Order: 6}); !errors.Is(err, gpio.ErrSuperseded) {
		t.Errorf("what is older than its mark: %v", err)
	}
	on := gpio.Drive{Pin: "lamp", Level: gpio.High, Order: 9}
	if err := o.Do(ctx, on); !errors.Is(err, gpio.ErrHeldSafe) {
		t.Errorf("what is held: %v", err)
	}
	if pins, err := o.Release(ctx, nil, 4); err != nil || len(pins) != 0 || !errors.Is(o.Do(ctx, on), gpio.ErrHeldSafe) {
		t.Errorf("an older release has released %v, %v", pins, err)
	}
	if pins, err := o.Release(ctx, nil, 6); err != nil || !slices.Equal(pins, []string{"lamp"}) || o.Do(ctx, on) != nil {
		t.Errorf("a newer one has released %v, %v", pins, err)
	}
}

// What is newer on one line hides nothing of another that could not be driven, and is no
// failure if the others were.
func TestSafeTellsWhatIsNotSafe(t *testing.T) {
	b := newSim(t, gpio.SimOptions{})
	o, _ := run(t, b, valve, lampOut, gpio.PinConfig{Name: "fan", Line: "GPIO7", Mode: gpio.Output, Safe: ptr(gpio.High)}, hornOut)
	ctx := t.Context()
	must(t, o.Do(ctx, gpio.Drive{Pin: "valve", Level: gpio.High, Order: 8}))
	done, err := o.Safe(ctx, gpio.Safe{Cause: "t", Order: 7})
	if err != nil || !slices.Equal(done.Newer, []string{"valve"}) || !slices.Equal(done.Pins, []string{"lamp", "fan"}) || !slices.Equal(done.Without, []string{"horn"}) {
		t.Errorf("%+v, %v", done, err)
	}
	b.Fail(func(pin string, _ gpio.Level) error {
		if pin == "GPIO3" {
			return gpio.ErrIO
		}
		return nil
	})
	done, err = o.Safe(ctx, gpio.Safe{Cause: "t", Order: 7})
	if !errors.Is(err, gpio.ErrIO) || errors.Is(err, gpio.ErrSuperseded) || !slices.Equal(done.Pins, []string{"fan"}) {
		t.Errorf("one could not be driven: %+v, %v", done, err)
	}
	b.Fail(nil)
	done, err = o.Safe(ctx, gpio.Safe{Cause: "t", Order: 7, Lines: []wire.LineKey{wire.LineOf("GPIO2")}})
	if !errors.Is(err, gpio.ErrSuperseded) {
		t.Errorf("newer alone: %+v, %v", done, err)
	}
	if _, err = o.Safe(ctx, gpio.Safe{Cause: "t", Lines: []wire.LineKey{wire.LineOf("GPIO5")}}); !errors.Is(err, gpio.ErrUnsupported) {
		t.Errorf("without a safe level: %v", err)
	}
	if _, err = o.Safe(ctx, gpio.Safe{Cause: "t", Lines: []wire.LineKey{wire.LineOf("nowhere")}}); !errors.Is(err, gpio.ErrNoSuchPin) {
		t.Errorf("nowhere: %v", err)
	}
}

// What is held, and is not any more, shows in the levels at once.
func TestHoldsShowInTheLevels(t *testing.T) {
	b := newSim(t, gpio.SimOptions{})
	o, _ := run(t, b, lampOut)
	show := func(what string, want wire.Level) {
		t.Helper()
		late := time.After(10 * time.Second)
		for o.Levels()["lamp"] != want {
			select {
			case <-o.Changed():
			case <-late:
				t.Fatalf("%s: the lamp is told as %v", what, o.Levels()["lamp"])
			}
		}
	}
	show("at the start", wire.LevelLow)
	_, err := o.Safe(t.Context(), gpio.Safe{Cause: "t", Hold: true})
	must(t, err)
	show("after a gpio.safe", wire.LevelHeld)
	_, err = o.Release(t.Context(), nil, 0)
	must(t, err)
	show("after its release", wire.LevelLow)
	o.Hold([]wire.LineKey{wire.LineOf("GPIO3")})
	show("by the gateway's word", wire.LevelHeld)
	_, err = o.Release(t.Context(), nil, 0)
	must(t, err)
	show("and its release", wire.LevelLow)
	must(t, o.Seed(t.Context(), core.Seed{Holds: map[wire.LineKey]uint64{wire.LineOf("GPIO3"): 5}}, nil))
	show("by an earlier process", wire.LevelHeld)
}
