package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/apollo-11/apollo11/fieldagent/gpio"
)

// tasks counts the tasks of the log.
func (s *site) tasks() int {
	s.t.Helper()
	var v struct {
		Tasks []taskView `json:"tasks"`
	}
	s.get("/v1/tasks?limit=100", &v)
	return len(v.Tasks)
}

// TestA19_OrderIsKept: 1000 alternating commands to one pin at full speed act in
// the order in which they were published.
func TestA19_OrderIsKept(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.agent("pump-1")
	s.online("pump-1")
	c, err := dial(s.mqtt, "scada-1")
	if err != nil {
		t.Fatal(err)
	}
	defer c.close()
	const n = 1000
	var ids, payloads []string
	for k := range n {
		ids = append(ids, fmt.Sprintf("step-%d", k))
		payloads = append(payloads, write(ids[k], "pump-1", "GPIO17", (k+1)%2))
	}
	if _, err := c.publish(payloads...); err != nil {
		t.Fatal(err)
	}
	s.done(ids[n-1])
	s.moved("pump-1", n)
	seq := uint64(0)
	for k, a := range s.actuations("pump-1") {
		i := s.done(ids[k])
		if a.Cause != i.Token || a.Level != gpio.Level(k%2 == 0) {
			t.Fatalf("actuation %d is %+v, want that of %s by %s", k+1, a, ids[k], i.Token)
		}
		if i.Seq <= seq {
			t.Fatalf("%s has sequence %d after %d", ids[k], i.Seq, seq)
		}
		seq = i.Seq
	}
	if got := s.level("pump-1", "GPIO17"); got != gpio.Low {
		t.Errorf("the pin is %v, the last command said low", got)
	}
}

// TestD1_SameTaskTwiceIsOneExecution: a task id that is known is answered with
// what became of it, over restarts of both sides, and when the agent has forgotten
// everything.
func TestD1_SameTaskTwiceIsOneExecution(t *testing.T) {
	t.Parallel()
	s := newSite(t, "--config", fast(t)) // a new memory is believed when the old one has been silent
	agent := s.agent("pump-1")
	s.online("pump-1")
	again := func() {
		t.Helper()
		for _, version := range []string{"311", "5"} {
			s.publish(write("toggle", "pump-1", "GPIO17", 1), "-V", version)
		}
		s.done("toggle")
		s.publish(write("fence", "pump-1", "GPIO4", 1)) // whatever had been sent would be before it
		s.done("fence")
		if n := s.tasks(); n != 2 {
			t.Errorf("%d tasks", n)
		}
		s.moved("pump-1", 2)
	}
	again()
	s.restart()
	s.online("pump-1")
	again()
	agent.kill()
	if err := os.RemoveAll(filepath.Join(s.dir, "agent-pump-1")); err != nil {
		t.Fatal(err)
	}
	s.agent("pump-1")
	s.online("pump-1")
	again()
	if out, err := s.tryPublish(write("toggle", "pump-1", "GPIO17", 0), "-V", "5"); err == nil && !strings.Contains(out, "other content") {
		t.Errorf("other content under the same id: %q", out)
	}
	s.moved("pump-1", 2)
}

// TestD1_RetransmittedPublishIsOneTask: DUP with the same packet id is the same
// command, with and without an acknowledgement before it, over a new connection
// and a new gateway (A10).
func TestD1_RetransmittedPublishIsOneTask(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.agent("pump-1")
	s.online("pump-1")
	payload := taskJSON("", "gpio.write", "pump-1", `{"pin":"GPIO17","level":1}`, "")
	payload = strings.Replace(payload, `"task_id":"",`, "", 1)
	send := func(flags byte, wait bool) {
		t.Helper()
		c, err := dial(s.mqtt, "scada-7")
		if err != nil {
			t.Fatal(err)
		}
		defer c.close()
		if err := c.put(7, flags, payload); err != nil {
			t.Fatal(err)
		}
		if !wait {
			return
		}
		if id, err := c.ack(); err != nil || id != 7 {
			t.Fatalf("puback %d: %v", id, err)
		}
	}
	send(0, true)
	send(flagDup, true)
	send(flagDup, false)
	send(flagDup, true)
	s.restart()
	send(flagDup, true)
	s.online("pump-1")
	s.publish(write("fence", "pump-1", "GPIO4", 1))
	s.done("fence")
	if n := s.tasks(); n != 2 {
		t.Errorf("%d tasks, want one and the fence", n)
	}
	s.moved("pump-1", 2)
	send(0, true) // without DUP it is a new command, whatever its packet id
	within(t, slow, "third actuation", func() (bool, string) {
		a := s.actuations("pump-1")
		return len(a) == 3, fmt.Sprint(a)
	})
}

// TestD1_ReinstalledAgentDoesNotRepeatAPulse: the agent loses its memory while it
// works. The gateway cannot know what happened, and does not try.
func TestD1_ReinstalledAgentDoesNotRepeatAPulse(t *testing.T) {
	t.Parallel()
	s := newSite(t, "--config", fast(t)) // a new memory is believed when the old one has been silent
	agent := s.agent("pump-1")
	s.online("pump-1")
	s.publish(taskJSON("pulse", "gpio.pulse", "pump-1", `{"pin":"GPIO17","width":"50s"}`, ""))
	s.until("pulse", "running", func(v taskView) bool { return v.State == "RUNNING" })
	agent.kill()
	if err := os.RemoveAll(filepath.Join(s.dir, "agent-pump-1")); err != nil {
		t.Fatal(err)
	}
	s.agent("pump-1")
	i := s.settled("pulse").one(t)
	if i.State != timedOut || i.Reason != "agent_forgot" || !i.Operator {
		t.Errorf("it ended as %s %s (operator %v): %s", i.State, i.Reason, i.Operator, i.Detail)
	}
	s.publish(write("fence", "pump-1", "GPIO4", 1))
	s.done("fence")
	s.moved("pump-1", 2) // the pulse's beginning and the fence
}

// TestD3_EqualCommandsWithTheirOwnIdsBothRun: content alone is never taken for a
// repeat.
func TestD3_EqualCommandsWithTheirOwnIdsBothRun(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.agent("pump-1")
	s.online("pump-1")
	for _, id := range []string{"unlock-1", "unlock-2"} {
		s.publish(write(id, "pump-1", "GPIO17", 1))
	}
	first, second := s.done("unlock-1"), s.done("unlock-2")
	s.moved("pump-1", 2)
	if a := s.actuations("pump-1"); a[0].Cause != first.Token || a[1].Cause != second.Token {
		t.Errorf("actuations %+v", a)
	}
}

// TestD4_WithoutAnIdEqualPublishesAreTwoTasks: each has its own status, and whoever
// asks for an answer is warned.
func TestD4_WithoutAnIdEqualPublishesAreTwoTasks(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.agent("pump-1")
	s.online("pump-1")
	const payload = `{"intent":"gpio.write","node":"pump-1","args":{"pin":"GPIO17","level":1}}`
	s.publish(payload)
	if out, err := s.post(payload); err != nil || !strings.Contains(out, "no_task_id") {
		t.Errorf("answer %s, %v: no warning", out, err)
	}
	within(t, slow, "two actuations", func() (bool, string) {
		a := s.actuations("pump-1")
		return len(a) == 2, fmt.Sprint(a)
	})
	if n := s.tasks(); n != 2 {
		t.Errorf("%d tasks", n)
	}
}

// TestC1_RetainedCommandNeverActs: it is refused, and nothing moves at later
// reconnects and restarts; nor is a command that ran repeated by them (A10).
func TestC1_RetainedCommandNeverActs(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	line := newProxy(t, s.mqtt)
	agent := s.agentVia("pump-1", line.addr, s.narrow)
	s.online("pump-1")
	hmi, err := dial(s.mqtt, "hmi-1")
	if err != nil {
		t.Fatal(err)
	}
	defer hmi.close()
	if err := hmi.subscribe("apollo/default/reply/hmi-1"); err != nil {
		t.Fatal(err)
	}
	if err := hmi.put(1, flagRetain, write("garage", "pump-1", "GPIO17", 1)); err != nil {
		t.Fatal(err)
	}
	if _, answer, err := hmi.hear(); err != nil || !strings.Contains(string(answer), "must not be retained") {
		t.Errorf("an MQTT 3.1.1 client was answered %q, %v", answer, err)
	}
	if out, err := s.tryPublish(write("garage", "pump-1", "GPIO17", 1), "-r", "-V", "5"); err == nil && !strings.Contains(out, "must not be retained") {
		t.Errorf("an MQTT 5 client was answered %q", out)
	}
	s.publish(write("door", "pump-1", "GPIO4", 1))
	s.done("door")
	for k := range 10 {
		if k == 5 {
			s.restart()
		} else {
			line.cut()
		}
		within(t, slow, "reconnected", func() (bool, string) {
			return strings.Count(agent.output(), "welcomed by the gateway") == k+2, agent.output()
		})
	}
	s.publish(write("fence", "pump-1", "GPIO4", 0))
	s.done("fence")
	s.moved("pump-1", 2) // the door and the fence
	if n := s.tasks(); n != 2 {
		t.Errorf("%d tasks", n)
	}
}

// TestC6_NodeIsNotShownOnlineAfterBothDied: what a crash left in the log or in a
// retained message is not believed.
func TestC6_NodeIsNotShownOnlineAfterBothDied(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	agent := s.agent("pump-1")
	s.online("pump-1")
	s.gateway.kill()
	agent.kill()
	s.start()
	if n := s.node("pump-1"); n.State != "unknown" {
		t.Errorf("shown as %q", n.State)
	}
	sub := s.listen("apollo/default/node/+/state")
	sub.heard("node/pump-1/state", `"state":"unknown"`)
	if strings.Contains(sub.output(), `"state":"online"`) {
		t.Errorf("a subscriber is told that it is online:\n%s", sub.output())
	}
	s.agent("pump-1")
	sub.heard("node/pump-1/state", `"state":"online"`)
}
