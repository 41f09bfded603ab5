package executor_test

import (
	"testing"

	"github.com/apollo-11/apollo11/fieldagent/executor"
	"github.com/apollo-11/apollo11/wire"
)

// docs/safety.md 6: what a gpio.safe holds is held once. A copy of it that comes when
// somebody has released that, and one that came to an agent which is not welcome, drives
// and holds nothing.
func TestACopyOfASafeHoldsNothing(t *testing.T) {
	b := newBench(t, config(1))
	b.welcome(0)
	if out := b.deliver(1, "a", "hold"); len(out.Urgent) != 1 || !out.Urgent[0].Hold {
		t.Fatalf("%+v", out.Urgent)
	}
	b.finish(1, wire.CodeOK)
	release := b.instruction(2, "a")
	release.Intent = "release"
	b.receive(release)
	b.finish(2, wire.CodeOK)
	if out := b.deliver(1, "a", "hold"); len(out.Urgent) != 1 || out.Urgent[0].Hold {
		t.Errorf("the copy: %+v", out.Urgent)
	}
	b.step(executor.Finished{Token: token(1), Again: true, Result: executor.Result{Code: wire.CodeOK}})

	b.session++
	b.step(executor.Connected{Session: b.session})
	b.greet(&wire.Welcome{Refused: "two boards have this name"})
	if out := b.deliver(3, "a", "hold"); len(out.Urgent) != 1 || out.Urgent[0].Hold {
		t.Errorf("not welcome: %+v", out.Urgent)
	}
	b.step(executor.Finished{Token: token(3), Again: true, Result: executor.Result{Code: wire.CodeOK}})
	if h := b.core.Holds(); len(h) != 0 {
		t.Errorf("holds %v", h)
	}
}

// What is held while the start of older work is written down does not begin.
func TestWorkOnALineThatIsHeldMeanwhileDoesNotBegin(t *testing.T) {
	b := newBench(t, config(1))
	b.welcome(0)
	if out := b.deliver(1, "a"); len(out.Start) != 1 || b.core.TooLate(b.at(), token(1)) {
		t.Fatalf("%+v", out.Start)
	}
	b.session++
	b.step(executor.Connected{Session: b.session})
	b.greet(&wire.Welcome{Rules: wire.NewestRules, Holds: []wire.LineKey{wire.LineOf("a")}})
	if !b.core.TooLate(b.at(), token(1)) {
		t.Error("it begins")
	}
	if e := ends(b.step(executor.Unstarted{Tokens: []wire.Token{token(1)}})); e[1] != wire.CodeSuperseded {
		t.Errorf("told %v", e)
	}
}

// A line that is kept for a retry is not kept for one that another log of the gateway
// would make.
func TestNothingIsKeptForAnotherLog(t *testing.T) {
	b := newBench(t, config(1))
	b.welcome(0)
	in := b.instruction(1, "a")
	in.Keep = true
	b.receive(in)
	b.finish(1, wire.CodeBusy)
	if out := b.deliver(2, "a"); len(out.Start) != 0 {
		t.Fatal("the line is not kept")
	}
	b.session++
	b.step(executor.Connected{Session: b.session})
	b.greet(&wire.Welcome{Rules: wire.NewestRules, Epoch: 2})
	if out := b.deliver(3, "a"); len(out.Start) != 1 {
		t.Errorf("it waits: %v", ends(out))
	}
}

// docs/safety.md 1: its lines are those that the gateway took its pins for, no fewer and
// no others.
func TestMapChangedEitherWay(t *testing.T) {
	for name, c := range map[string]struct {
		on    string
		lines []wire.LineKey
		want  wire.Code
	}{
		"the same":   {"a,b", lines("b,a"), wire.CodeOK},
		"one less":   {"a,b", lines("a"), wire.CodeMapChanged},
		"one more":   {"a", lines("a,b"), wire.CodeMapChanged},
		"another":    {"a", lines("b"), wire.CodeMapChanged},
		"not said":   {"a", nil, wire.CodeOK},
		"none known": {"", lines("a"), wire.CodeOK},
	} {
		b := newBench(t, config(1))
		b.welcome(0)
		in := b.instruction(1, c.on)
		in.Lines = c.lines
		if out := b.receive(in); c.want == wire.CodeOK != (len(out.Start) == 1) || c.want != wire.CodeOK && ends(out)[1] != c.want {
			t.Errorf("%s: starts %d, told %v", name, len(out.Start), ends(out))
		}
	}
}

// What is driven beyond all room is told each time, however often that was.
func TestB34_WhatIsDrivenBeyondTheReserveIsAlwaysTold(t *testing.T) {
	cfg := config(1)
	cfg.MaxQueue, cfg.MaxKnown = 2, 4
	b := newBench(t, cfg)
	b.welcome(0)
	beyond := 0
	for n := uint64(1); beyond < 600; n++ {
		out := b.deliver(n, "b", "safe")
		if len(out.Urgent) != 1 {
			t.Fatalf("off %d is not driven", n)
		}
		if !out.Urgent[0].Again {
			b.finish(n, wire.CodeOK)
			continue
		}
		beyond++
		out = b.step(executor.Finished{Token: token(n), Again: true, Result: executor.Result{Code: wire.CodeOK}})
		if r := said[*wire.Report](out); r == nil || r.States[0].Seq != n || r.States[0].Status != wire.StatusDriven {
			t.Fatalf("the %dth is told as %+v", beyond, r)
		}
	}
}

// The journal may be cut anywhere: no end of a gpio.safe is in it without what it holds.
func TestAHoldIsWrittenDownBeforeTheEndOfItsSafe(t *testing.T) {
	const kindEvent, kindHold = 4, 14
	b := newBench(t, config(1))
	b.welcome(0)
	b.deliver(1, "a", "hold")
	held := false
	for _, r := range b.finish(1, wire.CodeOK).Records {
		held = held || kindOf(t, r) == kindHold
		if kindOf(t, r) == kindEvent && !held {
			t.Error("the end comes first")
		}
	}
	if !held {
		t.Error("the hold is not written down")
	}
}

// safety.md 6: the owner of the pins holds from the try on. A gpio.safe that has failed
// holds its line through a restart as well: its next attempt may be for another line, if a
// reload comes between the two. What was refused holds nothing.
func TestASafeThatFailedHoldsItsLine(t *testing.T) {
	const kindHold = 14
	for code, want := range map[wire.Code]int{wire.CodeIO: 1, wire.CodeUnknown: 1, wire.CodeLocal: 0, wire.CodeNoSuchPin: 0} {
		b := newBench(t, config(1))
		b.welcome(0)
		b.deliver(1, "a", "hold")
		written := 0
		for _, r := range b.finish(1, code).Records {
			if kindOf(t, r) == kindHold {
				written++
			}
		}
		if h := b.core.Holds(); len(h) != want || written != want {
			t.Errorf("%v: holds %v, %d are written down", code, h, written)
		}
	}
}

// safety.md 9: what was refused is not driven later by a copy, and no copy is driven while
// somebody works there, welcome or not.
func TestNoCopyIsDrivenAgainstAHand(t *testing.T) {
	b := newBench(t, config(1))
	b.welcome(0)
	b.deliver(1, "a", "safe")
	b.finish(1, wire.CodeOK)
	b.step(executor.Hand{Local: true})
	if e := ends(b.deliver(2, "a", "safe")); e[2] != wire.CodeLocal {
		t.Fatalf("told %v", e)
	}
	if out := b.deliver(1, "a", "safe"); len(out.Urgent) != 0 {
		t.Error("a copy of what was driven is driven under LOCAL")
	}
	b.step(executor.Hand{})
	if out := b.deliver(2, "a", "safe"); len(out.Urgent) != 0 {
		t.Error("a copy of what was refused is driven later")
	}
	if out := b.deliver(1, "a", "safe"); len(out.Urgent) != 1 {
		t.Error("and a copy of what was driven is not")
	}
	b.step(executor.Finished{Token: token(1), Again: true, Result: executor.Result{Code: wire.CodeOK}})
	b.session++
	b.step(executor.Connected{Session: b.session})
	b.greet(&wire.Welcome{Refused: "two boards have this name"})
	if out := b.deliver(2, "a", "safe"); len(out.Urgent) != 0 {
		t.Error("not welcome: a copy of what was refused is driven later")
	}
	b.step(executor.Hand{Local: true})
	for seq := uint64(1); seq <= 3; seq++ {
		if out := b.deliver(seq, "a", "safe"); len(out.Urgent) != 0 {
			t.Errorf("not welcome: %d is driven under LOCAL", seq)
		}
	}
}

// A release that comes late ends the holds that are older than it, also after a restart.
func TestALateReleaseEndsOnlyOlderHolds(t *testing.T) {
	b := newBench(t, config(1))
	b.welcome(0)
	for seq, line := range map[uint64]string{3: "b", 10: "a"} {
		b.deliver(seq, line, "hold")
		b.finish(seq, wire.CodeOK)
	}
	b.start()
	b.welcome(b.newest)
	release := b.instruction(5, "")
	release.Intent = "release"
	if out := b.receive(release); len(out.Start) != 1 || out.Start[0].Order != 5 {
		t.Fatalf("%+v, told %v", out.Start, ends(out))
	}
	b.finish(5, wire.CodeOK)
	if h := b.core.Holds(); len(h) != 1 || h[wire.LineOf("a")] != 10 {
		t.Errorf("holds %v", h)
	}
}
