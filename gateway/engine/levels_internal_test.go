package engine

import (
	"testing"

	"github.com/apollo-11/apollo11/wire"
)

// TestB27_TheLevelThatTheResultTells: an intent whose arguments name no level, as one that
// inverts its pin, says in its result which one that has; of what it does not say nobody
// knows the level.
func TestB27_TheLevelThatTheResultTells(t *testing.T) {
	lamp := wire.LineOf("gpiochip0:17")
	for name, c := range map[string]struct {
		state   State
		act     wire.Act
		payload map[string]any
		known   bool
		high    bool
	}{
		"on":                   {StateSucceeded, wire.Act{Pins: []string{"lamp"}}, map[string]any{"pin": "lamp", "level": uint64(1)}, true, true},
		"off":                  {StateSucceeded, wire.Act{Pins: []string{"lamp"}}, map[string]any{"pin": "lamp", "level": uint64(0)}, true, false},
		"the arguments say it": {StateSucceeded, wire.Act{Pins: []string{"lamp"}, Sets: true}, map[string]any{"pin": "lamp", "level": uint64(1)}, true, false},
		"no level":             {StateSucceeded, wire.Act{Pins: []string{"lamp"}}, map[string]any{"pin": "lamp"}, false, false},
		"no such level":        {StateSucceeded, wire.Act{Pins: []string{"lamp"}}, map[string]any{"pin": "lamp", "level": uint64(2)}, false, false},
		"nothing":              {StateSucceeded, wire.Act{Pins: []string{"lamp"}}, nil, false, false},
		"of another pin":       {StateSucceeded, wire.Act{Pins: []string{"lamp"}}, map[string]any{"pin": "horn", "level": uint64(1)}, false, false},
		"one of two":           {StateSucceeded, wire.Act{Pins: []string{"lamp", "horn"}}, map[string]any{"pin": "lamp", "level": uint64(1)}, false, false},
		"it did not succeed":   {StateTimeout, wire.Act{Pins: []string{"lamp"}}, map[string]any{"pin": "lamp", "level": uint64(1)}, false, false},
	} {
		c.act.Holds = wire.HoldsPins
		payload, err := wire.EncodeMap(c.payload, wire.MaxPayloadBytes)
		if err != nil {
			t.Fatal(err)
		}
		n := &node{}
		n.pins = map[string]int{"lamp": 0, "horn": 1}
		n.Pins = []string{"lamp", "horn"}
		n.Traits = []wire.PinTraits{{Line: lamp, Flags: wire.PinOutput}, {Line: lamp + 1, Flags: wire.PinOutput}}
		n.noteLevel(lamp, false, 1) // as it was
		i := &inst{task: &task{act: c.act}, node: n, Instruction: Instruction{Seq: 7, Attempt: 1, State: c.state, Begun: true, Payload: payload}}
		new(Engine).levelsMoved(i)
		if b, ok := n.levels.news[lamp]; ok != c.known || b.high != c.high {
			t.Errorf("%s: known %v as high %v, want %v, %v", name, ok, b.high, c.known, c.high)
		}
	}
}

// Whatever names a pin is told with it.
func TestWhatAnInstructionDoesNamesItsPin(t *testing.T) {
	for want, act := range map[string]wire.Act{
		"x of lamp to 1": {Pins: []string{"lamp"}, Sets: true, Level: true},
		"x of lamp":      {Pins: []string{"lamp"}},
		"x":              {},
	} {
		i := &inst{task: &task{act: act}, Instruction: Instruction{Intent: "x"}}
		if got := i.what(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
