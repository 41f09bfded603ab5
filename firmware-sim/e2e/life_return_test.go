package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestL7_AllReturnAtOnce: 50 agents, each with 100 results that the gateway has
// not got, come back in the same moment, as after a power cut. Every result is
// recorded, no agent is sent away, and a command for a node that was there all the
// time is not lost among them.
func TestL7_AllReturnAtOnce(t *testing.T) {
	t.Parallel()
	const commands = 100
	n := rounds(t, 50)
	// Behind one line no more than a window goes into an agent (docs/safety.md 3); here
	// that is to be enough for all of them.
	config := filepath.Join(t.TempDir(), "gateway.yaml")
	if err := os.WriteFile(config, []byte("delivery:\n  window: 128\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := newSite(t, "--config", config)
	primary, narrow := newProxy(t, s.mqtt), newProxy(t, s.narrow)
	var nodes []string
	agents := map[string]*process{}
	for k := range n {
		node := fmt.Sprintf("pump-%02d", k)
		nodes = append(nodes, node)
		agents[node] = s.agentVia(node, primary.addr, narrow.addr)
	}
	s.agent("other")
	for _, node := range append(nodes, "other") {
		s.online(node)
	}
	c, err := dial(s.mqtt, "scada-1")
	if err != nil {
		t.Fatal(err)
	}
	defer c.close()
	// A pulse holds the pin, so that the writes behind it are taken in but not
	// run before the lines are cut. (None of them is its off level, which would
	// end it.) It is long: a newer command goes out when the agent has told that it has
	// the older one, and that it does of what has waited for executor.ShortWork.
	var payloads []string
	for _, node := range nodes {
		payloads = append(payloads, taskJSON(node+"-pulse", "gpio.pulse", node, `{"pin":"GPIO17","width":"45s"}`, ""))
		for k := range commands {
			payloads = append(payloads, write(fmt.Sprintf("%s-%d", node, k), node, "GPIO17", 1))
		}
	}
	began := time.Now()
	if _, err := c.publish(payloads...); err != nil {
		t.Fatal(err)
	}
	for _, node := range nodes {
		s.until(fmt.Sprintf("%s-%d", node, commands-1), "taken in", func(v taskView) bool { return v.one(t).Received != "" })
	}
	taken := time.Since(began)
	primary.sever()
	narrow.sever()
	s.nodeState(nodes[n-1], "offline")
	early := 0
	for _, node := range nodes {
		if s.task(node + "-0").Settled {
			early++
		}
	}
	for _, node := range nodes {
		within(t, 2*slow, "everything done at "+node, func() (bool, string) {
			a := len(s.actuations(node))
			return a == commands+2, fmt.Sprint(a)
		})
	}
	if early > 0 {
		t.Errorf("%d agents were not cut off in time: taking in took %v", early, taken)
	}
	for _, node := range nodes {
		if code := agents[node].stop(); code != 0 {
			t.Errorf("%s: exit code %d", node, code)
		}
	}
	primary.mend()
	narrow.mend()
	back := time.Now()
	for _, node := range nodes {
		agents[node] = s.agentVia(node, primary.addr, narrow.addr)
	}
	s.publish(write("meanwhile", "other", "GPIO17", 1))
	s.done("meanwhile")
	for _, node := range nodes {
		s.done(node + "-pulse")
		for k := range commands {
			s.done(fmt.Sprintf("%s-%d", node, k))
		}
		s.moved(node, commands+2)
	}
	t.Logf("%d agents took in %d commands each in %v; they came back with their results, and all were recorded after %v",
		n, commands+1, taken, time.Since(back))
	for _, node := range nodes {
		if strings.Contains(agents[node].output(), "connection lost") {
			t.Errorf("%s was sent away:\n%s", node, agents[node].output())
		}
	}
}
