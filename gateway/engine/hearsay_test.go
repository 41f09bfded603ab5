package engine_test

import (
	"strings"
	"testing"
)

// TestACompactCancelledOfWhatWasGivenUpIsNoResult: a board that has taken the place of
// another answers a cancel over narrowband without ever having had the attempt; the other
// one may have run it. Only an event says so, with the token and from its journal.
func TestACompactCancelledOfWhatWasGivenUpIsNoResult(t *testing.T) {
	h := newHarness(t)
	h.block("hello a incarnation=1 pins=lamp:0\nsubmit node=a pin=lamp")
	h.block("goodbye a lost\nadvance 16s\nsubmit node=a pin=lamp level=0")
	h.block("hello a incarnation=2 pins=lamp:0")
	if out := h.block("compact a cancelled seq=1 attempt=1"); strings.Contains(out, "CANCELLED") {
		t.Errorf("the new board speaks for the old one:\n%s", out)
	}
	if i := h.log.insts[1]; i.State.String() != "TIMEOUT" {
		t.Errorf("it is %v", i.State)
	}
}
