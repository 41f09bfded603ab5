package engine_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/apollo-11/apollo11/gateway/engine"
	"github.com/apollo-11/apollo11/wire"
)

// TestE14_DeadNodesDoNotHoldUpALiveOne sends a thousand commands to nodes that
// are dead in every way, and one to a live node: it leaves in the same round.
func TestE14_DeadNodesDoNotHoldUpALiveOne(t *testing.T) {
	h := newHarness(t)
	h.block("hello live\nhello half-open\nhello gone\ngoodbye gone lost")
	h.block("submit node=half-open count=400\nsubmit node=gone count=300")
	h.block("submit nodes=300 id=unknown")
	h.log.step(h.eng, h.now, h.submit(parseCommand(t, "submit node=live id=one")))
	r := h.eng.Ready(h.now)
	found := false
	for _, s := range r.Effects.Sends {
		if m, ok := s.Msg.(*wire.Instruction); ok && s.Node == "live" && m.Seq == 1001 {
			found = true
		}
	}
	if !found {
		t.Fatalf("the command to the live node is not among the %d messages of its round", len(r.Effects.Sends))
	}
	h.finish(&r)
	if s := h.eng.Sizes(); s.Open != 1001 || s.Flying != 17 { // the window of half-open, and the live one
		t.Fatalf("%+v", s)
	}
}

// TestMemoryAndTimersFollowWhatIsOpen runs many tasks with distant limits
// through an engine, to nodes that come and go: what is finished leaves nothing.
func TestMemoryAndTimersFollowWhatIsOpen(t *testing.T) {
	h := newHarness(t)
	h.block("hello live")
	for n := range 300 {
		h.block(fmt.Sprintf("submit node=live,stranger-%d id=t%d ttl=240h", n, n))
		h.block(fmt.Sprintf("event live seq=%d processed ok\ncancel seq=%d", 2*n+1, 2*n+2))
	}
	want := engine.Sizes{Nodes: 1, Timers: 1}
	if got := h.eng.Sizes(); got != want {
		t.Errorf("in memory: %+v, want %+v", got, want)
	}
}

// TestTimersAreNotMultipliedByTraffic lets one instruction with a limit report
// for an hour: each report moves its timer, none adds one.
func TestTimersAreNotMultipliedByTraffic(t *testing.T) {
	h := newHarness(t)
	h.block("hello live\nsubmit node=live id=t1 ttl=240h timeout=20h")
	for range 360 {
		h.advance(10 * time.Second)
		h.block("event live seq=1 received")
	}
	if got := h.eng.Sizes(); got.Timers > 2 {
		t.Errorf("%d timers for one instruction and one node", got.Timers)
	}
}

// TestOneFaultyAgentCannotSilenceAlarms repeats an incident for more subjects
// than are remembered: a new incident and a new condition are still told.
func TestOneFaultyAgentCannotSilenceAlarms(t *testing.T) {
	h := newHarness(t)
	h.block("hello live\nhello other")
	for n := range 1100 {
		h.log.step(h.eng, h.now, &engine.Compact{Short: fmt.Sprintf("%06d", n), Ack: wire.CompactAck{Seq: 1, Attempt: 1, Code: wire.CodeOK}})
	}
	r := h.eng.Ready(h.now)
	if n := len(r.Effects.Alarms); n != 1100 {
		t.Errorf("%d alarms for 1100 subjects", n)
	}
	h.finish(&r)
	h.now.Mono += 20 * time.Second
	r = h.eng.Ready(h.now)
	if n := len(r.Effects.Alarms); n != 2 {
		t.Errorf("%d alarms for two silent nodes: %v", n, r.Effects.Alarms)
	}
}

// TestE5_EveryReconnectLeavesARoundTripThatWorks takes a node's connection over
// two hundred times, with and without a word of the old one, before or after the
// new hello, and sends a command each time.
func TestE5_EveryReconnectLeavesARoundTripThatWorks(t *testing.T) {
	h := newHarness(t)
	h.block("hello live")
	for n := range 200 {
		old := h.agent["live"].session
		end := fmt.Sprintf("goodbye live session=%d lost", old)
		steps := []string{"hello live", end + "\nhello live", "hello live\n" + end, fmt.Sprintf("gone live session=%d\nhello live", old)}
		h.block(steps[n%len(steps)] + fmt.Sprintf("\nsubmit node=live id=t%d", n))
		seq := uint64(n + 1)
		if i := h.log.insts[seq]; i.State != engine.StateDispatched || i.Sends != 1 {
			t.Fatalf("after reconnect %d the command stands at %v after %d sends", n+1, i.State, i.Sends)
		}
		h.block(fmt.Sprintf("event live seq=%d processed ok", seq))
		if i := h.log.insts[seq]; i.State != engine.StateSucceeded {
			t.Fatalf("after reconnect %d the command ended as %v", n+1, i.State)
		}
	}
}
