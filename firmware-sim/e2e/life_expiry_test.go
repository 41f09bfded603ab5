package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/apollo-11/apollo11/gateway/scada"
	"github.com/apollo-11/apollo11/wire"
)

// expired waits for a task to end as never executed because its time ran out.
func (s *site) expired(id string) scada.InstructionView {
	s.t.Helper()
	i := s.settled(id).one(s.t)
	if i.State != timedOut || i.Reason != "expired" {
		s.t.Fatalf("%s ended as %s %s: %s", id, i.State, i.Reason, i.Detail)
	}
	return i
}

// pass waits until an instruction's not_after has passed.
func pass(t *testing.T, i scada.InstructionView) {
	t.Helper()
	at, err := time.Parse(time.RFC3339, i.NotAfter)
	if err != nil {
		t.Fatalf("not_after %q: %v", i.NotAfter, err)
	}
	within(t, slow, "not_after passed", func() (bool, string) { return time.Now().After(at.Add(50 * time.Millisecond)), "" })
}

// TestExpiry_AgentOffline: a time limit that passes while the agent is away ends
// the command. It never runs, and everybody is told (A9).
func TestExpiry_AgentOffline(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	agent := s.agent("pump-1")
	s.online("pump-1")
	agent.stop()
	s.nodeState("pump-1", "offline")
	sub := s.listen("apollo/default/task/+/status")
	s.publish(write("valve", "pump-1", "GPIO17", 1, `,"ttl":"400ms"`))
	i := s.expired("valve")
	if i.Attempt != 0 || i.Code != "" {
		t.Errorf("it was handed out: %+v", i)
	}
	sub.heard("task/valve/status", `"state":"TIMEOUT"`, `"reason":"expired"`, `"settled":true`)
	if got := whats(s.timeline(i.Seq)); got != "submitted timeout" {
		t.Errorf("timeline is %q", got)
	}
	s.agent("pump-1")
	s.publish(write("next", "pump-1", "GPIO4", 1))
	s.done("next")
	s.moved("pump-1", 1) // only the next one
}

// TestExpiry_GatewayDown: the limit also passes while the gateway itself is away.
func TestExpiry_GatewayDown(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.publish(write("valve", "pump-1", "GPIO17", 1, `,"ttl":"1s"`))
	i := s.task("valve").one(t)
	s.gateway.kill()
	pass(t, i)
	s.start()
	s.agent("pump-1")
	s.expired("valve")
	s.publish(write("next", "pump-1", "GPIO4", 1))
	s.done("next")
	s.moved("pump-1", 1)
}

// TestF2_ExpiryOnTheWire: a command that was sent in time and arrives too late is
// refused by the agent, which says so.
func TestF2_ExpiryOnTheWire(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	line := newProxy(t, s.mqtt)
	s.agentVia("pump-1", line.addr, s.narrow)
	s.online("pump-1")
	sub := s.listen("apollo/default/task/+/status")
	line.hold(down)
	s.publish(write("valve", "pump-1", "GPIO17", 1, `,"ttl":"600ms"`))
	i := s.until("valve", "sent", func(v taskView) bool { return v.State == dispatched }).one(t)
	pass(t, i)
	line.mend()
	i = s.expired("valve")
	if i.Code != "expired" || !strings.Contains(i.Detail, "not_after had passed") {
		t.Errorf("code %s: %s", i.Code, i.Detail)
	}
	sub.heard("task/valve/status", `"state":"TIMEOUT"`, `"reason":"expired"`)
	s.publish(write("next", "pump-1", "GPIO4", 1))
	s.done("next")
	s.moved("pump-1", 1)
}

// TestExpiry_AtTheAgent: the limit passes while the command waits inside the agent
// for its pin.
func TestExpiry_AtTheAgent(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.agent("pump-1")
	s.online("pump-1")
	s.publish(taskJSON("pulse", "gpio.pulse", "pump-1", `{"pin":"GPIO17","width":"2s"}`, ""))
	s.until("pulse", "running", func(v taskView) bool { return v.State == "RUNNING" })
	s.publish(write("valve", "pump-1", "GPIO17", 1, `,"ttl":"500ms"`))
	if i := s.expired("valve"); i.Code != "expired" {
		t.Errorf("code %s: %s", i.Code, i.Detail)
	}
	s.done("pulse")
	s.publish(write("next", "pump-1", "GPIO17", 0))
	s.done("next")
	s.moved("pump-1", 3) // the pulse and the next one
}

// TestF2_BytesAtTheAgentCarryNotAfter: what the field side gets holds the limit,
// so that it can be kept there.
func TestF2_BytesAtTheAgentCarryNotAfter(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	c, err := dial(s.mqtt, "agent/pump-9")
	if err != nil {
		t.Fatal(err)
	}
	defer c.close()
	hello, err := wire.Encode(&wire.Hello{Session: 1, Incarnation: 1, Short: wire.Short("pump-9"), First: 1, Next: 1,
		Clock: time.Now().UnixMilli(), ClockSet: true})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.subscribe("apollo/default/cmd/pump-9"); err != nil {
		t.Fatal(err)
	}
	if err := c.say("apollo/default/evt/pump-9", hello); err != nil {
		t.Fatal(err)
	}
	s.online("pump-9")
	s.publish(write("valve", "pump-9", "GPIO17", 1, `,"ttl":"30s"`))
	want := s.task("valve").one(t)
	for {
		_, payload, err := c.hear()
		if err != nil {
			t.Fatal(err)
		}
		m, err := wire.DecodeDownlink(payload)
		if err != nil {
			t.Fatal(err)
		}
		in, ok := m.(*wire.Instruction)
		if !ok {
			continue // the welcome
		}
		at := time.UnixMilli(in.NotAfter).UTC().Format("2006-01-02T15:04:05.000Z07:00")
		if in.NotAfter == 0 || at != want.NotAfter || fmt.Sprint(in.Token) != want.Token {
			t.Errorf("not_after %s, want %s; token %v, want %s", at, want.NotAfter, in.Token, want.Token)
		}
		return
	}
}
