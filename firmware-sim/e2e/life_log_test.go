package e2e

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/apollo-11/apollo11/fieldagent/gpio"
)

// No program's life or pace depends on somebody reading its log (A18). The tests
// are cruel to the pipe that stdout and stderr go to: nobody has its other end, or
// nobody reads there.

// logPipe is where a program writes.
type logPipe struct {
	t    *testing.T
	r, w *os.File
}

func newLogPipe(t *testing.T) *logPipe {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = r.Close() // leave may have done so
		_ = w.Close()
	})
	return &logPipe{t, r, w}
}

// leave lets the reader go away for good.
func (p *logPipe) leave() {
	p.t.Helper()
	if err := p.r.Close(); err != nil {
		p.t.Fatal(err)
	}
}

// jam fills the pipe, so that the next line of the program finds no room.
func (p *logPipe) jam() {
	p.t.Helper()
	// A description of our own: the program's must go on to block.
	w, err := os.OpenFile(fmt.Sprintf("/proc/self/fd/%d", p.w.Fd()), os.O_WRONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		p.t.Fatal(err)
	}
	defer func() { _ = w.Close() }()
	for n := 4096; n > 0; {
		if err := w.SetWriteDeadline(time.Now().Add(50 * time.Millisecond)); err != nil {
			p.t.Fatal(err)
		}
		if _, err := w.WriteString(strings.Repeat("x", n-1) + "\n"); errors.Is(err, os.ErrDeadlineExceeded) {
			n /= 2 // the rest, to the last byte
		} else if err != nil {
			p.t.Fatal(err)
		}
	}
}

// read reads on, until enough is true or the patience is over.
func (p *logPipe) read(what string, enough func(line string) bool) {
	p.t.Helper()
	if err := p.r.SetReadDeadline(time.Now().Add(slow)); err != nil {
		p.t.Fatal(err)
	}
	in := bufio.NewScanner(p.r)
	in.Buffer(nil, 1<<20)
	last := ""
	for in.Scan() {
		if last = in.Text(); enough(last) {
			return
		}
	}
	p.t.Fatalf("no line %s; %v; the last was %q", what, in.Err(), last)
}

// onto starts a program that writes into the pipe.
func (p *logPipe) onto(cmd *exec.Cmd) *process {
	p.t.Helper()
	cmd.Stdout, cmd.Stderr = p.w, p.w
	return p.run(cmd)
}

// run starts a program whose output is set.
func (p *logPipe) run(cmd *exec.Cmd) *process {
	p.t.Helper()
	q := &process{t: p.t, name: filepath.Base(cmd.Path), cmd: cmd, done: make(chan struct{}), mute: true}
	if err := cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
	go func() {
		q.err = cmd.Wait()
		close(q.done)
	}()
	p.t.Cleanup(q.kill)
	return q
}

// siteOnto starts a gateway that writes into the pipe.
func (p *logPipe) siteOnto(args ...string) *site {
	p.t.Helper()
	s := &site{t: p.t, dir: p.t.TempDir(), mqtt: freeAddr(p.t), narrow: freeAddr(p.t), ws: freeAddr(p.t), http: freeAddr(p.t)}
	s.gateway = p.onto(exec.Command(filepath.Join(binDir, "apollo-gateway"), append([]string{"--data", filepath.Join(s.dir, "gateway"),
		"--mqtt", s.mqtt, "--narrowband", s.narrow, "--ws", s.ws, "--http", s.http}, args...)...))
	s.serves()
	return s
}

// serves waits until the doors are open, without the gateway's own word for it.
func (s *site) serves() {
	s.t.Helper()
	within(s.t, slow, "gateway serves", func() (bool, string) {
		select {
		case <-s.gateway.done:
			s.t.Fatalf("the gateway ended: %v", s.gateway.err)
		default:
		}
		c, err := dial(s.mqtt, "knocks")
		if err != nil {
			return false, err.Error()
		}
		c.close()
		status, err := s.tryGet("/v1/nodes", new(any))
		return err == nil && status == http.StatusOK, fmt.Sprint(status, err)
	})
}

// metric reads a number without labels from /metrics.
func (s *site) metric(name string) float64 {
	s.t.Helper()
	r, err := httpClient.Get("http://" + s.http + "/metrics")
	if err != nil {
		s.t.Fatal(err)
	}
	defer func() { _ = r.Body.Close() }()
	b, err := io.ReadAll(r.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(b), "\n"+name+" ")
	word, _, _ := strings.Cut(rest, "\n")
	v, err := strconv.ParseFloat(word, 64)
	if err != nil {
		s.t.Fatalf("metric %s: %v", name, err)
	}
	return v
}

const lostLines = "apollo_log_lines_dropped_total"

// send submits a command and wants it acknowledged.
func (s *site) send(doc string) {
	s.t.Helper()
	if err := s.trySend(doc); err != nil {
		s.t.Fatalf("not acknowledged: %v", err)
	}
}

func (s *site) trySend(doc string) error {
	c, err := dial(s.mqtt, "sender")
	if err != nil {
		return err
	}
	defer c.close()
	_, err = c.publish(doc)
	return err
}

// carriesOut sends commands to a node and wants them done.
func (s *site) carriesOut(prefix, node string, n int) {
	s.t.Helper()
	for k := range n {
		id := fmt.Sprintf("%s-%d", prefix, k)
		s.send(write(id, node, "GPIO17", (k+1)%2))
		s.done(id)
	}
}

func TestA18_GatewayOutlivesTheReaderOfItsLog(t *testing.T) {
	t.Parallel()
	p := newLogPipe(t)
	p.leave()
	s := p.siteOnto()
	s.agent("pump-1")
	s.online("pump-1")
	s.carriesOut("unheard", "pump-1", 3)
	if s.metric(lostLines) == 0 {
		t.Error("nothing was lost: has it written anything?")
	}
	if code := s.gateway.stop(); code != 0 {
		t.Errorf("exit code %d", code)
	}
}

// flood has the gateway log much at once.
func (s *site) flood(prefix string, n int) {
	s.t.Helper()
	c, err := dial(s.mqtt, prefix)
	if err != nil {
		s.t.Fatal(err)
	}
	defer c.close()
	docs := make([]string, n)
	for k := range docs {
		docs[k] = write(fmt.Sprintf("%s-%d", prefix, k), "away", "GPIO17", 1)
	}
	if acked, err := c.publish(docs...); err != nil {
		s.t.Fatalf("%d of %d acknowledged: %v", acked, n, err)
	}
}

func TestA18_GatewayDoesNotWaitForTheReaderOfItsLog(t *testing.T) {
	t.Parallel()
	p := newLogPipe(t)
	s := p.siteOnto("--log-level", "debug")
	s.agent("pump-1")
	s.online("pump-1")
	p.jam()
	s.carriesOut("unheard", "pump-1", 3)
	s.flood("flood", 4000)
	if s.metric(lostLines) == 0 {
		t.Error("nothing was lost: the flood was too small")
	}
	s.carriesOut("drowned", "pump-1", 3)
	// Whoever reads again hears how much is missing, and then what happens now.
	p.read("that tells of lost ones", func(line string) bool { return strings.Contains(line, "log lines were lost") })
	s.flood("after", 1)
	p.read("behind it", func(line string) bool { return strings.Contains(line, "after-0") })
	p.jam()
	if code := s.gateway.stop(); code != 0 {
		t.Errorf("exit code %d", code)
	}
}

// signs counts what a service manager hears.
type signs struct {
	mu   sync.Mutex
	last time.Time
	gap  time.Duration // the longest between two signs of life
	n    int
}

func (g *signs) start(t *testing.T) (socket string) {
	t.Helper()
	dir, err := os.MkdirTemp("", "notify") // the path of a socket is short
	if err != nil {
		t.Fatal(err)
	}
	socket = filepath.Join(dir, "s")
	l, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: socket, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = l.Close()
		_ = os.RemoveAll(dir)
	})
	go func() {
		b := make([]byte, 100)
		for {
			n, err := l.Read(b)
			if err != nil {
				return
			}
			if string(b[:n]) == "WATCHDOG=1" {
				g.sign()
			}
		}
	}()
	return socket
}

func (g *signs) sign() {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := time.Now()
	if g.n > 0 {
		g.gap = max(g.gap, now.Sub(g.last))
	}
	g.last = now
	g.n++
}

func (g *signs) count() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.n
}

// watchdog is what the service manager of the tests bears.
const watchdog = 8 * time.Second

// agentOnto starts an agent that writes into the pipe and reports to a watchdog.
func (s *site) agentOnto(p *logPipe, node string, args ...string) (*process, *signs) {
	s.t.Helper()
	g := new(signs)
	cmd := exec.Command(filepath.Join(binDir, "apollo-agent"), s.agentArgs(node, s.mqtt, s.narrow, args...)...)
	cmd.Env = append(os.Environ(), "NOTIFY_SOCKET="+g.start(s.t), fmt.Sprintf("WATCHDOG_USEC=%d", watchdog.Microseconds()))
	return p.onto(cmd), g
}

// pinMap is a valve that may not be left on, and a lamp.
func (s *site) pinMap() string {
	s.t.Helper()
	name := filepath.Join(s.dir, "agent.yaml")
	const text = "pins:\n  - {name: valve, line: 'chip:1', direction: out, safe: 0}\n  - {name: lamp, line: 'chip:2', direction: out, safe: 0}\n" +
		"  - {name: GPIO17, line: 'chip:3', direction: out, safe: 0}\n"
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		s.t.Fatal(err)
	}
	return name
}

// endsInTime has an output switched on for a time and another pulsed, and wants
// both to end by themselves, while node's log is what it is.
func (s *site) endsInTime(node string) {
	s.t.Helper()
	s.send(taskJSON("lease", "gpio.write", node, `{"pin":"valve","level":1,"max_on":"2s"}`, ""))
	s.send(taskJSON("pulse", "gpio.pulse", node, `{"pin":"lamp","width":"1s"}`, ""))
	on := s.done("lease")
	s.done("pulse")
	within(s.t, slow, "lease over in the timeline", func() (bool, string) {
		w := whats(s.timeline(on.Seq))
		return strings.Contains(w, "lease"), w
	})
	for _, pin := range []string{"chip:1", "chip:2"} {
		var up time.Time
		var took time.Duration
		for _, a := range s.actuations(node) {
			switch {
			case a.Pin == pin && a.Level == gpio.High:
				up = time.Unix(0, a.At)
			case a.Pin == pin && !up.IsZero():
				took = time.Unix(0, a.At).Sub(up)
			}
		}
		if took < 900*time.Millisecond || took > 6*time.Second {
			s.t.Errorf("%s was on for %v", pin, took)
		}
	}
}

func TestA18_AgentOutlivesTheReaderOfItsLog(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	p := newLogPipe(t)
	p.leave()
	agent, g := s.agentOnto(p, "pump-1", "--config", s.pinMap())
	s.online("pump-1")
	s.endsInTime("pump-1")
	s.restart() // connections are lost and found, which is told
	s.online("pump-1")
	s.carriesOut("unheard", "pump-1", 2)
	if g.count() == 0 {
		t.Error("the watchdog heard nothing")
	}
	if code := agent.stop(); code != 0 {
		t.Errorf("exit code %d", code)
	}
}

func TestA18_AgentDoesNotWaitForTheReaderOfItsLog(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	p := newLogPipe(t)
	agent, g := s.agentOnto(p, "pump-1", "--config", s.pinMap(), "--log-level", "debug")
	s.online("pump-1")
	p.jam()
	heard := g.count()
	s.endsInTime("pump-1")
	s.restart()
	s.online("pump-1")
	s.carriesOut("unheard", "pump-1", 2)
	within(t, slow, "signs of life", func() (bool, string) { n := g.count() - heard; return n >= 3, fmt.Sprint(n) })
	if g.mu.Lock(); g.gap > watchdog {
		t.Errorf("the watchdog heard nothing for %v", g.gap)
	}
	g.mu.Unlock()
	if code := agent.stop(); code != 0 {
		t.Errorf("exit code %d", code)
	}
}

// A gateway whose disk has failed ends with its code, and soon, whoever listens.
func TestA18_FailedDiskEndsUnheard(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		do   func(*logPipe)
	}{{"reader gone", (*logPipe).leave}, {"nobody reads", (*logPipe).jam}} {
		t.Run(c.name, func(t *testing.T) {
			p := newLogPipe(t)
			s := &site{t: t, dir: t.TempDir(), mqtt: freeAddr(t), narrow: freeAddr(t), ws: freeAddr(t), http: freeAddr(t)}
			trigger := filepath.Join(t.TempDir(), "fail")
			s.gateway = p.onto(s.onBadDisk(trigger))
			s.serves()
			c.do(p)
			if err := os.WriteFile(trigger, nil, 0o600); err != nil {
				t.Fatal(err)
			}
			if s.trySend(write("lost", "pump-1", "GPIO17", 0)) == nil {
				t.Error("it was acknowledged")
			}
			if code := s.gateway.wait(); code != 70 {
				t.Errorf("exit code %d, want 70", code)
			}
		})
	}
}

// benchFile is a configuration for the commands of the bench.
func benchFile(t *testing.T) (file, trace string) {
	t.Helper()
	dir := t.TempDir()
	file, trace = filepath.Join(dir, "agent.yaml"), filepath.Join(dir, "trace")
	text := "gpio: sim\ngpio_trace: " + trace + "\npins:\n  - {name: valve, line: GPIO17, direction: out, safe: 0}\n  - {name: float, line: GPIO22, direction: in}\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file, trace
}

// The commands at the bench bring the pins to their levels whoever reads, and a
// watch without a reader ends quietly.
func TestA18_BenchWithoutAReader(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		args string
		end  syscall.Signal // 0: it ends by itself
		code int
		want string // levels driven
	}{
		{"safe", "safe", 0, 0, "0"},
		{"set for a time", "gpio set valve 1 --for 300ms", 0, 0, "10"},
		{"set until it is asked to end", "gpio set valve 1", syscall.SIGTERM, 0, "10"},
		{"set on a terminal that hangs up", "gpio set valve 1", syscall.SIGHUP, 0, "10"},
		{"watch", "gpio watch float", 0, 141, ""},
		{"list", "gpio list", 0, 141, ""},
	} {
		for _, reader := range []struct {
			name string
			do   func(*logPipe)
		}{{"reader gone", (*logPipe).leave}, {"nobody reads", (*logPipe).jam}} {
			if c.code == 141 && reader.name == "nobody reads" {
				continue // what is asked for is the output: it waits for who asked
			}
			t.Run(c.name+", "+reader.name, func(t *testing.T) {
				t.Parallel()
				file, trace := benchFile(t)
				p := newLogPipe(t)
				reader.do(p)
				q := p.onto(exec.Command(filepath.Join(binDir, "apollo-agent"), append(strings.Fields(c.args), "--config", file)...))
				if c.end != 0 {
					within(t, slow, "valve on", func() (bool, string) {
						a, err := gpio.ReadTrace(trace)
						return len(a) > 0, fmt.Sprint(a, err)
					})
					if err := q.cmd.Process.Signal(c.end); err != nil {
						t.Fatal(err)
					}
				}
				if code := q.wait(); code != c.code {
					t.Errorf("exit code %d, want %d (%v)", code, c.code, q.err)
				}
				acts, err := gpio.ReadTrace(trace)
				if err != nil && !errors.Is(err, os.ErrNotExist) {
					t.Fatal(err)
				}
				got := ""
				for _, a := range acts {
					got += map[gpio.Level]string{gpio.Low: "0", gpio.High: "1"}[a.Level]
				}
				if got != c.want {
					t.Errorf("levels %q, want %q", got, c.want)
				}
			})
		}
	}
}

// apollo ends quietly, with a code of its own, when its output has no reader any
// more: at once where it would follow something, and without taking a command back.
func TestA18_ToolWithoutAReader(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.send(write("waits", "pump-1", "GPIO17", 1))
	for _, args := range []string{"task list", "task status waits --watch", "task status waits -o json", "alarms --watch", "help",
		"task submit --intent gpio.read --node pump-1 --arg pin=GPIO17 --wait"} {
		t.Run(args, func(t *testing.T) {
			p := newLogPipe(t)
			p.leave()
			cmd := exec.Command(filepath.Join(binDir, "apollo"), strings.Fields(args)...)
			cmd.Env = append(os.Environ(), "APOLLO_GATEWAY=http://"+s.http)
			cmd.Stdout = p.w
			var said strings.Builder
			cmd.Stderr = &said
			q := p.run(cmd)
			if args == "alarms --watch" { // it writes when there is something new
				a := s.agent("pump-2")
				s.online("pump-2")
				a.mute = true
				a.kill()
			}
			if code := q.wait(); code != 141 || strings.Contains(said.String(), "pipe") {
				t.Errorf("exit code %d, want 141 (%v); it said %q", code, q.err, said.String())
			}
		})
	}
}
