package engine_test

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/apollo-11/apollo11/gateway/engine"
	"github.com/apollo-11/apollo11/wire"
)

// aheadSite is an engine with a node that follows the given rules.
func aheadSite(t *testing.T, counters engine.Counters, reserved engine.Reserved, rules wire.Rules) (*engine.Engine, engine.Now) {
	t.Helper()
	now := engine.Now{Mono: time.Minute, Wall: 1_700_000_000_000}
	e := engine.New(engine.Config{Reserve: 100}, counters, rand.New(rand.NewPCG(1, 2)))
	e.RestoreReserved(reserved)
	e.Step(now, &engine.Uplink{Node: "pump-1", Msg: &wire.Hello{Session: 1, Incarnation: 1, Short: wire.Short("pump-1"), First: 1, Next: 1,
		Clock: now.Wall, ClockSet: true, Rules: rules, Pins: []string{"lamp"},
		Traits: []wire.PinTraits{{Line: wire.LineOf("chip:1"), Flags: wire.PinOutput | wire.PinHasSafe}}}})
	return e, now
}

func writeLamp(t *testing.T, level uint64) *engine.Submit {
	t.Helper()
	args, err := wire.EncodeMap(map[string]any{"pin": "lamp", "level": level}, wire.MaxArgsBytes)
	if err != nil {
		t.Fatal(err)
	}
	return &engine.Submit{Spec: engine.Spec{Intent: wire.IntentGPIOWrite, Nodes: []string{"pump-1"}, Args: args}, Path: engine.PathHTTP}
}

// Only what is towards safe goes ahead, with its line, to a node that knows the message,
// and to one that is there.
func TestWhatGoesAheadOfItsRecord(t *testing.T) {
	e, now := aheadSite(t, engine.Counters{Shard: 1, Epoch: 1}, engine.Reserved{}, wire.RulesUrgent)
	e.Step(now, writeLamp(t, 1))
	e.Step(now, writeLamp(t, 0))
	list := e.Ready(now).Effects.Urgent
	if len(list) != 1 || list[0].Msg.Seq != 2 || !slices.Equal(list[0].Msg.Lines, []wire.LineKey{wire.LineOf("chip:1")}) {
		t.Fatalf("%+v", list)
	}
	if _, err := wire.Encode(list[0].Msg); err != nil {
		t.Error(err)
	}
	e.Step(now, &engine.NodeGone{Node: "pump-1", Session: 1})
	e.Step(now, writeLamp(t, 0))
	if list := e.Ready(now).Effects.Urgent; len(list) != 0 {
		t.Errorf("to a node that is away: %+v", list)
	}
	old, now := aheadSite(t, engine.Counters{Shard: 1, Epoch: 1}, engine.Reserved{}, wire.RulesOrder)
	old.Step(now, writeLamp(t, 0))
	if list := old.Ready(now).Effects.Urgent; len(list) != 0 {
		t.Errorf("to a node that does not know it: %+v", list)
	}
}

// safety.md 1: an agent that has driven something by an instruction whose record was lost
// is believed, as that: it is no sign of an older copy, ends nothing, and its number is not
// given out again. What the log knows, and what it never reserved, is none of it.
func TestLostRecordIsToldAsSuch(t *testing.T) {
	e, now := aheadSite(t, engine.Counters{Shard: 1, Epoch: 1, NextSeq: 50, NextToken: 60}, engine.Reserved{Seq: 100, Token: 110}, wire.RulesUrgent)
	e.Step(now, writeLamp(t, 1))
	e.Ready(now)
	driven := func(seq uint64) (kinds []string, dead int) {
		e.Step(now, &engine.Uplink{Node: "pump-1", Msg: &wire.Report{States: []wire.State{{Seq: seq, Token: wire.Token{Seq: 77}, Status: wire.StatusDriven}}}})
		r := e.Ready(now)
		for _, a := range r.Effects.Alarms {
			kinds = append(kinds, a.Kind+" "+a.Subject)
		}
		return kinds, len(r.Records.DeadLetters)
	}
	for _, seq := range []uint64{49, 100, 5000} {
		if kinds, dead := driven(seq); len(kinds) != 0 || dead != 0 {
			t.Errorf("of instruction %d: %v, %d dead letters", seq, kinds, dead)
		}
	}
	if kinds, dead := driven(50); !slices.Equal(kinds, []string{"safe_record_lost pump-1"}) || dead != 0 {
		t.Errorf("%v, %d dead letters", kinds, dead)
	}
	u := e.Unfinished()
	if len(u) != 1 || u[0].Task.First != 100 || u[0].Instructions[0].State.Settled() {
		t.Errorf("%+v", u)
	}
}

// Between two rounds an instruction is not tried twice: of each attempt that is sent the
// log has to know.
func TestNoSecondAttemptBeforeTheFirstIsWritten(t *testing.T) {
	e, now := aheadSite(t, engine.Counters{Shard: 1, Epoch: 1}, engine.Reserved{}, wire.RulesUrgent)
	e.Ready(now)
	e.Step(now, writeLamp(t, 0))
	first := e.Urgent(now)
	if len(first) != 1 {
		t.Fatalf("%+v", first)
	}
	// The board comes back with an empty card while the disk hangs.
	e.Step(now, &engine.NodeGone{Node: "pump-1", Session: 1})
	now.Mono, now.Wall = now.Mono+time.Minute, now.Wall+60_000
	e.Step(now, &engine.Uplink{Node: "pump-1", Msg: &wire.Hello{Session: 2, Incarnation: 2, Short: wire.Short("pump-1"), First: 1, Next: 1,
		Clock: now.Wall, ClockSet: true, Rules: wire.RulesUrgent, Pins: []string{"lamp"},
		Traits: []wire.PinTraits{{Line: wire.LineOf("chip:1"), Flags: wire.PinOutput | wire.PinHasSafe}}}})
	r := e.Ready(now)
	if n := len(r.Records.Instructions); n != 1 || r.Records.Instructions[0].Instruction.Attempt != 1 {
		t.Fatalf("%+v", r.Records.Instructions)
	}
	if r.Deadline == 0 || r.Deadline > now.Mono {
		t.Errorf("the next round is due at %v, it is %v", r.Deadline, now.Mono)
	}
	r = e.Ready(now)
	if len(r.Effects.Urgent) != 1 || r.Effects.Urgent[0].Msg.Token == first[0].Msg.Token || r.Records.Instructions[0].Instruction.Attempt != 2 {
		t.Errorf("%+v", r.Effects.Urgent)
	}
}
