package intent_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/apollo-11/apollo11/fieldagent/gpio"
	"github.com/apollo-11/apollo11/fieldagent/intent"
	"github.com/apollo-11/apollo11/wire"
)

// told is what a watch reports, with when.
type told struct {
	start time.Time

	mu    sync.Mutex
	lines []string
	full  bool // there is no room
}

func (r *told) fill(full bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.full = full
}

func (r *told) all() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.lines)
}

func (r *told) tell(v map[string]any) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.full {
		return false
	}
	r.lines = append(r.lines, fmt.Sprintf("%v: %s", time.Since(r.start), seenLine(v)))
	return true
}

// seenLine is a report: the levels, and the counts.
func seenLine(v map[string]any) string {
	s := ""
	for _, e := range v["edges"].([]any) {
		s += fmt.Sprint(e.([]any)[0])
	}
	if s == "" {
		s = "none"
	}
	return fmt.Sprintf("%s of %v, %v unlisted, %v missed", s, v["total"], v["unlisted"], v["missed"])
}

// watch runs a watch in the background; its result comes out of the channel.
func (b *bench) watch(ctx context.Context, r *told, a args) <-chan string {
	b.t.Helper()
	raw, err := wire.EncodeMap(a, wire.MaxArgsBytes)
	must(b.t, err)
	done := make(chan string, 1)
	r.start = time.Now()
	go func() {
		p := b.r.Run(ctx, "gpio.watch", raw, intent.Request{Cause: "t", Tell: r.tell})
		s := fmt.Sprintf("%v: %s %s", time.Since(r.start), p.Code, p.Detail)
		if m, err := wire.DecodeMap(p.Payload); err == nil && m != nil {
			s += " " + seenLine(m)
		}
		done <- strings.Join(strings.Fields(s), " ")
	}()
	synctest.Wait()
	return done
}

func (b *bench) toggle(pin string, n int) {
	for range n {
		b.board.Drive(pin, !b.board.Level(pin))
		synctest.Wait()
	}
}

// The first edge is told at once; what follows waits for the interval and comes
// together.
func TestWatchTellsEdgesAtABoundedRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, r := newBench(t, valves()...), &told{}
		done := b.watch(t.Context(), r, args{"pin": "GPIO4", "for": "10s", "every": "2s"})
		time.Sleep(500 * time.Millisecond)
		b.toggle("GPIO4", 1)
		time.Sleep(100 * time.Millisecond)
		b.toggle("GPIO4", 3)
		time.Sleep(5 * time.Second)
		b.toggle("GPIO4", 1)
		time.Sleep(1500 * time.Millisecond)
		b.toggle("GPIO4", 40)
		if got, want := <-done, "10s: ok none of 45, 8 unlisted, 0 missed"; got != want {
			t.Errorf("result %q, want %q", got, want)
		}
		want := []string{
			"500ms: 1 of 1, 0 unlisted, 0 missed", "2.5s: 010 of 4, 0 unlisted, 0 missed",
			"5.6s: 1 of 5, 0 unlisted, 0 missed", "7.6s: " + strings.Repeat("01", 16) + " of 45, 8 unlisted, 0 missed",
		}
		if fmt.Sprint(r.all()) != fmt.Sprint(want) {
			t.Errorf("told\n%s\nwant\n%s", strings.Join(r.all(), "\n"), strings.Join(want, "\n"))
		}
	})
}

func TestWatchOfOneKindOfEdge(t *testing.T) {
	for edge, want := range map[string]string{"rising": "111", "falling": "000", "both": "101010"} {
		synctest.Test(t, func(t *testing.T) {
			b, r := newBench(t, valves()...), &told{}
			done := b.watch(t.Context(), r, args{"pin": "GPIO4", "for": "2s", "edge": edge, "every": "1m"})
			b.toggle("GPIO4", 1)
			time.Sleep(time.Second)
			b.toggle("GPIO4", 5)
			got := <-done
			listed := ""
			for _, l := range append(r.all(), got) {
				before, _, _ := strings.Cut(l, " of ")
				if f := strings.Fields(before); len(f) > 0 && f[len(f)-1] != "none" {
					listed += f[len(f)-1]
				}
			}
			if listed != want || !strings.Contains(got, fmt.Sprintf("of %d,", len(want))) {
				t.Errorf("%s: listed %s, want %s; told %v, result %q", edge, listed, want, r.all(), got)
			}
		})
	}
}

// While the gateway is away there is no room some day: then edges are only counted.
func TestWatchKeepsCountingWithoutRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, r := newBench(t, valves()...), &told{full: true}
		done := b.watch(t.Context(), r, args{"pin": "GPIO4", "for": "1m"})
		for range 50 {
			time.Sleep(time.Second)
			b.toggle("GPIO4", 2)
		}
		r.fill(false)
		time.Sleep(2 * time.Second)
		if want := "[51s: " + strings.Repeat("10", 16) + " of 100, 68 unlisted, 0 missed]"; fmt.Sprint(r.all()) != want {
			t.Errorf("told %v, want %s", r.all(), want)
		}
		if got, want := <-done, "1m0s: ok none of 100, 68 unlisted, 0 missed"; got != want {
			t.Errorf("result %q, want %q", got, want)
		}
	})
}

// Every edge has the kernel's time and the time of day.
func TestEdgesHaveTheirTimes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, valves()...)
		start := time.Now()
		var seen []any
		raw, err := wire.EncodeMap(args{"pin": "GPIO4", "for": "5s", "every": "1s"}, wire.MaxArgsBytes)
		must(t, err)
		clock := func() int64 { return 9_000_000 + time.Since(start).Milliseconds() }
		done := make(chan struct{})
		go func() {
			defer close(done)
			b.r.Run(t.Context(), "gpio.watch", raw, intent.Request{Clock: clock, Tell: func(v map[string]any) bool {
				seen = append(seen, v["edges"].([]any)...)
				return true
			}})
		}()
		synctest.Wait()
		time.Sleep(1500 * time.Millisecond)
		b.toggle("GPIO4", 1)
		time.Sleep(250 * time.Millisecond)
		b.toggle("GPIO4", 1)
		<-done
		if got, want := fmt.Sprint(seen), "[[1 1500000000 9001500] [0 1750000000 9001750]]"; got != want {
			t.Errorf("%s, want %s", got, want)
		}
	})
}

func TestWatchEndsCleanly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, r := newBench(t, valves()...), &told{}
		ctx, cancel := context.WithCancel(t.Context())
		done := b.watch(ctx, r, args{"pin": "GPIO4", "for": "1h"})
		b.toggle("GPIO4", 1)
		cancel()
		if got := <-done; got != "0s: cancelled the watch was stopped none of 1, 0 unlisted, 0 missed" && got != "0s: cancelled the watch was stopped 1 of 1, 0 unlisted, 0 missed" {
			t.Errorf("result %q", got)
		}
		// The pin is free for the next one, and was never held against a read.
		done = b.watch(t.Context(), r, args{"pin": "GPIO4", "for": "1s"})
		if code := b.run(t.Context(), "gpio.read", "t2", args{"pin": "GPIO4"}); code != wire.CodeOK {
			t.Errorf("read: %v", code)
		}
		second := b.watch(t.Context(), r, args{"pin": "GPIO4", "for": "2s"})
		if got := <-done; got != "1s: ok none of 0, 0 unlisted, 0 missed" {
			t.Errorf("result %q", got)
		}
		if got := <-second; got != "2s: ok none of 0, 0 unlisted, 0 missed" {
			t.Errorf("result %q", got)
		}
	})
}

// The usual time limit is just as long as the watch; that is enough.
func TestWatchFitsIntoItsTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, r := newBench(t, valves()...), &told{}
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		time.Sleep(10 * time.Millisecond)
		if got := <-b.watch(ctx, r, args{"pin": "GPIO4", "for": "10s"}); got != "9.99s: ok none of 0, 0 unlisted, 0 missed" {
			t.Errorf("result %q", got)
		}
		late, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		if got := <-b.watch(late, r, args{"pin": "GPIO4", "for": "12s"}); !strings.Contains(got, "bad_args") || !strings.Contains(got, "does not fit") {
			t.Errorf("result %q", got)
		}
	})
}

func TestE13_WhatCannotBeWatchedIsRefused(t *testing.T) {
	b := newBench(t, valves()...)
	for _, c := range []struct {
		args args
		code wire.Code
	}{
		{args{"pin": "GPIO4"}, wire.CodeBadArgs},
		{args{"pin": "GPIO4", "for": "0s"}, wire.CodeBadArgs},
		{args{"pin": "GPIO4", "for_ms": int64(1) << 31}, wire.CodeBadArgs},
		{args{"pin": "GPIO4", "for": "1m", "edge": "up"}, wire.CodeBadArgs},
		{args{"pin": "GPIO17", "for": "1m"}, wire.CodeUnsupported},
		{args{"pin": "GPIO5", "for": "1m"}, wire.CodeNoSuchPin},
	} {
		if code := b.run(t.Context(), "gpio.watch", "t", c.args); code != c.code {
			t.Errorf("%v: %v, want %v", c.args, code, c.code)
		}
	}
}

// A line that goes away in the middle (its chip, or the pin map) ends the watch with
// what it has seen; another attempt may help.
func TestWatchOfALineThatGoesAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		edges := make(chan gpio.Edge)
		r := newRegistry(t, intent.BuiltIn(intent.Board{Pins: gone{edges: edges}}))
		raw, err := wire.EncodeMap(args{"pin": "door", "for": "1m"}, wire.MaxArgsBytes)
		must(t, err)
		go func() {
			edges <- gpio.Edge{Pin: "door", Level: gpio.High, Missed: 3, At: time.Now()}
			close(edges)
		}()
		p := r.Run(t.Context(), "gpio.watch", raw, intent.Request{})
		m, err := wire.DecodeMap(p.Payload)
		must(t, err)
		if p.Code != wire.CodeIO || !strings.Contains(p.Detail, "can't be watched any more") || m["total"] != uint64(1) || m["missed"] != uint64(3) {
			t.Errorf("%+v %v", p, m)
		}
	})
}

// gone is a board whose one input goes away.
type gone struct {
	intent.Pins
	edges chan gpio.Edge
}

func (gone) Resolve(name string, _ gpio.Mode) (string, error)          { return name, nil }
func (gone) Config(string) (gpio.PinConfig, bool)                      { return gpio.PinConfig{}, false }
func (g gone) Watch(context.Context, string) (<-chan gpio.Edge, error) { return g.edges, nil }
