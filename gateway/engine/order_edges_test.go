package engine_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/apollo-11/apollo11/gateway/engine"
	"github.com/apollo-11/apollo11/wire"
)

// TestHelloOfAHeldBoardWithALongQueueIsQuick: a hello may cost no more than a look at
// each pin and at each instruction.
func TestHelloOfAHeldBoardWithALongQueueIsQuick(t *testing.T) {
	linear(t, func(open int) time.Duration {
		h := newHarness(t)
		h.cfg.Capacity = 20_000
		h.boot()
		hello := &wire.Hello{Session: 1, Incarnation: 1, Short: wire.Short("pump-1"), First: 1, Next: 1, Rules: wire.NewestRules}
		for k := range wire.MaxLines {
			p := fmt.Sprintf("p%03d", k)
			hello.Pins = append(hello.Pins, p)
			hello.Traits = append(hello.Traits, wire.PinTraits{Line: wire.LineOf("chip:" + p), Flags: wire.PinOutput | wire.PinHasSafe | wire.PinHeld})
		}
		for range open {
			h.log.step(h.eng, h.now, &engine.Submit{Spec: engine.Spec{Intent: "mix.paint", Nodes: []string{"pump-1"}}})
		}
		r := h.eng.Ready(h.now)
		h.finish(&r)
		began := time.Now()
		h.log.step(h.eng, h.now, &engine.Uplink{Node: "pump-1", Msg: hello})
		took := time.Since(began)
		if holds := h.eng.Holds(); len(holds) != 1 || len(holds[0].Pins) != wire.MaxLines {
			t.Errorf("%d holds", len(holds))
		}
		return took
	})
}

// linear wants that eight times as much does not take much more than eight times as
// long: what looks at everything for everything takes sixty-four times. A machine with
// other work gets some tries, of which the quickest of each size count.
func linear(t *testing.T, do func(n int) time.Duration) {
	t.Helper()
	const n, most, tries = 1_250, 32, 8
	little, much := time.Hour, time.Hour
	for range tries {
		much, little = min(much, do(8*n)), min(little, max(do(n), time.Microsecond))
		if much < most*little {
			return
		}
	}
	t.Errorf("eight times as much takes %d times as long", much/little)
}

// TestStrangersThatAreHeldAreBounded: a gpio.safe for a name that nobody has seen holds
// it, also when it is cancelled; such names are bounded.
func TestStrangersThatAreHeldAreBounded(t *testing.T) {
	h := newHarness(t)
	for k := range 1200 {
		h.block(fmt.Sprintf("submit node=nobody-%d intent=gpio.safe id=s%d\ncancel s%d", k, k, k))
	}
	if n := len(h.eng.Holds()); n > 1000 {
		t.Errorf("%d names that nobody has seen are held", n)
	}
}

// TestARepeatedSafeHoldsAgain: a release that was taken back leaves nothing held by the
// gateway's word; whoever says gpio.safe again means it.
func TestARepeatedSafeHoldsAgain(t *testing.T) {
	h := newHarness(t)
	h.block("hello pump-1 pins=valve:0\ngoodbye pump-1\nsubmit node=pump-1 intent=gpio.safe pin=valve")
	h.block("submit node=pump-1 intent=gpio.release pin=valve id=r\ncancel r")
	h.block("submit node=pump-1 intent=gpio.safe pin=valve")
	if n := len(h.eng.Holds()); n != 1 {
		t.Error("nothing is held")
	}
}

// TestAClockThatIsSetForwardExpiresNoWayToSafe: of the wall and the monotonic limit the
// later holds (docs/safety.md 12).
func TestAClockThatIsSetForwardExpiresNoWayToSafe(t *testing.T) {
	h := newHarness(t)
	h.block("hello pump-1 pins=valve:0\ngoodbye pump-1\nsubmit node=pump-1 pin=valve level=0 ttl=10m")
	h.block("wall 1h")
	h.block("hello pump-1 pins=valve:0")
	if i := h.log.insts[1]; i.State != engine.StateDispatched {
		t.Errorf("at once after its submission it is %v, %s", i.State, i.Reason)
	}
}

// TestACancelEndsTheLeaseOfWhatHasSucceeded: docs/safety.md 11.
func TestACancelEndsTheLeaseOfWhatHasSucceeded(t *testing.T) {
	h := newHarness(t)
	h.block("hello pump-1 pins=valve:0\nsubmit node=pump-1 pin=valve level=1 max_on=10m")
	h.block("event pump-1 seq=1 processed ok pin=valve level=1 until=10m max_on_ms=600000")
	if out := h.block("cancel seq=1"); !strings.Contains(out, "-> send pump-1 cancel 1 ") {
		t.Errorf("nothing tells the node:\n%s", out)
	}
}

// TestA20_TheLimitThatIsSentLeavesRoomForTheWork: a limit as short as the work is raised
// (docs/wire.md), or the agent would find that the work does not fit any more; and what was
// resolved is what whoever asks is told.
func TestA20_TheLimitThatIsSentLeavesRoomForTheWork(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"intent=gpio.pulse pin=valve width=3m timeout=3m":  3*time.Minute + wire.TimeoutRoom,
		"intent=gpio.pulse pin=valve width=3m timeout=10m": 10 * time.Minute,
		"intent=gpio.pulse pin=valve width=3m":             3*time.Minute + wire.TimeoutRoom,
		"pin=valve level=1 timeout=2s":                     2 * time.Second,
		"pin=valve level=1":                                20 * time.Second, // as it is configured
	} {
		h := newHarness(t)
		h.cfg.DefaultTimeout = 20 * time.Second
		h.boot()
		h.block("hello pump-1 pins=valve:0")
		h.log.step(h.eng, h.now, h.submit(parseCommand(t, "submit node=pump-1 "+text)))
		r := h.eng.Ready(h.now)
		sent := time.Duration(0)
		for _, s := range r.Effects.Sends {
			if m, ok := s.Msg.(*wire.Instruction); ok {
				sent = time.Duration(m.TimeoutMs) * time.Millisecond
			}
		}
		h.finish(&r)
		if told := time.Duration(h.log.insts[1].TimeoutMs) * time.Millisecond; sent != want || told != want {
			t.Errorf("%s: sent %v, told %v, want %v", text, sent, told, want)
		}
	}
}

// TestTenThousandEndAtOnceInTime: what waits at one line for a node that is away ends in
// the same moment.
func TestTenThousandEndAtOnceInTime(t *testing.T) {
	args, err := wire.EncodeMap(wire.GPIOWrite{Pin: "valve", Level: true}.Map(), wire.MaxArgsBytes)
	if err != nil {
		t.Fatal(err)
	}
	linear(t, func(open int) time.Duration {
		h := newHarness(t)
		h.cfg.Capacity = 20_000
		h.boot()
		for range open {
			h.log.step(h.eng, h.now, &engine.Submit{Spec: engine.Spec{Intent: wire.IntentGPIOWrite, Args: args, Nodes: []string{"pump-1"}, TTLMs: 1000}})
		}
		r := h.eng.Ready(h.now)
		h.finish(&r)
		h.now.Mono, h.now.Wall = h.now.Mono+2*time.Second, h.now.Wall+2000
		began := time.Now()
		r = h.eng.Ready(h.now)
		took := time.Since(began)
		if h.eng.Open() != 0 {
			t.Errorf("%d are open", h.eng.Open())
		}
		h.finish(&r)
		return took
	})
}

// TestWhatHoldsTheBoardIsSupersededByWhatHasEnded: the gateway knows the newer one
// although it has ended, so there is nothing to alarm.
func TestWhatHoldsTheBoardIsSupersededByWhatHasEnded(t *testing.T) {
	h := newHarness(t)
	h.block("hello pump-1 pins=valve:0\nsubmit node=pump-1 intent=mix.paint retry=3,10s,10s")
	h.block("event pump-1 seq=1 processed busy")
	h.block("submit node=pump-1 pin=valve level=0")
	h.block("event pump-1 seq=2 processed ok")
	h.block("advance 12s")
	if out := h.block("event pump-1 seq=1 processed superseded"); strings.Contains(out, "order_lost") {
		t.Errorf("alarmed:\n%s", out)
	}
	if i := h.log.insts[1]; i.State != engine.StateCancelled || i.By != 2 {
		t.Errorf("%v, by %d", i.State, i.By)
	}
}

// TestASafeByHandHoldsAgain: an operator has a gpio.safe tried again whose hold was
// released since. Its agent will hold, so the gateway does.
func TestASafeByHandHoldsAgain(t *testing.T) {
	h := newHarness(t)
	h.block("hello pump-1 pins=valve:0\nsubmit node=pump-1 intent=gpio.safe pin=valve retry=0,1s,1s")
	h.block("event pump-1 seq=1 processed io")
	h.block("submit node=pump-1 intent=gpio.release pin=valve")
	h.block("event pump-1 seq=2 processed ok")
	if n := len(h.eng.Holds()); n != 0 {
		t.Fatalf("%d are held", n)
	}
	h.block("operate retry seq=1 yes\nadvance 1ms")
	if n := len(h.eng.Holds()); n != 1 {
		t.Error("nothing is held")
	}
}

// TestAWayToSafeThatIsNotGoneIsUrgent: an output may be on that should be off.
func TestAWayToSafeThatIsNotGoneIsUrgent(t *testing.T) {
	for _, kind := range []string{"safe_undelivered", "safe_refused_local", "safe_expired", "lease_failed"} {
		if u := (engine.Alarm{Kind: kind}).Urgency(); u != engine.UrgencyNow {
			t.Errorf("%s: %d", kind, u)
		}
	}
}

// TestA11_AnotherNameOfTheLine: without a pin map a line goes by more names than the
// hello tells (P1_11 for GPIO17). What names one of those waits for all that is older on
// the board, and what is newer for it, since nobody here knows which line it is. And the
// agent, who does, is believed when something newer has begun there.
func TestA11_AnotherNameOfTheLine(t *testing.T) {
	for _, names := range [][2]string{{"P1_11", "GPIO17"}, {"GPIO17", "P1_11"}, {"P1_11", "P1_12"}} {
		h := newHarness(t)
		h.block("hello a pins=GPIO17:-,GPIO18:-")
		if out := h.block(fmt.Sprintf("submit node=a pin=%s level=1\nsubmit node=a pin=%s level=0", names[0], names[1])); strings.Contains(out, "-> send a instruction 2 ") {
			t.Errorf("%v: the newer is not behind the older:\n%s", names, out)
		}
		if out := h.block("event a seq=1 received"); !strings.Contains(out, "-> send a instruction 2 ") {
			t.Errorf("%v: and does not go when that is received:\n%s", names, out)
		}
		h.block("event a seq=2 started")
		if out := h.block("event a seq=1 processed superseded"); strings.Contains(out, "order_lost") {
			t.Errorf("%v: not believed:\n%s", names, out)
		}
	}
	// What the hello tells of is as it was, and so is the way to safe.
	h := newHarness(t)
	h.block("hello a pins=lamp:0,GPIO18:-")
	out := h.block("submit node=a pin=lamp level=1\nsubmit node=a pin=GPIO18 level=1")
	if !strings.Contains(out, "-> send a instruction 1 ") || !strings.Contains(out, "-> send a instruction 2 ") {
		t.Errorf("one line waits for the other:\n%s", out)
	}
	h.block("submit node=a pin=nowhere level=1")
	if out := h.block("submit node=a intent=gpio.safe pin=lamp"); !strings.Contains(out, "-> send a instruction 4 ") || strings.Contains(out, "2 DISPATCHED -> CANCELLED") {
		t.Errorf("the way to safe:\n%s", out)
	}
}

// TestARetryHasItsPlaceOnAFullLine: what is inside the agent waits there for the lines
// that it keeps for the retry, so its place is free, whatever other lines wait.
func TestARetryHasItsPlaceOnAFullLine(t *testing.T) {
	h := newHarness(t)
	h.block("config window=8")
	h.block("hello pump-1 pins=lamp:-,horn:-\n" + strings.Repeat("submit node=pump-1 pin=lamp level=1 retry=3,1s,1s\n", 4))
	for seq := range 4 {
		h.block(fmt.Sprintf("event pump-1 seq=%d received", seq+1))
	}
	h.block("submit node=pump-1 pin=horn level=1\nsubmit node=pump-1 pin=horn level=0")
	h.block("event pump-1 seq=1 processed busy")
	if out := h.block("advance 2s"); !strings.Contains(out, "-> send pump-1 instruction 1 a2 ") {
		t.Errorf("it is not sent:\n%s%s", out, h.block("waits 1\nshow"))
	}
	// An agent that keeps nothing any more and has no room is not asked at once again.
	if out := h.block("report pump-1 full seq=1"); strings.Contains(out, "-> send pump-1 instruction 1 ") {
		t.Errorf("it is sent again at once:\n%s", out)
	}
}
