package engine_test

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// TestB13_AHeldCopyProvesThePath: the agent disowned the attempt, and then the copy
// that the path had held came after all. However the gateway hears of that, the path
// has carried something: a second black hole is a new one, and the first word after
// it sends at once.
func TestB13_AHeldCopyProvesThePath(t *testing.T) {
	for name, word := range map[string]string{
		"received":                 "event a seq=1 received",
		"result":                   "event a seq=1 processed ok",
		"refusal":                  "event a seq=1 processed busy",
		"report":                   "report a seq=1 running",
		"narrowband, received":     "compact a seq=1 received",
		"narrowband, result":       "compact a seq=1 ok",
		"both paths":               "compact a seq=1 started\nevent a seq=1 started",
		"cancelled on arrival":     "cancel seq=1\nevent a seq=1 processed cancelled",
		"after the operator's end": "cancel seq=1\nevent a seq=1 processed ok",
	} {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t)
			h.block("narrowband a up\nhello a\nsubmit node=a\nadvance 600ms\ncompact a seq=1 never")
			h.block(word)
			if left := secondHole(h, 2); left != 0 {
				t.Errorf("sent again %v after the first word", left)
			}
		})
	}
}

// TestB13_AHeldCopyOfWhatWasGivenUpProvesThePath likewise, if the word comes by it: that
// the agent had disowned it is forgotten with the task.
func TestB13_AHeldCopyOfWhatWasGivenUpProvesThePath(t *testing.T) {
	for _, word := range []string{"event a seq=1 received", "event a seq=1 processed ok"} {
		t.Run(word, func(t *testing.T) {
			h := newHarness(t)
			h.block("config resends=1\nnarrowband a up\nhello a\nsubmit node=a\nadvance 600ms\ncompact a seq=1 never")
			h.block("heartbeat a\nadvance 600ms\ncompact a seq=1 never")
			if out := h.block("timeline 1"); !strings.Contains(out, "TIMEOUT") {
				t.Fatalf("not given up:\n%s", out)
			}
			h.block("advance 7s a\n" + word)
			if left := secondHole(h, 2); left != 0 {
				t.Errorf("sent again %v after the first word", left)
			}
		})
	}
}

// TestB13_ACancelOverNarrowbandProvesNothing: the agent answers so before the attempt
// has arrived.
func TestB13_ACancelOverNarrowbandProvesNothing(t *testing.T) {
	h := newHarness(t)
	h.block("narrowband a up\nhello a\nsubmit node=a\nadvance 600ms\ncompact a seq=1 never\ncancel seq=1\ncompact a seq=1 cancelled")
	if left := secondHole(h, 2); left < 4*time.Second {
		t.Errorf("sent again %v after the first word", left)
	}
}

// TestB13_AWordThatCameBeforeProvesNothing: that the agent has one command says
// nothing of the path since it disowned another.
func TestB13_AWordThatCameBeforeProvesNothing(t *testing.T) {
	h := newHarness(t)
	h.block("narrowband a up\nhello a\nsubmit node=a\nsubmit node=a\nadvance 700ms\ncompact a seq=2 never\ncompact a seq=1 received")
	if left := secondHole(h, 3); left < 4*time.Second {
		t.Errorf("sent again %v after the first word", left)
	}
}

// secondHole submits a command, numbered seq, that the agent disowns, and returns how
// long after the next word it is sent again.
func secondHole(h *harness, seq int) time.Duration {
	h.t.Helper()
	out := h.block(fmt.Sprintf("heartbeat a\nsubmit node=a\nadvance 600ms\ncompact a seq=%d never", seq))
	if !strings.Contains(out, "it has not got it") {
		h.t.Fatalf("not disowned:\n%s", out)
	}
	began := h.now.Mono
	for h.now.Mono-began < 30*time.Second {
		if out := h.block("heartbeat a"); strings.Contains(out, fmt.Sprintf("send a instruction %d ", seq)) {
			return h.now.Mono - began
		}
		h.block("advance 100ms")
	}
	h.t.Fatal("never sent again")
	return 0
}
