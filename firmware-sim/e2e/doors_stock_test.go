package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	mqtt "github.com/eclipse/paho.mqtt.golang"

	"github.com/apollo-11/apollo11/fieldagent/gpio"
)

// stock runs one of the mosquitto clients against the gateway and returns what
// it printed. Its exit code says little: 2.0 ends with 0 after a refusal.
func (s *site) stock(program, stdin string, args ...string) string {
	s.t.Helper()
	host, port, err := net.SplitHostPort(s.mqtt)
	if err != nil {
		s.t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(s.t.Context(), slow)
	defer cancel()
	cmd := exec.CommandContext(ctx, tool(s.t, program, "mosquitto-clients"), append([]string{"-h", host, "-p", port}, args...)...)
	cmd.Stdin = strings.NewReader(stdin)
	out, err := cmd.CombinedOutput()
	if ctx.Err() != nil {
		s.t.Fatalf("%s %v: not within %v: %s", program, args, slow, out)
	}
	if cmd.ProcessState == nil {
		s.t.Fatalf("%s: %v", program, err)
	}
	return string(out)
}

// seenSettled waits until a task has ended in a state.
func (s *site) seenSettled(id, state string) {
	s.t.Helper()
	within(s.t, slow, id+" "+state, func() (bool, string) {
		out, _, _ := s.tool("", "task", "status", id, "-o", "json")
		var v struct {
			State   string
			Settled bool
		}
		if out != "" {
			if err := json.Unmarshal([]byte(out), &v); err != nil {
				s.t.Fatalf("apollo task status -o json: %v: %s", err, out)
			}
		}
		return v.State == state && v.Settled, out
	})
}

// count is the number of actuations of a pin.
func (s *site) count(node, pin string) int {
	s.t.Helper()
	all, err := gpio.ReadTrace(s.trace(node))
	if err != nil {
		s.t.Fatal(err)
	}
	n := 0
	for _, a := range all {
		if a.Pin == pin {
			n++
		}
	}
	return n
}

// set is a gpio.write for pump-1.
func set(id, pin string) string {
	return fmt.Sprintf(`{"task_id":%q,"intent":"gpio.write","node":"pump-1","args":{"pin":%q,"level":1},"ttl":"5m"}`, id, pin)
}

// F3: mosquitto_pub with either version of the protocol and every QoS moves a
// pin once; with QoS 1 and 2 its end means "on disk".
func TestF3_MosquittoPub(t *testing.T) {
	s := newSite(t)
	s.agent("pump-1")
	pin := 2
	for _, version := range []string{"311", "5"} {
		for _, qos := range []string{"0", "1", "2"} {
			id, name := "stock-"+version+"-"+qos, fmt.Sprintf("GPIO%d", pin)
			pin++
			if out := s.stock("mosquitto_pub", "", "-V", version, "-q", qos, "-t", taskTopic, "-m", set(id, name)); out != "" {
				t.Errorf("mosquitto_pub %s QoS %s says %s", version, qos, out)
			}
			if qos != "0" { // durable, so known at once
				s.fetch("/v1/tasks/"+id, nil)
			}
			s.seenSettled(id, "SUCCEEDED")
			if n := s.count("pump-1", name); n != 1 {
				t.Errorf("%s: %d actuations", id, n)
			}
		}
	}
}

// The ways in which mosquitto_pub can be fed: lines, a whole stream, nothing.
func TestA6_A7_MosquittoPubFromAStream(t *testing.T) {
	s := newSite(t)
	s.agent("pump-1")
	// A line each; an empty line is an empty message, refused by itself (A6).
	s.stock("mosquitto_pub", set("line-1", "GPIO2")+"\r\n\n"+set("line-2", "GPIO3")+"\n", "-q", "1", "-t", taskTopic, "-l", "-i", "lines")
	s.seenSettled("line-1", "SUCCEEDED")
	s.seenSettled("line-2", "SUCCEEDED")
	// The whole stream, with the line end that an editor leaves (A7).
	s.stock("mosquitto_pub", set("whole", "GPIO4")+"\n", "-q", "2", "-t", taskTopic, "-s")
	s.seenSettled("whole", "SUCCEEDED")
	if out := s.stock("mosquitto_pub", "", "-V", "5", "-q", "1", "-t", taskTopic, "-n"); !strings.Contains(out, "empty") {
		t.Errorf("an empty message on MQTT 5: %q", out)
	}
	// With an id three copies are one task, without it they are three (D4).
	s.stock("mosquitto_pub", "", "-q", "1", "-t", taskTopic, "-m", set("again", "GPIO5"), "--repeat", "3")
	s.seenSettled("again", "SUCCEEDED")
	s.stock("mosquitto_pub", "", "-q", "1", "-t", taskTopic, "-m", strings.Replace(set("", "GPIO6"), `"task_id":"",`, "", 1), "--repeat", "3")
	within(t, slow, "three actuations of GPIO6", func() (bool, string) { n := s.count("pump-1", "GPIO6"); return n == 3, fmt.Sprint(n) })
	if n := s.count("pump-1", "GPIO5"); n != 1 {
		t.Errorf("%d actuations of GPIO5, want 1", n)
	}
}

// A18: what a stock client shows of a refusal on MQTT 5.
func TestA18_MosquittoPubShowsTheReason(t *testing.T) {
	s := newSite(t)
	for _, c := range []struct{ payload, says, flag string }{
		{`{"intent":"gpio.write"`, "Payload format invalid", ""},
		{`{"intent":"gpio.write"`, "column 23", ""},
		{set("r", "GPIO2"), "retain flag", "-r"},
	} {
		args := []string{"-V", "5", "-q", "1", "-t", taskTopic, "-m", c.payload}
		if c.flag != "" {
			args = append(args, c.flag)
		}
		if out := s.stock("mosquitto_pub", "", args...); !strings.Contains(out, c.says) {
			t.Errorf("mosquitto_pub %v: %q does not say %q", args, out, c.says)
		}
	}
}

// F3: request and response of MQTT 5, for what is taken and what is not.
func TestF3_MosquittoRequestResponse(t *testing.T) {
	s := newSite(t)
	for _, c := range []struct{ name, topic, payload, says string }{
		{"taken, own reply topic", "apollo/default/reply/panel", set("rr-1", "GPIO2"), `"task_id":"rr-1"`},
		{"taken, topic of its own", "answers/panel", set("rr-2", "GPIO2"), `"status_topic":"apollo/default/task/rr-2/status"`},
		{"refused", "answers/panel", `{"intent":"gpio.write","node":"a"}`, `"field":"args.pin"`},
	} {
		args := []string{"-V", "5", "-i", "panel", "-q", "1", "-t", taskTopic, "-e", c.topic, "-W", "60", "-m", c.payload}
		if out := s.stock("mosquitto_rr", "", args...); !strings.Contains(out, c.says) {
			t.Errorf("%s: %q does not say %q", c.name, out, c.says)
		}
	}
}

// A persistent session (-c): what the panel missed while it was away is there
// when it comes back.
func TestF3_PersistentSession(t *testing.T) {
	s := newSite(t)
	s.agent("pump-1")
	const status = "apollo/default/task/+/status"
	s.stock("mosquitto_sub", "", "-c", "-i", "panel", "-q", "1", "-t", status, "-E")
	s.publish(set("away", "GPIO2"), "-c", "-i", "scada")
	s.seenSettled("away", "SUCCEEDED")
	s.publish(set("away-2", "GPIO3"), "-c", "-i", "scada") // the publisher's session is there already
	s.seenSettled("away-2", "SUCCEEDED")
	seen := ""
	within(t, slow, "final status of both tasks", func() (bool, string) {
		seen += s.stock("mosquitto_sub", "", "-c", "-i", "panel", "-q", "1", "-t", status, "-F", "%p", "-W", "1")
		for _, id := range []string{"away", "away-2"} {
			if !strings.Contains(seen, `"task_id":"`+id+`","intent":"gpio.write","state":"SUCCEEDED"`) {
				return false, seen
			}
		}
		return true, ""
	})
}

// A10, C1: an HMI that always sets the retain flag and listens to its own
// commands (as FUXA does) works when it is named, runs each command once, and
// finds nothing retained later.
func TestA10_C1_RetainingHMI(t *testing.T) {
	s := newSite(t, "--strip-retain", "mqttjs_")
	agent := s.agent("pump-1")
	s.publish(set("hmi-1", "GPIO2"), "-r", "-q", "0", "-i", "mqttjs_0a1b2c3d")
	s.seenSettled("hmi-1", "SUCCEEDED")
	if out := s.stock("mosquitto_pub", "", "-V", "5", "-r", "-q", "1", "-i", "other", "-t", taskTopic, "-m", set("hmi-2", "GPIO2")); !strings.Contains(out, "strip_retain") {
		t.Errorf("another client: %q does not name the way out", out)
	}
	for k := range 3 {
		if out := s.stock("mosquitto_sub", "", "-i", "mqttjs_0a1b2c3d", "-t", taskTopic, "-W", "1"); strings.Contains(out, "GPIO2") {
			t.Errorf("a command was kept: %s", out)
		}
		agent.kill()
		s.gateway.kill()
		s.start()
		agent = s.agent("pump-1")
		probe := fmt.Sprintf("probe-%d", k)
		s.publish(set(probe, "GPIO3"))
		s.seenSettled(probe, "SUCCEEDED")
	}
	if n := s.count("pump-1", "GPIO2"); n != 1 {
		t.Errorf("%d actuations of GPIO2, want 1", n)
	}
}

// F3: MQTT over WebSocket, as browsers and HMI tools use it.
func TestF3_WebSocket(t *testing.T) {
	s := newSite(t)
	s.agent("pump-1")
	got := make(chan string, 64)
	c := mqtt.NewClient(mqtt.NewClientOptions().AddBroker("ws://" + s.ws + "/mqtt").SetClientID("browser").
		SetProtocolVersion(4).SetAutoReconnect(false).SetConnectTimeout(slow).
		SetDefaultPublishHandler(func(_ mqtt.Client, m mqtt.Message) { got <- m.Topic() + " " + string(m.Payload()) }))
	done := func(what string, token mqtt.Token) {
		t.Helper()
		if !token.WaitTimeout(slow) || token.Error() != nil {
			t.Fatalf("%s over WebSocket: %v", what, token.Error())
		}
	}
	done("connect", c.Connect())
	t.Cleanup(func() { c.Disconnect(100) })
	done("subscribe", c.SubscribeMultiple(map[string]byte{"apollo/default/task/+/status": 1, "apollo/default/reply/browser": 1}, nil))
	done("publish", c.Publish(taskTopic, 1, false, set("web-1", "GPIO2")))
	done("publish of a bad task", c.Publish(taskTopic, 1, false, `{"task_id":"web-2"}`))
	for _, want := range []string{`apollo/default/reply/browser {"ok":false,"task_id":"web-2"`, `"task_id":"web-1","intent":"gpio.write","state":"SUCCEEDED"`} {
		deadline := time.After(slow)
		for found := false; !found; {
			select {
			case m := <-got:
				found = strings.Contains(m, want)
			case <-deadline:
				t.Fatalf("no %s within %v", want, slow)
			}
		}
	}
}

// The task file of the requirement documents, as it stands, from every door that
// takes YAML.
func TestD1_TaskFilesAsTheyStand(t *testing.T) {
	s := newSite(t)
	s.agent("pump-1")
	s.known("pump-1")
	for _, name := range []string{"collect-metrics.yaml", "open-valve.json"} {
		out, stderr, code := s.tool("", "task", "submit", "--file", filepath.Join("../../deploy/examples", name), "--wait", "--timeout", "1m")
		if code != 0 || !strings.Contains(out, "SUCCEEDED") {
			t.Errorf("%s: exit code %d: %s%s", name, code, out, stderr)
		}
	}
}

// known waits until a node is known.
func (s *site) known(node string) {
	s.t.Helper()
	within(s.t, slow, node+" online", func() (bool, string) {
		out, _, _ := s.tool("", "node", "list")
		return strings.Contains(out, node), out
	})
}
