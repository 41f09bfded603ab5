package gpio_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/apollo-11/apollo11/fieldagent/gpio"
)

func TestWatchersSeeEveryEdgeUntilTheyLeave(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, start := newSim(t, gpio.SimOptions{}), time.Now()
		o, stop := run(t, b, gpio.PinConfig{Name: "door", Line: "GPIO4", Mode: gpio.Input, ActiveLow: true})
		first, leaveFirst := context.WithCancel(t.Context())
		one, err := o.Watch(first, "door")
		must(t, err)
		two, err := o.Watch(t.Context(), "door")
		must(t, err)
		b.Drive("GPIO4", gpio.High) // it was low, which is active
		time.Sleep(time.Second)
		b.Drive("GPIO4", gpio.High) // no change
		b.Drive("GPIO4", gpio.Low)
		synctest.Wait()
		for name, edges := range map[string]<-chan gpio.Edge{"one": one, "two": two} {
			for i, level := range []gpio.Level{gpio.Low, gpio.High} {
				at := time.Duration(i) * time.Second
				if e := <-edges; e != (gpio.Edge{Pin: "door", Level: level, Kernel: at, At: start.Add(at)}) {
					t.Errorf("%s, edge %d: %+v", name, i, e)
				}
			}
		}
		leaveFirst()
		if e, ok := <-one; ok {
			t.Errorf("after leaving: %+v", e)
		}
		b.Drive("GPIO4", gpio.High)
		if e := <-two; e.Level != gpio.Low {
			t.Errorf("the other: %+v", e)
		}
		must(t, stop())
		if e, ok := <-two; ok {
			t.Errorf("after the end: %+v", e)
		}
	})
}

func TestWatcherThatDoesNotReadMissesEdgesAndIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newSim(t, gpio.SimOptions{})
		o, _ := run(t, b, gpio.PinConfig{Name: "GPIO4", Mode: gpio.Input})
		edges, err := o.Watch(t.Context(), "GPIO4")
		must(t, err)
		const flood = 1000
		for i := range flood {
			b.Drive("GPIO4", i%2 == 0)
			synctest.Wait()
		}
		seen, missed := 0, uint64(0)
		for len(edges) > 0 {
			e := <-edges
			seen, missed = seen+1, missed+e.Missed
		}
		b.Drive("GPIO4", gpio.High)
		last := <-edges
		if got := uint64(seen) + missed + last.Missed + 1; got != flood+1 || last.Missed == 0 {
			t.Errorf("%d seen, %d missed, last %+v", seen, missed, last)
		}
	})
}

func TestWatchingIsBoundedAndOnlyForInputs(t *testing.T) {
	b := newSim(t, gpio.SimOptions{})
	o, _ := run(t, b)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	for range 16 {
		_, err := o.Watch(ctx, "GPIO4")
		must(t, err)
	}
	if _, err := o.Watch(ctx, "GPIO4"); !errors.Is(err, gpio.ErrBusy) {
		t.Errorf("the 17th: %v", err)
	}
	must(t, o.Set(ctx, "GPIO5", gpio.High, "t"))
	if _, err := o.Watch(ctx, "GPIO5"); !errors.Is(err, gpio.ErrUnsupported) {
		t.Errorf("an output: %v", err)
	}
	if _, err := o.Watch(ctx, "GPIO99"); !errors.Is(err, gpio.ErrNoSuchPin) {
		t.Errorf("no pin: %v", err)
	}
	cancel()
	if _, err := o.Watch(ctx, "GPIO4"); !errors.Is(err, gpio.ErrNotDone) {
		t.Errorf("ended context: %v", err)
	}
}

func TestBackEndWithoutEdgesSaysWhatToUse(t *testing.T) {
	o, _ := run(t, register(t, &wired{name: "GPIO17"}))
	if _, err := o.Watch(t.Context(), "GPIO17"); !errors.Is(err, gpio.ErrUnsupported) || !strings.Contains(err.Error(), "gpio: chardev") {
		t.Errorf("%v", err)
	}
}

// I11: an output that another program or a person has changed is found within a
// second, said with both levels, and not fought.
func TestI11_OutputChangedByAnotherHandIsFoundAndNotFought(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, start := newSim(t, gpio.SimOptions{}), time.Now()
		o, _ := run(t, b, valve, gpio.PinConfig{Name: "lamp", Line: "GPIO3", Mode: gpio.Output}, gpio.PinConfig{Name: "door", Line: "GPIO4", Mode: gpio.Input})
		b.Drive("GPIO4", gpio.High) // an input may do as it likes
		b.Drive("GPIO3", gpio.High) // nothing was commanded there
		must(t, o.Set(t.Context(), "valve", gpio.High, "t1"))
		time.Sleep(5500 * time.Millisecond)
		if f := o.Foreign(); len(f) != 0 {
			t.Errorf("nobody has done anything: %+v", f)
		}
		b.Drive("GPIO2", gpio.High) // which is off
		flips := b.Flips("GPIO2")
		time.Sleep(time.Second)
		f := o.Foreign()
		if len(f) != 1 || f[0] != (gpio.Foreign{Pin: "valve", Commanded: gpio.High, Found: gpio.Low, Since: start.Add(6 * time.Second)}) {
			t.Errorf("found %+v", f)
		}
		time.Sleep(time.Minute)
		if f := o.Foreign(); len(f) != 1 || !f[0].Since.Equal(start.Add(6*time.Second)) {
			t.Errorf("a minute later %+v", f)
		}
		if b.Flips("GPIO2") != flips {
			t.Error("it was fought")
		}
		must(t, o.Set(t.Context(), "valve", gpio.High, "t2"))
		if f := o.Foreign(); len(f) != 0 {
			t.Errorf("after the next command %+v", f)
		}
		b.Drive("GPIO2", gpio.High)
		time.Sleep(2 * time.Second)
		b.Drive("GPIO2", gpio.Low) // put back by the same hand
		time.Sleep(2 * time.Second)
		if f := o.Foreign(); len(f) != 0 {
			t.Errorf("after it was put back %+v", f)
		}
	})
}

func TestI11_ReadBackOfARealLineChangesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k, main := pi()
		o, _ := run(t, boardOn(t, k), gpio.PinConfig{Name: "pump", Line: "RELAY", Mode: gpio.Output, ActiveLow: true, Safe: ptr(gpio.Low)})
		must(t, o.Set(t.Context(), "pump", gpio.High, "t"))
		k.Probe(main.Lines[4], true)
		flips := k.Look(main.Lines[4]).Flips
		time.Sleep(10 * time.Second)
		if f := o.Foreign(); len(f) != 1 || f[0].Found != gpio.Low {
			t.Errorf("found %+v", f)
		}
		if l := k.Look(main.Lines[4]); l.Flips != flips || !l.Output {
			t.Errorf("line %+v", l)
		}
	})
}
