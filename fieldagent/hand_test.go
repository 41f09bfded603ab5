package fieldagent

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/apollo-11/apollo11/fieldagent/executor"
	"github.com/apollo-11/apollo11/fieldagent/gpio"
	"github.com/apollo-11/apollo11/wire"
)

// pinsUnderWatch is an owner on a simulated board, and an overseer that tells a loop
// which only collects.
func pinsUnderWatch(t *testing.T) (*gpio.Sim, *overseer) {
	t.Helper()
	sim, err := gpio.NewSim(gpio.SimOptions{Names: []string{"valve", "lamp", "local"}})
	if err != nil {
		t.Fatal(err)
	}
	off := gpio.Low
	pins, err := gpio.NewOwner(sim, []gpio.PinConfig{
		{Name: "valve", Mode: gpio.Output, Safe: &off, OnLoss: gpio.FallSafe}, {Name: "lamp", Mode: gpio.Output, Safe: &off},
		{Name: "local", Mode: gpio.Input}}, gpio.OwnerOptions{Local: "local", Autonomy: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() {
		if err := pins.Run(ctx); err != nil {
			t.Error(err)
		}
	})
	<-pins.Started()
	o := &overseer{pins: pins, loop: newLoop(), log: slog.New(slog.NewTextHandler(io.Discard, nil)), told: tellPins(pins)}
	running.Go(func() { o.watch(ctx) })
	running.Go(func() { o.ends(ctx) })
	t.Cleanup(func() {
		cancel()
		running.Wait()
	})
	return sim, o
}

// next is the next input of this kind that the loop is given.
func next[T executor.Input](t *testing.T, o *overseer) T {
	t.Helper()
	late := time.After(time.Hour)
	for {
		select {
		case in := <-o.loop.inputs:
			if in, ok := in.(T); ok {
				return in
			}
		case <-late:
			t.Fatal("no input")
		}
	}
}

func lease(t *testing.T, o *overseer, pin string, hold time.Duration, cause string) {
	t.Helper()
	if err := o.pins.Do(t.Context(), gpio.Drive{Pin: pin, Level: gpio.High, For: hold, Cause: cause}); err != nil {
		t.Fatal(err)
	}
}

// C8, C13: at the loss of the gateway those outputs fall that want it, and their
// leases end; at a stop all do.
func TestC13_FallsEndLeases(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sim, o := pinsUnderWatch(t)
		for n, pin := range []string{"valve", "lamp"} {
			cause := wire.Token{Shard: 1, Seq: uint64(n + 1), Rand: 7}.String()
			lease(t, o, pin, time.Hour, cause)
		}
		start := time.Now()
		if e := next[executor.LeaseEnded](t, o); e.Token.Seq != 1 || e.Why != wire.LeaseLoss || e.Level == nil || *e.Level || time.Since(start) > time.Minute {
			t.Errorf("%+v", e)
		}
		if sim.Level("valve") != gpio.Low || sim.Level("lamp") != gpio.High {
			t.Error("the wrong outputs fell")
		}
		o.stop(t.Context())
		if e := next[executor.LeaseEnded](t, o); e.Token.Seq != 2 || e.Why != wire.LeaseStopped || sim.Level("lamp") != gpio.Low {
			t.Errorf("%+v", e)
		}
	})
}

// An output that cannot fall is told as failed, and then as what came of it.
func TestC13_FailedEndIsToldAndThenItsSuccess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sim, o := pinsUnderWatch(t)
		cause := wire.Token{Shard: 1, Seq: 1, Rand: 7}.String()
		lease(t, o, "valve", time.Minute, cause)
		sim.Fail(func(string, gpio.Level) error { return errors.Join(gpio.ErrIO, errors.New("the wire is off")) })
		for range 3 {
			time.Sleep(20 * time.Second)
			o.pins.Heard()
		}
		if e := next[executor.LeaseEnded](t, o); e.Why != wire.LeaseFailed {
			t.Errorf("%+v", e)
		}
		time.Sleep(5 * time.Second)
		sim.Fail(nil)
		if e := next[executor.LeaseEnded](t, o); e.Why != wire.LeaseExpired || sim.Level("valve") != gpio.Low {
			t.Errorf("%+v", e)
		}
	})
}

// C15, I11: the switch and foreign hands are told when they change, and only then.
func TestC15_HandsAreToldWhenTheyChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sim, o := pinsUnderWatch(t)
		start := time.Now()
		sim.Drive("local", gpio.High)
		if h := next[executor.Hand](t, o); !h.Local || len(h.Foreign) != 0 || time.Since(start) > handPause {
			t.Errorf("%+v after %v", h, time.Since(start))
		}
		sim.Drive("lamp", gpio.High)
		if h := next[executor.Hand](t, o); !h.Local || len(h.Foreign) != 1 || h.Foreign[0] != (wire.Foreign{Pin: "lamp", Found: 1}) {
			t.Errorf("%+v", h)
		}
		time.Sleep(10 * time.Second)
		for n := len(o.loop.inputs); n > 0; n-- {
			if in, ok := (<-o.loop.inputs).(executor.Hand); ok {
				t.Errorf("%+v without a change", in)
			}
		}
		sim.Drive("local", gpio.Low)
		if h := next[executor.Hand](t, o); h.Local || len(h.Foreign) != 1 {
			t.Errorf("%+v", h)
		}
	})
}

// C15: what the loop starts after a long wait for its disk knows of the switch before
// the loop is told.
func TestC15_ClockKnowsTheLocalSwitchBeforeTheLoop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sim, o := pinsUnderWatch(t)
		now := o.clock(func() executor.Now { return executor.Now{Wall: 7} })
		for _, on := range []bool{true, false} {
			sim.Drive("local", gpio.Level(on))
			time.Sleep(2 * handPause)
			synctest.Wait()
			if n := now(); n.Local != on || n.Wall != 7 {
				t.Errorf("on %v: %+v", on, n)
			}
		}
	})
}

// B27: whoever is told of another map is told anew how its pins stand, also if they stand
// as before.
func TestB27_LevelsAreToldAnewWithAnotherMap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, o := pinsUnderWatch(t)
		before := next[executor.Levels](t, o)
		off := gpio.Low
		if err := o.pins.Reload(t.Context(), []gpio.PinConfig{
			{Name: "valve", Mode: gpio.Output, Safe: &off}, {Name: "lamp", Mode: gpio.Output, Safe: &off}, {Name: "local", Mode: gpio.Input}}); err != nil {
			t.Fatal(err)
		}
		if p := next[executor.Pins](t, o); len(p.Traits) != 3 {
			t.Errorf("%+v", p)
		}
		if now := next[executor.Levels](t, o); !slices.Equal(now.Levels, before.Levels) {
			t.Errorf("%x, before %x", now.Levels, before.Levels)
		}
	})
}
