package engine_test

import (
	"strings"
	"testing"

	"github.com/apollo-11/apollo11/gateway/engine"
)

// TestAWithdrawnOneThatNobodyAnswersFor ends by itself: its node is there and says nothing
// of it. Whether it had begun is not known then.
func TestAWithdrawnOneThatNobodyAnswersFor(t *testing.T) {
	for name, lines := range map[string]string{
		"connected":        "event pump-1 seq=2 processed ok",
		"away for a while": "advance 10m\nhello pump-1 pins=valve:0\nevent pump-1 seq=2 processed ok",
		"another process":  "event pump-1 seq=2 processed ok\nrestart\nhello pump-1 pins=valve:0",
	} {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t)
			h.block("hello pump-1 pins=valve:0\nsubmit node=pump-1 pin=valve level=1")
			h.block("event pump-1 seq=1 received")
			if name == "away for a while" {
				h.block("goodbye pump-1 lost")
			}
			h.block("submit node=pump-1 pin=valve level=0")
			for line := range strings.SplitSeq(lines, "\n") {
				h.block(line)
			}
			h.block("advance 58s pump-1")
			if i := h.log.insts[1]; i.State.Settled() {
				t.Errorf("it has ended too early: %v", i.State)
			}
			h.block("advance 3s pump-1")
			if i := h.log.insts[1]; i.State != engine.StateTimeout || i.Reason != engine.ReasonSuperseded || i.By != 2 || i.Operator {
				t.Errorf("%v, %s, by %d, for an operator: %v", i.State, i.Reason, i.By, i.Operator)
			}
		})
	}
}

// TestTheLateAlarmEndsWithTheLast: as long as one way to safe of a node is late, the alarm
// stands.
func TestTheLateAlarmEndsWithTheLast(t *testing.T) {
	h := newHarness(t)
	h.block("hello pump-1 pins=valve:0,lamp:0\nsubmit node=pump-1 pin=valve level=0\nsubmit node=pump-1 pin=lamp level=0")
	if out := h.block("advance 6s pump-1"); strings.Count(out, "alarm raised safe_undelivered pump-1") != 1 {
		t.Errorf("raised:\n%s", out)
	}
	if out := h.block("event pump-1 seq=1 received"); strings.Contains(out, "safe_undelivered") {
		t.Errorf("the other one is late still:\n%s", out)
	}
	if out := h.block("event pump-1 seq=2 received"); !strings.Contains(out, "alarm cleared safe_undelivered pump-1") {
		t.Errorf("nothing is late any more:\n%s", out)
	}
}

// TestOneMoreAfterACancelIsAnotherOne: what is being cancelled stands for nothing that
// comes later.
func TestOneMoreAfterACancelIsAnotherOne(t *testing.T) {
	h := newHarness(t)
	h.block("hello pump-1 pins=valve:0\nsubmit node=pump-1 pin=valve level=0")
	h.block("cancel seq=1")
	if out := h.block("submit node=pump-1 pin=valve level=0"); !strings.Contains(out, "-> send pump-1 instruction 2 ") {
		t.Errorf("nothing goes out:\n%s", out)
	}
}
