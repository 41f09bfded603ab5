package engine_test

import (
	"strings"
	"testing"
)

// TestAReleaseThatIsTakenBackReleasesNothing: what a board holds stays alarmed and held at
// the door when the gpio.release is cancelled, or refused there (docs/safety.md 6).
func TestAReleaseThatIsTakenBackReleasesNothing(t *testing.T) {
	const held = "hello a pins=valve:0,pump:0\nsubmit node=a intent=gpio.safe pin=valve\nsubmit node=a intent=gpio.safe pin=pump"
	const done = "event a seq=1 processed ok\nevent a seq=2 processed ok"
	const release = "submit node=a intent=gpio.release pin=valve"
	for name, c := range map[string]struct {
		blocks []string
		held   bool
	}{
		"cancelled before it was sent": {[]string{"goodbye a lost", release, "cancel seq=3"}, true},
		"refused at the board":         {[]string{release, "event a seq=3 processed local"}, true},
		"all, cancelled":               {[]string{"goodbye a lost", "submit node=a intent=gpio.release", "cancel seq=3"}, true},
		"done":                         {[]string{release, "event a seq=3 processed ok"}, false},
		"a later one stands":           {[]string{"goodbye a lost", release, release, "cancel seq=3"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t)
			h.block(held)
			h.block(done)
			for _, b := range c.blocks {
				h.block(b)
			}
			if out := h.block("submit node=a pin=valve level=1"); strings.Contains(out, "held") != c.held {
				t.Errorf("at the door: %s", out)
			}
			if out := h.block("submit node=a pin=pump level=1"); !strings.Contains(out, "held") {
				t.Errorf("the other one is open: %s", out)
			}
			if out := h.block("alarms"); !strings.Contains(out, "held_safe") {
				t.Errorf("nobody says that it is held: %s", out)
			}
		})
	}
}
