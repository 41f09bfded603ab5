package engine_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/apollo-11/apollo11/gateway/engine"
	"github.com/apollo-11/apollo11/wire"
)

// TestA21_CancelGoesOverThePathThatIsLeft: whatever is wrong with the primary path,
// an agent that narrowband reaches is told to stop within half a second, and its
// answer ends the instruction.
func TestA21_CancelGoesOverThePathThatIsLeft(t *testing.T) {
	const running = "narrowband a up\nhello a\nsubmit node=a intent=gpio.pulse"
	for name, c := range map[string]struct {
		before []string
		within string
	}{
		"connected and silent":     {nil, "advance 510ms"},
		"known to carry nothing":   {[]string{"submit node=a", "advance 510ms", "compact a seq=2 never"}, "advance 1ms"},
		"gone":                     {[]string{"goodbye a lost"}, "advance 1ms"},
		"gone while it was asked":  {[]string{"cancel seq=1", "goodbye a lost"}, "advance 1ms"},
		"narrowband came up later": {[]string{"narrowband a down", "goodbye a lost", "cancel seq=1", "advance 1s", "narrowband a up"}, "advance 1ms"},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t)
			h.block(running)
			h.block("event a seq=1 started")
			out := ""
			for _, b := range c.before {
				out += h.block(b)
			}
			out += h.block("cancel seq=1")
			out += h.block(c.within)
			if want := fmt.Sprintf("-> narrowband %s cancel 1 a1", wire.Short("a")); !strings.Contains(out, want) {
				t.Fatalf("not sent:\n%s", out)
			}
			if out := h.block("compact a seq=1 cancelled"); !strings.Contains(out, "RUNNING>CANCELLED") {
				t.Errorf("not ended by the answer:\n%s", out)
			}
			if out := h.block("advance 2m"); strings.Contains(out, "-> narrowband") {
				t.Errorf("answered, and yet sent again:\n%s", out)
			}
		})
	}
}

// TestA21_TheNarrowbandIsLeftAlone when the primary path answers.
func TestA21_TheNarrowbandIsLeftAlone(t *testing.T) {
	h := newHarness(t)
	h.block("narrowband a up\nhello a\nsubmit node=a intent=gpio.pulse")
	h.block("event a seq=1 started\ncancel seq=1")
	h.block("advance 400ms")
	if out := h.block("event a seq=1 processed cancelled") + h.block("advance 30s a"); strings.Contains(out, "-> narrowband") {
		t.Errorf("%s", out)
	}
}

// TestA21_CancelIsRepeatedUntilItIsAnswered: a frame may be lost, and the timeline
// does not grow with them.
func TestA21_CancelIsRepeatedUntilItIsAnswered(t *testing.T) {
	h := newHarness(t)
	h.block("narrowband a up\nhello a\nsubmit node=a intent=gpio.pulse timeout=2h")
	h.block("event a seq=1 started\ngoodbye a lost\ncancel seq=1")
	n := strings.Count(h.block("advance 10m"), "cancel 1 a1")
	if n < 100 || n > 130 {
		t.Errorf("sent %d times in ten minutes", n)
	}
	if lines := len(h.log.lines[1]); lines > 12 {
		t.Errorf("the timeline has %d entries", lines)
	}
	if out := h.block("compact a seq=1 cancelled"); !strings.Contains(out, "CANCELLED") {
		t.Errorf("%s", out)
	}
}

// TestA21_FramesStayWithinWhatThePathCarries: in no second more than the path carries,
// however much is to be said.
func TestA21_FramesStayWithinWhatThePathCarries(t *testing.T) {
	h := newHarness(t)
	h.block("config window=60")
	h.block("narrowband a up\nhello a")
	for range 40 {
		h.block("submit node=a intent=gpio.pulse")
	}
	for n := 1; n <= 40; n += 2 {
		h.block(fmt.Sprintf("cancel seq=%d", n))
	}
	var at []time.Duration
	for range 200 {
		out := h.block("advance 50ms")
		for range strings.Count(out, "-> narrowband") {
			at = append(at, h.now.Mono)
		}
	}
	cancelled := 0
	for k := range at {
		cancelled++
		if k >= wire.NarrowbandRate && at[k]-at[k-wire.NarrowbandRate] < 950*time.Millisecond {
			t.Fatalf("%d frames in %v", wire.NarrowbandRate+1, at[k]-at[k-wire.NarrowbandRate])
		}
	}
	if cancelled < 60 {
		t.Errorf("only %d frames in ten seconds", cancelled)
	}
}

// TestD6_PresenceDoesNotDrift: connections are told of in any order.
func TestD6_PresenceDoesNotDrift(t *testing.T) {
	asked := func(h *harness) bool {
		return strings.Contains(h.block("submit node=a")+h.block("advance 600ms"), "-> narrowband")
	}
	h := newHarness(t)
	h.block("hello a\nnarrowband a up\nnarrowband a up\nnarrowband a down")
	if !asked(h) {
		t.Error("connected anew, and its old end counts")
	}
	h.block("narrowband a down\nnarrowband a down\nnarrowband a down")
	if asked(h) {
		t.Error("gone, and yet asked")
	}
	h.block("narrowband a up")
	if !asked(h) {
		t.Error("ends that nobody had begun count against the next connection")
	}
}

// TestD6_NamesAreNotMadeUpWithoutEnd: each hello of a new name is a node for good, so
// their number has a limit. Those that are known go on.
func TestD6_NamesAreNotMadeUpWithoutEnd(t *testing.T) {
	h := newHarness(t)
	for n := range 10_100 {
		h.log.step(h.eng, h.now, &engine.Uplink{Node: fmt.Sprintf("n%d", n), Msg: h.hello(parseCommand(t, fmt.Sprintf("hello n%d", n)))})
	}
	h.round()
	if n := len(h.log.nodes); n != 10_000 {
		t.Errorf("%d nodes are remembered", n)
	}
	if out := h.block("hello n7 session=9"); strings.Contains(out, "refused") {
		t.Errorf("a node of old: %s", out)
	}
	if out := h.block("hello n10099"); !strings.Contains(out, "refused=10000 nodes") {
		t.Errorf("one more: %s", out)
	}
}
