package engine_test

import (
	"strings"
	"testing"
)

// TestOffByHandIsANewOne: an "off" that an operator has tried again has not been driven,
// whatever the attempt before it was told to be: it is owed, alarmed when it does not
// arrive, sent over the path that is left, and its expiry is told (docs/safety.md 5, 12).
func TestOffByHandIsANewOne(t *testing.T) {
	h := newHarness(t)
	for _, b := range []string{"hello a pins=valve:0\nsubmit node=a pin=valve level=0 ttl=1h retry=0,1s,1s", "report a driven seq=1", "event a seq=1 processed io",
		"submit node=a pin=valve level=1", "event a seq=2 processed ok", "goodbye a lost", "operate retry seq=1 yes by=ann"} {
		h.block(b)
	}
	if o := h.eng.Owed(); len(o) != 1 || o[0].Driven {
		t.Errorf("owed is %+v", o)
	}
	h.block("advance 6s")
	if out := h.block("alarms"); !strings.Contains(out, "safe_undelivered a") {
		t.Errorf("nobody says that it is not delivered: %s", out)
	}
	if out := h.block("narrowband a up\nadvance 10s"); !strings.Contains(out, "-> narrowband ") {
		t.Errorf("it does not go over narrowband: %s", out)
	}
	if out := h.block("narrowband a down\nadvance 2h"); !strings.Contains(out, "whether the node has driven it by a safe frame is not known") || !strings.Contains(out, "safe_expired") {
		t.Errorf("its expiry is told as %s", out)
	}
	if out := h.block("alarms"); strings.Contains(out, "safe_undelivered a") {
		t.Errorf("the alarm stands on: %s", out)
	}
}

// TestRetriedOffGoesOverNarrowband: the same for one that the gateway tries again by
// itself, once the primary path is gone.
func TestRetriedOffGoesOverNarrowband(t *testing.T) {
	for _, blocks := range [][]string{
		{"narrowband a up", "event a seq=1 processed busy", "goodbye a lost"},
		{"event a seq=1 processed busy", "goodbye a lost", "narrowband a up"},
	} {
		h := newHarness(t)
		h.block("hello a pins=valve:0\nsubmit node=a pin=valve level=0 retry=5,1s,1s")
		for _, b := range blocks {
			h.block(b)
		}
		if out := h.block("advance 3s"); !strings.Contains(out, "-> narrowband ") {
			t.Errorf("%v: it does not go over narrowband: %s", blocks, out)
		}
		h.block("advance 4s")
		if out := h.block("alarms"); !strings.Contains(out, "safe_undelivered a") {
			t.Errorf("%v: nobody says that it is not delivered: %s", blocks, out)
		}
		h.block("compact a driven seq=1")
		if out := h.block("alarms"); strings.Contains(out, "safe_undelivered a") {
			t.Errorf("%v: the alarm stands on: %s", blocks, out)
		}
		if out := h.block("advance 2m"); strings.Contains(out, "-> narrowband ") {
			t.Errorf("it goes on after the node has driven it: %s", out)
		}
		if out := h.block("hello a pins=valve:0"); !strings.Contains(out, "-> send a instruction 1 a2") {
			t.Errorf("the attempt does not follow: %s", out)
		}
	}
}

// TestOffByHandExpires: without another path it is told as not executed.
func TestOffByHandExpires(t *testing.T) {
	h := newHarness(t)
	for _, b := range []string{"hello a pins=valve:0\nsubmit node=a pin=valve level=0 ttl=1h retry=0,1s,1s", "report a driven seq=1", "event a seq=1 processed io",
		"submit node=a pin=valve level=1", "event a seq=2 processed ok", "goodbye a lost", "operate retry seq=1 yes by=ann"} {
		h.block(b)
	}
	if out := h.block("advance 2h"); strings.Contains(out, "driven") || !strings.Contains(out, "safe_expired") {
		t.Errorf("its expiry is told as %s", out)
	}
}
