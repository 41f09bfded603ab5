package executor_test

import (
	"testing"
	"time"

	"github.com/apollo-11/apollo11/fieldagent/executor"
	"github.com/apollo-11/apollo11/wire"
)

// C15: the disk of the gateway hangs, so that its answers come late, and the agent has said
// hello twice and a third time meanwhile. The second answer is old: measured from the third
// hello the gateway's time would seem a minute younger than it is, and what has expired
// would begin (explorer, seed 1954).
func TestAnOldAnswerIsNotMeasuredFromANewHello(t *testing.T) {
	b := newBench(t, config(1))
	b.session = 9
	b.step(executor.Connected{Session: 9})
	b.mono = 5 * time.Second
	b.step(executor.Tick{})
	welcome := func(at, decided time.Duration) {
		b.mono = at
		b.receive(&wire.Welcome{Session: 9, Epoch: 1, Now: b.gateway + decided.Milliseconds(), HeartbeatMs: 5000, Phases: wire.MaxPhase, Rules: wire.NewestRules})
	}
	welcome(6*time.Second, 0)
	b.mono = 70 * time.Second
	in := b.instruction(1, "a")
	in.NotAfter = b.gateway + 67_000 // it may have passed: the agent asks once more
	in.SentAt = 0
	hellos := 0
	for _, m := range b.receive(in).Primary {
		if _, ok := m.(*wire.Hello); ok {
			hellos++
		}
	}
	if hellos != 1 {
		t.Fatalf("%d hellos", hellos)
	}
	welcome(71*time.Second, 5*time.Second)
	if !b.core.Clock().Late(b.at(), b.gateway+30_000, false) {
		t.Error("41 s after its time limit it may begin")
	}
	if b.core.Clock().Late(b.at(), b.gateway+80_000, false) {
		t.Error("9 s before its time limit it is late")
	}
}
