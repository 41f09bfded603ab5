package engine_test

import (
	"strings"
	"testing"
	"time"

	"github.com/apollo-11/apollo11/gateway/engine"
)

// standIn decides at the engine's seams by the names of tasks: "sunday..." is due ten
// seconds after the script began, "over..." stands for what is older, and full is a disk.
type standIn struct{ full bool }

func (s *standIn) hooks() engine.Hooks {
	const sunday = scriptStart + 10_000
	return engine.Hooks{
		Due: func(now engine.Now, t *engine.Task, _ *engine.Instruction) (bool, time.Duration) {
			left := time.Duration(sunday-now.Wall) * time.Millisecond
			return !strings.HasPrefix(t.ID, "sunday") || left <= 0, left
		},
		Supersedes: func(t *engine.Task) bool { return strings.HasPrefix(t.ID, "over") },
		Refuses: func() *engine.Refusal {
			if s.full {
				return &engine.Refusal{Kind: engine.RefusedCapacity, Text: "the disk of the gateway is full"}
			}
			return nil
		},
	}
}

func hooked(t *testing.T) (*harness, *standIn) {
	h, s := newHarness(t), &standIn{}
	h.cfg.Hooks = s.hooks()
	h.boot()
	h.block("hello a session=1 pins=valve:0,lamp:-")
	return h, s
}

// sent is the numbers of the instructions that were sent, in their order.
func sent(out string) string {
	var list []string
	for line := range strings.SplitSeq(out, "\n") {
		if f := strings.Fields(line); len(f) > 4 && f[0] == "->" && f[1] == "send" && f[3] == "instruction" {
			list = append(list, f[4])
		}
	}
	return strings.Join(list, " ")
}

// Clause 1: a task for Sunday has no number and blocks nothing; when it is due it is the
// newest, and comes behind all that has moved since.
func TestWhatIsNotDueBlocksNothing(t *testing.T) {
	for _, crash := range []bool{false, true} {
		h, _ := hooked(t)
		if out := h.block("submit node=a id=sunday pin=lamp\nsubmit node=a id=b pin=lamp level=0"); sent(out) != "2" {
			t.Fatalf("sent %q:\n%s", sent(out), out)
		}
		h.block("event a seq=2 processed ok")
		if crash {
			h.boot()
			h.block("hello a session=2 next=2 first=2 pins=valve:0,lamp:-")
		}
		out := h.block("advance 11s a")
		if sent(out) != "1" || !strings.Contains(out, "due PENDING") || h.log.insts[1].Order <= 2 {
			t.Errorf("after a crash %v: sent %q with number %d:\n%s", crash, sent(out), h.log.insts[1].Order, out)
		}
		h.boot() // what was due once has its number
		if out := h.block("hello a session=3 next=2 first=2 pins=valve:0,lamp:-"); sent(out) != "1" {
			t.Errorf("sent %q:\n%s", sent(out), out)
		}
	}
}

// What is not due expires and is cancelled like anything that waits, and a way to safe
// waits for what its own task declares: only then does it stand for what is older.
func TestWhatIsNotDueEndsAndStandsForNothing(t *testing.T) {
	h, _ := hooked(t)
	if out := h.block("submit node=a id=sunday-1 pin=lamp ttl=2s\nadvance 3s a"); !strings.Contains(out, "TIMEOUT reason=expired") || sent(out) != "" {
		t.Errorf("%s", out)
	}
	if out := h.block("submit node=a id=sunday-2 pin=lamp\ncancel sunday-2"); !strings.Contains(out, "CANCELLED") || sent(out) != "" {
		t.Errorf("%s", out)
	}
	out := h.block("submit node=a id=sunday-3 pin=valve level=0\nsubmit node=a id=on pin=valve level=1")
	if sent(out) != "4" || strings.Contains(out, "superseded") {
		t.Errorf("sent %q:\n%s", sent(out), out)
	}
	out = h.block("advance 8s a")
	if sent(out) != "4 3" && sent(out) != "3" || !strings.Contains(out, "stands for it") {
		t.Errorf("sent %q:\n%s", sent(out), out)
	}
}

// Clause 6: what waits without a number on a line that gpio.safe holds ends superseded.
func TestASafeEndsWhatIsNotDue(t *testing.T) {
	for safe, ends := range map[string]bool{"": true, " pin=valve": true, " pin=lamp": false} {
		h, _ := hooked(t)
		out := h.block("submit node=a id=sunday pin=valve\nsubmit node=a intent=gpio.safe" + safe)
		if strings.Contains(out, "instruction 1 v1 CANCELLED reason=superseded") != ends {
			t.Errorf("gpio.safe%s:\n%s", safe, out)
		}
		if out := h.block("advance 11s a"); strings.Contains(sent(out), "1 ") && ends {
			t.Errorf("it runs all the same:\n%s", out)
		}
	}
}

// Clause 3: a declared supersede withdraws what is older and has not been sent; what was
// sent, and what leads to safe, stays.
func TestADeclaredSupersede(t *testing.T) {
	h, _ := hooked(t)
	h.block("submit node=a id=first pin=lamp\nsubmit node=a id=second pin=lamp level=0\nsubmit node=a id=other pin=valve")
	out := h.block("submit node=a id=over pin=lamp")
	if !strings.Contains(out, "instruction 2 v2 CANCELLED reason=superseded") || strings.Contains(out, "instruction 1 ") || strings.Contains(out, "instruction 3 ") {
		t.Errorf("%s", out)
	}
	h.block("goodbye a lost")
	h.block("submit node=a id=off pin=valve level=0")
	if out := h.block("submit node=a id=over-2 pin=valve"); strings.Contains(out, "instruction 5 ") {
		t.Errorf("it stands for a way to safe:\n%s", out)
	}
}

// Clause 5: no disk level refuses what leads to safe.
func TestAFullDiskRefusesNoWayToSafe(t *testing.T) {
	h, s := hooked(t)
	s.full = true
	if out := h.block("submit node=a pin=valve level=1"); !strings.Contains(out, "the disk of the gateway is full") {
		t.Errorf("%s", out)
	}
	if out := h.block("submit node=a pin=valve level=0\nsubmit node=a intent=gpio.safe"); strings.Contains(out, "full") || sent(out) != "2" {
		t.Errorf("sent %q:\n%s", sent(out), out)
	}
}
