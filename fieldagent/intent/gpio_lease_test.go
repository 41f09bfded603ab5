package intent_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/apollo-11/apollo11/fieldagent/gpio"
	"github.com/apollo-11/apollo11/fieldagent/intent"
	"github.com/apollo-11/apollo11/wire"
)

func level(l gpio.Level) *gpio.Level { return &l }

// valves is a pin map with a valve that may be on for ten minutes, a heater whose
// safe level is on, a lamp without a safe level, and a door.
func valves() []gpio.PinConfig {
	return []gpio.PinConfig{
		{Name: "GPIO17", Mode: gpio.Output, Safe: level(gpio.Low), MaxOn: 10 * time.Minute},
		{Name: "GPIO18", Mode: gpio.Output, Safe: level(gpio.High)},
		{Name: "GPIO27", Mode: gpio.Output},
		{Name: "GPIO4", Mode: gpio.Input},
	}
}

func (b *bench) lease(args args) (intent.Processed, map[string]any) {
	b.t.Helper()
	return b.full(b.t.Context(), "gpio.write", "t1", args)
}

// C13: on for two minutes is done at once, says until when, and ends by itself.
func TestC13_WriteWithATimeIsALease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, start := newBench(t, valves()...), time.Now()
		p, got := b.lease(args{"pin": "GPIO17", "level": 1, "max_on": "2m"})
		if p.Code != wire.CodeOK || got["max_on_ms"] != uint64(120_000) || got["until_ms"] != uint64(start.Add(2*time.Minute).UnixMilli()) ||
			p.Lease == nil || *p.Lease != (intent.Lease{Pin: "GPIO17", After: gpio.Low}) {
			t.Errorf("%+v %v", p, got)
		}
		if took := time.Since(start); took != 0 {
			t.Errorf("it took %v", took)
		}
		time.Sleep(2*time.Minute - time.Millisecond)
		if b.board.Level("GPIO17") != gpio.High {
			t.Error("it ended early")
		}
		time.Sleep(2 * time.Millisecond)
		if b.board.Level("GPIO17") != gpio.Low {
			t.Error("it did not end")
		}
	})
}

// What is told of the end is in the gateway's time, whatever the board's clock says.
func TestUntilIsInTheTimeOfTheRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, valves()...)
		raw, err := wire.EncodeMap(args{"pin": "GPIO17", "level": 1, "max_on": "1m"}, wire.MaxArgsBytes)
		must(t, err)
		p := b.r.Run(t.Context(), "gpio.write", raw, intent.Request{Cause: "t", Clock: func() int64 { return 5_000_000 }})
		if m, err := wire.DecodeMap(p.Payload); err != nil || m["until_ms"] != uint64(5_060_000) {
			t.Errorf("%v, %v", m, err)
		}
	})
}

// safety.md 8: a renewal's lease has ended by a time of the gateway's, and one of which
// nothing is left is not begun.
func TestALeaseLastsNoLongerThanWhatIsLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, valves()...)
		raw, err := wire.EncodeMap(args{"pin": "GPIO17", "level": 1, "max_on": "1m"}, wire.MaxArgsBytes)
		must(t, err)
		left := time.Duration(0)
		run := func() (wire.Code, any) {
			p := b.r.Run(t.Context(), "gpio.write", raw, intent.Request{Cause: "t", Left: func(d time.Duration) time.Duration { return min(d, left) }})
			m, err := wire.DecodeMap(p.Payload)
			must(t, err)
			return p.Code, m["max_on_ms"]
		}
		if code, _ := run(); code != wire.CodeDependency || b.board.Level("GPIO17") != gpio.Low {
			t.Errorf("with nothing left: %v, the pin is %v", code, b.board.Level("GPIO17"))
		}
		left = 20 * time.Second
		if code, ms := run(); code != wire.CodeOK || ms != uint64(20_000) {
			t.Errorf("%v for %v ms", code, ms)
		}
		time.Sleep(left + time.Millisecond)
		if b.board.Level("GPIO17") != gpio.Low {
			t.Error("it did not end")
		}
	})
}

func TestC13_PinMapGivesTheTimeAndBoundsIt(t *testing.T) {
	for name, c := range map[string]struct {
		args args
		code wire.Code
		says string
		ms   any // max_on_ms of the result, nil for no lease
	}{
		"the map's time":            {args{"pin": "GPIO17", "level": 1}, wire.CodeOK, "", uint64(600_000)},
		"just as long":              {args{"pin": "GPIO17", "level": 1, "max_on": "10m"}, wire.CodeOK, "", uint64(600_000)},
		"longer":                    {args{"pin": "GPIO17", "level": 1, "max_on": "10m1ms"}, wire.CodeBadArgs, "agent.yaml allows max_on: 10m0s", nil},
		"the safe level":            {args{"pin": "GPIO17", "level": 0, "max_on": "1h"}, wire.CodeOK, "", nil},
		"no time in the map":        {args{"pin": "GPIO18", "level": 0}, wire.CodeOK, "", nil},
		"off for a time":            {args{"pin": "GPIO18", "level": 0, "max_on": "576h"}, wire.CodeOK, "", uint64(wire.MaxLease.Milliseconds())},
		"the safe level is on":      {args{"pin": "GPIO18", "level": 1, "max_on": "1m"}, wire.CodeOK, "", nil},
		"no safe level":             {args{"pin": "GPIO27", "level": 1, "max_on": "1m"}, wire.CodeBadArgs, "give pin GPIO27 a safe level in agent.yaml", nil},
		"no safe level and no time": {args{"pin": "GPIO27", "level": 1}, wire.CodeOK, "", nil},
		"an input":                  {args{"pin": "GPIO4", "level": 1, "max_on": "1m"}, wire.CodeUnsupported, "input", nil},
		"not in the map":            {args{"pin": "GPIO5", "level": 1, "max_on": "1m"}, wire.CodeNoSuchPin, "GPIO5", nil},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, valves()...)
				before := len(b.board.Actuations())
				p, got := b.lease(c.args)
				if p.Code != c.code || !strings.Contains(p.Detail, c.says) || got["max_on_ms"] != c.ms || (p.Lease != nil && !p.Lease.Plain) != (c.ms != nil) {
					t.Errorf("%+v %v", p, got)
				}
				if p.Code != wire.CodeOK && len(b.board.Actuations()) != before {
					t.Error("something moved")
				}
			})
		})
	}
}

// Without a pin map nothing has a safe level to go back to.
func TestLeaseNeedsAPinMap(t *testing.T) {
	b := newBench(t)
	if p, _ := b.lease(args{"pin": "GPIO17", "level": 1, "max_on": "1m"}); p.Code != wire.CodeBadArgs || !strings.Contains(p.Detail, "safe level in agent.yaml") {
		t.Errorf("%+v", p)
	}
}

// I13: a pulse is not a way around the longest time of a pin.
func TestI13_PulseKeepsToTheLongestTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, valves()...)
		for name, c := range map[string]struct {
			args args
			code wire.Code
		}{
			"too long":         {args{"pin": "GPIO17", "width": "11m"}, wire.CodeBadArgs},
			"just right":       {args{"pin": "GPIO17", "width": "10m"}, wire.CodeOK},
			"to the safe side": {args{"pin": "GPIO18", "level": 1, "width": "1h"}, wire.CodeOK},
		} {
			if p, _ := b.full(t.Context(), "gpio.pulse", "t", c.args); p.Code != c.code {
				t.Errorf("%s: %+v", name, p)
			}
		}
	})
}

// C14: a board that does not answer may have taken the lease; then its end is
// still waited for.
func TestC14_LeaseOfUnknownOutcomeIsRemembered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, valves()...)
		synctest.Wait() // the pins are at their safe levels
		stuck := make(chan struct{})
		b.board.Fail(func(_ string, l gpio.Level) error {
			if l {
				<-stuck
			}
			return nil
		})
		defer b.board.Fail(nil)
		defer close(stuck)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		p, _ := b.full(ctx, "gpio.write", "t1", args{"pin": "GPIO17", "level": 1, "max_on": "1m"})
		if p.Code != wire.CodeUnknown || p.Lease == nil {
			t.Errorf("%+v", p)
		}
	})
}
