package e2e

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/apollo-11/apollo11/fieldagent/gpio"
	"github.com/apollo-11/apollo11/gateway/scada"
)

// State names as the API writes them.
const (
	pending    = "PENDING"
	dispatched = "DISPATCHED"
	succeeded  = "SUCCEEDED"
	timedOut   = "TIMEOUT"
)

// taskView is what the tests read of a task.
type taskView struct {
	TaskID       string                  `json:"task_id"`
	State        string                  `json:"state"`
	Settled      bool                    `json:"settled"`
	Instructions []scada.InstructionView `json:"instructions"`
}

// one is the only instruction of the task.
func (v taskView) one(t *testing.T) scada.InstructionView {
	t.Helper()
	if len(v.Instructions) != 1 {
		t.Fatalf("task %s has %d instructions", v.TaskID, len(v.Instructions))
	}
	return v.Instructions[0]
}

var httpClient = &http.Client{Timeout: 20 * time.Second}

// tryGet reads a document of the API. ok is false while the gateway does not answer.
func (s *site) tryGet(path string, into any) (status int, err error) {
	r, err := httpClient.Get("http://" + s.http + path)
	if err != nil {
		return 0, err
	}
	defer func() { _ = r.Body.Close() }()
	b, err := io.ReadAll(r.Body)
	if err != nil || r.StatusCode != http.StatusOK {
		return r.StatusCode, err
	}
	return r.StatusCode, json.Unmarshal(b, into)
}

// get reads a document of the API and reports whether it is there.
func (s *site) get(path string, into any) bool {
	s.t.Helper()
	status, err := s.tryGet(path, into)
	if err != nil || status != http.StatusOK && status != http.StatusNotFound {
		s.t.Fatalf("GET %s: status %d: %v", path, status, err)
	}
	return status == http.StatusOK
}

func (s *site) task(id string) taskView {
	s.t.Helper()
	var v taskView
	if !s.get("/v1/tasks/"+id, &v) {
		s.t.Fatalf("task %s is lost", id)
	}
	return v
}

// until waits for a task to be as wanted.
func (s *site) until(id, what string, ok func(taskView) bool) taskView {
	s.t.Helper()
	var v taskView
	within(s.t, 2*slow, "task "+id+" "+what, func() (bool, string) {
		v = s.task(id)
		return ok(v), fmt.Sprintf("%+v", v)
	})
	return v
}

// settled waits for the end of a task.
func (s *site) settled(id string) taskView {
	s.t.Helper()
	return s.until(id, "settled", func(v taskView) bool { return v.Settled })
}

// done waits for the end of a task and wants it to be a success.
func (s *site) done(id string) scada.InstructionView {
	s.t.Helper()
	v := s.settled(id)
	i := v.one(s.t)
	if v.State != succeeded {
		s.t.Fatalf("task %s ended as %s (%s, %s): %s", id, v.State, i.Reason, i.Code, i.Detail)
	}
	return i
}

// timeline is the history of an instruction.
func (s *site) timeline(seq uint64) []scada.EntryView {
	s.t.Helper()
	var v struct {
		Entries []scada.EntryView `json:"entries"`
	}
	if !s.get("/v1/instructions/"+strconv.FormatUint(seq, 10)+"/timeline", &v) {
		s.t.Fatalf("instruction %d has no timeline", seq)
	}
	return v.Entries
}

// whats lists the kinds of a timeline's entries.
func whats(entries []scada.EntryView) string {
	var list []string
	for _, e := range entries {
		list = append(list, e.What)
	}
	return strings.Join(list, " ")
}

// node is what the gateway knows about a node; the zero value if it never met it.
func (s *site) node(id string) scada.NodeView {
	s.t.Helper()
	var v struct {
		Nodes []scada.NodeView `json:"nodes"`
	}
	s.get("/v1/nodes", &v)
	for _, n := range v.Nodes {
		if n.Node == id {
			return n
		}
	}
	return scada.NodeView{}
}

// nodeState waits for a node to be online or offline.
func (s *site) nodeState(id, state string) scada.NodeView {
	s.t.Helper()
	var v scada.NodeView
	within(s.t, 2*slow, "node "+id+" "+state, func() (bool, string) {
		v = s.node(id)
		return v.State == state, v.State + " " + v.Reason
	})
	return v
}

func (s *site) online(id string) { s.t.Helper(); s.nodeState(id, "online") }

// restart kills the gateway as a power cut would and starts it again.
func (s *site) restart() {
	s.t.Helper()
	s.gateway.mute = true
	s.gateway.kill()
	s.start()
}

// fast makes a configuration whose silences are short, for the tests that wait
// for one.
func fast(t *testing.T) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "gateway.yaml")
	const text = "delivery:\n  heartbeat: 300ms\n  offline_after: 1500ms\n  confirm_timeout: 500ms\n"
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// actuations is everything that was done to a node's pins.
func (s *site) actuations(node string) []gpio.Actuation {
	s.t.Helper()
	all, err := gpio.ReadTrace(s.trace(node))
	if err != nil {
		s.t.Fatal(err)
	}
	return all
}

// moved wants exactly n actuations of a node.
func (s *site) moved(node string, n int) {
	s.t.Helper()
	if a := s.actuations(node); len(a) != n {
		s.t.Fatalf("%s has %d actuations, want %d: %+v", node, len(a), n, a)
	}
}

// level is the level of a simulated pin as its board says.
func (s *site) level(node, pin string) gpio.Level {
	s.t.Helper()
	levels, err := gpio.ReadLevels(filepath.Join(s.dir, "agent-"+node, "gpio-levels.json"))
	if err != nil {
		s.t.Fatal(err)
	}
	return levels[pin]
}

// write is a gpio.write of a level, as a task document.
func write(id, node, pin string, level int, more ...string) string {
	return taskJSON(id, "gpio.write", node, fmt.Sprintf(`{"pin":%q,"level":%d}`, pin, level), strings.Join(more, ""))
}

// listen starts a stock subscriber and waits until it is subscribed.
func (s *site) listen(topics ...string) *process {
	s.t.Helper()
	host, port, err := net.SplitHostPort(s.mqtt)
	if err != nil {
		s.t.Fatal(err)
	}
	// Its output is for a program: without stdbuf it would stay in a buffer.
	args := []string{"-oL", tool(s.t, "mosquitto_sub", "mosquitto-clients"), "-h", host, "-p", port, "-q", "1", "-d", "-v"}
	for _, topic := range topics {
		args = append(args, "-t", topic)
	}
	p := startCmd(s.t, "mosquitto_sub", exec.Command(tool(s.t, "stdbuf", "coreutils"), args...))
	within(s.t, slow, "subscribed", func() (bool, string) {
		return strings.Contains(p.output(), "Subscribed"), p.output()
	})
	return p
}

// heard waits for a line with all the parts in the output of a program.
func (p *process) heard(parts ...string) string {
	p.t.Helper()
	var found string
	within(p.t, slow, "a line with "+strings.Join(parts, ", "), func() (bool, string) {
	lines:
		for line := range strings.Lines(p.output()) {
			for _, part := range parts {
				if !strings.Contains(line, part) {
					continue lines
				}
			}
			found = line
			return true, ""
		}
		return false, p.output()
	})
	return found
}

// rounds is how often a test repeats itself: n unless the environment asks for
// less or more.
func rounds(t *testing.T, n int) int {
	t.Helper()
	v := os.Getenv("APOLLO_E2E_ROUNDS")
	if v == "" {
		return n
	}
	percent, err := strconv.Atoi(v)
	if err != nil || percent < 1 {
		t.Fatalf("APOLLO_E2E_ROUNDS=%s: write the share of the usual rounds in percent, for example 10", v)
	}
	return max(1, n*percent/100)
}

// post submits a task over HTTP. Anything but a 2xx is an error.
func (s *site) post(payload string) (string, error) {
	r, err := httpClient.Post("http://"+s.http+"/v1/tasks", "application/json", strings.NewReader(payload))
	if err != nil {
		return "", err
	}
	defer func() { _ = r.Body.Close() }()
	b, err := io.ReadAll(r.Body)
	if err == nil && r.StatusCode/100 != 2 {
		err = fmt.Errorf("status %d", r.StatusCode)
	}
	return string(b), err
}
