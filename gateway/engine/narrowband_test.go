package engine_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/apollo-11/apollo11/gateway/engine"
	"github.com/apollo-11/apollo11/wire"
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

// askedBurst submits commands for one node whose primary path swallows them, and lets
// it disown each over a narrowband of ten frames a second each way. It returns when
// each became known and when each question left, since the first was sent.
func askedBurst(t *testing.T, commands int) (known, asked []time.Duration) {
	h := newHarness(t)
	h.block("narrowband a up\nhello a")
	const gap, trip = 100 * time.Millisecond, 60 * time.Millisecond // of a frame
	var down, up time.Duration                                      // when each way is free
	began := h.now.Mono
	answers := map[time.Duration][]engine.Input{}
	var inputs []engine.Input
	for range commands {
		inputs = append(inputs, h.input(parseCommand(t, "submit node=a")))
	}
	for end := began + 10*time.Second; h.now.Mono < end; h.pass(10 * time.Millisecond) {
		for _, in := range append(inputs, answers[h.now.Mono]...) {
			h.log.step(h.eng, h.now, in)
		}
		inputs = nil
		r := h.eng.Ready(h.now)
		h.apply(&r)
		for _, c := range r.Effects.Compacts {
			q := c.Frame.(wire.CompactQuery)
			down = max(down, h.now.Mono) + gap
			up = max(up, down-gap+trip) + gap
			at := up - gap + trip
			answers[at] = append(answers[at], &engine.Compact{Short: wire.Short("a"), Ack: wire.CompactAck{Seq: q.Seq, Attempt: q.Attempt, Code: wire.CodeNever}})
			asked = append(asked, h.now.Mono-began)
		}
		for _, c := range r.Effects.Confirms {
			known = append(known, c.Window)
		}
	}
	return known, asked
}

// TestB3_ABurstIntoABlackHoleIsKnownWithinASecond if it is of up to four commands. A
// question takes a frame, and in any second the agent is left one of its ten.
func TestB3_ABurstIntoABlackHoleIsKnownWithinASecond(t *testing.T) {
	for commands, most := range map[int]time.Duration{1: time.Second, 2: time.Second, 4: time.Second, 16: 4 * time.Second} {
		t.Run(fmt.Sprintf("%d at once", commands), func(t *testing.T) {
			known, asked := askedBurst(t, commands)
			if len(known) != commands || len(asked) != commands {
				t.Fatalf("%d known by %d questions, want %d", len(known), len(asked), commands)
			}
			if last := known[commands-1]; last >= most {
				t.Errorf("the last is known after %v, want less than %v", last, most)
			}
			for k, at := range asked {
				if n := len(asked[:k]) - 9; n >= 0 && at-asked[n] < time.Second {
					t.Errorf("ten questions within %v", at-asked[n])
				}
			}
		})
	}
}
