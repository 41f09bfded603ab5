package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/apollo-11/apollo11/fieldagent/gpio"
)

// TestStop_AgentTakesLeave: an agent that is stopped says so, so that its node is
// offline at once, with its reason, and not only after the silence (C1).
func TestStop_AgentTakesLeave(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	agent := s.agent("pump-1")
	s.online("pump-1")
	sub := s.listen("apollo/default/node/+/state")
	began := time.Now()
	if code := agent.stop(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	t.Logf("stopped in %v", time.Since(began))
	n := s.nodeState("pump-1", "offline")
	if n.Reason != "the agent was stopped" {
		t.Errorf("offline because %q", n.Reason)
	}
	sub.heard("node/pump-1/state", `"state":"offline"`, "the agent was stopped")
}

// TestStop_AgentGivesBackWhatItHasNotStarted: what waited inside it is queued again
// at once, and what ran is brought to a safe end and told as it was (C1, C14).
func TestStop_AgentGivesBackWhatItHasNotStarted(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	agent := s.agent("pump-1")
	s.online("pump-1")
	s.publish(taskJSON("long", "gpio.pulse", "pump-1", `{"pin":"GPIO17","width":"50s"}`, ""))
	s.until("long", "running", func(v taskView) bool { return v.State == "RUNNING" })
	s.publish(write("waits", "pump-1", "GPIO17", 1))
	s.until("waits", "received", func(v taskView) bool { return v.one(t).Received != "" })
	if code := agent.stop(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	if got := s.level("pump-1", "GPIO17"); got != gpio.Low {
		t.Errorf("the pulse was left %v", got)
	}
	long := s.settled("long").one(t)
	if long.State != timedOut || long.Reason != "interrupted" || !long.Operator {
		t.Errorf("the pulse ended as %s %s (operator %v): %s", long.State, long.Reason, long.Operator, long.Detail)
	}
	v := s.until("waits", "queued again", func(v taskView) bool { return v.State == pending })
	if got := whats(s.timeline(v.one(t).Seq)); got != "submitted dispatched received requeued" {
		t.Errorf("timeline is %q", got)
	}
	s.agent("pump-1")
	i := s.done("waits")
	s.moved("pump-1", 3)
	if last := s.actuations("pump-1")[2]; last.Cause != i.Token || last.Level != gpio.High {
		t.Errorf("last actuation %+v", last)
	}
}

// TestStop_AgentWithoutAGateway ends as well as one that is connected.
func TestStop_AgentWithoutAGateway(t *testing.T) {
	t.Parallel()
	s := &site{t: t, dir: t.TempDir(), mqtt: freeAddr(t), narrow: freeAddr(t)}
	agent := s.agent("pump-1")
	agent.heard("no connection; trying again", "primary", s.mqtt)
	if code := agent.stop(); code != 0 {
		t.Errorf("exit code %d", code)
	}
}

// TestStop_GatewayTakesLeave: it ends with 0 although an agent and a subscriber
// are connected, and goes on where it was.
func TestStop_GatewayTakesLeave(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.agent("pump-1")
	s.online("pump-1")
	s.listen("apollo/default/#")
	s.publish(write("waits", "pump-2", "GPIO17", 1))
	began := time.Now()
	if code := s.gateway.stop(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	t.Logf("stopped in %v", time.Since(began))
	if out := s.gateway.output(); strings.Contains(out, "level=ERROR") || strings.Contains(out, "panic") {
		t.Errorf("it did not end quietly:\n%s", out)
	}
	s.start()
	if v := s.task("waits"); v.State != pending {
		t.Errorf("state %s after the restart", v.State)
	}
	s.online("pump-1") // by itself
	s.publish(write("next", "pump-1", "GPIO17", 1))
	s.done("next")
}

// runToEnd runs one of our programs to its end.
func runToEnd(t *testing.T, name string, args ...string) (out string, code int) {
	t.Helper()
	p := startCmd(t, name, exec.Command(filepath.Join(binDir, name), args...))
	code = p.wait()
	return p.output(), code
}

// TestExit_WrongUse: what cannot work is refused at once, with code 2 and a
// sentence that names it.
func TestExit_WrongUse(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	config := filepath.Join(dir, "config.yaml")
	if err := os.WriteFile(config, []byte("nonsense: 1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	agent := func(more ...string) []string {
		return append([]string{"--gateway", "tcp://127.0.0.1:1", "--node", "pump-1", "--gpio", "sim", "--data", dir}, more...)
	}
	for _, c := range []struct {
		program string
		args    []string
		says    []string
	}{
		{"apollo-gateway", nil, []string{"no data directory", "--data"}},
		{"apollo-gateway", []string{"--dta", dir}, []string{"-dta", "--help"}},
		{"apollo-gateway", []string{"--data", dir, "--mqtt", "1883"}, []string{`mqtt address "1883"`, "host:port"}},
		{"apollo-gateway", []string{"--data", dir, "run"}, []string{`"run"`}},
		{"apollo-gateway", []string{"--data", dir, "--log-level", "loud"}, []string{`"loud"`, "debug"}},
		{"apollo-gateway", []string{"--data", dir, "--site", "a/b"}, []string{"a/b"}},
		{"apollo-gateway", []string{"--data", dir, "--config", config}, []string{"nonsense", "line 1"}},
		{"apollo-gateway", []string{"--data", dir, "--config", config + "x"}, []string{"read configuration", "config.yamlx"}},
		{"apollo-agent", nil, []string{"gateway: is missing", "node: is missing", "gpio: is missing", "data: is missing"}},
		{"apollo-agent", agent("--pin", "3"), []string{"-pin", "--help"}},
		{"apollo-agent", agent("--gateway", "10.0.0.5"), []string{"gateway", "tcp://"}},
		{"apollo-agent", agent("--gpio", "real"), []string{`"real"`, "sim or periph"}},
		{"apollo-agent", agent("--label", "role"), []string{"KEY=VALUE"}},
		{"apollo-agent", agent("start"), []string{`"start"`}},
		{"apollo-agent", agent("--config", config), []string{"line 1", "nonsense"}},
	} {
		out, code := runToEnd(t, c.program, c.args...)
		if code != 2 {
			t.Errorf("%s %v: exit code %d, want 2", c.program, c.args, code)
		}
		for _, part := range c.says {
			if !strings.Contains(out, part) {
				t.Errorf("%s %v does not say %q:\n%s", c.program, c.args, part, out)
			}
		}
	}
}

// TestExit_CannotStart: what another program holds is named, with code 1, and the
// other program is not disturbed.
func TestExit_CannotStart(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.agent("pump-1")
	s.online("pump-1")
	other := func(changed string, value string) []string {
		args := map[string]string{"--data": t.TempDir(), "--mqtt": freeAddr(t), "--narrowband": freeAddr(t), "--ws": freeAddr(t), "--http": freeAddr(t)}
		args[changed] = value
		var list []string
		for k, v := range args {
			list = append(list, k, v)
		}
		return list
	}
	data := filepath.Join(s.dir, "gateway")
	for _, c := range []struct {
		program string
		args    []string
		says    []string
	}{
		{"apollo-gateway", other("--data", data), []string{data, "locked", "stop the other process"}},
		{"apollo-gateway", other("--mqtt", s.mqtt), []string{s.mqtt, "in use", "another gateway", "--mqtt"}},
		{"apollo-gateway", other("--narrowband", s.narrow), []string{s.narrow, "in use"}},
		{"apollo-gateway", other("--ws", s.ws), []string{s.ws, "in use"}},
		{"apollo-gateway", other("--http", s.http), []string{s.http, "in use", "--http"}},
		{"apollo-gateway", other("--data", "/proc/nowhere"), []string{"/proc/nowhere", "open store", "io"}},
		{"apollo-gateway", other("--users", "/proc/nowhere"), []string{"users file", "/proc/nowhere"}},
		{"apollo-agent", s.agentArgs("pump-1", s.mqtt, s.narrow), []string{filepath.Join(s.dir, "agent-pump-1"), "in use", "stop it"}},
	} {
		out, code := runToEnd(t, c.program, c.args...)
		if code != 1 {
			t.Errorf("%s %v: exit code %d, want 1\n%s", c.program, c.args, code, out)
		}
		for _, part := range c.says {
			if !strings.Contains(out, part) {
				t.Errorf("%s %v does not say %q:\n%s", c.program, c.args, part, out)
			}
		}
	}
	s.publish(write("still", "pump-1", "GPIO17", 1))
	s.done("still")
	s.moved("pump-1", 1)
}
