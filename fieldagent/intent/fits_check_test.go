package intent_test

import (
	"maps"
	"slices"
	"time"

	"github.com/apollo-11/apollo11/fieldagent/gpio"
	"github.com/apollo-11/apollo11/fieldagent/intent"
	"github.com/apollo-11/apollo11/wire"
)

// The pins of the plays: an input, an output without a safe level, one that is not in
// the map, and a second output with a safe level.
const input, lamp, missing, heater = "GPIO4", "GPIO27", "GPIO5", "GPIO18"

// away is the level of the valve that the example of an intent may drive and that is not
// its safe one.
func away(act wire.Act) gpio.Level {
	if act.Sets {
		return gpio.Level(act.Level)
	}
	return gpio.High
}

// actOf is what the example of an intent means.
func actOf(d wire.Declaration, all bool) wire.Act {
	a, err := wire.ParseArgs(d.Name, d.Example(all))
	if err != nil {
		panic(err)
	}
	return wire.ActOf(d.Name, a)
}

// refusalMaps are the pin maps with which the example, or what is made of it, is certain
// to be refused, by what is wrong.
func refusalMaps(d wire.Declaration, all bool) map[string][]gpio.PinConfig {
	act := actOf(d, all)
	list := map[string][]gpio.PinConfig{}
	if len(act.Pins) == 0 {
		return list
	}
	pins := func(longest time.Duration) []gpio.PinConfig {
		pins := valves()
		pins[0].Safe, pins[0].MaxOn = level(!away(act)), longest
		return pins
	}
	list["its own example"], list["a pin that is not there"] = pins(0), pins(0)
	if !act.Still || act.Release {
		list["an input"] = pins(0)
	}
	if act.Watch {
		list["an output"] = pins(0)
	}
	if act.MaxOn > 0 {
		list["longer than the pin map allows"] = pins(act.MaxOn - time.Millisecond)
		list["a time without a safe level"] = pins(0)
	}
	if act.Pulse {
		list["longer than the pin map allows"] = pins(act.Lasts - time.Millisecond)
	}
	if act.Safe {
		list["no safe level to go to"] = pins(0)
	}
	return list
}

// refusals checks what is certain to be refused, before anything is done and when it is
// done all the same.
func (p *play) refusals(what string) {
	pin, want := "", wire.CodeOK
	switch what {
	case "a pin that is not there":
		pin, want = missing, wire.CodeNoSuchPin
	case "an input":
		pin, want = input, wire.CodeUnsupported
	case "an output":
		pin, want = valve, wire.CodeUnsupported
	case "longer than the pin map allows":
		want = wire.CodeBadArgs
	case "a time without a safe level":
		pin, want = lamp, wire.CodeBadArgs
	case "no safe level to go to":
		pin, want = lamp, wire.CodeUnsupported
	}
	a := maps.Clone(p.args)
	for k, v := range a {
		if name, ok := v.(string); ok && pin != "" && slices.Contains(p.act.Pins, name) {
			a[k] = pin
		}
	}
	raw, err := wire.EncodeMap(a, wire.MaxArgsBytes)
	must(p.t, err)
	p.w.calls = 0
	n := len(p.board.Actuations())
	_, refused := p.r.Check(p.d.Name, raw)
	p.fault(p.w.calls == 0 && len(p.board.Actuations()) == n, "its Check of %s asks the pins for something", what)
	if want == wire.CodeOK {
		p.fault(refused == nil, "its Check refuses %s: %+v", what, refused)
		return
	}
	if refused == nil {
		p.fault(false, "its Check takes %s (%v): want %v", what, a, want)
	} else {
		p.fault(refused.Code == want && refused.Detail != "", "its Check says of %s %v: %q; want %v", what, refused.Code, refused.Detail, want)
	}
	r := p.r.Run(p.t.Context(), p.d.Name, raw, intent.Request{Cause: "t", Order: 7, Check: func() error { return nil }})
	p.fault(r.Code == want, "its Run says of %s %v; want %v", what, r.Code, want)
	p.fault(len(p.board.Actuations()) == n, "it moves something with %s", what)
}

// towardsMap is a pin map with which the example leads to the safe level, if it can.
func towardsMap(d wire.Declaration, all bool) []gpio.PinConfig {
	list := valves()
	if act := actOf(d, all); act.Sets {
		list[0].Safe = level(gpio.Level(act.Level))
	}
	return list
}

// itsLines holds that what leads to the safe level drives the lines that it is told: that
// of the name now, and that which the gateway took it for, and no others (safety.md 1).
func (p *play) itsLines() {
	safe := map[string]gpio.Level{}
	for _, pin := range []string{valve, heater} {
		c, _ := p.owner.Config(pin)
		safe[pin] = *c.Safe
	}
	if len(p.act.Pins) == 0 || !p.act.Towards(func(pin string) (bool, bool) { l, ok := safe[pin]; return bool(l), ok }) {
		return
	}
	var lines []wire.LineKey
	for pin, l := range safe {
		must(p.t, p.owner.Do(p.t.Context(), gpio.Drive{Pin: pin, Level: !l, Order: 1}))
		line, err := p.owner.Line(pin)
		must(p.t, err)
		lines = append(lines, line)
	}
	for _, told := range [][]wire.LineKey{lines, nil} {
		raw, err := wire.EncodeMap(p.args, wire.MaxArgsBytes)
		must(p.t, err)
		p.w.safes = nil
		r := p.r.Run(p.t.Context(), p.d.Name, raw, intent.Request{Cause: "t", Order: 7, Lines: told, Check: func() error { return nil }})
		p.fault(r.Code == wire.CodeOK && p.board.Level(valve) == safe[valve], "it leads to the safe level and does not: %v, %s", r.Code, r.Detail)
		p.fault((p.board.Level(heater) == safe[heater]) == (told != nil), "it leads to the safe level, is told the lines %v, and drives others (Request.Lines)", told)
		p.fault(len(p.w.safes) == 1, "it leads to the safe level and does not drive it through Pins.Safe")
		must(p.t, p.owner.Do(p.t.Context(), gpio.Drive{Pin: heater, Level: !safe[heater], Order: 7}))
	}
}
