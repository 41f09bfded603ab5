package engine_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/apollo-11/apollo11/gateway/engine"
	"github.com/apollo-11/apollo11/wire"
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

// TestOwedCountsHowManyItStandsFor, from the first one.
func TestOwedCountsHowManyItStandsFor(t *testing.T) {
	h := newHarness(t)
	h.block("hello pump-1 pins=valve:0\ngoodbye pump-1")
	for n := uint32(1); n <= 4; n++ {
		h.block("submit node=pump-1 pin=valve level=0")
		if list := h.eng.Owed(); len(list) != 1 || list[0].Count != n || list[0].Pin != "valve" {
			t.Errorf("after %d: %+v", n, list)
		}
	}
}

// TestAHoldIsOfItsLine: by whatever name somebody holds a line, releases it, or commands
// it.
func TestAHoldIsOfItsLine(t *testing.T) {
	h := newHarness(t)
	hello := &wire.Hello{Session: 1, Incarnation: 1, Short: wire.Short("pump-1"), First: 1, Next: 1, Rules: wire.NewestRules, Pins: []string{"valve", "P1_11", "lamp"}}
	for _, line := range []string{"GPIO17", "GPIO17", "GPIO18"} {
		hello.Traits = append(hello.Traits, wire.PinTraits{Line: wire.LineOf(line), Flags: wire.PinOutput | wire.PinHasSafe})
	}
	h.log.step(h.eng, h.now, &engine.Uplink{Node: "pump-1", Msg: hello})
	r := h.eng.Ready(h.now)
	h.finish(&r)
	pins := func(want ...string) {
		t.Helper()
		var have []string
		for _, held := range h.eng.Holds() {
			have = append(have, held.Pins...)
		}
		if !slices.Equal(have, want) {
			t.Errorf("held are %v, want %v", have, want)
		}
	}
	h.block("submit node=pump-1 intent=gpio.safe pin=valve\nsubmit node=pump-1 intent=gpio.safe pin=lamp")
	h.block("submit node=pump-1 intent=gpio.safe pin=P1_11")
	pins("valve", "lamp")
	if out := h.block("submit node=pump-1 pin=P1_11 level=1"); !strings.Contains(out, "held") {
		t.Errorf("not refused:\n%s", out)
	}
	h.block("submit node=pump-1 intent=gpio.release pin=P1_11")
	pins("lamp")
	// All but one, whatever that is called.
	h.block("submit node=pump-1 intent=gpio.safe\nsubmit node=pump-1 intent=gpio.release pin=P1_11")
	if out := h.block("submit node=pump-1 pin=valve level=1"); strings.Contains(out, "held") {
		t.Errorf("refused:\n%s", out)
	}
	again := *hello
	again.Session = 2
	h.log.step(h.eng, h.now, &engine.Uplink{Node: "pump-1", Msg: &again})
	r = h.eng.Ready(h.now)
	for _, s := range r.Effects.Sends {
		if w, ok := s.Msg.(*wire.Welcome); ok && !slices.Equal(w.Holds, []wire.LineKey{wire.LineOf("GPIO18")}) {
			t.Errorf("a welcome names %v as held", w.Holds)
		}
	}
	h.finish(&r)
}

// TestALevelIsThatOfTheNewest: results come in any order, and a heartbeat may overtake the
// event that says why.
func TestALevelIsThatOfTheNewest(t *testing.T) {
	h := newHarness(t)
	h.block("hello a pins=lamp:-\nsubmit node=a pin=lamp level=1")
	h.block("event a seq=1 received\nsubmit node=a pin=lamp level=0")
	h.block("event a seq=2 processed ok\nevent a seq=1 processed ok")
	if out := h.block("heartbeat a levels=low") + h.block("heartbeat a levels=low"); strings.Contains(out, "level_unexpected") {
		t.Errorf("the older result counts:\n%s", out)
	}
	// It goes on, for a reason that is in one event or in two that are on their way.
	for _, missing := range []uint64{1, 2, 3} {
		for range 3 {
			h.log.step(h.eng, h.now, &engine.Uplink{Node: "a", Msg: &wire.Heartbeat{Session: 1, Through: 3, Next: 4 + missing, Levels: wire.PackLevels([]wire.Level{wire.LevelHigh})}})
		}
		r := h.eng.Ready(h.now)
		for _, a := range r.Effects.Alarms {
			t.Errorf("%d events are on their way: %+v", missing, a)
		}
		h.finish(&r)
	}
	if out := h.block("heartbeat a levels=high") + h.block("heartbeat a levels=high"); !strings.Contains(out, "level_unexpected") {
		t.Errorf("nothing is on its way, and nobody is told:\n%s", out)
	}
}

// TestAnAckOfALaterAttemptIsNoAnswerToAFrame: those name the first attempt.
func TestAnAckOfALaterAttemptIsNoAnswerToAFrame(t *testing.T) {
	h := newHarness(t)
	h.block("narrowband pump-1 up\nhello pump-1 pins=valve:0\nsubmit node=pump-1 pin=valve level=0 retry=3,10ms,10ms")
	h.block("event pump-1 seq=1 processed io")
	h.block("advance 2s pump-1")
	if i := h.log.insts[1]; i.Attempt != 2 {
		t.Fatalf("attempt %d, %v", i.Attempt, i.State)
	}
	if out := h.block("compact pump-1 local seq=1 attempt=2"); h.log.insts[1].State != engine.StateFailed {
		t.Errorf("it is not the end of its attempt:\n%s", out)
	}
}

// TestANewNumberIsAboveWhatTheNodeHasSeen, also if that is the very number it would have.
func TestANewNumberIsAboveWhatTheNodeHasSeen(t *testing.T) {
	for top, want := range map[string]uint64{"0,0": 0, "1,99999999999999": 2, "7,99999999999999": 8} {
		h := newHarness(t)
		h.block("hello pump-1 pins=valve:0 top=" + top)
		h.block("submit node=pump-1 pin=valve level=0")
		if i := h.log.insts[1]; i.Order != want {
			t.Errorf("the node has seen %s, the first instruction is %+v", top, i)
		}
	}
}

// TestOnlyTheSameIsShared: one record stands for two ways to safe if nothing is between
// them on any of their lines, and neither ends before the other.
func TestOnlyTheSameIsShared(t *testing.T) {
	const off = "submit node=pump-1 pin=valve level=0"
	for name, c := range map[string]struct {
		first, second string
		want          int
	}{
		"the same":              {off, off, 1},
		"a limit now":           {off, off + " ttl=1h", 2},
		"a limit before":        {off + " ttl=1s", off, 2},
		"the same limit again":  {off + " ttl=1h", off + " ttl=1h", 2},
		"a longer one":          {off + " ttl=1s", off + " ttl=1h", 2},
		"something on its line": {off + "\nsubmit node=pump-1 pin=valve level=1", off, 3},
		"something on one of its lines": {"submit node=pump-1 intent=gpio.safe\nsubmit node=pump-1 intent=gpio.release pin=lamp\nsubmit node=pump-1 pin=lamp level=1",
			"submit node=pump-1 intent=gpio.safe", 4},
	} {
		h := newHarness(t)
		h.block("hello pump-1 pins=valve:0,lamp:0\ngoodbye pump-1")
		for line := range strings.SplitSeq(c.first, "\n") {
			h.block(line)
		}
		h.block(c.second)
		if n := len(h.log.insts); n != c.want {
			t.Errorf("%s: %d instructions, want %d", name, n, c.want)
		}
	}
}

// TestWhatIsHeldIsBounded: more pins than any board has are all of them.
func TestWhatIsHeldIsBounded(t *testing.T) {
	h := newHarness(t)
	h.cfg.Capacity = 10_000
	h.boot()
	for k := range wire.MaxLines + 1 {
		h.block(fmt.Sprintf("submit node=pump-1 intent=gpio.safe pin=p%d", k))
		if list := h.eng.Holds(); len(list) != 1 || list[0].All != (k == wire.MaxLines) || !list[0].All && len(list[0].Pins) != k+1 {
			t.Fatalf("after %d: %+v", k+1, list)
		}
	}
}

// TestAHoldHindersNoReboot, after which everything is at its safe level; what else may
// move anything is refused, and so is nothing that has no safe level.
func TestAHoldHindersNoReboot(t *testing.T) {
	h := newHarness(t)
	h.block("hello pump-1 pins=valve:0,horn:-")
	h.block("submit node=pump-1 intent=gpio.safe")
	for line, refused := range map[string]bool{"intent=reboot": false, "intent=mix.paint": true, "intent=gpio.read pin=valve": false,
		"pin=horn level=1": false, "pin=valve level=1": true, "pin=valve level=0": false, "intent=gpio.pulse pin=valve level=0 width=1s": true} {
		if out := h.block("submit node=pump-1 " + line); strings.Contains(out, "held at its safe level") || strings.Contains(out, "held at the safe level on node") {
			if !refused {
				t.Errorf("%s:\n%s", line, out)
			}
		} else if refused {
			t.Errorf("%s:\n%s", line, out)
		}
	}
}

// TestAllOutputsAreOneFrame: the narrowband carries ten a second, and a board has 256
// lines.
func TestAllOutputsAreOneFrame(t *testing.T) {
	h := newHarness(t)
	h.block("hello pump-1 pins=valve:0,lamp:0,fan:1\nnarrowband pump-1 up\nsubmit node=pump-1 intent=gpio.safe\nsubmit node=pump-1 pin=fan level=1")
	out := h.block("advance 600ms")
	if n := strings.Count(out, " safe 1 line="); n != 1 || !strings.Contains(out, " safe 1 line=0000\n") {
		t.Errorf("%d frames for all:\n%s", n, out)
	}
	if n := strings.Count(out, " safe 2 line="); n != 1 || strings.Contains(out, " safe 2 line=0000\n") {
		t.Errorf("%d frames for one:\n%s", n, out)
	}
}

// TestAWriteStandsForNoRelease: what ends a hold is not what the level of the output is.
func TestAWriteStandsForNoRelease(t *testing.T) {
	h := newHarness(t)
	h.block("hello pump-1 pins=valve:0\nsubmit node=pump-1 intent=gpio.safe pin=valve")
	h.block("event pump-1 seq=1 processed ok")
	h.block("goodbye pump-1\nsubmit node=pump-1 intent=gpio.release pin=valve")
	h.block("submit node=pump-1 pin=valve level=0")
	if out := h.block("hello pump-1 pins=valve:0 next=2"); !strings.Contains(out, "-> send pump-1 instruction 2 ") || h.log.insts[2].By != 0 {
		t.Errorf("the release does not go out:\n%s", out)
	}
	// A gpio.safe does: it is held again.
	h.block("goodbye pump-1\nsubmit node=pump-1 intent=gpio.release pin=valve")
	h.block("submit node=pump-1 intent=gpio.safe pin=valve")
	if i := h.log.insts[4]; i.State != engine.StateCancelled || i.Reason != engine.ReasonSuperseded {
		t.Errorf("the older release is %v", i.State)
	}
}

// TestAnAnswerNamesAFewOfMany that it stands for, and counts them all.
func TestAnAnswerNamesAFewOfMany(t *testing.T) {
	h := newHarness(t)
	h.block("hello pump-1 pins=valve:0\ngoodbye pump-1\nsubmit node=pump-1 pin=valve level=1 count=300")
	r := h.eng.Ready(h.now)
	h.finish(&r)
	h.log.step(h.eng, h.now, h.input(parseCommand(t, "submit node=pump-1 intent=gpio.safe")))
	r = h.eng.Ready(h.now)
	for _, p := range r.Effects.Replies {
		if a := p.Accepted; a == nil || len(a.Superseded) != 20 {
			t.Errorf("%+v", p)
		}
	}
	if len(r.Effects.Replies) != 1 {
		t.Errorf("%d replies", len(r.Effects.Replies))
	}
	h.finish(&r)
}

// TestARenewalEndsNothingThatWasSent, and keeps the limit that it has, unless its lease
// would be over before.
func TestARenewalEndsNothingThatWasSent(t *testing.T) {
	h := newHarness(t)
	h.block("hello pump-1 pins=valve:0\nsubmit node=pump-1 pin=valve level=1 max_on=10m")
	h.block("submit node=pump-1 pin=valve level=1 max_on=10m ttl=5m\nsubmit node=pump-1 pin=valve level=1 max_on=10m ttl=1h")
	if i := h.log.insts[1]; i.By != 0 || i.State != engine.StateDispatched || i.NotAfter != 0 {
		t.Errorf("the first, which was sent, is %v, by %d, not after %d", i.State, i.By, i.NotAfter)
	}
	if i := h.log.insts[2]; i.By != 3 || i.State != engine.StateCancelled || i.NotAfter != h.now.Wall+300_000 {
		t.Errorf("the second is %v, by %d, not after %d", i.State, i.By, i.NotAfter)
	}
	if i := h.log.insts[3]; i.By != 0 || i.NotAfter != h.now.Wall+600_000 {
		t.Errorf("the third is %v, by %d, not after %d", i.State, i.By, i.NotAfter)
	}
}

// TestWhatIsResentWithoutEndIsToldNowAndThen: a timeline has an end.
func TestWhatIsResentWithoutEndIsToldNowAndThen(t *testing.T) {
	h := newHarness(t)
	h.block("hello pump-1 pins=valve:0\nsubmit node=pump-1 pin=valve level=0")
	sent := strings.Count(h.block("advance 6h pump-1"), "-> send pump-1 instruction 1 ")
	entries := strings.Count(h.block("timeline 1"), "resent")
	if sent < 1000 || entries < 8 || entries > 30 {
		t.Errorf("sent %d times, %d entries", sent, entries)
	}
}

// TestAWithdrawnRetryIsStoppedAtItsAgent: its last attempt may still be there.
func TestAWithdrawnRetryIsStoppedAtItsAgent(t *testing.T) {
	h := newHarness(t)
	h.block("hello pump-1 pins=horn:-,valve:0\nsubmit node=pump-1 intent=gpio.read pin=valve\nsubmit node=pump-1 pin=valve level=1 retry=5,1m,1m timeout=1s")
	h.block("event pump-1 seq=2 started")
	h.block("advance 1m pump-1")
	if i := h.log.insts[2]; i.State != engine.StateRetrying || i.Code != wire.CodeNone {
		t.Fatalf("%v, %v", i.State, i.Code)
	}
	if out := h.block("submit node=pump-1 pin=valve level=0"); !strings.Contains(out, "-> send pump-1 cancel 2 #2 ") || h.log.insts[2].By != 3 {
		t.Errorf("its agent is not told:\n%s", out)
	}
}

// TestACancelledWayToSafeIsNotTriedAgain when its attempt fails meanwhile, or its number is
// too low for its agent.
func TestACancelledWayToSafeIsNotTriedAgain(t *testing.T) {
	for _, code := range []string{"io", "busy", "superseded", "unknown"} {
		h := newHarness(t)
		h.block("hello pump-1 pins=valve:0\nsubmit node=pump-1 pin=valve level=0 retry=0,1s,1s")
		h.block("event pump-1 seq=1 received\ncancel seq=1")
		out := h.block("event pump-1 seq=1 processed "+code) + h.block("advance 10m pump-1")
		if strings.Contains(out, "-> send pump-1 instruction 1 ") || !h.log.insts[1].State.Settled() {
			t.Errorf("%s: %v:\n%s", code, h.log.insts[1].State, out)
		}
	}
}
