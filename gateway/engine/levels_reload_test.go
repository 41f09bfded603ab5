package engine_test

import (
	"strings"
	"testing"
)

// TestB27_LevelsAreOfLines: a reload exchanges two names. What was told under the old name
// is what is known of the line, and counts for the name that it has now.
func TestB27_LevelsAreOfLines(t *testing.T) {
	const (
		before  = "hello a session=1 pins=left:0,right:0"
		swapped = "hello a session=1 pins=left@right:0,right@left:0"
	)
	for name, c := range map[string]struct {
		blocks []string
		levels string // of left and right, by their new names
	}{
		"a lease ends after the reload": {[]string{before, "submit node=a pin=left\nsubmit node=a pin=right", "event a seq=1 processed ok", "event a seq=2 processed ok",
			swapped, "event a seq=1 lease_ended expired finished=2s pin=left level=0"}, "high,low"},
		"a result comes after the reload": {[]string{before, "submit node=a pin=right level=0", "event a seq=1 processed ok", "submit node=a pin=left", swapped,
			"event a seq=2 processed ok"}, "low,high"},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t)
			for _, b := range c.blocks {
				h.block(b)
			}
			beat := "heartbeat a levels=" + c.levels
			if out := h.block(beat) + h.block(beat) + h.block(beat); strings.Contains(out, "level_unexpected") {
				t.Errorf("%s", out)
			}
			other := strings.NewReplacer("high", "low", "low", "high").Replace(c.levels)
			beat = "heartbeat a levels=" + other
			if out := h.block(beat) + h.block(beat) + h.block(beat); !strings.Contains(out, "level_unexpected") {
				t.Errorf("and nothing is known of them:\n%s", out)
			}
		})
	}
}

// TestB27_AReloadMovesNothingByItself: where a level has become the safe one, or another
// map counts, the alarm does not say that the board has taken the output there.
func TestB27_AReloadMovesNothingByItself(t *testing.T) {
	h := newHarness(t)
	h.block("hello a session=1 pins=valve:0\nsubmit node=a pin=valve")
	h.block("event a seq=1 processed ok")
	h.block("hello a session=1 pins=valve:1")
	out := h.block("event a seq=1 lease_ended reload finished=2s pin=valve level=1")
	if strings.Contains(out, "was taken to its safe level") || !strings.Contains(out, "output_ended") || !strings.Contains(out, "it is on") {
		t.Errorf("%s", out)
	}
}
