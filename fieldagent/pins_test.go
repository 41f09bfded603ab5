package fieldagent_test

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/apollo-11/apollo11/fieldagent"
	"github.com/apollo-11/apollo11/fieldagent/gpio"
	"github.com/apollo-11/apollo11/wire"
)

// pinMap reads a pin map as it stands in a file.
func pinMap(t *testing.T, text string) []gpio.PinConfig {
	t.Helper()
	var c fieldagent.Config
	must(t, c.ReadConfig(strings.NewReader(text)))
	return c.Pins
}

// plantAgent is an agent with a pin map on a simulated board that the test holds.
type plantAgent struct {
	t     *testing.T
	cfg   fieldagent.Config
	sim   *gpio.Sim
	agent *fieldagent.Agent
	stop  context.CancelFunc
	done  chan error
}

func startMapped(t *testing.T, url string, sim *gpio.Sim, pins string) *plantAgent {
	t.Helper()
	m := &plantAgent{t: t, cfg: newBoard(t, url, "").cfg, sim: sim, done: make(chan error, 1)}
	m.cfg.Pins = pinMap(t, pins)
	var err error
	m.agent, err = fieldagent.New(m.cfg, "test", slog.New(slog.NewTextHandler(testWriter{t}, nil)))
	must(t, err)
	m.agent.UseBoard(sim)
	ctx, cancel := context.WithCancel(context.Background())
	m.stop = cancel
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		m.done <- m.agent.Run(ctx)
	}()
	t.Cleanup(func() { cancel(); <-ended })
	return m
}

// ended waits for the end of the agent.
func (m *plantAgent) ended() error {
	m.t.Helper()
	select {
	case err := <-m.done:
		return err
	case <-time.After(15 * time.Second):
		m.t.Fatal("the agent does not end")
		return nil
	}
}

const plant = `
pins:
  - name: valve-1
    line: GPIO17
    direction: out
    active_low: true
    safe: 0
  - {name: door, line: GPIO4, direction: in}
`

func newSim(t *testing.T) *gpio.Sim {
	t.Helper()
	sim, err := gpio.NewSim(gpio.SimOptions{})
	must(t, err)
	return sim
}

func TestWithAPinMapOnlyItsPinsAreUsedByTheirNames(t *testing.T) {
	g, sim := newGateway(t, ""), newSim(t)
	m := startMapped(t, g.url(), sim, plant)
	g.until("hello", func() bool { return len(g.hellos) == 1 })
	g.set(func() {
		if got := strings.Join(g.hellos[0].Pins, " "); got != "valve-1 door" {
			t.Errorf("the hello has the pins %q", got)
		}
	})
	// Safe before the first connection: active-low, so the line is high.
	if sim.Level("GPIO17") != gpio.High || sim.Flips("GPIO17") != 1 {
		t.Errorf("line %v after %d edges", sim.Level("GPIO17"), sim.Flips("GPIO17"))
	}
	for _, c := range []struct {
		in   *wire.Instruction
		want wire.Code
	}{
		{write(t, 1, "valve-1", 1), wire.CodeOK},
		{write(t, 2, "GPIO17", 1), wire.CodeNoSuchPin},
		{write(t, 3, "GPIO20", 1), wire.CodeNoSuchPin},
		{write(t, 4, "door", 1), wire.CodeUnsupported},
	} {
		g.send(c.in)
		g.until("result", func() bool { return len(g.results(c.in.Seq)) == 1 })
		if e := g.got(c.in.Seq)[0]; e.Code != c.want {
			t.Errorf("instruction %d: %s, want %s", c.in.Seq, describe(e), c.want)
		}
	}
	if sim.Level("GPIO17") != gpio.Low {
		t.Error("it is not on")
	}
	m.stop()
	must(t, m.ended())
	if sim.Level("GPIO17") != gpio.High || sim.Flips("GPIO17") != 3 {
		t.Errorf("stopped: line %v after %d edges", sim.Level("GPIO17"), sim.Flips("GPIO17"))
	}
}

// I6: a pin that can't be had stops the agent before it has spoken to anybody, and
// the error has them all.
func TestI6_PinThatCannotBeHadStopsTheAgentAtStart(t *testing.T) {
	door, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	visitor := make(chan error, 1)
	go func() {
		_, err := door.Accept()
		visitor <- err
	}()
	sim := newSim(t)
	sim.Hold("GPIO17", "spi0")
	sim.Hold("GPIO4", "w1-gpio")
	err = startMapped(t, "tcp://"+door.Addr().String(), sim, plant).ended()
	for _, want := range []string{`pin "valve-1"`, `by "spi0"`, `pin "door"`, `by "w1-gpio"`} {
		if !errors.Is(err, gpio.ErrBusy) || !strings.Contains(err.Error(), want) {
			t.Errorf("%v\nwant ErrBusy with %q", err, want)
		}
	}
	must(t, door.Close())
	if err := <-visitor; err == nil {
		t.Error("it has gone to the gateway")
	}
}

// I7, I8: the pin map is read again while the agent works; what stays sees
// nothing of it.
func TestI7_I8_PinMapIsReloadedWhileTheAgentWorks(t *testing.T) {
	g, sim := newGateway(t, ""), newSim(t)
	m := startMapped(t, g.url(), sim, plant)
	g.until("hello", func() bool { return len(g.hellos) == 1 })
	g.send(write(t, 1, "valve-1", 1))
	g.until("result", func() bool { return len(g.results(1)) == 1 })
	flips := sim.Flips("GPIO17")
	again := m.cfg
	again.Pins = append(pinMap(t, plant), gpio.PinConfig{Name: "lamp", Line: "GPIO20", Mode: gpio.Output})
	must(t, m.agent.Reload(t.Context(), again))
	g.send(write(t, 2, "lamp", 1))
	g.until("result", func() bool { return len(g.results(2)) == 1 })
	if e := g.got(2)[0]; e.Code != wire.CodeOK || sim.Level("GPIO20") != gpio.High {
		t.Errorf("the new pin: %s", describe(e))
	}
	if n := sim.Flips("GPIO17") - flips; n != 0 || sim.Level("GPIO17") != gpio.Low {
		t.Errorf("the pin that stays has seen %d edges", n)
	}
	other := again
	other.Node, other.Workers = "another", 7
	if err := m.agent.Reload(t.Context(), other); err == nil || !strings.Contains(err.Error(), "node, workers cannot be changed while the agent runs: restart it") {
		t.Errorf("other settings: %v", err)
	}
	other = again
	other.Pins = append(pinMap(t, plant), gpio.PinConfig{Name: "bad name", Mode: gpio.Output})
	if err := m.agent.Reload(t.Context(), other); err == nil || !strings.Contains(err.Error(), "bad name") {
		t.Errorf("a fault in the map: %v", err)
	}
	m.stop()
	must(t, m.ended())
	if err := m.agent.Reload(t.Context(), again); err == nil || !strings.Contains(err.Error(), "not running") {
		t.Errorf("after the end: %v", err)
	}
}

func TestPinMapIsReadWithAllItsKeys(t *testing.T) {
	pins := pinMap(t, `
pins:
  - name: valve-1
    line: pinctrl-bcm2835:17
    direction: out
    active_low: true
    bias: pull-up
    safe: 0
    max_on: 10m
    on_loss: safe
  - name: door
    direction: in
    bias: disabled
    debounce: 20ms
`)
	if len(pins) != 2 {
		t.Fatalf("%+v", pins)
	}
	valve, door := pins[0], pins[1]
	if valve.Safe == nil || *valve.Safe != gpio.Low {
		t.Errorf("safe %v", valve.Safe)
	}
	valve.Safe = nil
	if valve != (gpio.PinConfig{Name: "valve-1", Line: "pinctrl-bcm2835:17", Mode: gpio.Output, ActiveLow: true, Bias: gpio.PullUp, MaxOn: 10 * time.Minute, OnLoss: gpio.FallSafe}) {
		t.Errorf("valve %+v", valve)
	}
	if door != (gpio.PinConfig{Name: "door", Mode: gpio.Input, Bias: gpio.NoPull, Debounce: 20 * time.Millisecond}) {
		t.Errorf("door %+v", door)
	}
}

func TestFaultsOfAPinMapAreAllNamedWithTheirPlace(t *testing.T) {
	var c fieldagent.Config
	err := c.ReadConfig(strings.NewReader(`
pins:
  - name: a
    direction: both
    active_low: yes
    bias: up
    safe: 2
    max_on: 10
    on_loss: off
  - direction: in
    debounce: -1s
    colour: red
    line:
  - just text
  - {name: b, name: c, direction: in}
`))
	for _, want := range []string{
		`line 4, column 5: direction: "both" is neither out nor in`,
		`line 5, column 5: active_low is true or false, not "yes"`,
		`line 6, column 5: bias: "up" is none of as-is, disabled, pull-up, pull-down`,
		`line 7, column 5: safe: level "2" is neither 0 nor 1`,
		`line 8, column 5: max_on is a time with a unit, like 500ms, 20s or 10m, not "10"`,
		`line 9, column 5: on_loss: "off" is neither hold nor safe`,
		`line 10, column 5: the pin needs a name`,
		`line 11, column 5: debounce is a time`,
		`line 12, column 5: unknown setting "colour" of a pin; there are name, line`,
		`line 13, column 5: line has no value`,
		`line 14, column 5: a pin is written as`,
		`line 15, column 15: name is set twice`,
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("no %q in\n%v", want, err)
		}
	}
	for text, want := range map[string]string{
		"pins: []":     "pins is empty",
		"pins: GPIO17": "pins is a list",
		"pins:":        "pins is a list",
	} {
		if err := c.ReadConfig(strings.NewReader(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}

func TestPinMapIsValidatedWithTheRest(t *testing.T) {
	c := fieldagent.DefaultConfig()
	c.Pins = []gpio.PinConfig{{Name: "a b", Mode: gpio.Output}, {Name: "c", Mode: gpio.Output, MaxOn: time.Minute}}
	err := c.Validate()
	for _, want := range []string{"gateway: is missing", `pins: pin "a b"`, `pins: pin "c": max_on and on_loss need a safe level`} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("no %q in\n%v", want, err)
		}
	}
}
