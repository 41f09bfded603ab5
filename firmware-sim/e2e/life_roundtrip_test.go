package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/apollo-11/apollo11/fieldagent/gpio"
	"github.com/apollo-11/apollo11/gateway/scada"
)

// TestRoundTrip_CommandMovesThePinAndIsTraced is the whole way of one command with
// stock clients (A1, A2, B2, B4, B5).
func TestRoundTrip_CommandMovesThePinAndIsTraced(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.agent("pump-1")
	s.online("pump-1")
	sub := s.listen("apollo/default/task/+/status")
	s.publish(write("fill", "pump-1", "GPIO17", 1, `,"ttl":"30s"`))
	i := s.done("fill")
	if got := s.level("pump-1", "GPIO17"); got != gpio.High {
		t.Errorf("the pin is %v", got)
	}
	s.moved("pump-1", 1)
	if a := s.actuations("pump-1")[0]; a.Pin != "GPIO17" || a.Level != gpio.High || a.Cause != i.Token {
		t.Errorf("actuation %+v, want GPIO17 high by %s", a, i.Token)
	}
	if i.Path != "primary" || i.Code != "ok" || fmt.Sprint(i.Result["level"]) != "1" || i.Attempt != 1 || i.Sends != 1 {
		t.Errorf("instruction %+v", i)
	}
	checkTimeline(t, i, s.timeline(i.Seq))
	sub.heard("apollo/default/task/fill/status", `"state":"SUCCEEDED"`, `"settled":true`, i.TraceID)

	s.publish(write("empty", "pump-1", "GPIO17", 0))
	s.done("empty")
	if got := s.level("pump-1", "GPIO17"); got != gpio.Low {
		t.Errorf("the pin is %v", got)
	}
}

// checkTimeline wants every step of an undisturbed command, with its time, actor,
// token and path.
func checkTimeline(t *testing.T, i scada.InstructionView, entries []scada.EntryView) {
	t.Helper()
	want := []struct {
		what, from, to, path, actor string
		agent                       bool // the step is the agent's own
	}{
		{"submitted", "", "PENDING", "mqtt", "", false},
		{"dispatched", "PENDING", "DISPATCHED", "primary", "", false},
		{"received", "DISPATCHED", "DISPATCHED", "primary", "pump-1", true},
		{"started", "DISPATCHED", "RUNNING", "primary", "pump-1", true},
		{"processed", "RUNNING", "SUCCEEDED", "primary", "pump-1", true},
	}
	if len(entries) != len(want) {
		t.Fatalf("timeline is %q", whats(entries))
	}
	for k, w := range want {
		e := entries[k]
		if e.What != w.what || e.From != w.from || e.To != w.to || e.Path != w.path || e.Implied || e.Time == "" {
			t.Errorf("step %d is %+v, want %+v", k+1, e, w)
		}
		if w.agent && (e.Actor != w.actor || e.AgentTime == "" || e.EventID == "") {
			t.Errorf("step %d does not say who, when and by which event: %+v", k+1, e)
		}
		if k == 0 && e.Actor == "" {
			t.Error("nobody submitted it")
		}
		if k > 0 && (e.Token != i.Token || e.Attempt != 1) {
			t.Errorf("step %d has token %q attempt %d, want %q and 1", k+1, e.Token, e.Attempt, i.Token)
		}
		if k > 0 && e.Time < entries[k-1].Time {
			t.Errorf("step %d is before the one before it: %s", k+1, e.Time)
		}
	}
	if i.TraceID == "" {
		t.Error("no trace id")
	}
}

// TestRoundTrip_AgentComesLater: a command waits for a node that is away, and for
// one that nobody has ever seen.
func TestRoundTrip_AgentComesLater(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.publish(write("early", "pump-1", "GPIO17", 1))
	if v := s.task("early"); v.State != pending {
		t.Fatalf("state %s without an agent", v.State)
	}
	first := s.agent("pump-1")
	s.done("early")
	if code := first.stop(); code != 0 {
		t.Fatalf("exit code %d", code)
	}
	s.nodeState("pump-1", "offline")
	s.publish(write("away", "pump-1", "GPIO17", 0))
	if v := s.task("away"); v.State != pending {
		t.Fatalf("state %s while the agent is away", v.State)
	}
	s.agent("pump-1")
	i := s.done("away")
	s.moved("pump-1", 2)
	if got := whats(s.timeline(i.Seq)); got != "submitted dispatched received started processed" {
		t.Errorf("timeline is %q", got)
	}
}

// TestRoundTrip_GatewayKilledAfterPuback: what mosquitto_pub was told is on disk
// is executed, exactly once, whether the agent was there or came later.
func TestRoundTrip_GatewayKilledAfterPuback(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.publish(write("kept", "pump-1", "GPIO17", 1))
	s.restart()
	if v := s.task("kept"); v.State != pending {
		t.Fatalf("state %s after the restart", v.State)
	}
	s.agent("pump-1")
	s.done("kept")
	s.moved("pump-1", 1)
}

// TestRoundTrip_GatewayKilledWithAgentOnline kills when mosquitto_pub returns, and
// a millisecond later each time: at the dispatch, on the wire, before the event is
// on disk, after it (C5, C7, F9). The agent stays, subscribes anew by itself, and
// runs each command exactly once.
func TestRoundTrip_GatewayKilledWithAgentOnline(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	agent := s.agent("pump-1")
	s.online("pump-1")
	n := rounds(t, 20)
	reached := map[string]int{}
	for k := range n {
		s.online("pump-1")
		id := fmt.Sprintf("round-%d", k)
		s.publish(write(id, "pump-1", "GPIO17", 1-k%2))
		time.Sleep(time.Duration(k) * time.Millisecond) // where the kill hits, nothing else
		s.restart()
		reached[s.task(id).State]++
		s.done(id)
		s.moved("pump-1", k+1)
	}
	var tokens []string
	for k := range n {
		tokens = append(tokens, s.done(fmt.Sprintf("round-%d", k)).Token)
	}
	for k, a := range s.actuations("pump-1") {
		if a.Cause != tokens[k] {
			t.Errorf("actuation %d is by %s, want %s", k+1, a.Cause, tokens[k])
		}
	}
	select {
	case <-agent.done:
		t.Error("the agent has ended")
	default:
	}
	t.Logf("%d kills; state found at the restart: %v", n, reached)
}

// TestApolloTimelineTellsTheWay: the operator's tool shows the same steps.
func TestApolloTimelineTellsTheWay(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.agent("pump-1")
	s.publish(write("fill", "pump-1", "GPIO17", 1))
	i := s.done("fill")
	for _, id := range []string{"fill", i.Instruction} {
		out, code := s.apollo("timeline", id)
		if code != 0 {
			t.Fatalf("exit code %d: %s", code, out)
		}
		rest := out
		for _, part := range []string{"submitted", "dispatched", "received", "started", "processed"} {
			_, after, ok := strings.Cut(rest, part)
			if !ok {
				t.Errorf("apollo timeline %s: no %s, or in the wrong place:\n%s", id, part, out)
				break
			}
			rest = after
		}
		for _, part := range []string{i.Token, "pump-1", "primary"} {
			if !strings.Contains(out, part) {
				t.Errorf("apollo timeline %s does not say %s:\n%s", id, part, out)
			}
		}
	}
}
