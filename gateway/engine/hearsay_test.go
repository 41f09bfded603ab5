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

// TestASilentNodeIsSentWhatLeadsToSafe over the connection that still stands: a board
// whose disk hangs says nothing, and drives its pins all the same (docs/safety.md 5).
func TestASilentNodeIsSentWhatLeadsToSafe(t *testing.T) {
	h := newHarness(t)
	h.block("hello a pins=valve:0,lamp:0")
	h.block("submit node=a pin=lamp level=0") // under way when it falls silent
	if out := h.block("advance 20s"); !strings.Contains(out, "node_offline") || strings.Count(out, "-> send a instruction 1") < 3 {
		t.Errorf("offered until it fell silent, and not after:\n%s", out)
	}
	if out := h.block("submit node=a pin=valve level=0"); !strings.Contains(out, "-> send a instruction 2") {
		t.Errorf("not sent:\n%s", out)
	}
	if out := h.block("submit node=a pin=valve level=1"); strings.Contains(out, "-> send a instruction 3") {
		t.Errorf("away from safe is sent to a silent node:\n%s", out)
	}
	out := h.block("advance 30s")
	if strings.Count(out, "-> send a instruction 2") < 5 || strings.Count(out, "-> send a instruction 1") < 5 {
		t.Errorf("not sent again:\n%s", out)
	}
	// What is sent in vain to the silent holds nobody else back.
	if s := h.eng.Sizes(); s.Flying != 0 {
		t.Errorf("%d count as flying", s.Flying)
	}
	if out := h.block("goodbye a lost\nadvance 30s"); strings.Contains(out, "-> send a") {
		t.Errorf("sent without a connection:\n%s", out)
	}
	if out := h.block("hello a pins=valve:0,lamp:0"); !strings.Contains(out, "-> send a instruction 2") {
		t.Errorf("not sent at the hello:\n%s", out)
	}
}
