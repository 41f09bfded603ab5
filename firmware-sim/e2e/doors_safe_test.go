package e2e

import (
	"fmt"
	"net/http"
	"os/exec"
	"strings"
	"testing"

	"github.com/apollo-11/apollo11/gateway/api"
)

// TestEveryDoorLeadsToSafe: the way to safe through each door, to nodes that have never
// been seen. What was acknowledged is on disk: the gateway is killed, and still knows
// what it owes.
func TestEveryDoorLeadsToSafe(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	var want []string
	owe := func(node, pin string) { want = append(want, node+"/"+pin) }
	for _, version := range []byte{4, 5} {
		c := s.dialMQTT(fmt.Sprintf("button-%d", version), version)
		for _, qos := range []byte{0, 1, 2} {
			for k, payload := range []string{"", "1", "\xff\x00[object Object]", strings.Repeat("x", 300<<10)} {
				node := fmt.Sprintf("mqtt-%d-%d-%d", version, qos, k)
				topic, pin := "apollo/default/safe/"+node, ""
				if k%2 == 1 {
					pin = "valve-1"
					topic += "/" + pin
				}
				// With QoS 0 nothing says when it was taken; the receipt of the next
				// publish of the connection does.
				if ack := c.publish(topic, payload, qos, k%2 == 0); qos > 0 && ack.ReasonCode != 0 {
					t.Fatalf("%s: %#x %s", topic, ack.ReasonCode, ack.Properties.ReasonString)
				}
				owe(node, pin)
			}
		}
		c.quiet()
	}
	for _, path := range []string{"http-1", "http-1/valve-1", "owed"} {
		resp, err := http.Post("http://"+s.http+"/v1/safe/"+path, "", nil)
		if err != nil {
			t.Fatal(err)
		}
		if status, body := readAll(t, resp); status != http.StatusCreated {
			t.Fatalf("%s: %d %s", path, status, body)
		}
		node, pin, _ := strings.Cut(path, "/")
		owe(node, pin)
	}
	for _, words := range [][]string{{"cli-1"}, {"cli-1", "valve-1"}} {
		stdout, stderr, code := s.tool("", append([]string{"safe", "--no-wait"}, words...)...)
		if code != 0 || !strings.Contains(stdout, "is on the gateway's disk") || !strings.Contains(stderr, "warning: node cli-1") {
			t.Fatalf("apollo safe %v: %d, %q, %q", words, code, stdout, stderr)
		}
		owe(words[0], strings.Join(words[1:], ""))
	}
	if mosquitto, err := exec.LookPath("mosquitto_pub"); err == nil {
		host, port, _ := strings.Cut(s.mqtt, ":")
		for _, flag := range []string{"-n", "-nr"} { // nothing, and nothing retained
			node := "stock" + flag
			args := []string{"-h", host, "-p", port, "-q", "1", "-t", "apollo/default/safe/" + node, "-n"}
			if flag == "-nr" {
				args = append(args, "-r")
			}
			if out, err := exec.Command(mosquitto, args...).CombinedOutput(); err != nil {
				t.Fatalf("mosquitto_pub %s: %v %s", flag, err, out)
			}
			owe(node, "")
		}
	}
	s.gateway.kill()
	s.start()
	var v api.OwedList
	s.get("/v1/safe/owed", &v)
	got := map[string]bool{}
	for _, o := range v.Owed {
		got[o.Node+"/"+o.Pin] = true
	}
	for _, w := range want {
		if !got[w] {
			t.Errorf("%s is not owed after a restart", w)
		}
	}
	if len(got) != len(want) {
		t.Errorf("%d are owed, want %d", len(got), len(want))
	}
	if stdout, _, code := s.tool("", "safe", "--owed"); code != 0 || strings.Count(stdout, "\n") != len(v.Owed)+1 {
		t.Errorf("apollo safe --owed: %d\n%s", code, stdout)
	}
}

// Wrong ways to safe are refused at each door, and nothing is owed for them.
func TestBadWaysToSafe(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	for _, node := range []string{"a b", "süd", strings.Repeat("x", 65)} {
		if _, stderr, code := s.tool("", "safe", node); code != 2 || !strings.Contains(stderr, "node") {
			t.Errorf("apollo safe %q: %d %q", node, code, stderr)
		}
		resp, err := http.Post("http://"+s.http+"/v1/safe/"+strings.ReplaceAll(strings.ReplaceAll(node, " ", "%20"), "ü", "%C3%BC"), "", nil)
		if err != nil {
			t.Fatal(err)
		}
		if status, body := readAll(t, resp); status != http.StatusBadRequest || !strings.Contains(body, `"field":"node"`) {
			t.Errorf("POST of %q: %d %s", node, status, body)
		}
	}
	var v api.OwedList
	if s.get("/v1/safe/owed", &v); len(v.Owed) != 0 {
		t.Errorf("owed is %+v", v.Owed)
	}
}
