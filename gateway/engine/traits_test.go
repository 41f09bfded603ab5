package engine_test

import (
	"strings"

	"github.com/apollo-11/apollo11/wire"
)

// What a hello and a heartbeat say of pins, in scripts:
//
//	hello NODE [nonce=N] [rules=N] [local] [throws=N] [pins=NAME:KIND[:LEVEL],..]
//	heartbeat NODE [throws=N] [levels=LEVEL,.. [next=N]] [room=N]
//
// KIND is in, out (or -), safe0 (or 0) or safe1 (or 1); LEVEL is low, high, held, or - for unknown.

// withTraits fills in the pins of a hello.
func withTraits(c *command, m *wire.Hello) *wire.Hello {
	m.Nonce, m.Rules, m.Local = c.number("nonce", 0), wire.Rules(c.number("rules", 0)), c.has("local")
	for _, p := range c.list("pins") {
		f := append(strings.Split(p, ":"), "", "")
		name, at, moved := strings.Cut(f[0], "@") // the name stands at the line that another one had
		if !moved {
			at = name
		}
		t := wire.PinTraits{Line: wire.LineOf("chip:" + at)}
		switch f[1] {
		case "in":
		case "out", "-":
			t.Flags = wire.PinOutput
		case "safe0", "0":
			t.Flags = wire.PinOutput | wire.PinHasSafe
		case "safe1", "1":
			t.Flags = wire.PinOutput | wire.PinHasSafe | wire.PinSafeHigh
		default:
			c.wrong("a pin is NAME:in, :out, :safe0 or :safe1")
		}
		switch f[2] {
		case "low":
			t.Flags |= wire.PinCommanded
		case "high":
			t.Flags |= wire.PinCommanded | wire.PinHigh
		case "held":
			t.Flags |= wire.PinCommanded | wire.PinHeld
		}
		m.Pins, m.Traits = append(m.Pins, name), append(m.Traits, t)
		m.Rules = max(m.Rules, wire.RulesOrder)
	}
	return m
}

// withLevels fills in the levels of a heartbeat.
func withLevels(c *command, m *wire.Heartbeat) {
	var list []wire.Level
	for _, l := range c.list("levels") {
		list = append(list, map[string]wire.Level{"low": wire.LevelLow, "high": wire.LevelHigh, "held": wire.LevelHeld}[l])
	}
	m.Levels, m.Room = wire.PackLevels(list), uint32(c.number("room", 0))
}
