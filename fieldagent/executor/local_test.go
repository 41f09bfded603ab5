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
