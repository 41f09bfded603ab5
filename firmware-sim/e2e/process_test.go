package e2e

import (
	"bufio"
	"bytes"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// slow is the patience of every wait: far above what a busy machine needs, so
// that only a fault reaches it.
const slow = 60 * time.Second

// process is one of our programs, started.
type process struct {
	t    *testing.T
	cmd  *exec.Cmd
	name string
	done chan struct{} // closed when it has ended
	err  error         // valid after done
	mute bool          // its output says nothing about a failure

	mu  sync.Mutex
	out bytes.Buffer // stdout and stderr
}

// start runs a program. It is killed at the end of the test if it still runs,
// and its output is shown if the test failed.
func start(t *testing.T, name string, args ...string) *process {
	t.Helper()
	return startCmd(t, name, exec.Command(filepath.Join(binDir, name), args...))
}

func startCmd(t *testing.T, name string, cmd *exec.Cmd) *process {
	t.Helper()
	p := &process{t: t, name: name, cmd: cmd, done: make(chan struct{})}
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stdout, cmd.Stderr = w, w
	if err := cmd.Start(); err != nil {
		t.Fatalf("start %s: %v", name, err)
	}
	_ = w.Close() // the child has its own
	go func() {
		lines := bufio.NewScanner(r)
		lines.Buffer(nil, 1<<20)
		for lines.Scan() {
			p.mu.Lock()
			p.out.Write(lines.Bytes())
			p.out.WriteByte('\n')
			p.mu.Unlock()
		}
		p.err = cmd.Wait()
		_ = r.Close()
		close(p.done)
	}()
	t.Cleanup(func() {
		p.kill()
		if t.Failed() && !p.mute {
			out := p.output()
			if len(out) > 20_000 {
				out = "...\n" + out[len(out)-20_000:]
			}
			t.Logf("--- %s %s\n%s", name, strings.Join(cmd.Args[1:], " "), out)
		}
	})
	return p
}

func (p *process) output() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.out.String()
}

// kill ends the process as a power cut would, and waits for its end.
func (p *process) kill() {
	select {
	case <-p.done:
		return
	default:
	}
	_ = p.cmd.Process.Kill() // it may have ended in between
	<-p.done
}

// stop asks the process to end and returns its exit code.
func (p *process) stop() int {
	p.t.Helper()
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		p.t.Fatalf("stop %s: %v", p.name, err)
	}
	return p.wait()
}

// wait returns the exit code.
func (p *process) wait() int {
	p.t.Helper()
	select {
	case <-p.done:
		return p.cmd.ProcessState.ExitCode()
	case <-time.After(slow):
		p.t.Fatalf("%s has not ended within %v", p.name, slow)
		return -1
	}
}

// Ports for our listeners lie below the range from which the system takes the
// source ports of connections: a gateway that is away for a moment must find its
// port free again.
const (
	firstPort = 12_000
	ports     = 18_000
)

var nextPort = func() *atomic.Uint32 {
	n := new(atomic.Uint32)
	n.Store(rand.Uint32N(ports)) // several runs at a time do not meet at once
	return n
}()

// freeAddr returns a loopback address that nobody listens on.
func freeAddr(t *testing.T) string {
	t.Helper()
	for range 100 {
		addr := fmt.Sprintf("127.0.0.1:%d", firstPort+nextPort.Add(1)%ports)
		if l, err := net.Listen("tcp", addr); err == nil {
			_ = l.Close()
			return addr
		}
	}
	t.Fatal("no free port")
	return ""
}

// site is a gateway with its addresses, which survive its restarts.
type site struct {
	t                      *testing.T
	dir                    string
	mqtt, narrow, ws, http string
	args                   []string
	gateway                *process
}

// newSite starts a gateway.
func newSite(t *testing.T, args ...string) *site {
	t.Helper()
	s := &site{t: t, dir: t.TempDir(), mqtt: freeAddr(t), narrow: freeAddr(t), ws: freeAddr(t), http: freeAddr(t), args: args}
	s.start()
	return s
}

// start starts the gateway, again after a kill, and waits until it is ready.
func (s *site) start() {
	s.t.Helper()
	args := append([]string{"--data", filepath.Join(s.dir, "gateway"), "--mqtt", s.mqtt, "--narrowband", s.narrow,
		"--ws", s.ws, "--http", s.http}, s.args...)
	s.gateway = start(s.t, "apollo-gateway", args...)
	s.ready(s.gateway)
}

func (s *site) ready(p *process) {
	s.t.Helper()
	within(s.t, slow, "gateway ready", func() (bool, string) {
		select {
		case <-p.done:
			s.t.Fatalf("the gateway ended: %v\n%s", p.err, p.output())
		default:
		}
		return strings.Contains(p.output(), "\nready "), p.output()
	})
}

// agent starts an agent with simulated pins. Its data survive its restarts under
// the same name.
func (s *site) agent(node string, args ...string) *process {
	s.t.Helper()
	return s.agentVia(node, s.mqtt, s.narrow, args...)
}

func (s *site) agentVia(node, mqtt, narrow string, args ...string) *process {
	s.t.Helper()
	return start(s.t, "apollo-agent", s.agentArgs(node, mqtt, narrow, args...)...)
}

func (s *site) agentArgs(node, mqtt, narrow string, args ...string) []string {
	return append([]string{"--gateway", "tcp://" + mqtt, "--narrowband", "tcp://" + narrow, "--node", node,
		"--label", "role=worker", "--gpio", "sim", "--gpio-trace", s.trace(node), "--data", filepath.Join(s.dir, "agent-"+node)}, args...)
}

// trace is the file in which a node's simulated board records every actuation.
func (s *site) trace(node string) string { return filepath.Join(s.dir, "pins-"+node) }

// apollo runs the operator's tool and returns its output and exit code.
func (s *site) apollo(args ...string) (string, int) {
	s.t.Helper()
	cmd := exec.Command(filepath.Join(binDir, "apollo"), args...)
	cmd.Env = append(os.Environ(), "APOLLO_GATEWAY=http://"+s.http)
	out, err := cmd.CombinedOutput()
	if cmd.ProcessState == nil {
		s.t.Fatalf("apollo %v: %v", args, err)
	}
	return string(out), cmd.ProcessState.ExitCode()
}

// publish sends a command with a stock client. It returns when the gateway has
// acknowledged it.
func (s *site) publish(payload string, args ...string) {
	s.t.Helper()
	if out, err := s.tryPublish(payload, args...); err != nil {
		s.t.Fatalf("mosquitto_pub: %v: %s", err, out)
	}
}

func (s *site) tryPublish(payload string, args ...string) (string, error) {
	s.t.Helper()
	host, port, err := net.SplitHostPort(s.mqtt)
	if err != nil {
		s.t.Fatal(err)
	}
	pub := tool(s.t, "mosquitto_pub", "mosquitto-clients")
	args = append([]string{"-h", host, "-p", port, "-q", "1", "-t", "apollo/default/task", "-m", payload}, args...)
	out, err := exec.Command(pub, args...).CombinedOutput()
	return string(out), err
}

func taskJSON(id, intent, node, args, more string) string {
	return fmt.Sprintf(`{"task_id":%q,"intent":%q,"node":%q,"args":%s%s}`, id, intent, node, args, more)
}
