package fieldagent_test

import (
	"testing"

	"github.com/apollo-11/apollo11/wire"
)

func TestInstructionIsExecutedAndReported(t *testing.T) {
	g := newGateway(t, "")
	b := newBoard(t, g.url(), g.url())
	b.start()
	g.until("hello", func() bool { return len(g.hellos) == 1 })
	in := write(t, 1, "GPIO17", 1)
	g.send(in)
	g.until("result", func() bool { return len(g.results(1)) == 1 })
	e := g.results(1)[0]
	if e.Code != wire.CodeOK || e.ReceivedAt == 0 || e.StartedAt == 0 || e.FinishedAt == 0 || e.Token != in.Token {
		t.Fatalf("got %s %+v", describe(e), e)
	}
	g.until("heartbeats", func() bool { return g.beats >= 2 })
	b.stop()
	if n := b.moves(); n[in.Token.String()] != 1 {
		t.Fatalf("the pin was moved %d times: %v", n[in.Token.String()], n)
	}
	g.until("goodbye", func() bool { return len(g.byes) == 1 && !g.byes[0].Lost })
}
