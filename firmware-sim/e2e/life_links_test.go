package e2e

import (
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/apollo-11/apollo11/gateway/scada"
)

// TestL3_HalfOpenSocketIsNoticed makes one direction dead on each of two lines
// that stay open: the gateway hears nothing of pump-1, and pump-2 hears nothing of
// the gateway. Both find out, and the command of each runs once.
func TestL3_HalfOpenSocketIsNoticed(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	dead := map[string]direction{"pump-1": up, "pump-2": down}
	lines, agents := map[string]*proxy{}, map[string]*process{}
	for node := range dead {
		lines[node] = newProxy(t, s.mqtt)
		narrow := newProxy(t, s.narrow)
		narrow.sever() // so that the primary path has to recover by itself
		agents[node] = s.agentVia(node, lines[node].addr, narrow.addr)
	}
	for node := range dead {
		s.online(node)
	}
	began := time.Now()
	for node, d := range dead {
		lines[node].hold(d)
		s.publish(write("to-"+node, node, "GPIO17", 1))
	}
	ends := map[string]scada.InstructionView{}
	for node := range dead {
		ends[node] = s.done("to-" + node)
		s.moved(node, 1)
		t.Logf("%s: settled %v after its line died: %q", node, time.Since(began).Round(time.Second), whats(s.timeline(ends[node].Seq)))
		if !strings.Contains(agents[node].output(), "connection lost") {
			t.Errorf("%s has not noticed", node)
		}
	}
	// The gateway gave up the silent one itself; the other one hung up.
	for node, reason := range map[string]string{"pump-1": "silent", "pump-2": "connection lost"} {
		if !slices.ContainsFunc(s.timeline(ends[node].Seq), func(e scada.EntryView) bool {
			return e.What == "requeued" && e.To == pending && e.Detail == reason
		}) {
			t.Errorf("%s was not taken back because of %q:\n%+v", node, reason, s.timeline(ends[node].Seq))
		}
	}
}

// TestE4_StoppedAgentIsNotDelivered: a board that has lost its power leaves a
// connection behind that still takes bytes. Its command is never more than
// DISPATCHED, and PENDING again when the silence is noticed; it runs when the
// board is back.
func TestE4_StoppedAgentIsNotDelivered(t *testing.T) {
	t.Parallel()
	s := newSite(t, "--config", fast(t))
	agent := s.agent("pump-1")
	s.online("pump-1")
	if err := agent.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	s.publish(write("fill", "pump-1", "GPIO17", 1))
	if n := s.nodeState("pump-1", "offline"); n.Reason != "silent" {
		t.Errorf("offline because %q", n.Reason)
	}
	v := s.until("fill", "taken back", func(v taskView) bool { return v.State == pending })
	for _, e := range s.timeline(v.one(t).Seq) {
		if e.To != pending && e.To != dispatched {
			t.Errorf("%s brought it to %s", e.What, e.To)
		}
	}
	if err := agent.cmd.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	s.done("fill")
	s.moved("pump-1", 1)
}

// TestE5_CommandsArriveAfterEveryReconnect: 200 agents' deaths whose connections
// outlive them, so that each new connection takes the old one's place.
func TestE5_CommandsArriveAfterEveryReconnect(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	const lanes = 8
	lines, agents := map[string]*proxy{}, map[string]*process{}
	var nodes []string
	for k := range lanes {
		node := fmt.Sprintf("pump-%d", k+1)
		nodes = append(nodes, node)
		lines[node] = newProxy(t, s.mqtt)
		lines[node].halfOpen()
		agents[node] = s.agentVia(node, lines[node].addr, s.narrow)
		s.online(node)
	}
	n, old := rounds(t, 200/lanes), 0
	for round := range n {
		for _, node := range nodes {
			agents[node].mute = true
			agents[node].kill()
			old += len(lines[node].all()) // the gateway's half of it
			agents[node] = s.agentVia(node, lines[node].addr, s.narrow)
		}
		for _, node := range nodes {
			// Only then is the command for the new connection.
			agents[node].heard("welcomed by the gateway")
			s.publish(write(fmt.Sprintf("%s-%d", node, round), node, "GPIO17", round%2))
		}
		for _, node := range nodes {
			s.done(fmt.Sprintf("%s-%d", node, round))
			s.moved(node, round+1)
		}
	}
	t.Logf("%d reconnects, %d of them while the gateway still held the old connection", n*lanes, old)
	if old != n*lanes {
		t.Errorf("%d of %d reconnects met the old connection", old, n*lanes)
	}
}

// TestE14_DeadNodesDelayNobody: 1000 commands for nodes that do not answer, half
// of which look connected, and one in between for a node that does, now and then.
// The living one is served before the gateway even tries the dead ones again.
func TestE14_DeadNodesDelayNobody(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.agent("alive")
	s.online("alive")
	var before []time.Duration
	for k := range 9 {
		s.publish(write(fmt.Sprintf("before-%d", k), "alive", "GPIO17", k%2))
		before = append(before, took(t, s.done(fmt.Sprintf("before-%d", k))))
	}
	dead := []string{"never-1", "never-2"}
	for _, node := range []string{"stopped-1", "stopped-2"} {
		agent := s.agent(node)
		s.online(node)
		if err := agent.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
			t.Fatal(err)
		}
		dead = append(dead, node)
	}
	var payloads, live []string
	for k := range 1000 {
		node := dead[k%len(dead)]
		payloads = append(payloads, write(fmt.Sprintf("dead-%d", k), node, "GPIO17", k%2))
		if k%100 == 99 {
			live = append(live, fmt.Sprintf("live-%d", k))
			payloads = append(payloads, write(live[len(live)-1], "alive", "GPIO17", k/100%2))
		}
	}
	c, err := dial(s.mqtt, "scada-1")
	if err != nil {
		t.Fatal(err)
	}
	defer c.close()
	if _, err := c.publish(payloads...); err != nil {
		t.Fatal(err)
	}
	var among []time.Duration
	last := ""
	for _, id := range live {
		i := s.done(id)
		among = append(among, took(t, i))
		last = max(last, i.SettledAt)
	}
	s.moved("alive", len(before)+len(live))
	stuck := s.until("dead-2", "sent again", func(v taskView) bool { return v.one(t).Sends > 1 }).one(t)
	for _, e := range s.timeline(stuck.Seq) {
		if e.What == "resent" && e.Time <= last {
			t.Errorf("the living node was served until %s, after the dead one was tried again at %s", last, e.Time)
		}
	}
	slices.Sort(before)
	slices.Sort(among)
	t.Logf("median of the living node's commands: %v alone, %v among 1000 for dead nodes", before[len(before)/2], among[len(among)/2])
}

// took is the time from submission to the end, by the gateway's clock.
func took(t *testing.T, i scada.InstructionView) time.Duration {
	t.Helper()
	var at [2]time.Time
	for k, text := range []string{i.Created, i.SettledAt} {
		var err error
		if at[k], err = time.Parse(time.RFC3339, text); err != nil {
			t.Fatal(err)
		}
	}
	return at[1].Sub(at[0])
}
