package gpio_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/apollo-11/apollo11/fieldagent/gpio"
)

// valve is an output on GPIO2 that is on when the line is low.
var valve = gpio.PinConfig{Name: "valve", Line: "GPIO2", Mode: gpio.Output, ActiveLow: true, Safe: ptr(gpio.Low)}

// timed lists what happened at the pins since start, with times.
func timed(b *gpio.Sim, start time.Time) string {
	var s []string
	for _, a := range b.Actuations() {
		s = append(s, fmt.Sprintf("%s %v %s @%v", a.Pin, a.Level, a.Cause, time.Duration(a.At-start.UnixNano())))
	}
	return strings.Join(s, "; ")
}

// ends lists the ends of leases that wait, with times.
func ends(o *gpio.Owner, start time.Time) string {
	var s []string
	for {
		select {
		case e, ok := <-o.LeaseEnds():
			if !ok {
				return strings.Join(append(s, "closed"), "; ")
			}
			s = append(s, fmt.Sprintf("%s %s %v %v @%v", e.Pin, e.Cause, e.Level, e.Why, e.At.Sub(start)))
		default:
			return strings.Join(s, "; ")
		}
	}
}

// inBubble runs a test on a simulated board with virtual time.
func inBubble(t *testing.T, f func(t *testing.T, b *gpio.Sim, start time.Time)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { f(t, newSim(t, gpio.SimOptions{}), time.Now()) })
}

func want(t *testing.T, what, got, want string) {
	t.Helper()
	if got != want {
		t.Errorf("%s\n%s\nwant\n%s", what, got, want)
	}
}

// I1: "on for ten minutes" ends by itself.
func TestI1_LeaseEndsAtItsTimeWithoutAnybody(t *testing.T) {
	inBubble(t, func(t *testing.T, b *gpio.Sim, start time.Time) {
		o, stop := run(t, b, valve)
		must(t, o.Lease(t.Context(), "valve", gpio.High, 10*time.Minute, "t1"))
		time.Sleep(10*time.Minute - time.Millisecond)
		if synctest.Wait(); b.Level("GPIO2") != gpio.Low {
			t.Error("off too early")
		}
		time.Sleep(time.Hour)
		want(t, "ends", ends(o, start), "valve t1 low expired @10m0s")
		must(t, stop())
		want(t, "pins", timed(b, start), "GPIO2 low safe:start @0s; GPIO2 high t1 @0s; GPIO2 low safe:lease:t1 @10m0s; GPIO2 low safe:stop @1h9m59.999s")
		want(t, "ends", ends(o, start), "closed")
	})
}

func TestLaterCommandReplacesALeaseWithoutAnEdge(t *testing.T) {
	inBubble(t, func(t *testing.T, b *gpio.Sim, start time.Time) {
		o, _ := run(t, b, valve)
		ctx := t.Context()
		must(t, o.Lease(ctx, "valve", gpio.High, time.Minute, "t1"))
		time.Sleep(30 * time.Second)
		flips := b.Flips("GPIO2")
		must(t, o.Lease(ctx, "valve", gpio.High, time.Minute, "t2"))
		time.Sleep(40 * time.Second)
		must(t, o.Set(ctx, "valve", gpio.High, "t3")) // for good
		time.Sleep(time.Hour)
		if b.Flips("GPIO2") != flips {
			t.Errorf("%d edges", b.Flips("GPIO2")-flips)
		}
		must(t, o.Lease(ctx, "valve", gpio.High, time.Minute, "t4"))
		must(t, o.Set(ctx, "valve", gpio.Low, "t5"))
		want(t, "ends", ends(o, start), "valve t1 high replaced @30s; valve t2 high replaced @1m10s; valve t3 high replaced @1h1m10s; valve t4 low replaced @1h1m10s")
	})
}

func TestLeaseNeedsASafeLevelAndKeepsToItsLimits(t *testing.T) {
	b := newSim(t, gpio.SimOptions{})
	limited := valve
	limited.MaxOn = time.Minute
	o, _ := run(t, b, limited, gpio.PinConfig{Name: "lamp", Line: "GPIO3", Mode: gpio.Output}, gpio.PinConfig{Name: "door", Line: "GPIO4", Mode: gpio.Input})
	for _, c := range []struct {
		pin  string
		hold time.Duration
		says string
		is   error
	}{
		{"lamp", time.Minute, "give pin lamp a safe level in agent.yaml", gpio.ErrUnsupported},
		{"valve", -time.Second, "out of range", gpio.ErrUnsupported},
		{"valve", 1 << 62, "out of range", gpio.ErrUnsupported},
		{"valve", time.Hour, "longer than max_on 1m0s", gpio.ErrUnsupported},
		{"door", time.Minute, "configured as an input", gpio.ErrUnsupported},
		{"GPIO2", time.Minute, "only pins of the pin map", gpio.ErrNoSuchPin},
	} {
		if err := o.Lease(t.Context(), c.pin, gpio.High, c.hold, "x"); !errors.Is(err, c.is) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s for %v: %v, want %q", c.pin, c.hold, err, c.says)
		}
	}
	if b.Flips("GPIO2") != 1 { // to its safe level
		t.Error("the pin was moved")
	}
}

// max_on holds for whatever sets the pin, so that a pulse whose end never comes is
// ended too.
func TestMaxOnEndsWhatWasSetWithoutALease(t *testing.T) {
	inBubble(t, func(t *testing.T, b *gpio.Sim, start time.Time) {
		c := valve
		c.MaxOn = time.Minute
		o, _ := run(t, b, c)
		ctx := t.Context()
		must(t, o.Set(ctx, "valve", gpio.High, "t1"))
		time.Sleep(30 * time.Second)
		must(t, o.Set(ctx, "valve", gpio.Low, "t1")) // an ordinary end
		time.Sleep(time.Second)
		must(t, o.Set(ctx, "valve", gpio.High, "t2"))
		time.Sleep(2 * time.Minute)
		want(t, "ends", ends(o, start), "valve t1 low replaced @30s; valve t2 low expired @1m31s")
		want(t, "pins", timed(b, start), "GPIO2 low safe:start @0s; GPIO2 high t1 @0s; GPIO2 low t1 @30s; GPIO2 high t2 @31s; GPIO2 low safe:lease:t2 @1m31s")
	})
}

func TestFallBackThatDoesNotWorkIsTriedUntilItDoes(t *testing.T) {
	inBubble(t, func(t *testing.T, b *gpio.Sim, start time.Time) {
		o, _ := run(t, b, valve)
		must(t, o.Lease(t.Context(), "valve", gpio.High, time.Second, "t1"))
		b.Fail(func(string, gpio.Level) error {
			if time.Since(start) < 3*time.Second {
				return gpio.ErrIO
			}
			return nil
		})
		time.Sleep(2 * time.Second)
		want(t, "ends", ends(o, start), "valve t1 high failed @1s")
		time.Sleep(2 * time.Second)
		want(t, "ends", ends(o, start), "valve t1 low expired @3s")
		want(t, "pins", timed(b, start), "GPIO2 low safe:start @0s; GPIO2 high t1 @0s; GPIO2 low safe:lease:t1 @3s")
	})
}

func TestCommandThatFailsLeavesTheLeaseAsItWas(t *testing.T) {
	inBubble(t, func(t *testing.T, b *gpio.Sim, start time.Time) {
		o, _ := run(t, b, valve)
		must(t, o.Lease(t.Context(), "valve", gpio.High, time.Second, "t1"))
		b.Fail(func(string, gpio.Level) error { return gpio.ErrIO })
		for _, err := range []error{o.Set(t.Context(), "valve", gpio.High, "t2"), o.Lease(t.Context(), "valve", gpio.High, time.Hour, "t3")} {
			if !errors.Is(err, gpio.ErrIO) {
				t.Errorf("%v, want ErrIO", err)
			}
		}
		b.Fail(nil)
		time.Sleep(time.Minute)
		want(t, "ends", ends(o, start), "valve t1 low expired @1s")
	})
}

// A lease whose beginning failed may have moved the pin: it falls back as if it
// had worked.
func TestLeaseWhoseBeginningFailedFallsBackAllTheSame(t *testing.T) {
	inBubble(t, func(t *testing.T, b *gpio.Sim, start time.Time) {
		o, _ := run(t, b, valve)
		b.Fail(func(string, gpio.Level) error { return gpio.ErrUnknown })
		if err := o.Lease(t.Context(), "valve", gpio.High, time.Second, "t1"); !errors.Is(err, gpio.ErrUnknown) {
			t.Errorf("%v", err)
		}
		b.Fail(nil)
		time.Sleep(time.Minute)
		want(t, "pins", timed(b, start), "GPIO2 low safe:start @0s; GPIO2 low safe:lease:t1 @1s")
	})
}

func TestLossDrivesThePinsThatAskForIt(t *testing.T) {
	inBubble(t, func(t *testing.T, b *gpio.Sim, start time.Time) {
		held := gpio.PinConfig{Name: "lamp", Line: "GPIO3", Mode: gpio.Output, Safe: ptr(gpio.Low)}
		falls := valve
		falls.OnLoss = gpio.FallSafe
		other := gpio.PinConfig{Name: "fan", Line: "GPIO5", Mode: gpio.Output, Safe: ptr(gpio.High), OnLoss: gpio.FallSafe}
		o, _ := runWith(t, b, gpio.OwnerOptions{Autonomy: time.Minute}, falls, held, other)
		ctx := t.Context()
		must(t, o.Lease(ctx, "valve", gpio.High, time.Hour, "t1"))
		must(t, o.Lease(ctx, "lamp", gpio.High, time.Hour, "t2"))
		must(t, o.Set(ctx, "fan", gpio.Low, "t3"))
		b.Fail(func(pin string, _ gpio.Level) error {
			if pin == "GPIO5" && time.Since(start) < 2*time.Minute {
				return gpio.ErrIO
			}
			return nil
		})
		time.Sleep(61 * time.Second)
		want(t, "ends", ends(o, start), "valve t1 low loss @1m0s; fan t3 low failed @1m0s")
		time.Sleep(2 * time.Minute)
		if b.Level("GPIO2") != gpio.High || b.Level("GPIO3") != gpio.High || b.Level("GPIO5") != gpio.High {
			t.Error("levels after the loss are wrong")
		}
		want(t, "pins", timed(b, start)[len("GPIO2 low safe:start @0s; GPIO3 low safe:start @0s; GPIO5 high safe:start @0s; GPIO2 high t1 @0s; GPIO3 high t2 @0s; GPIO5 low t3 @0s; "):],
			"GPIO2 low safe:loss @1m0s; GPIO5 high safe:loss @2m0s")
		want(t, "ends", ends(o, start), "fan t3 high loss @2m0s")
	})
}

func TestStopEndsLeasesAndSaysSo(t *testing.T) {
	inBubble(t, func(t *testing.T, b *gpio.Sim, start time.Time) {
		broken := gpio.PinConfig{Name: "lamp", Line: "GPIO3", Mode: gpio.Output, Safe: ptr(gpio.Low)}
		o, stop := run(t, b, valve, broken)
		must(t, o.Lease(t.Context(), "valve", gpio.High, time.Hour, "t1"))
		must(t, o.Lease(t.Context(), "lamp", gpio.High, time.Hour, "t2"))
		b.Fail(func(pin string, _ gpio.Level) error {
			if pin == "GPIO3" {
				return gpio.ErrIO
			}
			return nil
		})
		if err := stop(); !errors.Is(err, gpio.ErrIO) || !strings.Contains(err.Error(), "pins at stop") {
			t.Errorf("stop: %v", err)
		}
		want(t, "ends", ends(o, start), "valve t1 low stopped @0s; lamp t2 high failed @0s; closed")
	})
}

// A pin that hangs makes the lease of another late, but does not make it be
// forgotten.
func TestLeaseEndsAsSoonAsAStuckPinLetsGo(t *testing.T) {
	inBubble(t, func(t *testing.T, b *gpio.Sim, start time.Time) {
		o, _ := run(t, b, valve, gpio.PinConfig{Name: "lamp", Line: "GPIO3", Mode: gpio.Output})
		must(t, o.Lease(t.Context(), "valve", gpio.High, time.Second, "t1"))
		b.Fail(func(pin string, _ gpio.Level) error {
			if pin == "GPIO3" {
				time.Sleep(5 * time.Second)
			}
			return nil
		})
		if err := o.Set(t.Context(), "lamp", gpio.High, "t2"); !errors.Is(err, gpio.ErrUnknown) {
			t.Errorf("%v", err)
		}
		time.Sleep(10 * time.Second)
		want(t, "ends", ends(o, start), "valve t1 low expired @5s")
	})
}

func TestEndsThatNobodyTakesStopNothing(t *testing.T) {
	b := newSim(t, gpio.SimOptions{})
	o, _ := run(t, b, valve)
	const many = 3000
	for i := range many {
		must(t, o.Lease(t.Context(), "valve", gpio.High, time.Hour, fmt.Sprint(i)))
	}
	if e := <-o.LeaseEnds(); e.Cause != fmt.Sprint(many-1-1024) {
		t.Errorf("the oldest end is of %s", e.Cause)
	}
}

// A panic in the owner drives the safe levels first, also if one pin panics again.
func TestPanicDrivesTheSafeLevelsFirst(t *testing.T) {
	b := newSim(t, gpio.SimOptions{})
	o, err := gpio.NewOwner(b, []gpio.PinConfig{valve,
		{Name: "a", Line: "GPIO0", Mode: gpio.Output, Safe: ptr(gpio.Low)}, {Name: "lamp", Line: "GPIO3", Mode: gpio.Output, Safe: ptr(gpio.High)}}, gpio.OwnerOptions{})
	must(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	panicked := make(chan any, 1)
	go func() {
		defer func() { panicked <- recover() }()
		_ = o.Run(ctx)
	}()
	<-o.Started()
	for pin, level := range map[string]gpio.Level{"valve": gpio.High, "a": gpio.High, "lamp": gpio.Low} {
		must(t, o.Set(ctx, pin, level, "t"))
	}
	b.Fail(func(pin string, _ gpio.Level) error {
		if pin == "GPIO0" {
			panic("a driver")
		}
		return nil
	})
	if err := o.Set(ctx, "a", gpio.Low, "t2"); !errors.Is(err, gpio.ErrUnknown) {
		t.Errorf("set: %v, want ErrUnknown", err)
	}
	if r := <-panicked; r != "a driver" {
		t.Errorf("panic %v", r)
	}
	if b.Level("GPIO2") != gpio.High || b.Level("GPIO3") != gpio.High {
		t.Error("the others are not safe")
	}
	if err := o.Set(ctx, "lamp", gpio.Low, "late"); !errors.Is(err, gpio.ErrNotDone) {
		t.Errorf("after the panic: %v", err)
	}
}
