package engine_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/apollo-11/apollo11/gateway/engine"
	"github.com/apollo-11/apollo11/wire"
)

// A watch may report ten times a second for a day: the timeline lists a thousand
// reports and counts the rest, and who follows the pin gets all.
func TestTimelineOfALongWatchIsBounded(t *testing.T) {
	h := newHarness(t)
	play := func(lines ...string) string { return h.block(strings.Join(lines, "\n")) }
	play("hello pump-1", "submit node=pump-1 id=t1 intent=gpio.watch pin=door timeout=24h")
	told := 0
	for range 35 {
		told += strings.Count(play("event pump-1 seq=1 progress pin=door edges=1 total=7 times=100"), "-> pin pump-1/door")
	}
	play("event pump-1 seq=1 processed ok finished=1h")
	if told != 3500 {
		t.Errorf("who follows the pin was told of %d reports", told)
	}
	i, progress, sums := h.log.insts[1], 0, []string{}
	for _, e := range h.log.lines[1] {
		if e.What == engine.WhatProgress && e.Payload != nil {
			progress++
		} else if e.What == engine.WhatProgress {
			sums = append(sums, strings.Fields(e.Detail)[0])
		}
	}
	if progress != 1000 || fmt.Sprint(sums) != "[1000 1000 500]" || i.Progress != 1000 || i.Unlisted != 2500 {
		t.Errorf("%d reports are listed, %v counted; the record says %d and %d", progress, sums, i.Progress, i.Unlisted)
	}
}

// What an agent says of a lease is not believed blindly: an instruction that was
// never dispatched, an attempt that was never made, another token of the attempt.
func TestA5_ImpossibleEndsOfLeasesAreRefused(t *testing.T) {
	h := newHarness(t)
	h.block("hello pump-1\nsubmit node=pump-1 id=t1 pin=valve-1 max_on=10m")
	h.block("submit node=pump-2 id=t2 pin=valve-1")
	for _, line := range []string{
		"event pump-1 seq=1 lease_ended expired pin=valve-1 attempt=2 token=7",
		"event pump-1 seq=1 lease_ended expired pin=valve-1 token=7",
		"event pump-1 seq=2 lease_ended expired pin=valve-1 token=7",
	} {
		if out := h.block(line); strings.Contains(out, " lease_ended ") || strings.Contains(out, "-> pin") || !strings.Contains(out, "event_ack") {
			t.Errorf("%s:\n%s", line, out)
		}
	}
	if i := h.log.insts[1]; i.Lease != nil {
		t.Errorf("lease %+v", i.Lease)
	}
}

// A lease ends with the memory of the agent that began it: the one that has its place
// knows no such attempt, would say "cancelled before it arrived" of what it never had,
// and that is a second result for the gateway.
func TestA6_ALeaseOfALostMemoryIsNotAskedAfter(t *testing.T) {
	const told = "hello pump-1 incarnation=1\nsubmit node=pump-1 id=t1 pin=valve-1 max_on=10m\n" +
		"event pump-1 seq=1 processed ok received=1ms started=2ms finished=3ms pin=valve-1 level=1 until=10m\n"
	const failed = "event pump-1 seq=1 lease_ended failed finished=4s pin=valve-1\n"
	for name, c := range map[string]struct {
		story string
		asks  bool
	}{
		"the agent that began it":                {told, true},
		"after a restart of the gateway":         {told + "restart\nhello pump-1 incarnation=1", true},
		"after a new session of the agent":       {told + "goodbye pump-1\nhello pump-1 incarnation=1", true},
		"its end failed":                         {told + failed, true},
		"another memory":                         {told + "goodbye pump-1\nhello pump-1 incarnation=2", false},
		"another memory, its end had failed":     {told + failed + "goodbye pump-1\nhello pump-1 incarnation=2", false},
		"another memory, and the gateway anew":   {told + "goodbye pump-1\nhello pump-1 incarnation=2\nrestart\nhello pump-1 incarnation=2", false},
		"another memory after the gateway's new": {told + "restart\nhello pump-1 incarnation=2", false},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t)
			for line := range strings.SplitSeq(strings.TrimSpace(c.story), "\n") {
				h.block(line)
			}
			if out := h.block("cancel t1"); strings.Contains(out, "-> send pump-1 cancel 1 ") != c.asks {
				t.Errorf("want the agent asked: %v\n%s", c.asks, out)
			}
		})
	}
}

// A payload that is not what the intents send is no lease, and nothing breaks.
func TestOddPayloadsAreNoLeases(t *testing.T) {
	for name, payload := range map[string]map[string]any{
		"no pin":            {"until_ms": uint64(5)},
		"a pin with markup": {"pin": "<b>", "until_ms": uint64(5)},
		"a negative time":   {"pin": "valve-1", "until_ms": int64(-5)},
		"a huge time":       {"pin": "valve-1", "until_ms": uint64(1) << 63},
		"a text":            {"pin": "valve-1", "until_ms": "soon"},
		"no time":           {"pin": "valve-1"},
	} {
		h := newHarness(t)
		h.block("hello pump-1\nsubmit node=pump-1 id=t1 pin=valve-1")
		raw, err := wire.EncodeMap(payload, wire.MaxPayloadBytes)
		if err != nil {
			t.Fatal(err)
		}
		m := &wire.Event{Number: 1, Seq: 1, Token: h.log.insts[1].Token, Attempt: 1, Phase: wire.PhaseProcessed, Code: wire.CodeOK, Payload: raw}
		h.log.step(h.eng, h.now, &engine.Uplink{Node: "pump-1", Msg: m})
		h.round()
		if i := h.log.insts[1]; i.State != engine.StateSucceeded || i.Lease != nil {
			t.Errorf("%s: %v with the lease %+v", name, i.State, i.Lease)
		}
	}
}
