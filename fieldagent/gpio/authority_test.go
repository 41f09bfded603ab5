package gpio_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/apollo-11/apollo11/fieldagent/gpio"
	rules "github.com/apollo-11/apollo11/fieldagent/lines"
	"github.com/apollo-11/apollo11/wire"
)

var (
	lampOut = gpio.PinConfig{Name: "lamp", Line: "GPIO3", Mode: gpio.Output, Safe: ptr(gpio.Low)}
	hornOut = gpio.PinConfig{Name: "horn", Line: "GPIO5", Mode: gpio.Output}
	key     = gpio.PinConfig{Name: "key", Line: "GPIO9", Mode: gpio.Input}
)

// safety.md 9: at the switch, what the line has really decides who has it.
func TestLocalSwitchLooksAtTheLines(t *testing.T) {
	inBubble(t, func(t *testing.T, b *gpio.Sim, start time.Time) {
		o, _ := runWith(t, b, gpio.OwnerOptions{Local: "key"}, valve, lampOut, hornOut, key)
		ctx := t.Context()
		must(t, o.Lease(ctx, "valve", gpio.High, time.Hour, "t1"))
		must(t, o.Lease(ctx, "lamp", gpio.High, time.Hour, "t2"))
		must(t, o.Set(ctx, "horn", gpio.High, "t3"))
		b.Drive("GPIO3", gpio.Low) // somebody switches the lamp off by hand
		b.Drive("GPIO9", gpio.High)
		time.Sleep(time.Second)
		want(t, "ends", ends(o, start), "lamp t2 low hand @250ms; valve t1 low local @250ms")
		n := len(b.Actuations())
		for _, err := range []error{o.Set(ctx, "lamp", gpio.Low, "t4"), o.Set(ctx, "horn", gpio.Low, "t4")} {
			if !errors.Is(err, gpio.ErrLocal) || !errors.Is(err, gpio.ErrNotDone) {
				t.Errorf("%v", err)
			}
		}
		if _, err := o.Safe(ctx, gpio.Safe{Cause: "t5"}); !errors.Is(err, gpio.ErrLocal) {
			t.Errorf("safe: %v", err)
		}
		time.Sleep(2 * time.Hour)
		if len(b.Actuations()) != n || o.Hands() != rules.HandsOn {
			t.Errorf("pins %s", timed(b, start))
		}
		// It is read right before a pin moves, not only now and then.
		b.Drive("GPIO9", gpio.Low)
		must(t, o.Set(ctx, "lamp", gpio.High, "t6"))
		b.Drive("GPIO9", gpio.High)
		if err := o.Set(ctx, "lamp", gpio.High, "t7"); !errors.Is(err, gpio.ErrLocal) {
			t.Errorf("%v", err)
		}
	})
}

// deafKey is a board whose switch can't be read.
type deafKey struct {
	*gpio.Sim
	deaf *atomic.Bool
}

type deafPin struct {
	gpio.Pin
	deaf *atomic.Bool
}

func (b deafKey) Open(name string, r gpio.Request) (gpio.Pin, error) {
	p, err := b.Sim.Open(name, r)
	if err == nil && name == "GPIO9" {
		p = deafPin{p, b.deaf}
	}
	return p, err
}

func (p deafPin) Get() (gpio.Level, error) {
	if p.deaf.Load() {
		return gpio.Low, gpio.ErrIO
	}
	return p.Pin.Get()
}

// D6: a switch that can't be read: nothing leaves a safe level, what leads there is
// done, and one that was on stays on.
func TestD6_SwitchThatCannotBeReadCountsTowardsCaution(t *testing.T) {
	inBubble(t, func(t *testing.T, b *gpio.Sim, start time.Time) {
		var deaf atomic.Bool
		o, _ := runWith(t, deafKey{b, &deaf}, gpio.OwnerOptions{Local: "key"}, valve, lampOut, key)
		ctx := t.Context()
		must(t, o.Lease(ctx, "valve", gpio.High, time.Second, "t1"))
		must(t, o.Set(ctx, "lamp", gpio.High, "t2"))
		deaf.Store(true)
		if err := o.Set(ctx, "lamp", gpio.High, "t3"); !errors.Is(err, gpio.ErrLocal) || !strings.Contains(err.Error(), "can't be read") {
			t.Errorf("%v", err)
		}
		must(t, o.Set(ctx, "lamp", gpio.Low, "t4"))
		time.Sleep(2 * time.Second)
		want(t, "ends", ends(o, start), "lamp t2 low replaced @0s; valve t1 low expired @1s")
		deaf.Store(false)
		must(t, o.Set(ctx, "lamp", gpio.High, "t5"))
		b.Drive("GPIO9", gpio.High)
		time.Sleep(time.Second)
		deaf.Store(true)
		if err := o.Set(ctx, "lamp", gpio.Low, "t6"); !errors.Is(err, gpio.ErrLocal) || o.Hands() != rules.HandsOn {
			t.Errorf("%v, %v", err, o.Hands())
		}
	})
}

// What is told of the pins is how they stand, and when that changes.
func TestTraitsAndLevels(t *testing.T) {
	b := newSim(t, gpio.SimOptions{})
	limited := valve
	limited.MaxOn, limited.OnLoss = time.Minute, gpio.FallSafe
	high := lampOut
	high.Safe = ptr(gpio.High)
	o, _ := run(t, b, limited, high, hornOut, key)
	for len(o.Changed()) > 0 {
		<-o.Changed()
	}
	must(t, o.Set(t.Context(), "horn", gpio.High, "t"))
	<-o.Changed()
	_, err := o.Safe(t.Context(), gpio.Safe{Lines: []wire.LineKey{wire.LineOf("GPIO3")}, Hold: true})
	must(t, err)
	<-o.Changed()
	got := o.Traits([]string{"valve", "lamp", "horn", "key", "nothing"})
	safe := wire.PinOutput | wire.PinHasSafe | wire.PinCommanded
	for i, want := range []wire.PinTraits{
		{Line: wire.LineOf("GPIO2"), Flags: safe | wire.PinOnLoss, MaxOnMs: 60_000},
		{Line: wire.LineOf("GPIO3"), Flags: safe | wire.PinSafeHigh | wire.PinHigh | wire.PinHeld},
		{Line: wire.LineOf("GPIO5"), Flags: wire.PinOutput | wire.PinCommanded | wire.PinHigh},
		{Line: wire.LineOf("GPIO9")}, {},
	} {
		if got[i] != want {
			t.Errorf("%d: %+v, want %+v", i, got[i], want)
		}
	}
	if l := fmt.Sprint(o.Levels()); l != "map[horn:2 lamp:3 valve:1]" {
		t.Errorf("levels %s", l)
	}
	if w := fmt.Sprint(o.Without()); w != "[horn]" {
		t.Errorf("without %s", w)
	}
	released, err := o.Release(t.Context(), nil, 0)
	must(t, err)
	if fmt.Sprint(released) != "[lamp]" {
		t.Errorf("released %v", released)
	}
}

// A driver that hangs keeps everybody waiting; what is towards safe is first after it.
func TestSafeOvertakesWhatWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newSim(t, gpio.SimOptions{})
		o, stop := run(t, b, valve, lampOut, hornOut)
		b.Fail(func(pin string, l gpio.Level) error {
			if pin == "GPIO5" {
				time.Sleep(time.Second)
			}
			return nil
		})
		ctx, cancel := context.WithCancel(t.Context())
		for i := range 10 {
			go func() { _ = o.Set(ctx, "horn", i%2 == 0, fmt.Sprint(i)) }()
		}
		synctest.Wait()
		start := time.Now()
		_, err := o.Safe(t.Context(), gpio.Safe{Cause: "safe"})
		must(t, err)
		if took := time.Since(start); took > time.Second {
			t.Errorf("it waited %v", took)
		}
		cancel()
		time.Sleep(time.Minute)
		must(t, stop())
	})
}

// A15: what is asked before a pin moves is asked then, not when the request came.
func TestA15_CheckComesRightBeforeTheDrive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newSim(t, gpio.SimOptions{})
		o, _ := run(t, b, lampOut, hornOut)
		b.Fail(func(pin string, l gpio.Level) error {
			if pin == "GPIO5" {
				time.Sleep(1500 * time.Millisecond)
			}
			return nil
		})
		limit := time.Now().Add(time.Second)
		go func() { _ = o.Set(t.Context(), "horn", gpio.High, "slow") }()
		synctest.Wait()
		err := o.Do(t.Context(), gpio.Drive{Pin: "lamp", Level: gpio.High, Check: func() error {
			if time.Now().After(limit) {
				return gpio.ErrLate
			}
			return nil
		}})
		if !errors.Is(err, gpio.ErrLate) || b.Level("GPIO3") == gpio.High {
			t.Errorf("%v", err)
		}
	})
}
