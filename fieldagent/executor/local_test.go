package executor_test

import (
	"testing"

	"github.com/apollo-11/apollo11/fieldagent/executor"
	"github.com/apollo-11/apollo11/wire"
)

// safety.md 8, 9: work away from safe that waited when the LOCAL switch was thrown never
// runs later by itself, though the switch is off again when the core hears of it. It ends
// and is told; what comes after that is another matter.
func TestWhatWaitedWhenTheSwitchWasThrownNeverRuns(t *testing.T) {
	b := newBench(t, config(1))
	b.welcome(0)
	b.deliver(1, "a")
	b.deliver(2, "a")
	b.deliver(3, "")
	b.throws++ // and it is off again
	out := b.finish(1, wire.CodeOK)
	if got := ends(out); got[2] != wire.CodeLocal {
		t.Errorf("told %v", got)
	}
	if len(out.Start) != 1 || out.Start[0].Seq != 3 {
		t.Errorf("starts %v: what moves nothing may", out.Start)
	}
	b.finish(3, wire.CodeOK)
	if out := b.deliver(4, "a"); len(out.Start) != 1 {
		t.Errorf("starts %v after that", out.Start)
	}
}

// So it is while the record of a start waits for the disk.
func TestWhatWasAboutToBeginWhenTheSwitchWasThrownNeverRuns(t *testing.T) {
	b := newBench(t, config(1))
	b.welcome(0)
	b.deliver(1, "a")
	b.throws++
	if !b.core.TooLate(b.at(), token(1)) {
		t.Fatal("it may begin")
	}
	out := b.step(executor.Unstarted{Tokens: []wire.Token{token(1)}})
	if got := ends(out)[1]; got != wire.CodeLocal || len(out.Start) != 0 {
		t.Errorf("told %v, starts %v", got, out.Start)
	}
}

// And before the first welcome of a process, whether it has found the switch on or seen
// it thrown.
func TestWhatWaitsInTheJournalWhenTheSwitchIsThrownNeverRuns(t *testing.T) {
	for name, local := range map[string]bool{"found on": true, "thrown": false} {
		b := newBench(t, config(1))
		b.welcome(0)
		b.deliver(1, "a")
		b.deliver(2, "b")
		b.mono += executor.ShortWork
		b.step(executor.Tick{})
		b.cfg.Local = local
		b.start()
		if !local {
			b.throws++
		}
		b.step(executor.Hand{})
		b.welcome(0)
		out := b.receive(&wire.Query{Refs: []wire.Ref{{Seq: 2, Token: token(2)}}})
		if r := said[*wire.Report](out); len(out.Start) != 0 || r == nil || r.States[0].Code != wire.CodeLocal {
			t.Errorf("%s: starts %v, told %+v", name, out.Start, r)
		}
	}
}

// What the gateway handed out before it heard of the last throw is refused, though the
// switch is off again and it comes only now: it was submitted by somebody who did not know.
// What leads to safe, what moves nothing and what comes from an older gateway goes on.
func TestWhatTheGatewayHandedOutBeforeItHeardOfAThrowIsRefused(t *testing.T) {
	for _, c := range []struct {
		what, on string
		heard    uint64
		begins   bool
	}{
		{"heard of both", "a", 3, true}, {"of one", "a", 2, false}, {"of more", "a", 4, false}, {"of none", "a", 1, false},
		{"thrown since", "a", wire.ThrownSince, false}, {"does not say", "a", 0, true},
		{"moves nothing", "", 1, true},
	} {
		b := newBench(t, config(1))
		b.throws = 2
		b.welcome(0)
		in := b.instruction(1, c.on)
		in.Throws = c.heard
		out := b.receive(in)
		if got := ends(out)[1]; (len(out.Start) == 1) != c.begins || (got == wire.CodeLocal) == c.begins {
			t.Errorf("%s: starts %v, told %v", c.what, out.Start, got)
		}
	}
}

// A number in the journal is that of another process, and says nothing to the next.
func TestThrowsOfAnEarlierProcessEndNothing(t *testing.T) {
	b := newBench(t, config(1))
	b.throws = 4
	b.welcome(0)
	b.deliver(1, "a")
	in := b.instruction(2, "a")
	in.Throws = 5
	b.receive(in)
	b.mono += executor.ShortWork
	b.step(executor.Tick{})
	b.throws = 0
	b.start()
	b.welcome(0)
	out := b.receive(&wire.Query{Refs: []wire.Ref{{Seq: 2, Token: token(2)}}})
	if len(out.Start) != 1 || out.Start[0].Seq != 2 {
		t.Errorf("starts %v", out.Start)
	}
}

// The gateway is told how often the switch was thrown, at once, by a hello and by a
// heartbeat, though the core is told of no switch that is on.
func TestAThrowIsToldAtOnce(t *testing.T) {
	b := newBench(t, config(1))
	b.throws = 1
	out := b.step(executor.Connected{Session: 9})
	if h := said[*wire.Hello](out); h == nil || h.Throws != 2 || h.Local {
		t.Errorf("hello %+v", h)
	}
	b.welcome(0)
	b.throws++
	out = b.step(executor.Tick{})
	if h := said[*wire.Heartbeat](out); h == nil || h.Throws != 3 || h.Local {
		t.Errorf("heartbeat %+v", h)
	}
	if out = b.step(executor.Tick{}); said[*wire.Heartbeat](out) != nil {
		t.Error("it is told twice")
	}
}
