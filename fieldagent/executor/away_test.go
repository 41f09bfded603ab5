package executor_test

import (
	"testing"
	"time"

	"github.com/apollo-11/apollo11/fieldagent/executor"
	"github.com/apollo-11/apollo11/wire"
)

// A6: the shell knows of the end of the connections before the core does. What is about
// to begin is too late then, waits again, and begins when the gateway offers it again; the
// window counts from the end of the connections, not from the moment that the core
// learns of it.
func TestA6_TheWindowCountsFromTheEndOfTheConnections(t *testing.T) {
	cfg := config(1)
	cfg.Autonomy = time.Minute
	b := newBench(t, cfg)
	b.welcome(0)
	out := b.deliver(1, "a")
	if len(out.Start) != 1 || !out.Contact {
		t.Fatalf("%+v", out)
	}
	b.mono += 2 * time.Minute // the disk hangs
	b.away = 61 * time.Second
	if !b.core.TooLate(b.at(), out.Start[0].Token) {
		t.Fatal("it may begin, and the gateway is away for 61s of a window of 1m0s")
	}
	if out = b.step(executor.Unstarted{Tokens: []wire.Token{token(1)}}); len(out.Start) != 0 || out.Contact {
		t.Errorf("starts %v, contact %v", out.Start, out.Contact)
	}
	if out = b.step(executor.Disconnected{}); len(out.Start) != 0 {
		t.Errorf("starts %v: the window has begun anew", out.Start)
	}
	b.mono, b.away = b.mono+time.Second, b.away+time.Second
	if out = b.step(executor.Tick{}); len(out.Start) != 0 {
		t.Errorf("starts %v", out.Start)
	}
	b.away = 0
	if out = b.step(executor.Connected{Session: 9}); len(out.Start) != 0 {
		t.Errorf("starts %v before the welcome", out.Start)
	}
	b.session = 9
	if out = b.greet(&wire.Welcome{Rules: wire.NewestRules}); len(out.Start) != 0 || !out.Contact {
		t.Errorf("nobody has offered it in this session: starts %v, contact %v", out.Start, out.Contact)
	}
	if out = b.deliver(1, "a"); len(out.Start) != 1 {
		t.Errorf("starts %v", out.Start)
	}
}
