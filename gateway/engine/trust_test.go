package engine_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/apollo-11/apollo11/gateway/engine"
	"github.com/apollo-11/apollo11/wire"
)

// TestA4_OneNodesWordEndsNothingOfOthers: one agent (a stolen password, or a bug) says
// that it has seen one token more than the gateway has given out. What waits for the
// others is sent when they come, whatever was given out in between.
func TestA4_OneNodesWordEndsNothingOfOthers(t *testing.T) {
	for _, restart := range []bool{false, true} {
		h := newHarness(t)
		h.block("hello pump-1\nsubmit node=pump-1 id=t0 pin=valve-1")
		h.block("event pump-1 seq=1 processed ok")
		h.block("goodbye pump-1 lost")
		for n := range 5 {
			h.block(fmt.Sprintf("submit node=pump-1 id=w%d pin=valve-%d", n, n))
		}
		if out := h.block("hello evil top=1,3"); !strings.Contains(out, "log_rolled_back evil") {
			t.Fatalf("not alarmed:\n%s", out)
		}
		if restart {
			h.block("restart")
		}
		out := h.block("hello pump-1 top=1,1 next=2")
		if strings.Contains(out, "log_rolled_back") || strings.Count(out, "-> send pump-1 instruction") != 5 {
			t.Errorf("restart %v:\n%s", restart, out)
		}
		for seq, i := range h.log.insts {
			if seq > 1 && i.State != engine.StateDispatched {
				t.Errorf("restart %v: instruction %d of pump-1: %v, %s: the word of another node ended it", restart, seq, i.State, i.Reason)
			}
		}
	}
}

// TestA4_ItsOwnWordCountsForANode: and only for what it may have seen.
func TestA4_ItsOwnWordCountsForANode(t *testing.T) {
	h := newHarness(t)
	h.block("hello a\nhello b\nsubmit node=a\nsubmit node=b")
	h.block("event a seq=1 processed ok\nevent b seq=2 processed ok\ngoodbye a\ngoodbye b")
	h.block("submit node=a\nsubmit node=b\nbackup")
	h.block("hello a\nhello b\nevent a seq=3 processed ok\nevent b seq=4 processed ok")
	h.block("restored")
	h.block("hello a top=3,3 first=3 next=3\nhello b top=2,2 next=2\nsubmit node=a\nadvance 1ms")
	for seq, want := range map[uint64]engine.State{3: engine.StateTimeout, 4: engine.StateDispatched, 100005: engine.StateDispatched} {
		if i, ok := h.log.insts[seq]; !ok || i.State != want {
			t.Errorf("instruction %d is %v, want %v", seq, i.State, want)
		}
	}
}

// TestA4_WhatWasGivenIsKnownAfterARestart: however an attempt ended, its node's word is
// no surprise.
func TestA4_WhatWasGivenIsKnownAfterARestart(t *testing.T) {
	for name, end := range map[string]string{
		"open":                 "",
		"by an event":          "event a seq=2 processed ok",
		"by a report":          "event a seq=2 received\nreport a seq=2 done failed",
		"over narrowband":      "narrowband a up\ncompact a seq=2 failed",
		"given up":             "advance 14s a",
		"withdrawn by a human": "event a seq=2 processed busy\nadvance 0s\ncancel seq=2",
		"expired":              "advance 25s a",
	} {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t)
			h.block("config resends=1\nhello a\nsubmit node=a\nsubmit node=a intent=gpio.pulse ttl=5s")
			h.block(end)
			h.block("restart\nsubmit node=a\nrestart")
			out := h.block(fmt.Sprintf("hello a top=%d,%d next=%d", 2, 2, h.log.cursors["a"].Last+1))
			if strings.Contains(out, "log_rolled_back") || !strings.Contains(out, "-> send a instruction 3 ") {
				t.Errorf("its own numbers are doubted:\n%s", out)
			}
		})
	}
}

// TestA4_ALogOfBeforeIsNotDoubted: a version that did not count for each node wrote it.
func TestA4_ALogOfBeforeIsNotDoubted(t *testing.T) {
	h := newHarness(t)
	h.block("hello a\nsubmit node=a")
	h.block("event a seq=1 processed ok\nsubmit node=b\ngoodbye a\nsubmit node=a")
	clear(h.log.given)
	h.block("restart")
	if out := h.block("hello a top=1,1 next=2"); strings.Contains(out, "log_rolled_back") || !strings.Contains(out, "-> send a instruction 3 ") {
		t.Errorf("its own numbers are doubted:\n%s", out)
	}
	h.block("restart")
	if out := h.block("hello a top=3,7 next=2"); !strings.Contains(out, "log_rolled_back a") {
		t.Errorf("and afterwards it is counted:\n%s", out)
	}
}

// TestA5_HellosDoNotUseUpTheNumbers: each hello says as much as is just believed, or as
// anybody can say. Half of what compact frames carry is always left, one node alone
// moves the numbers by little, and each refusal is told.
func TestA5_HellosDoNotUseUpTheNumbers(t *testing.T) {
	for name, far := range map[string]uint64{"little": 800_000, "just believed": 900_000, "as of before": 999_999_000, "everything": 1 << 62} {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t)
			h.block("hello pump-1")
			told := 0
			for range 60 {
				c := h.log.counters
				h.block("advance 61s")
				out := h.block(fmt.Sprintf("hello evil top=%d,%d", c.NextSeq+far, c.NextToken+far))
				told += strings.Count(out, "implausible_numbers evil")
			}
			if c := h.log.counters; c.NextSeq > 11_000_000 || c.NextToken > 11_000_000 {
				t.Errorf("one node's word has moved the counters to %+v", c)
			}
			if told < 40 {
				t.Errorf("%d refusals were told", told)
			}
			h.block("submit node=pump-1 id=t1 pin=valve-1")
			if out := h.block("hello pump-1\nadvance 1ms"); strings.Contains(out, "log_restored") {
				t.Errorf("and pump-1 pays for it:\n%s", out)
			}
		})
	}
}

// TestA5_ManyWhoAgreeLeaveHalf: also stolen passwords of many nodes.
func TestA5_ManyWhoAgreeLeaveHalf(t *testing.T) {
	h := newHarness(t)
	for n := range 80 {
		c := h.log.counters
		top := fmt.Sprintf("top=%d,%d", c.NextSeq+90_000_000, c.NextToken+90_000_000)
		h.block(fmt.Sprintf("hello e%d %s\nhello f%d %s", n, top, n, top))
	}
	c := h.log.counters
	if c.NextSeq > 1_200_000_000 || c.NextSeq > wire.MaxCompactSeq/2 {
		t.Errorf("the counters went to %+v", c)
	}
	if c.NextSeq < 500_000_000 {
		t.Errorf("two that agree are not believed: %+v", c)
	}
}

// TestA5_TwoThatAgreeAreBelieved: what one says is remembered until another says it.
func TestA5_TwoThatAgreeAreBelieved(t *testing.T) {
	h := newHarness(t)
	if out := h.block("hello a top=5000000,5000000"); !strings.Contains(out, "implausible_numbers a") || h.log.counters.NextSeq != 1 {
		t.Fatalf("one alone is believed:\n%s", out)
	}
	if out := h.block("hello b top=4900000,4950000"); !strings.Contains(out, "log_rolled_back b") {
		t.Fatalf("two are not:\n%s", out)
	}
	if c := h.log.counters; c.NextSeq != 5_000_001 || c.NextToken != 5_050_001 {
		t.Errorf("the numbers go on at %+v", c)
	}
}

// TestB6_WhatAnOlderCopyMayHaveDoneAsks: whatever the last attempt that the copy knows
// did, there may have been one more.
func TestB6_WhatAnOlderCopyMayHaveDoneAsks(t *testing.T) {
	for name, c := range map[string]struct {
		before, after string
		seq           uint64
	}{
		"not sent by the copy":             {"", "", 2},
		"failed, and then tried once more": {"event a seq=1 received", "event a seq=1 processed failed", 1},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t)
			h.block("hello a\nsubmit node=a intent=gpio.pulse\n" + c.before)
			h.block("goodbye a lost\nsubmit node=a intent=gpio.pulse\nbackup\nrestored")
			h.block("hello a top=2,3 first=1 next=2\n" + c.after)
			i := h.log.insts[c.seq]
			if !i.Operator || !i.OutcomeUnknown() {
				t.Fatalf("%v %s, operator %v, unknown %v", i.State, i.Reason, i.Operator, i.OutcomeUnknown())
			}
			retry := fmt.Sprintf("operate retry seq=%d", c.seq)
			if out := h.block(retry); !strings.Contains(out, "refused (6)") {
				t.Errorf("tried again without a yes:\n%s", out)
			}
			if out := h.block(retry + " yes\nadvance 1ms"); !strings.Contains(out, fmt.Sprintf("-> send a instruction %d a101", c.seq)) {
				t.Errorf("with a yes:\n%s", out)
			}
		})
	}
}

// TestB6_MayHaveRunIsOneQuestion goes through what can have become of an instruction.
func TestB6_MayHaveRunIsOneQuestion(t *testing.T) {
	for name, c := range map[string]struct {
		i    engine.Instruction
		want bool
	}{
		"done":                          {engine.Instruction{State: engine.StateSucceeded, Attempt: 1, Code: wire.CodeOK}, false},
		"cancelled before it was sent":  {engine.Instruction{State: engine.StateCancelled}, false},
		"expired before it was sent":    {engine.Instruction{State: engine.StateTimeout, Reason: engine.ReasonExpired}, false},
		"expired at the agent":          {engine.Instruction{State: engine.StateTimeout, Attempt: 1, Code: wire.CodeExpired}, false},
		"refused":                       {engine.Instruction{State: engine.StateFailed, Attempt: 1, Code: wire.CodeLocal}, false},
		"failed":                        {engine.Instruction{State: engine.StateFailed, Attempt: 2, Code: wire.CodeIO}, false},
		"no time for another attempt":   {engine.Instruction{State: engine.StateTimeout, Attempt: 2, Code: wire.CodeBusy}, false},
		"of an older copy":              {engine.Instruction{State: engine.StateTimeout, Reason: engine.ReasonRestored, Doubted: true}, true},
		"failed, of an older copy":      {engine.Instruction{State: engine.StateFailed, Attempt: 1, Code: wire.CodeBusy, Doubted: true}, true},
		"unconfirmed":                   {engine.Instruction{State: engine.StateTimeout, Attempt: 1, Reason: engine.ReasonUnconfirmed}, true},
		"overdue":                       {engine.Instruction{State: engine.StateTimeout, Attempt: 1, Reason: engine.ReasonExecution}, true},
		"overdue, and stopped":          {engine.Instruction{State: engine.StateTimeout, Attempt: 1, Reason: engine.ReasonExecution, Code: wire.CodeCancelled}, true},
		"forgotten":                     {engine.Instruction{State: engine.StateTimeout, Attempt: 1, Reason: engine.ReasonForgotten}, true},
		"interrupted":                   {engine.Instruction{State: engine.StateTimeout, Attempt: 1, Code: wire.CodeInterrupted}, true},
		"unknown":                       {engine.Instruction{State: engine.StateTimeout, Attempt: 1, Code: wire.CodeUnknown}, true},
		"a code of a newer agent":       {engine.Instruction{State: engine.StateTimeout, Attempt: 1, Code: 250}, true},
		"superseded after it was begun": {engine.Instruction{State: engine.StateTimeout, Attempt: 2, Code: wire.CodeSuperseded, Begun: true}, true},
		"superseded, never begun":       {engine.Instruction{State: engine.StateTimeout, Attempt: 1, Code: wire.CodeSuperseded}, false},
		"withdrawn, and no word of it":  {engine.Instruction{State: engine.StateTimeout, Attempt: 1, Reason: engine.ReasonSuperseded}, true},
		"failed, after an unknown one":  {engine.Instruction{State: engine.StateFailed, Attempt: 2, Code: wire.CodeBusy, Begun: true}, true},
		"under way":                     {engine.Instruction{State: engine.StateRunning, Attempt: 1}, false},
	} {
		if got := c.i.OutcomeUnknown(); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// TestA4_WhatLeadsToSafeWaitsForNoDoubt: neither about the log nor about the board. What
// else waited for a board that was replaced waits for an operator.
func TestA4_WhatLeadsToSafeWaitsForNoDoubt(t *testing.T) {
	for name, hello := range map[string]string{
		"an older copy of the log": "hello a top=9,9 next=2 first=2 pins=valve:safe0,lamp:out",
		"another board":            "advance 16s\nhello a incarnation=5 pins=valve:safe0,lamp:out",
	} {
		h := newHarness(t)
		h.block("hello a pins=valve:safe0,lamp:out\nsubmit node=a pin=lamp")
		h.block("event a seq=1 processed ok")
		h.block("goodbye a lost\nsubmit node=a pin=lamp\nsubmit node=a intent=gpio.safe pin=valve\nsubmit node=a intent=gpio.read pin=valve")
		out := h.block(hello)
		if !strings.Contains(out, "-> send a instruction 3") || strings.Contains(out, "-> send a instruction 2") {
			t.Errorf("%s:\n%s", name, out)
		}
		if i := h.log.insts[2]; !i.Operator {
			t.Errorf("%s: %v", name, i.State)
		}
	}
}
