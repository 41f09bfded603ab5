package intent_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/apollo-11/apollo11/fieldagent/gpio"
	"github.com/apollo-11/apollo11/fieldagent/intent"
	"github.com/apollo-11/apollo11/wire"
)

// bench is a simulated board with the gpio intents on it.
type bench struct {
	t     *testing.T
	board *gpio.Sim
	owner *gpio.Owner
	r     *intent.Registry
}

func newBench(t *testing.T, pins ...gpio.PinConfig) *bench {
	t.Helper()
	board, err := gpio.NewSim(gpio.SimOptions{})
	must(t, err)
	owner, err := gpio.NewOwner(board, pins, gpio.OwnerOptions{})
	must(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- owner.Run(ctx) }()
	<-owner.Started()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return &bench{t, board, owner, newRegistry(t, intent.BuiltIn(intent.Board{Pins: owner}))}
}

func (b *bench) run(ctx context.Context, name, token string, args map[string]any) wire.Code {
	p, _ := b.full(ctx, name, token, args)
	return p.Code
}

func (b *bench) full(ctx context.Context, name, token string, args map[string]any) (intent.Processed, map[string]any) {
	b.t.Helper()
	raw, err := wire.EncodeMap(args, wire.MaxArgsBytes)
	must(b.t, err)
	p := b.r.Run(ctx, name, raw, intent.Request{Cause: token})
	m, err := wire.DecodeMap(p.Payload)
	must(b.t, err)
	return p, m
}

// trail lists what happened at the pins, with times since start.
func (b *bench) trail(start time.Time) string {
	var s []string
	for _, a := range b.board.Actuations() {
		s = append(s, fmt.Sprintf("%s %v %s @%v", a.Pin, a.Level, a.Cause, time.Duration(a.At-start.UnixNano())))
	}
	return strings.Join(s, "; ")
}

func (b *bench) want(start time.Time, want string) {
	b.t.Helper()
	if got := b.trail(start); got != want {
		b.t.Errorf("at the pins: %s\nwant:        %s", got, want)
	}
}

type args = map[string]any

func TestWriteAndRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, start := newBench(t), time.Now()
		p, got := b.full(t.Context(), "gpio.write", "t1", args{"pin": "GPIO17", "level": 1})
		if p.Code != wire.CodeOK || p.Detail != "" || got["pin"] != "GPIO17" || got["level"] != uint64(1) {
			t.Errorf("write: %+v %v", p, got)
		}
		p, got = b.full(t.Context(), "gpio.read", "t2", args{"pin": "GPIO17"})
		if p.Code != wire.CodeOK || got["level"] != uint64(1) {
			t.Errorf("read of the output: %+v %v", p, got)
		}
		b.board.Drive("GPIO4", gpio.High)
		if _, got = b.full(t.Context(), "gpio.read", "t3", args{"pin": "GPIO4"}); got["level"] != uint64(1) {
			t.Errorf("read of an input: %v", got)
		}
		b.want(start, "GPIO17 high t1 @0s")
	})
}

func TestE13_I13_WhatCannotBeDoneIsRefusedBeforeAnythingMoves(t *testing.T) {
	b := newBench(t, gpio.PinConfig{Name: "GPIO4", Mode: gpio.Input}, gpio.PinConfig{Name: "GPIO17", Mode: gpio.Output})
	for _, c := range []struct {
		intent string
		args   args
		code   wire.Code
		says   string
	}{
		{"gpio.write", nil, wire.CodeBadArgs, "args.pin"},
		{"gpio.write", args{"pin": "GPIO17"}, wire.CodeBadArgs, "args.level"},
		{"gpio.write", args{"pin": "GPIO17", "level": 2}, wire.CodeBadArgs, "args.level"},
		{"gpio.write", args{"pin": "GPIO17", "level": 1, "x": 1}, wire.CodeBadArgs, "args.x"},
		{"gpio.write", args{"pin": "GPIO99", "level": 1}, wire.CodeNoSuchPin, "there are GPIO4, GPIO17"},
		{"gpio.write", args{"pin": 17, "level": 1}, wire.CodeBadArgs, "never numbered"},
		{"gpio.write", args{"pin": "17", "level": 1}, wire.CodeNoSuchPin, "a bare number"},
		{"gpio.write", args{"pin": "GPIO4", "level": 1}, wire.CodeUnsupported, "configured as an input"},
		{"gpio.read", args{"pin": "GPIO99"}, wire.CodeNoSuchPin, "GPIO99"},
		{"gpio.read", nil, wire.CodeBadArgs, "args.pin"},
		{"gpio.pulse", args{"pin": "GPIO17"}, wire.CodeBadArgs, "args.width"},
		{"gpio.pulse", args{"pin": "GPIO17", "width_ms": 0}, wire.CodeBadArgs, "args.width_ms"},
		{"gpio.pulse", args{"pin": "GPIO17", "width_ms": -5}, wire.CodeBadArgs, "args.width_ms"},
		{"gpio.pulse", args{"pin": "GPIO17", "width_ms": int64(1) << 31}, wire.CodeBadArgs, "args.width_ms"},
		{"gpio.pulse", args{"pin": "GPIO99", "width_ms": 5}, wire.CodeNoSuchPin, "GPIO99"},
		{"gpio.pulse", args{"pin": "GPIO4", "width_ms": 5}, wire.CodeUnsupported, "configured as an input"},
	} {
		raw, err := wire.EncodeMap(c.args, wire.MaxArgsBytes)
		must(t, err)
		_, checked := b.r.Check(c.intent, raw)
		ran := b.r.Run(t.Context(), c.intent, raw, intent.Request{Cause: "t"})
		if checked == nil {
			t.Errorf("%s %v: the check let it pass", c.intent, c.args)
			continue
		}
		for how, p := range map[string]intent.Processed{"check": *checked, "run": ran} {
			if p.Code != c.code || p.Code.Class() != wire.ClassRefused || !strings.Contains(p.Detail, c.says) {
				t.Errorf("%s %v, %s: %v %q, want %v with %q", c.intent, c.args, how, p.Code, p.Detail, c.code, c.says)
			}
		}
	}
	if n := len(b.board.Actuations()); n != 0 {
		t.Errorf("%d actuations", n)
	}
	raw, err := wire.EncodeMap(args{"pin": "GPIO17", "level": 1}, wire.MaxArgsBytes)
	must(t, err)
	if _, p := b.r.Check("gpio.write", raw); p != nil || len(b.board.Actuations()) != 0 {
		t.Errorf("check of a good request: %+v", p)
	}
}

func TestPinErrorsKeepTheirMeaning(t *testing.T) {
	for _, c := range []struct {
		err  error
		code wire.Code
	}{
		{gpio.ErrBusy, wire.CodeBusy},
		{gpio.ErrIO, wire.CodeIO},
		{gpio.ErrNotPermitted, wire.CodeNotPermitted},
		{gpio.ErrUnknown, wire.CodeUnknown},
		{errors.Join(gpio.ErrIO, gpio.ErrUnknown), wire.CodeUnknown},
		{errors.New("odd"), wire.CodeFailed},
	} {
		b := newBench(t)
		b.board.Fail(func(string, gpio.Level) error { return c.err })
		if code := b.run(t.Context(), "gpio.write", "t", args{"pin": "GPIO17", "level": 1}); code != c.code {
			t.Errorf("%v: %v, want %v", c.err, code, c.code)
		}
	}
}

func TestEndedContextMovesNothing(t *testing.T) {
	b := newBench(t)
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	late, cancel := context.WithTimeout(t.Context(), -1)
	defer cancel()
	for ctx, want := range map[context.Context]wire.Code{cancelled: wire.CodeCancelled, late: wire.CodeTimeout} {
		if code := b.run(ctx, "gpio.write", "t", args{"pin": "GPIO17", "level": 1}); code != want {
			t.Errorf("write: %v, want %v", code, want)
		}
	}
	if code := b.run(cancelled, "gpio.pulse", "t", args{"pin": "GPIO17", "width_ms": 5}); code != wire.CodeCancelled {
		t.Errorf("pulse: %v", code)
	}
	if n := len(b.board.Actuations()); n != 0 {
		t.Errorf("%d actuations", n)
	}
}

func TestPulseLastsItsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, start := newBench(t), time.Now()
		p, got := b.full(t.Context(), "gpio.pulse", "t1", args{"pin": "GPIO17", "width_ms": 1500})
		if p.Code != wire.CodeOK || p.Detail != "" || got["width_ms"] != uint64(1500) || got["level"] != uint64(0) {
			t.Errorf("pulse: %+v %v", p, got)
		}
		b.run(t.Context(), "gpio.pulse", "t2", args{"pin": "GPIO17", "width": "20ms", "level": 0})
		b.want(start, "GPIO17 high t1 @0s; GPIO17 low t1 @1.5s; GPIO17 low t2 @1.5s; GPIO17 high t2 @1.52s")
	})
}

func TestCancelledPulsePutsThePinBackAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, start := newBench(t), time.Now()
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(300*time.Millisecond, cancel)
		p, got := b.full(ctx, "gpio.pulse", "t1", args{"pin": "GPIO17", "width": "1m"})
		if p.Code != wire.CodeCancelled || !strings.Contains(p.Detail, "cut short after 300ms of 1m0s: it was cancelled; GPIO17 is low") || got["width_ms"] != uint64(300) {
			t.Errorf("pulse: %+v %v", p, got)
		}
		b.want(start, "GPIO17 high t1 @0s; GPIO17 low t1 @300ms")
	})
}

func TestPulseThatDoesNotFitIntoTheTimeoutIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, start := newBench(t), time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		p, _ := b.full(ctx, "gpio.pulse", "t1", args{"pin": "GPIO17", "width": "11s"})
		if p.Code != wire.CodeBadArgs || !strings.Contains(p.Detail, "a pulse of 11s does not fit into the 10s") {
			t.Errorf("pulse: %+v", p)
		}
		b.want(start, "")
		// One that just fits is not cut by the limit.
		if code := b.run(ctx, "gpio.pulse", "t2", args{"pin": "GPIO17", "width": "10s"}); code != wire.CodeOK {
			t.Errorf("pulse that fits: %v", code)
		}
		b.want(start, "GPIO17 high t2 @0s; GPIO17 low t2 @10s")
	})
}

// A slow pin may use up the room that the pulse had; the pulse is whole all the
// same, and no "timeout" that would have it repeated.
func TestTimeLimitDoesNotCutAPulseThatHadRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, start := newBench(t), time.Now()
		b.board.Fail(func(_ string, level gpio.Level) error {
			if level {
				time.Sleep(time.Second)
			}
			return nil
		})
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		if code := b.run(ctx, "gpio.pulse", "t", args{"pin": "GPIO17", "width": "10s"}); code != wire.CodeOK {
			t.Errorf("pulse: %v", code)
		}
		b.want(start, "GPIO17 high t @1s; GPIO17 low t @11s")
	})
}

func TestPutBackIsTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, start := newBench(t), time.Now()
		failures := 3
		b.board.Fail(func(_ string, level gpio.Level) error {
			if level == gpio.Low && failures > 0 {
				failures--
				return gpio.ErrIO
			}
			return nil
		})
		if code := b.run(t.Context(), "gpio.pulse", "t", args{"pin": "GPIO17", "width": "1s"}); code != wire.CodeOK {
			t.Errorf("pulse: %v", code)
		}
		b.want(start, "GPIO17 high t @0s; GPIO17 low t @1.6s")
	})
}

func TestPinThatCannotBePutBackIsUnknown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, start := newBench(t), time.Now()
		b.board.Fail(func(_ string, level gpio.Level) error {
			if level == gpio.Low {
				return gpio.ErrIO
			}
			return nil
		})
		p, _ := b.full(t.Context(), "gpio.pulse", "t", args{"pin": "GPIO17", "width": "1s"})
		if p.Code != wire.CodeUnknown || !strings.Contains(p.Detail, "go and look; it is tried on") {
			t.Errorf("pulse: %+v", p)
		}
		defer b.board.Fail(nil)
		b.want(start, "GPIO17 high t @0s")
	})
}

// A beginning that may or may not have happened is undone too.
func TestPulseWhoseBeginningIsUnknownIsPutBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, start := newBench(t), time.Now()
		b.board.Fail(func(_ string, level gpio.Level) error {
			if level == gpio.High {
				return gpio.ErrUnknown
			}
			return nil
		})
		p, _ := b.full(t.Context(), "gpio.pulse", "t", args{"pin": "GPIO17", "width": "1s"})
		if p.Code != wire.CodeUnknown || !strings.Contains(p.Detail, "what may have begun is ended") {
			t.Errorf("pulse: %+v", p)
		}
		b.want(start, "GPIO17 low t @0s")
	})
}

// What is not towards a safe level waits for the end of a pulse: the executor makes it
// wait, and the owner of the pins refuses it. On a pin without a safe level that is
// everything; a cancel ends the pulse.
func TestDuringAPulseOthersWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, start := newBench(t), time.Now()
		first := make(chan wire.Code, 1)
		go func() { first <- b.run(t.Context(), "gpio.pulse", "t1", args{"pin": "GPIO17", "width": "10s"}) }()
		synctest.Wait()

		for name, a := range map[string]args{
			"gpio.write": {"pin": "GPIO17", "level": 1},
			"gpio.pulse": {"pin": "GPIO17", "width": "1s"},
		} {
			p, _ := b.full(t.Context(), name, "t2", a)
			if p.Code != wire.CodeBusy || !strings.Contains(p.Detail, "token t1") {
				t.Errorf("%s: %+v", name, p)
			}
		}
		if code := b.run(t.Context(), "gpio.write", "t3", args{"pin": "GPIO18", "level": 1}); code != wire.CodeOK {
			t.Errorf("another pin: %v", code)
		}
		time.Sleep(2 * time.Second)
		if code := b.run(t.Context(), "gpio.write", "t4", args{"pin": "GPIO17", "level": 0}); code != wire.CodeBusy {
			t.Errorf("off: %v", code)
		}
		if code := <-first; code != wire.CodeOK {
			t.Errorf("pulse: %v", code)
		}
		if code := b.run(t.Context(), "gpio.write", "t5", args{"pin": "GPIO17", "level": 1}); code != wire.CodeOK {
			t.Errorf("after the pulse: %v", code)
		}
		b.want(start, "GPIO17 high t1 @0s; GPIO18 high t3 @0s; GPIO17 low t1 @10s; GPIO17 high t5 @10s")
	})
}
