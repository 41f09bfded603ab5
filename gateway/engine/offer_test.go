package engine_test

import (
	"strings"
	"testing"
)

// TestReceivedOfTheSessionBeforeIsOffered: an instruction whose resend in a new session
// waits, and which its node says it has got before that, is offered by a question: it
// would not begin otherwise (docs/safety.md 5), and keep its line.
func TestReceivedOfTheSessionBeforeIsOffered(t *testing.T) {
	h := newHarness(t)
	for _, b := range []string{
		"hello a pins=lamp:-\nsubmit node=a intent=valve.turn retry=3,2s,2s\nsubmit node=a intent=valve.turn",
		"event a seq=1 received", "event a seq=1 processed busy", "goodbye a lost", "hello a pins=lamp:-",
	} {
		h.block(b)
	}
	if out := h.block("event a seq=2 received"); !strings.Contains(out, "query") {
		t.Errorf("it is not offered in this session: %s", out)
	}
	if out := h.block("advance 30s"); strings.Contains(out, "-> send a instruction 2") {
		t.Errorf("it is sent: %s", out)
	}
}

// TestReceivedByNarrowbandIsOffered: the same when the copy of the new session was lost,
// and its node says over narrowband that it has it.
func TestReceivedByNarrowbandIsOffered(t *testing.T) {
	h := newHarness(t)
	for _, b := range []string{"hello a pins=lamp:-\nsubmit node=a intent=valve.turn", "goodbye a lost", "narrowband a up", "hello a pins=lamp:-"} {
		h.block(b)
	}
	if out := h.block("compact a received seq=1"); !strings.Contains(out, "query") {
		t.Errorf("it is not offered in this session: %s", out)
	}
	if out := h.block("compact a received seq=1"); strings.Contains(out, "query") {
		t.Errorf("every copy of the word is answered by a question: %s", out)
	}
}

// TestRepeatedHelloIsOfferedAgain: an agent takes nothing before the welcome. If that is
// lost it says hello once more, and what it has is offered behind the second one.
func TestRepeatedHelloIsOfferedAgain(t *testing.T) {
	h := newHarness(t)
	for _, b := range []string{"hello a pins=lamp:-\nsubmit node=a intent=valve.turn", "event a seq=1 received", "goodbye a lost", "hello a pins=lamp:- session=2"} {
		h.block(b)
	}
	if out := h.block("hello a pins=lamp:- session=2"); !strings.Contains(out, "query") {
		t.Errorf("it is not offered behind the second welcome: %s", out)
	}
	h.block("event a seq=1 started")
	if out := h.block("hello a pins=lamp:- session=2"); strings.Contains(out, "query") {
		t.Errorf("what runs is asked after: %s", out)
	}
}
