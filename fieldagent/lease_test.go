package fieldagent_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/apollo-11/apollo11/fieldagent"
	"github.com/apollo-11/apollo11/fieldagent/gpio"
	"github.com/apollo-11/apollo11/wire"
)

// leased is an agent on a simulated board that the test holds in its hands: a
// valve that may be on for a minute and falls when the gateway is lost, a door, and
// a LOCAL switch.
type leased struct {
	*board
	sim *gpio.Sim
}

func newLeased(t *testing.T, url string) *leased {
	t.Helper()
	sim, err := gpio.NewSim(gpio.SimOptions{Names: []string{"valve", "lamp", "door", "local"}})
	must(t, err)
	off := gpio.Low
	b := &leased{newBoard(t, url, ""), sim}
	b.cfg.Pins = []gpio.PinConfig{
		{Name: "valve", Mode: gpio.Output, Safe: &off, MaxOn: time.Minute, OnLoss: gpio.FallSafe},
		{Name: "lamp", Mode: gpio.Output, Safe: &off},
		{Name: "door", Mode: gpio.Input}, {Name: "local", Mode: gpio.Input},
	}
	b.cfg.LocalSwitch = "local"
	return b
}

// startLeased starts such a board at a gateway of its own.
func startLeased(t *testing.T) (*gateway, *leased) {
	t.Helper()
	g := newGateway(t, "")
	b := newLeased(t, g.url())
	b.start()
	g.until("hello", func() bool { return len(g.hellos) == 1 })
	return g, b
}

func (b *leased) start() {
	b.t.Helper()
	a, err := fieldagent.New(b.cfg, "test", slog.New(slog.NewTextHandler(testWriter{b.t}, nil)))
	must(b.t, err)
	a.UseBoard(b.sim)
	ctx, cancel := context.WithCancel(context.Background())
	b.cancel, b.done = cancel, make(chan error, 1)
	go func() { b.done <- a.Run(ctx) }()
}

func on(t *testing.T, seq uint64, pin, maxOn string) *wire.Instruction {
	t.Helper()
	args := map[string]any{"pin": pin, "level": 1}
	if maxOn != "" {
		args["max_on"] = maxOn
	}
	return instruction(t, seq, wire.IntentGPIOWrite, args)
}

// C13, I1: the valve closes by itself while nobody answers the agent, and that is
// told when somebody does.
func TestC13_LeaseEndsWithoutTheGateway(t *testing.T) {
	g, b := startLeased(t)
	g.send(on(t, 1, "valve", "300ms"))
	g.until("the result", func() bool { return len(g.results(1)) == 1 })
	r := g.got(1)[0]
	m, err := wire.DecodeMap(r.Payload)
	must(t, err)
	if r.Code != wire.CodeOK || m["max_on_ms"] != uint64(300) || m["until_ms"].(uint64) < uint64(r.StartedAt+300) {
		t.Errorf("%v %s %v", r.Code, r.Detail, m)
	}
	g.set(func() { g.deaf = true })
	g.until("the valve to close", func() bool { return b.sim.Level("valve") == gpio.Low })
	g.until("the end to be sent", func() bool { return g.raw > 1 })
	g.set(func() { g.deaf = false })
	g.send(&wire.EventAck{Through: 1, Gap: true}) // or it would be sent again after 5 s
	g.until("the end to be told", func() bool { return fmt.Sprint(g.ends(1)) == "[expired]" })
	if n := b.sim.Flips("valve"); n != 2 {
		t.Errorf("the valve moved %d times", n)
	}
}

// C13: an agent that stops closes the valve and says so before its goodbye.
func TestC13_StopEndsTheLeaseAndSaysSo(t *testing.T) {
	g, b := startLeased(t)
	g.send(on(t, 1, "valve", ""))
	g.until("the result", func() bool { return len(g.results(1)) == 1 })
	b.stop()
	g.until("the goodbye", func() bool { return len(g.byes) == 1 })
	g.until("the end", func() bool { return fmt.Sprint(g.ends(1)) == "[stopped]" })
	if b.sim.Level("valve") != gpio.Low {
		t.Error("the valve is open")
	}
}

// C13, C6: an agent that was killed says at its next start that the lease has ended.
func TestC13_RestartEndsTheLease(t *testing.T) {
	g, b := startLeased(t)
	g.send(on(t, 1, "valve", ""))
	g.until("the result", func() bool { return len(g.results(1)) == 1 })
	// A copy of the journal as it is now is what a kill leaves behind.
	copied := filepath.Join(t.TempDir(), "data")
	must(t, os.CopyFS(copied, os.DirFS(b.cfg.Data)))
	b.stop()
	g.until("the end of the first life", func() bool { return len(g.ends(1)) == 1 })
	g.set(func() { g.events, g.last = g.events[:1], g.events[0].Number }) // as if it had never been told
	b.cfg.Data = copied
	b.sim.Drive("valve", gpio.High) // a killed process leaves the line as it was
	b.start()
	g.until("the end by the restart", func() bool { return fmt.Sprint(g.ends(1)) == "[restart]" })
	if b.sim.Level("valve") != gpio.Low {
		t.Error("the valve is open")
	}
}

// What a door does is told while it is watched, and the door can be read meanwhile.
func TestWatchTellsTheGateway(t *testing.T) {
	g := newGateway(t, "")
	b := newLeased(t, g.url())
	b.cfg.Workers = 1
	b.start()
	g.until("hello", func() bool { return len(g.hellos) == 1 })
	g.send(instruction(t, 1, wire.IntentGPIOWatch, map[string]any{"pin": "door", "for": "1m", "every": "100ms"}))
	g.until("the start", func() bool { return len(g.events) == 1 })
	b.sim.Drive("door", gpio.High)
	seen := func() (n int) {
		for _, e := range g.events {
			if m, err := wire.DecodeMap(e.Payload); err == nil && e.Phase == wire.PhaseProgress && m["pin"] == "door" {
				n += len(m["edges"].([]any))
			}
		}
		return n
	}
	g.until("the edge", func() bool { return seen() == 1 })
	g.send(instruction(t, 2, wire.IntentGPIORead, map[string]any{"pin": "door"}))
	g.until("the reading", func() bool { return len(g.results(2)) == 1 })
	b.sim.Drive("door", gpio.Low)
	g.until("the second edge", func() bool { return seen() == 2 })
	g.send(&wire.Cancel{Seq: 1, Token: wire.Token{Shard: 1, Seq: 1, Rand: 7}})
	g.until("the end", func() bool { return len(g.results(1)) == 1 })
	m, err := wire.DecodeMap(g.got(1)[0].Payload)
	must(t, err)
	if r := g.got(1)[0]; r.Code != wire.CodeCancelled || m["total"] != uint64(2) {
		t.Errorf("%v %s %v", r.Code, r.Detail, m)
	}
}

// C15: while the LOCAL switch is on nothing is moved from afar, from the first
// moment of the agent on.
func TestC15_LocalSwitchRefuses(t *testing.T) {
	g := newGateway(t, "")
	b := newLeased(t, g.url())
	b.sim.Drive("local", gpio.High)
	b.start()
	g.until("it is told", func() bool { return g.local })
	g.send(on(t, 1, "valve", ""))
	g.send(instruction(t, 2, wire.IntentGPIORead, map[string]any{"pin": "valve"}))
	g.until("the answers", func() bool { return len(g.results(1)) == 1 && len(g.results(2)) == 1 })
	if w, r := g.got(1)[0].Code, g.got(2)[0].Code; w != wire.CodeLocal || r != wire.CodeOK {
		t.Errorf("write %v, read %v", w, r)
	}
	b.sim.Drive("local", gpio.Low)
	g.until("it is over", func() bool { return !g.local })
	g.send(on(t, 3, "valve", ""))
	g.until("the write", func() bool { return len(g.results(3)) == 1 })
	if c := g.got(3)[0].Code; c != wire.CodeOK {
		t.Errorf("write %v", c)
	}
}

// C15, I11: what somebody changes by hand is told within a heartbeat and not fought.
func TestI11_LocalHandIsToldAndNotFought(t *testing.T) {
	g, b := startLeased(t)
	g.send(write(t, 1, "lamp", 1))
	g.until("the result", func() bool { return len(g.results(1)) == 1 })
	b.sim.Drive("lamp", gpio.Low)
	g.until("it is told", func() bool {
		return fmt.Sprint(g.foreign) == fmt.Sprint([]wire.Foreign{{Pin: "lamp", Commanded: 1, Found: 0}})
	})
	if b.sim.Level("lamp") != gpio.Low {
		t.Error("it was fought")
	}
	g.send(write(t, 2, "lamp", 1))
	g.until("it is over", func() bool { return len(g.results(2)) == 1 && len(g.foreign) == 0 })
}

func TestConfigurationOfTheLocalSwitchAndAutonomy(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*fieldagent.Config)
		ok     bool
	}{
		"as it is":                   {func(*fieldagent.Config) {}, true},
		"no switch":                  {func(c *fieldagent.Config) { c.LocalSwitch = "" }, true},
		"a switch without a map":     {func(c *fieldagent.Config) { c.Pins = nil }, false},
		"a switch that is output":    {func(c *fieldagent.Config) { c.LocalSwitch = "lamp" }, false},
		"a switch that is not there": {func(c *fieldagent.Config) { c.LocalSwitch = "GPIO99" }, false},
		"autonomy for ever":          {func(c *fieldagent.Config) { c.Autonomy, c.Pins[0].OnLoss = 0, gpio.Hold }, true},
		"D6: a loss that never is":   {func(c *fieldagent.Config) { c.Autonomy = 0 }, false},
		"autonomy too short":         {func(c *fieldagent.Config) { c.Autonomy = 29 * time.Second }, false},
		"autonomy too long":          {func(c *fieldagent.Config) { c.Autonomy = 121 * time.Second }, false},
		"negative autonomy":          {func(c *fieldagent.Config) { c.Autonomy = -time.Minute }, false},
	} {
		b := newLeased(t, "tcp://127.0.0.1:1")
		c.change(&b.cfg)
		if err := b.cfg.Validate(); (err == nil) != c.ok {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A15: what was decided in time and waits for the owner of the pins, whom another pin
// keeps busy, is asked again right before its pin moves.
func TestA15_NothingStartsLateAtABusyOwner(t *testing.T) {
	g, b := startLeased(t)
	b.sim.Fail(func(pin string, l gpio.Level) error {
		if pin == "lamp" && l == gpio.High {
			time.Sleep(1500 * time.Millisecond) // a slow driver, an expander on a bus
		}
		return nil
	})
	lamp := on(t, 1, "lamp", "")
	valve := on(t, 2, "valve", "10s")
	valve.NotAfter = time.Now().UnixMilli() + 600
	limit := valve.NotAfter
	g.send(lamp)
	time.Sleep(50 * time.Millisecond)
	g.send(valve)
	g.until("the results", func() bool { return len(g.results(1)) == 1 && len(g.results(2)) == 1 })
	for _, a := range b.sim.Actuations() {
		if a.Pin == "valve" && a.Level == gpio.High && a.At/1e6 > limit {
			t.Errorf("the valve was opened %d ms after not_after", a.At/1e6-limit)
		}
	}
	if c := g.got(2)[0].Code; c != wire.CodeExpired {
		t.Errorf("told as %v", c)
	}
}

// A8: "off for a second" runs; somebody throws the LOCAL switch and works at the load.
func TestA8_LocalEndsAnInversePulseSafe(t *testing.T) {
	g, b := startLeased(t)
	g.send(instruction(t, 1, wire.IntentGPIOPulse, map[string]any{"pin": "lamp", "level": 0, "width": "2s"}))
	time.Sleep(700 * time.Millisecond)
	b.sim.Drive("local", gpio.High)
	g.until("the result", func() bool { return len(g.results(1)) == 1 })
	time.Sleep(2 * time.Second)
	if r := g.got(1)[0]; b.sim.Level("lamp") == gpio.High || r.Code != wire.CodeCancelled {
		t.Errorf("the lamp is %v, told as %v", b.sim.Level("lamp"), r.Code)
	}
}

// A8: an orderly stop during the same pulse switches nothing on, not for a moment.
func TestA8_StopEndsAnInversePulseSafe(t *testing.T) {
	g, b := startLeased(t)
	g.send(instruction(t, 1, wire.IntentGPIOPulse, map[string]any{"pin": "lamp", "level": 0, "width": "60s"}))
	time.Sleep(500 * time.Millisecond)
	b.stop()
	for _, a := range b.sim.Actuations() {
		if a.Pin == "lamp" && a.Level == gpio.High {
			t.Errorf("%+v", a)
		}
	}
}

// A13: the safe level of a pin changes under a lease: what is told is what the pin has.
func TestA13_ReloadOfTheSafeLevelTellsWhatThePinHas(t *testing.T) {
	g := newGateway(t, "")
	b := newLeased(t, g.url())
	a, err := fieldagent.New(b.cfg, "test", slog.New(slog.NewTextHandler(testWriter{t}, nil)))
	must(t, err)
	a.UseBoard(b.sim)
	ctx, cancel := context.WithCancel(context.Background())
	b.cancel, b.done = cancel, make(chan error, 1)
	go func() { b.done <- a.Run(ctx) }()
	g.until("hello", func() bool { return len(g.hellos) == 1 })
	g.send(on(t, 1, "valve", "1s"))
	g.until("the result", func() bool { return len(g.results(1)) == 1 })
	cfg := b.cfg
	cfg.Pins = append([]gpio.PinConfig(nil), b.cfg.Pins...)
	high := gpio.High
	cfg.Pins[0].Safe = &high
	must(t, a.Reload(context.Background(), cfg))
	g.until("the end to be told", func() bool { return len(g.ends(1)) == 1 })
	g.until("the new map to be told", func() bool { return len(g.hellos) > 1 })
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, e := range g.events {
		if e.Phase == wire.PhaseLease {
			m, err := wire.DecodeMap(e.Payload)
			must(t, err)
			if has := b.sim.Level("valve"); m["level"] != uint64(1) || has != gpio.High {
				t.Errorf("told: %v, lease %v; the pin is %v", m, e.Lease, has)
			}
		}
	}
}

// B31: a pulse at an output without a safe level, and the agent is killed: the next
// start ends it; on a board without a pin map too, where no output has one.
func TestB31_RestartEndsAPulseWithoutASafeLevel(t *testing.T) {
	for _, mapped := range []bool{true, false} {
		t.Run(fmt.Sprint("mapped ", mapped), func(t *testing.T) { restartEndsAPulse(t, mapped) })
	}
}

func restartEndsAPulse(t *testing.T, mapped bool) {
	g := newGateway(t, "")
	b := newLeased(t, g.url())
	b.cfg.Pins = append([]gpio.PinConfig(nil), b.cfg.Pins...)
	b.cfg.Pins[1].Safe = nil // the lamp
	if !mapped {
		b.cfg.Pins, b.cfg.LocalSwitch = nil, ""
	}
	b.start()
	g.until("hello", func() bool { return len(g.hellos) == 1 })
	g.send(instruction(t, 1, wire.IntentGPIOPulse, map[string]any{"pin": "lamp", "level": 1, "width": "60s"}))
	g.until("the start", func() bool { return b.sim.Level("lamp") == gpio.High })
	copied := filepath.Join(t.TempDir(), "data") // what a kill leaves behind
	must(t, os.CopyFS(copied, os.DirFS(b.cfg.Data)))
	b.stop()
	b.cfg.Data = copied
	b.sim.Drive("lamp", gpio.High)
	b.start()
	g.until("the second start", func() bool { return len(g.hellos) == 2 })
	if b.sim.Level("lamp") != gpio.Low {
		t.Error("the line stays high for ever")
	}
}
