package wire_test

import (
	"reflect"
	"testing"
	"time"

	"github.com/apollo-11/apollo11/wire"
)

// A19: an intent that declares nothing is taken to move something, to hold the whole
// board and not to be repeatable.
func TestA19_WhatIsNotDeclaredIsClosed(t *testing.T) {
	var d wire.Declaration
	for name, a := range map[string]wire.Act{
		"a declaration without traits": {Traits: d.Traits},
		"an intent of an agent's own":  wire.ActOf("rinse", nil),
		"arguments that nobody parsed": wire.ActOf(wire.IntentGPIOWrite, nil),
	} {
		if !a.Moves() || a.Holds != wire.HoldsBoard || a.Repeatable || a.Watch || a.Release || a.Towards(alwaysSafe) {
			t.Errorf("%s: %+v", name, a)
		}
	}
	if wire.TraitsOf("rinse") != (wire.Traits{}) {
		t.Error("an intent that is not built in has traits")
	}
	for name, args := range map[string]wire.RawMap{
		"not a map": {0x80}, "cut": {0xa1}, "unknown argument": rawMap(t, map[string]any{"pin": "valve-1", "force": true}),
	} {
		a, err := wire.ParseAct(wire.IntentSafe, args)
		if err == nil || !reflect.DeepEqual(a, wire.Act{}) {
			t.Errorf("%s: %+v, %v", name, a, err)
		}
	}
	// The arguments of an intent of an agent's own are not looked at.
	if a, err := wire.ParseAct("rinse", wire.RawMap{0x80}); err != nil || !reflect.DeepEqual(a, wire.Act{}) {
		t.Errorf("rinse: %+v, %v", a, err)
	}
}

func alwaysSafe(string) (level, ok bool) { return false, true }

// An agent that says of a harmless intent that it moves something is believed; there
// is nothing that it could say to make one harmless.
func TestA19_AgentsAreBelievedTowardsCaution(t *testing.T) {
	for _, d := range wire.Declarations() {
		if got := d.Careful(false); got != d.Traits {
			t.Errorf("%s: nothing was said, and it became %+v", d.Name, got)
		}
		got := d.Careful(true)
		if got.Still || d.Still && (got.Holds != wire.HoldsBoard || got.Repeatable || got.Watch) {
			t.Errorf("%s became %+v", d.Name, got)
		}
		if !d.Still && got != d.Traits {
			t.Errorf("%s moves something as it is, and became %+v", d.Name, got)
		}
	}
}

// Towards safe waits for nothing, so what counts as such is said here whole.
func TestTowards(t *testing.T) {
	safe := func(pin string) (level, ok bool) {
		switch pin {
		case "low":
			return false, true
		case "high":
			return true, true
		}
		return false, false
	}
	for name, tt := range map[string]struct {
		intent string
		args   map[string]any
		want   bool
	}{
		"the safe level, which is low":         {wire.IntentGPIOWrite, map[string]any{"pin": "low", "level": uint64(0)}, true},
		"away from it":                         {wire.IntentGPIOWrite, map[string]any{"pin": "low", "level": uint64(1)}, false},
		"the safe level, which is high":        {wire.IntentGPIOWrite, map[string]any{"pin": "high", "level": uint64(1)}, true},
		"low, where high is safe":              {wire.IntentGPIOWrite, map[string]any{"pin": "high", "level": uint64(0)}, false},
		"a pin without a safe level":           {wire.IntentGPIOWrite, map[string]any{"pin": "lamp", "level": uint64(0)}, false},
		"the safe level as a lease":            {wire.IntentGPIOWrite, map[string]any{"pin": "low", "level": uint64(0), "max_on": "1s"}, true},
		"a pulse away from safe":               {wire.IntentGPIOPulse, map[string]any{"pin": "low", "width": "1s"}, false},
		"a pulse that begins at safe":          {wire.IntentGPIOPulse, map[string]any{"pin": "high", "width": "1s"}, false},
		"gpio.safe":                            {wire.IntentSafe, nil, true},
		"gpio.safe of a pin":                   {wire.IntentSafe, map[string]any{"pin": "low"}, true},
		"gpio.safe of a pin that nobody knows": {wire.IntentSafe, map[string]any{"pin": "lamp"}, true},
		"gpio.release":                         {wire.IntentRelease, nil, false},
		"reading":                              {wire.IntentGPIORead, map[string]any{"pin": "low"}, false},
		"watching":                             {wire.IntentGPIOWatch, map[string]any{"pin": "low", "for": "1s"}, false},
		"reboot":                               {wire.IntentReboot, nil, false},
		"an intent of an agent's own":          {"rinse", nil, false},
	} {
		a, err := wire.ParseAct(tt.intent, rawMap(t, tt.args))
		if err != nil {
			t.Fatal(err)
		}
		if got := a.Towards(safe); got != tt.want {
			t.Errorf("%s: towards safe is %v", name, got)
		}
	}
	several := wire.Act{Traits: wire.Traits{Holds: wire.HoldsPins}, Pins: []string{"low", "lamp"}, Sets: true}
	if several.Towards(safe) {
		t.Error("one pin of two has no safe level, and both are taken to it")
	}
	if none := (wire.Act{Traits: wire.Traits{Holds: wire.HoldsPins}, Sets: true}); none.Towards(alwaysSafe) {
		t.Error("a write of no pin is towards safe")
	}
}

func TestActs(t *testing.T) {
	for name, tt := range map[string]struct {
		intent string
		args   map[string]any
		want   wire.Act
	}{
		"write": {wire.IntentGPIOWrite, map[string]any{"pin": "a", "level": "on"},
			wire.Act{Traits: wire.TraitsOf(wire.IntentGPIOWrite), Pins: []string{"a"}, Sets: true, Level: true}},
		"pulse": {wire.IntentGPIOPulse, map[string]any{"pin": "a", "level": uint64(0), "width": "3m"},
			wire.Act{Traits: wire.TraitsOf(wire.IntentGPIOPulse), Pins: []string{"a"}, Sets: true, Lasts: 3 * time.Minute}},
		"watch": {wire.IntentGPIOWatch, map[string]any{"pin": "a", "for": "2m"},
			wire.Act{Traits: wire.TraitsOf(wire.IntentGPIOWatch), Pins: []string{"a"}, Lasts: 2 * time.Minute}},
		"safe of a pin":  {wire.IntentSafe, map[string]any{"pin": "a"}, wire.Act{Traits: wire.TraitsOf(wire.IntentSafe), Pins: []string{"a"}}},
		"safe of all":    {wire.IntentSafe, nil, wire.Act{Traits: wire.TraitsOf(wire.IntentSafe)}},
		"release of all": {wire.IntentRelease, nil, wire.Act{Traits: wire.TraitsOf(wire.IntentRelease)}},
		"reboot":         {wire.IntentReboot, nil, wire.Act{Traits: wire.TraitsOf(wire.IntentReboot)}},
	} {
		if got, err := wire.ParseAct(tt.intent, rawMap(t, tt.args)); err != nil || !reflect.DeepEqual(got, tt.want) {
			t.Errorf("%s: %+v, %v; want %+v", name, got, err, tt.want)
		}
	}
	leased, err := wire.ParseAct(wire.IntentGPIOWrite, rawMap(t, map[string]any{"pin": "a", "level": uint64(1), "max_on": "10m"}))
	if err != nil || leased.Repeatable || leased.MaxOn != 10*time.Minute {
		t.Errorf("a lease would begin anew: %+v, %v", leased, err)
	}
}
