package lab

import (
	"fmt"
	"net"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/apollo-11/apollo11/firmware-sim/lab/board"
	"github.com/apollo-11/apollo11/firmware-sim/torture/rig"
	"github.com/apollo-11/apollo11/gateway/scada"
)

// patience is how long a wait for what must happen may take.
const patience = 2 * time.Minute

// Where boards find the gateway.
const (
	gatewayHost   = "10.0.2.100"
	gatewayMQTT   = gatewayHost + ":1883"
	gatewayNarrow = gatewayHost + ":1884"
)

// site is a gateway on this machine and a board.
type site struct {
	t *testing.T
	*kit
	*rig.Site
	doors
	board *board.Board
}

// newSite starts a gateway.
func newSite(t *testing.T, k *kit, args ...string) *site {
	t.Helper()
	s, err := rig.NewSite(t.Context(), k.host, t.TempDir(), rig.Options{Args: args})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		s.Close()
		if t.Failed() {
			t.Logf("--- gateway\n%s", s.Gateway().Output())
		}
	})
	return &site{t: t, kit: k, Site: s, doors: newDoors(httpAddr(t, s.Gateway().Output()))}
}

// switchOn gives a board power. The board is the site's until it is cut.
func (s *site) switchOn(o board.Options) *board.Board {
	s.t.Helper()
	o.Kernel, o.Relay, o.Dir, o.PullUp = s.kernel, s.kit.relay, s.t.TempDir(), pullUp
	o.Out = []board.Forward{{Board: gatewayMQTT, Host: s.Door().MQTT}, {Board: gatewayNarrow, Host: s.Door().Narrowband}}
	b, err := board.Start(s.t.Context(), o)
	if err != nil {
		s.t.Fatal(err)
	}
	s.bootTook = append(s.bootTook, b.BootTook)
	s.board = b
	s.t.Cleanup(func() {
		b.Close()
		if s.t.Failed() {
			s.t.Logf("--- console of the board\n%s", tail(b.Console(), 40_000))
		}
	})
	return b
}

func tail(s string, n int) string {
	if len(s) > n {
		return "...\n" + s[len(s)-n:]
	}
	return s
}

// agentArgs is the command line of an agent on the board.
func agentArgs(name string, more ...string) []string {
	return append([]string{agentPath(name), "--gateway", "tcp://" + gatewayMQTT, "--narrowband", "tcp://" + gatewayNarrow,
		"--node", name, "--gpio", "chardev", "--data", "/data/" + name}, more...)
}

// online waits for a node.
func (s *site) online(node string) {
	s.t.Helper()
	s.node(s.t, node, scada.PresenceOnline)
}

// publish sends a task with a stock client, which returns when the gateway has it
// on disk.
func (s *site) publish(doc string) {
	s.t.Helper()
	host, port, err := net.SplitHostPort(s.Door().MQTT)
	if err != nil {
		s.t.Fatal(err)
	}
	if out, err := exec.CommandContext(s.t.Context(), "mosquitto_pub", "-h", host, "-p", port, "-q", "1", "-t", rig.TaskTopic, "-m", doc).CombinedOutput(); err != nil {
		s.t.Fatalf("mosquitto_pub: %v: %s", err, out)
	}
}

// doc is a task for one node.
func doc(id, intent, node, args string, more ...string) string {
	return fmt.Sprintf(`{"task_id":%q,"intent":%q,"node":%q,"args":%s%s}`, id, intent, node, args, strings.Join(more, ""))
}

func write(id, node, pin string, level int, more ...string) string {
	return doc(id, "gpio.write", node, fmt.Sprintf(`{"pin":%q,"level":%d}`, pin, level), more...)
}

// seen waits until a line is seen high, or low, from outside the board.
func (s *site) seen(n int, high bool, limit time.Duration) {
	s.t.Helper()
	err := rig.Await(s.t.Context(), limit, fmt.Sprintf("line %d high=%v", n, high), func() (bool, error) {
		is, err := s.board.Lines().High(n)
		return err == nil && is == high, err
	})
	if err != nil {
		s.t.Fatal(err)
	}
}

// must fails the test with what could not be done.
func (s *site) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

// on is the site in a subtest.
func (s *site) on(t *testing.T) *site {
	c := *s
	c.t = t
	return &c
}
