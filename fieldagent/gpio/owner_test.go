package gpio_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/apollo-11/apollo11/fieldagent/gpio"
)

// run starts an owner and returns it with a function that stops it and waits.
func run(t *testing.T, b gpio.Board, pins ...gpio.PinConfig) (o *gpio.Owner, stop func() error) {
	t.Helper()
	return runWith(t, b, gpio.OwnerOptions{}, pins...)
}

func runWith(t *testing.T, b gpio.Board, opts gpio.OwnerOptions, pins ...gpio.PinConfig) (o *gpio.Owner, stop func() error) {
	t.Helper()
	o, err := gpio.NewOwner(b, pins, opts)
	must(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- o.Run(ctx) }()
	var once sync.Once
	var result error
	stop = func() error {
		once.Do(func() { cancel(); result = <-ended })
		return result
	}
	t.Cleanup(func() { _ = stop() })
	select {
	case <-o.Started():
	case err := <-ended:
		t.Fatalf("the owner did not start: %v", err)
	}
	return o, stop
}

func trail(b *gpio.Sim) string {
	var s []string
	for _, a := range b.Actuations() {
		s = append(s, fmt.Sprintf("%s %v %s", a.Pin, a.Level, a.Cause))
	}
	return strings.Join(s, "; ")
}

func TestOwnerSetsAndRemembers(t *testing.T) {
	b := newSim(t, gpio.SimOptions{})
	o, stop := run(t, b)
	ctx := t.Context()
	must(t, o.Set(ctx, "GPIO17", gpio.High, "t1"))
	b.Drive("GPIO17", gpio.Low) // an output is never read back
	if level, err := o.Get(ctx, "GPIO17"); level != gpio.High || err != nil {
		t.Errorf("output: %v, %v", level, err)
	}
	b.Drive("GPIO4", gpio.High)
	if level, err := o.Get(ctx, "GPIO4"); level != gpio.High || err != nil {
		t.Errorf("input: %v, %v", level, err)
	}
	must(t, o.Set(ctx, "GPIO4", gpio.Low, "t2")) // what was read becomes an output
	must(t, stop())
	if got := trail(b); got != "GPIO17 high t1; GPIO4 low t2" {
		t.Errorf("actuations: %s", got)
	}
	if err := o.Set(ctx, "GPIO17", gpio.Low, "late"); !errors.Is(err, gpio.ErrNotDone) {
		t.Errorf("set after the end: %v, want ErrNotDone", err)
	}
	for range 2 { // I7: the pins were given back
		p, err := b.Open("GPIO17", gpio.Request{Mode: gpio.Output})
		must(t, err)
		must(t, p.Close())
	}
}

func TestSafeLevelsAtStartAtStopAndOnDemand(t *testing.T) {
	b := newSim(t, gpio.SimOptions{})
	low, high := gpio.Low, gpio.High
	o, stop := run(t, b, gpio.PinConfig{Name: "GPIO20", Mode: gpio.Output, Safe: &high},
		gpio.PinConfig{Name: "GPIO2", Mode: gpio.Output, Safe: &low},
		gpio.PinConfig{Name: "GPIO3", Mode: gpio.Output})
	ctx := t.Context()
	must(t, o.Set(ctx, "GPIO2", gpio.High, "t1"))
	must(t, o.Set(ctx, "GPIO3", gpio.High, "t2"))
	done, err := o.Safe(ctx, gpio.Safe{Cause: "safe:link"})
	must(t, err)
	if got := fmt.Sprint(done); got != "{[GPIO2 GPIO20] [] [GPIO3]}" {
		t.Errorf("done %s", got)
	}
	must(t, stop())
	want := "GPIO2 low safe:start; GPIO20 high safe:start; GPIO2 high t1; GPIO3 high t2; " +
		"GPIO2 low safe:link; GPIO20 high safe:link; GPIO2 low safe:stop; GPIO20 high safe:stop"
	if got := trail(b); got != want {
		t.Errorf("actuations\n%s\nwant\n%s", got, want)
	}
}

// I8: starting and stopping moves nothing that has no safe level.
func TestI8_StartAndStopMoveNothing(t *testing.T) {
	b := newSim(t, gpio.SimOptions{})
	_, stop := run(t, b, gpio.PinConfig{Name: "GPIO3", Mode: gpio.Output}, gpio.PinConfig{Name: "GPIO4", Mode: gpio.Input})
	must(t, stop())
	if got := trail(b); got != "" {
		t.Errorf("actuations: %s", got)
	}
}

func TestConfigurationFaultsAreReportedTogether(t *testing.T) {
	b := newSim(t, gpio.SimOptions{})
	low := gpio.Low
	_, err := gpio.NewOwner(b, []gpio.PinConfig{
		{Name: "GPIO1", Mode: gpio.Output}, {Name: "GPIO1", Mode: gpio.Input},
		{Name: "GPIO99", Mode: gpio.Output}, {Name: "GPIO2"}, {Name: "GPIO3", Mode: gpio.Input, Safe: &low},
	}, gpio.OwnerOptions{})
	for _, want := range []string{`"GPIO1" is listed twice`, `no such pin "GPIO99"`, `"GPIO2": it must be`, `"GPIO3": an input can't`} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q in it", err, want)
		}
	}
}

func TestConfiguredInputIsNotDriven(t *testing.T) {
	b := newSim(t, gpio.SimOptions{})
	o, _ := run(t, b, gpio.PinConfig{Name: "GPIO4", Mode: gpio.Input}, gpio.PinConfig{Name: "GPIO5", Mode: gpio.Output})
	if _, err := o.Resolve("GPIO4", gpio.Output); !errors.Is(err, gpio.ErrUnsupported) {
		t.Errorf("resolve: %v", err)
	}
	if err := o.Set(t.Context(), "GPIO4", gpio.High, "x"); !errors.Is(err, gpio.ErrUnsupported) {
		t.Errorf("set: %v", err)
	}
	for name, mode := range map[string]gpio.Mode{"GPIO4": gpio.Input, "GPIO5": gpio.Output} {
		if got, err := o.Resolve(name, mode); got != name || err != nil {
			t.Errorf("resolve %s as %v: %q, %v", name, mode, got, err)
		}
	}
	if _, err := o.Resolve("GPIO50", gpio.Input); !errors.Is(err, gpio.ErrNoSuchPin) {
		t.Errorf("resolve: %v", err)
	}
}

// A pin that hangs must not make another request late: that one is given up
// before it was begun, and never carried out afterwards.
func TestHungPinIsUnknownAndWaitersAreNotDone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newSim(t, gpio.SimOptions{})
		hung := make(chan struct{})
		b.Fail(func(pin string, _ gpio.Level) error {
			if pin == "GPIO1" {
				<-hung
			}
			return nil
		})
		o, stop := run(t, b)
		first := make(chan error, 1)
		go func() { first <- o.Set(t.Context(), "GPIO1", gpio.High, "first") }()
		synctest.Wait()

		short, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		if err := o.Set(short, "GPIO2", gpio.High, "second"); !errors.Is(err, gpio.ErrNotDone) || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("waiting set with a deadline: %v, want ErrNotDone", err)
		}
		if err := o.Set(t.Context(), "GPIO2", gpio.High, "third"); !errors.Is(err, gpio.ErrNotDone) {
			t.Errorf("waiting set: %v, want ErrNotDone", err)
		}
		if err := <-first; !errors.Is(err, gpio.ErrUnknown) {
			t.Errorf("hung set: %v, want ErrUnknown", err)
		}
		close(hung)
		synctest.Wait()
		must(t, stop())
		if got := trail(b); got != "GPIO1 high first" {
			t.Errorf("actuations: %s", got)
		}
	})
}

func TestCancelledRequestIsNotCarriedOut(t *testing.T) {
	b := newSim(t, gpio.SimOptions{})
	o, _ := run(t, b)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for range 100 {
		if err := o.Set(ctx, "GPIO1", gpio.High, "x"); !errors.Is(err, gpio.ErrNotDone) || !errors.Is(err, context.Canceled) {
			t.Fatalf("set: %v, want ErrNotDone", err)
		}
	}
	if got := trail(b); got != "" {
		t.Errorf("actuations: %s", got)
	}
}

func TestManyCallersAreServedOneAtATime(t *testing.T) {
	b := newSim(t, gpio.SimOptions{})
	o, _ := run(t, b)
	var inside, most int
	b.Fail(func(string, gpio.Level) error { // would race if two were inside
		inside++
		most = max(most, inside)
		inside--
		return nil
	})
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for n := range 50 {
				if err := o.Set(t.Context(), fmt.Sprintf("GPIO%d", i), n%2 == 0, "x"); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if n := len(b.Actuations()); n != 400 || most != 1 {
		t.Errorf("%d actuations, %d at a time", n, most)
	}
}
