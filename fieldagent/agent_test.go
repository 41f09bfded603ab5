package fieldagent_test

import (
	"strings"
	"testing"
	"time"

	"github.com/apollo-11/apollo11/fieldagent/gpio"
	"github.com/apollo-11/apollo11/wire"
)

func TestInstructionIsExecutedAndReported(t *testing.T) {
	g := newGateway(t, "")
	b := newBoard(t, g.url(), g.url())
	b.start()
	g.until("hello", func() bool { return len(g.hellos) == 1 })
	var h *wire.Hello
	g.set(func() { h = g.hellos[0] })
	if h.Board != gpio.BoardSim || len(h.Pins) == 0 || len(h.Intents) < 4 || h.Short != wire.Short(node) {
		t.Errorf("hello %+v", h)
	}
	in := write(t, 1, "GPIO17", 1)
	g.send(in)
	g.until("result", func() bool { return len(g.results(1)) == 1 })
	e := g.got(1)[0]
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

// E13: what can't be done comes back with its own code and a sentence.
func TestE13_RefusalsHaveTheirOwnCodes(t *testing.T) {
	g := newGateway(t, "")
	b := newBoard(t, g.url(), "")
	b.start()
	g.until("hello", func() bool { return len(g.hellos) == 1 })
	late := write(t, 4, "GPIO17", 1)
	late.NotAfter = late.SentAt - 1000
	cases := []struct {
		in   *wire.Instruction
		want wire.Code
	}{
		{instruction(t, 1, "make_coffee", nil), wire.CodeUnknownIntent},
		{instruction(t, 2, wire.IntentGPIOWrite, map[string]any{"pin": "GPIO17"}), wire.CodeBadArgs},
		{write(t, 3, "GPIO99", 1), wire.CodeNoSuchPin},
		{late, wire.CodeExpired},
	}
	for _, c := range cases {
		g.send(c.in)
		g.until("refusal", func() bool { return len(g.results(c.in.Seq)) == 1 })
		if e := g.got(c.in.Seq)[0]; e.Code != c.want || e.Detail == "" || e.StartedAt != 0 {
			t.Errorf("%s: %s, want %s", c.in.Intent, describe(e), c.want)
		}
	}
	b.stop()
	if n := b.moves(); len(n) != 0 {
		t.Errorf("pins were moved: %v", n)
	}
}

// D1: twenty copies at once, one after the result, one after a restart.
func TestD1_CopiesOfATokenMoveThePinOnce(t *testing.T) {
	g := newGateway(t, "")
	b := newBoard(t, g.url(), "")
	b.start()
	g.until("hello", func() bool { return len(g.hellos) == 1 })
	in := write(t, 1, "GPIO17", 1)
	for range 20 {
		g.send(in)
	}
	g.until("result", func() bool { return len(g.results(1)) >= 1 })
	g.send(in)
	g.until("answer", func() bool { return len(g.reports) > 0 })
	b.stop()
	b.start()
	g.until("second hello", func() bool { return len(g.hellos) == 2 })
	g.set(func() { g.reports = nil })
	g.send(in)
	g.until("answer", func() bool {
		return len(g.reports) == 1 && g.reports[0].States[0].Status == wire.StatusDone && g.reports[0].States[0].Code == wire.CodeOK
	})
	b.stop()
	if n := b.moves(); n[in.Token.String()] != 1 {
		t.Errorf("the pin was moved %d times", n[in.Token.String()])
	}
	for _, e := range g.got(1) {
		if e.Code != wire.CodeOK {
			t.Errorf("told as %s", describe(e))
		}
	}
}

// A19: many changes of one pin, as fast as they go.
func TestA19_LastOfManyWritesWins(t *testing.T) {
	g := newGateway(t, "")
	b := newBoard(t, g.url(), "")
	b.cfg.Workers = 8
	b.start()
	g.until("hello", func() bool { return len(g.hellos) == 1 })
	const n, window = 200, 16
	for seq := range uint64(n) {
		g.send(write(t, seq+1, "GPIO17", seq%2))
		g.until("room", func() bool { return len(g.events)+window > int(seq) })
	}
	g.until("all results", func() bool { return len(g.results(n)) == 1 })
	b.stop()
	acts, err := gpio.ReadTrace(b.cfg.GPIOTrace)
	must(t, err)
	if len(acts) != n {
		t.Fatalf("%d actuations", len(acts))
	}
	for i, a := range acts {
		if want := (wire.Token{Shard: 1, Seq: uint64(i + 1), Rand: 7}).String(); a.Cause != want || a.Level != gpio.Level(i%2 == 1) {
			t.Fatalf("actuation %d is %+v, want that of %s", i+1, a, want)
		}
	}
}

// F4, F11: switching off does not wait for the end of a pulse, whoever sends it and
// however few workers there are.
func TestF4_F11_OffEndsAPulseAtOnce(t *testing.T) {
	g := newGateway(t, "")
	b := newBoard(t, g.url(), "")
	b.cfg.Workers = 1
	off := gpio.Low
	b.cfg.Pins = []gpio.PinConfig{{Name: "GPIO17", Mode: gpio.Output, Safe: &off}}
	b.start()
	g.until("hello", func() bool { return len(g.hellos) == 1 })
	g.send(instruction(t, 1, wire.IntentGPIOPulse, map[string]any{"pin": "GPIO17", "width_ms": uint64(300_000)}))
	g.until("start", func() bool { return len(g.events) == 1 })
	g.send(write(t, 2, "GPIO17", 0))
	g.until("results", func() bool { return len(g.results(1)) == 1 && len(g.results(2)) == 1 })
	if e := g.got(1)[0]; e.Code != wire.CodeCancelled || !strings.Contains(e.Detail, "ended early by instruction 2: the pulse was cut short") {
		t.Errorf("the pulse: %s", describe(e))
	}
	if e := g.got(2)[0]; e.Code != wire.CodeOK {
		t.Errorf("the write: %s", describe(e))
	}
	b.stop()
	acts, err := gpio.ReadTrace(b.cfg.GPIOTrace)
	must(t, err)
	for i, a := range acts { // first to its safe level
		if a.Level != (i == 1) {
			t.Errorf("actuation %d is %+v", i, a)
		}
	}
	if len(acts) < 3 {
		t.Errorf("%d actuations", len(acts))
	}
}

// C1, C6: what waits is given back with the goodbye, after the end of what ran.
func TestC1_C6_StopGivesBackWhatWaits(t *testing.T) {
	g := newGateway(t, "")
	b := newBoard(t, g.url(), "")
	b.start()
	g.until("digest", func() bool { return len(g.digests) == 1 && g.digests[0].Count == 0 })
	g.send(instruction(t, 1, wire.IntentGPIOPulse, map[string]any{"pin": "GPIO17", "width_ms": uint64(300_000)}))
	in := write(t, 2, "GPIO17", 1)
	g.send(in)
	g.until("both", func() bool { return len(g.events) == 2 })
	b.stop()
	g.until("goodbye", func() bool { return len(g.byes) == 1 })
	g.set(func() {
		if bye := g.byes[0]; bye.Lost || len(bye.Unstarted) != 1 || bye.Unstarted[0].Token != in.Token {
			t.Errorf("goodbye %+v", bye)
		}
		if r := g.results(1); len(r) != 1 || r[0].Code != wire.CodeInterrupted {
			t.Errorf("results of the pulse: %v", r)
		}
	})
}

// B3: the gateway takes nothing on the primary path; it hears of the result on
// the other one, and of the whole of it later.
func TestB3_NarrowbandTellsWhatThePrimaryPathCannot(t *testing.T) {
	g := newGateway(t, "")
	b := newBoard(t, g.url(), g.url())
	b.start()
	g.until("hello", func() bool { return len(g.hellos) == 1 })
	g.set(func() { g.deaf = true })
	g.send(write(t, 1, "GPIO17", 1))
	g.until("compact ack", func() bool { return len(g.compact) == 1 })
	var a wire.CompactAck
	g.set(func() { a = g.compact[0] })
	if a.Seq != 1 || a.Attempt != 1 || a.Code != wire.CodeOK {
		t.Errorf("told %+v", a)
	}
	g.set(func() { g.deaf = false })
	g.until("result", func() bool { return len(g.results(1)) == 1 })
}

// B17, F9: the broker goes away with everything that it knows while a pulse runs.
// The result is told within 5 s of its return, and commands arrive again.
func TestB17_F9_StoredResultIsToldWhenTheBrokerReturns(t *testing.T) {
	g := newGateway(t, "")
	address := g.tcp.Addr().String()
	b := newBoard(t, g.url(), "")
	b.start()
	g.until("hello", func() bool { return len(g.hellos) == 1 })
	g.send(instruction(t, 1, wire.IntentGPIOPulse, map[string]any{"pin": "GPIO4", "width_ms": uint64(400)}))
	g.until("start", func() bool { return len(g.events) == 1 })
	g.close()
	// Longer than the pulse and the first attempts to connect.
	waitUntil(t, "end of the pulse", func() bool {
		acts, err := gpio.ReadTrace(b.cfg.GPIOTrace)
		return err == nil && len(acts) == 2
	})

	g2 := newGateway(t, address)
	g2.set(func() { g2.last = 1 })
	g2.until("hello", func() bool { return len(g2.hellos) == 1 })
	hello := time.Now()
	g2.until("result", func() bool { return len(g2.results(1)) == 1 })
	if d := time.Since(hello); d > 5*time.Second {
		t.Errorf("told after %v", d)
	}
	if e := g2.got(1)[0]; e.Code != wire.CodeOK || e.Number != 2 {
		t.Errorf("told event %d: %s", e.Number, describe(e))
	}
	g2.send(write(t, 2, "GPIO17", 1))
	g2.until("next result", func() bool { return len(g2.results(2)) == 1 })
}

// A second agent with the same data directory is kept away from the pins.
func TestOneAgentADirectory(t *testing.T) {
	g := newGateway(t, "")
	b := newBoard(t, g.url(), "")
	b.start()
	g.until("hello", func() bool { return len(g.hellos) == 1 })
	second := &board{t: t, cfg: b.cfg}
	second.start()
	if err := <-second.done; err == nil {
		t.Error("both run")
	}
	second.cancel()
}

// waitUntil looks again and again, for things that nobody announces.
func waitUntil(t *testing.T, what string, cond func() bool) {
	t.Helper()
	for end := time.Now().Add(15 * time.Second); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		if cond() {
			return
		}
	}
	t.Fatalf("still not true: %s", what)
}
