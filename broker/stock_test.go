package broker_test

import (
	"context"
	"fmt"
	"os/exec"
	"strings"
	"testing"
	"time"

	paho "github.com/eclipse/paho.mqtt.golang"

	"github.com/apollo-11/apollo11/broker"
)

// mosquitto starts a stock command-line client against the broker.
func mosquitto(t *testing.T, b *running, tool string, args ...string) *exec.Cmd {
	t.Helper()
	path, err := exec.LookPath(tool)
	if err != nil {
		t.Skipf("%s is not installed (Debian package mosquitto-clients)", tool)
	}
	host, port, _ := strings.Cut(b.Addr("mqtt").String(), ":")
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	return exec.CommandContext(ctx, path, append([]string{"-h", host, "-p", port}, args...)...)
}

// A2, F3: a stock client that returns says that the command is durable, in
// every protocol version and QoS that waits for a receipt.
func TestA2_StockPublisherReturnsAfterTheVerdict(t *testing.T) {
	for _, version := range []string{"311", "5"} {
		for _, qos := range []string{"0", "1", "2"} {
			t.Run("version "+version+" QoS "+qos, func(t *testing.T) {
				g := new(gateway)
				b := serve(t, g)
				cmd := mosquitto(t, b, "mosquitto_pub", "-V", version, "-q", qos, "-t", taskTopic, "-m", `{"intent":"x"}`)
				if err := cmd.Start(); err != nil {
					t.Fatal(err)
				}
				returned := make(chan error, 1)
				go func() { returned <- cmd.Wait() }()
				s := g.waitSubmitted(t, 1)[0]
				if qos != "0" {
					select {
					case err := <-returned:
						t.Fatalf("returned before the verdict: %v", err)
					default:
					}
				}
				s.done(broker.Verdict{Reason: broker.Accepted})
				if err := <-returned; err != nil {
					t.Fatal(err)
				}
				if string(s.Payload) != `{"intent":"x"}` || fmt.Sprint(s.QoS) != qos || s.MQTT5 != (version == "5") {
					t.Errorf("submission %+v", s.Submission)
				}
			})
		}
	}
}

// B2, M3: stock clients end, they do not hang, when a publish is refused for good.
func TestB2_StockPublisherEndsOnARefusal(t *testing.T) {
	for _, version := range []string{"311", "5"} {
		for _, qos := range []string{"1", "2"} {
			for _, args := range [][]string{
				{"-t", taskTopic, "-m", "bad"},
				{"-t", taskTopic, "-n"},
				{"-t", taskTopic, "-m", "x", "-r"},
				{"-t", "apollo/default/cmd/pump-1", "-m", "x"},
			} {
				t.Run(fmt.Sprint(version, qos, args), func(t *testing.T) {
					b := serve(t, deciding(broker.Verdict{Reason: broker.Invalid, Text: "no"}))
					out, err := mosquitto(t, b, "mosquitto_pub", append([]string{"-V", version, "-q", qos}, args...)...).CombinedOutput()
					if version == "5" && err == nil && !strings.Contains(string(out), "failed") {
						t.Errorf("the refusal is not visible: %q", out)
					}
					if err != nil && strings.Contains(err.Error(), "killed") {
						t.Errorf("it hangs: %q", out)
					}
				})
			}
		}
	}
}

// The documented subscriber sees retained and live status.
func TestF3_StockSubscriberSeesStatus(t *testing.T) {
	b := serve(t, accepting())
	if err := b.Publish("apollo/default/task/t1/status", []byte("retained"), 1, true); err != nil {
		t.Fatal(err)
	}
	cmd := mosquitto(t, b, "mosquitto_sub", "-q", "1", "-t", "apollo/default/task/+/status", "-v", "-C", "2")
	var out strings.Builder
	cmd.Stdout = &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	for {
		select {
		case err := <-ended:
			if err != nil {
				t.Fatalf("%v: %s", err, out.String())
			}
			if want := "apollo/default/task/t1/status retained\napollo/default/task/t2/status live\n"; out.String() != want {
				t.Errorf("output %q, want %q", out.String(), want)
			}
			return
		case <-time.After(20 * time.Millisecond):
			if err := b.Publish("apollo/default/task/t2/status", []byte("live"), 1, false); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// The client library of our agents and of many tools: pipelined publishes, own
// subscription, reconnect after a takeover.
func TestPahoPublishesAndSubscribes(t *testing.T) {
	const n = 300
	g := accepting()
	b := serve(t, g)
	got := make(chan string, n)
	o := paho.NewClientOptions().AddBroker("tcp://" + b.Addr("mqtt").String()).SetClientID("paho").SetOrderMatters(true)
	c := paho.NewClient(o)
	wait := func(what string, token paho.Token) {
		t.Helper()
		if !token.WaitTimeout(patience) || token.Error() != nil {
			t.Fatalf("%s: %v", what, token.Error())
		}
	}
	wait("connect", c.Connect())
	defer c.Disconnect(100)
	wait("subscribe", c.Subscribe("apollo/default/task/+/status", 2, func(_ paho.Client, m paho.Message) { got <- m.Topic() }))
	tokens := make([]paho.Token, n)
	for i := range tokens {
		tokens[i] = c.Publish(taskTopic, byte(i%3), false, fmt.Sprint(i))
	}
	for i, token := range tokens {
		wait(fmt.Sprint("publish ", i), token)
	}
	eventually(t, "submissions", func() bool { return len(g.submitted()) == n })
	for i, s := range g.submitted() {
		if string(s.Payload) != fmt.Sprint(i) {
			t.Fatalf("submission %d is %s", i, s.Payload)
		}
	}
	for i := range n {
		if err := b.Publish(status(i), []byte("x"), byte(i%3), false); err != nil {
			t.Fatal(err)
		}
	}
	for i := range n {
		select {
		case topic := <-got:
			if topic != status(i) {
				t.Fatalf("message %d on %s", i, topic)
			}
		case <-time.After(patience):
			t.Fatalf("message %d did not come", i)
		}
	}
}
