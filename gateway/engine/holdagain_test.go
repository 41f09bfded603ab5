package engine_test

import (
	"strings"
	"testing"
)

// TestHoldAfterReleasesTakenBack: each release opens and, taken back, closes its own lines.
func TestHoldAfterReleasesTakenBack(t *testing.T) {
	const both = "hello a pins=valve:0,pump:0\nsubmit node=a intent=gpio.safe pin=valve\nsubmit node=a intent=gpio.safe pin=pump"
	const bothDone = "event a seq=1 processed ok\nevent a seq=2 processed ok"
	const one = "hello a pins=valve:0\nsubmit node=a intent=gpio.safe pin=valve"
	const oneDone = "event a seq=1 processed ok"
	for name, c := range map[string]struct {
		blocks []string
		held   bool // the valve
	}{
		"another pin was released after": {[]string{both, bothDone, "goodbye a lost", "submit node=a intent=gpio.release pin=valve",
			"submit node=a intent=gpio.release pin=pump", "cancel seq=3"}, true},
		"twice all, the first cancelled": {[]string{one, oneDone, "goodbye a lost", "submit node=a intent=gpio.release",
			"submit node=a intent=gpio.release", "cancel seq=2"}, false},
		"twice the pin, the first cancelled": {[]string{one, oneDone, "goodbye a lost", "submit node=a intent=gpio.release pin=valve",
			"submit node=a intent=gpio.release pin=valve", "cancel seq=2"}, false},
		"twice all, both cancelled": {[]string{one, oneDone, "goodbye a lost", "submit node=a intent=gpio.release",
			"submit node=a intent=gpio.release", "cancel seq=2", "cancel seq=3"}, true},
		"twice all, both cancelled, the second first": {[]string{one, oneDone, "goodbye a lost", "submit node=a intent=gpio.release",
			"submit node=a intent=gpio.release", "cancel seq=3", "cancel seq=2"}, true},
		"cancelled after a restart": {[]string{one, oneDone, "goodbye a lost", "submit node=a intent=gpio.release", "restart", "cancel seq=2"}, true},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t)
			for _, b := range c.blocks {
				h.block(b)
			}
			if out := h.block("submit node=a pin=valve level=1"); strings.Contains(out, "held") != c.held {
				t.Errorf("at the door: %s", out)
			}
			if out := h.block("alarms"); strings.Contains(out, "held_safe") != c.held {
				t.Errorf("the alarm: %s", out)
			}
		})
	}
}

// TestHoldsAgainLineByLine: what was held anew, or released, in between stays so.
func TestHoldsAgainLineByLine(t *testing.T) {
	for name, c := range map[string]struct {
		blocks      []string
		valve, pump bool // held
	}{
		"all, then all but one, the older one taken back": {[]string{"submit node=a intent=gpio.safe pin=valve", "event a seq=1 processed ok", "goodbye a lost",
			"submit node=a intent=gpio.release pin=valve", "submit node=a intent=gpio.safe", "submit node=a intent=gpio.release pin=pump", "cancel seq=2"}, true, false},
		"all, one and all, the newer one taken back": {[]string{"submit node=a intent=gpio.safe", "event a seq=1 processed ok", "goodbye a lost",
			"submit node=a intent=gpio.release pin=valve", "submit node=a intent=gpio.release", "cancel seq=3"}, false, true},
		"all, one and all, the older one taken back": {[]string{"submit node=a intent=gpio.safe", "event a seq=1 processed ok", "goodbye a lost",
			"submit node=a intent=gpio.release pin=valve", "submit node=a intent=gpio.release", "cancel seq=2"}, false, false},
		"all, one and all, both taken back": {[]string{"submit node=a intent=gpio.safe", "event a seq=1 processed ok", "goodbye a lost",
			"submit node=a intent=gpio.release pin=valve", "submit node=a intent=gpio.release", "cancel seq=2", "cancel seq=3"}, true, true},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t)
			h.block("hello a pins=valve:0,pump:0")
			for _, b := range c.blocks {
				h.block(b)
			}
			for pin, held := range map[string]bool{"valve": c.valve, "pump": c.pump} {
				if out := h.block("submit node=a level=1 pin=" + pin); strings.Contains(out, "refused (7)") != held {
					t.Errorf("%s: %s", pin, out)
				}
			}
		})
	}
}
