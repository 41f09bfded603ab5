package explore

import (
	"fmt"
	"slices"
	"time"

	"github.com/apollo-11/apollo11/fieldagent/executor"
	"github.com/apollo-11/apollo11/fieldagent/lines"
	"github.com/apollo-11/apollo11/wire"
)

// pinDef is what a board's pin map says of a name.
type pinDef struct {
	name    string
	line    wire.LineKey
	output  bool
	hasSafe bool
	safe    bool          // its safe level
	onLoss  bool          // it goes to its safe level when the gateway is lost
	maxOn   time.Duration // the longest time that it may be away from it, 0 for as long as it likes
}

// away reports whether a level is away from the safe one.
func (p *pinDef) away(level bool) bool { return p.hasSafe && level != p.safe }

// pinMap is the pin map of a board. A reload exchanges the lines of two names.
type pinMap struct {
	pins   []pinDef
	byName map[string]*pinDef
	byLine map[wire.LineKey]*pinDef
}

// guarded are the outputs with a safe level, plain those without one, inputs the rest.
var (
	guarded = []string{"L0", "L1", "L2", "L3"}
	plain   = []string{"P0", "P1", "P2", "P3"}
	inputs  = []string{"I0", "I1"}
)

// newPinMap is the map of every board at the start: a valve that falls with the gateway,
// a heater that its map lets on for five seconds, a plain lamp, a fan whose safe level
// is on, four outputs without a safe level, and two inputs.
func newPinMap() *pinMap {
	list := []pinDef{{name: "L0", onLoss: true}, {name: "L1", maxOn: 5 * time.Second}, {name: "L2"}, {name: "L3", safe: true}}
	for k := range list {
		list[k].output, list[k].hasSafe = true, true
	}
	for _, n := range plain {
		list = append(list, pinDef{name: n, output: true})
	}
	for _, n := range inputs {
		list = append(list, pinDef{name: n})
	}
	for k := range list {
		list[k].line = wire.LineOf(fmt.Sprintf("chip0:%d", k))
	}
	return indexed(list)
}

func indexed(list []pinDef) *pinMap {
	m := &pinMap{list, map[string]*pinDef{}, map[wire.LineKey]*pinDef{}}
	for k := range list {
		m.byName[list[k].name], m.byLine[list[k].line] = &list[k], &list[k]
	}
	return m
}

// exchanged is the map in which two names have changed their lines.
func (m *pinMap) exchanged(a, b string) *pinMap {
	n := indexed(slices.Clone(m.pins))
	n.byName[a].line, n.byName[b].line = n.byName[b].line, n.byName[a].line
	return indexed(n.pins)
}

// names and traits are what a hello says of the map.
func (m *pinMap) names() (list []string) {
	for k := range m.pins {
		list = append(list, m.pins[k].name)
	}
	return list
}

func (m *pinMap) traits() []wire.PinTraits {
	var list []wire.PinTraits
	for k := range m.pins {
		p := &m.pins[k]
		t := wire.PinTraits{Line: p.line, MaxOnMs: uint64(p.maxOn.Milliseconds())}
		for _, f := range []struct {
			is   bool
			flag wire.PinFlags
		}{{p.output, wire.PinOutput}, {p.hasSafe, wire.PinHasSafe}, {p.hasSafe && p.safe, wire.PinSafeHigh}, {p.onLoss, wire.PinOnLoss}} {
			if f.is {
				t.Flags |= f.flag
			}
		}
		list = append(list, t)
	}
	return list
}

// lines is the map as the core of the owner wants it.
func (m *pinMap) lines() (list []lines.Line) {
	for k := range m.pins {
		p := &m.pins[k]
		list = append(list, lines.Line{Key: p.line, Output: p.output, HasSafe: p.hasSafe, Safe: p.safe, OnLoss: p.onLoss, MaxOn: p.maxOn})
	}
	return list
}

// safe returns the safe level of a pin, and false if it has none.
func (m *pinMap) safe(pin string) (level, ok bool) {
	if p := m.byName[pin]; p != nil && p.hasSafe {
		return p.safe, true
	}
	return false, false
}

// of are the pins that an act names, or all with a safe level.
func (m *pinMap) of(a wire.Act) (list []*pinDef) {
	if a.Holds == wire.HoldsPins && len(a.Pins) == 0 {
		for k := range m.pins {
			if m.pins[k].hasSafe {
				list = append(list, &m.pins[k])
			}
		}
	}
	for _, n := range a.Pins {
		if p := m.byName[n]; p != nil {
			list = append(list, p)
		}
	}
	return list
}

// judge is the board's opinion on an instruction.
func (a *agent) judge(intent string, args wire.RawMap) executor.Verdict {
	refuse := func(c wire.Code, why string) executor.Verdict { return executor.Verdict{Code: c, Detail: why} }
	if !slices.Contains(boardIntents, intent) {
		return refuse(wire.CodeUnknownIntent, intent)
	}
	if intent == intentTurn {
		return executor.Verdict{Actuates: true, Board: true}
	}
	act, err := wire.ParseAct(intent, args)
	if err != nil {
		return refuse(wire.CodeBadArgs, err.Error())
	}
	m := a.pins.m
	for _, n := range act.Pins {
		switch p := m.byName[n]; {
		case p == nil:
			return refuse(wire.CodeNoSuchPin, n)
		case act.Sets && !p.output:
			return refuse(wire.CodeUnsupported, n+" is an input")
		case act.MaxOn > 0 && !p.hasSafe:
			return refuse(wire.CodeUnsupported, n+" has no safe level")
		case p.maxOn > 0 && act.Sets && p.away(act.Level) && (act.MaxOn > p.maxOn || act.Pulse && act.Lasts > p.maxOn):
			return refuse(wire.CodeBadArgs, "the pin map allows less")
		case act.Safe && !p.hasSafe:
			return refuse(wire.CodeUnsupported, n+" has no safe level")
		}
	}
	v := executor.Verdict{Lasts: act.Lasts, Actuates: act.Moves(), Watch: act.Watch, Board: act.Holds == wire.HoldsBoard,
		Towards: act.Towards(m.safe), Hold: act.Traits.Safe, Release: act.Release}
	if act.Watch {
		return v
	}
	v.Safe = act.Moves()
	for _, p := range m.of(act) {
		v.Lines = append(v.Lines, p.line)
		v.Safe = v.Safe && p.hasSafe
		if act.Pulse {
			v.Pulse = &executor.Pulse{Pin: p.name, Line: p.line, Off: !act.Level && !p.hasSafe || p.hasSafe && p.safe}
		}
	}
	return v
}

// boardIntents are those that every board can do.
var boardIntents = []string{wire.IntentGPIOWrite, wire.IntentGPIOPulse, wire.IntentGPIORead, wire.IntentGPIOWatch, wire.IntentSafe, wire.IntentRelease, intentTurn}
