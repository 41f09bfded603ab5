package formats

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/apollo-11/apollo11/firmware-sim/torture/rig"
	"github.com/apollo-11/apollo11/gateway/scada"
)

// TestOldAndNewUnderstandEachOther: a site is upgraded one program at a time. With
// either side old a command is executed and confirmed, its lease ends in the
// timeline, running work is cancelled, and all of that is still confirmed
// when only the narrowband path is left to the agent.
func TestOldAndNewUnderstandEachOther(t *testing.T) {
	t.Parallel()
	older, newer := built(t, oldPrograms), built(t, newPrograms)
	for _, c := range []struct {
		name           string
		gateway, agent rig.Programs
	}{
		{"old agent, new gateway", newer, older},
		{"new agent, old gateway", older, newer},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p := pairing(t, c.gateway, c.agent)
			p.works()
			p.cancels("cancelled", "primary")
			p.narrowband()
			p.works() // the primary path is back
			p.upgraded(newer, c.agent == older)
		})
	}
}

// pair is a gateway of one revision with an agent of another.
type pair struct {
	t     *testing.T
	s     *rig.Site
	bin   string // where the site takes its programs from
	line  *rig.Proxy
	agent *rig.Process
	pins  string
	round int // makes task ids
}

func pairing(t *testing.T, gateway, agent rig.Programs) *pair {
	t.Helper()
	dir := t.TempDir()
	p := &pair{t: t, bin: filepath.Join(dir, "bin"), pins: filepath.Join(dir, "agent.yaml")}
	if err := os.Mkdir(p.bin, 0o755); err != nil {
		t.Fatal(err)
	}
	p.install("apollo-gateway", gateway)
	p.install("apollo-agent", agent)
	if err := os.WriteFile(p.pins, []byte(pinMap+"  - {name: lamp, line: GPIO5, direction: out, safe: 0}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	var err error
	if p.s, err = rig.NewSite(t.Context(), rig.Programs{Dir: p.bin}, filepath.Join(dir, "site"), rig.Options{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		p.s.Close()
		if t.Failed() {
			t.Logf("gateway:\n%s\nagent:\n%s", p.s.Gateway().Output(), p.agent.Output())
		}
	})
	if p.line, err = rig.NewProxy(p.s.Door().MQTT); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.line.Close)
	p.start()
	return p
}

// install makes a program the one that the site starts from now on.
func (p *pair) install(name string, from rig.Programs) {
	p.t.Helper()
	link := filepath.Join(p.bin, name)
	if err := os.Remove(link); err != nil && !os.IsNotExist(err) {
		p.t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(from.Dir, name), link); err != nil {
		p.t.Fatal(err)
	}
}

func (p *pair) start() {
	p.t.Helper()
	var err error
	p.agent, err = p.s.StartAgent("valve-1", rig.Door{MQTT: p.line.Addr(), Narrowband: p.s.Door().Narrowband}, "--config", p.pins, "--workers", "2")
	if err != nil {
		p.t.Fatal(err)
	}
	if _, err := p.s.AwaitNode(p.t.Context(), "valve-1", scada.PresenceOnline); err != nil {
		p.t.Fatal(err)
	}
	err = rig.Await(p.t.Context(), rig.Patience, "the narrowband connection", func() (bool, error) {
		n, err := p.s.NarrowbandConnections(p.t.Context())
		return n == 1, err
	})
	if err != nil {
		p.t.Fatal(err)
	}
}

// submit publishes a task and returns its id.
func (p *pair) submit(id, intent, args string) string {
	p.t.Helper()
	p.round++
	id = fmt.Sprintf("%s-%d", id, p.round)
	document := fmt.Sprintf(`{"task_id":%q,"intent":%q,"node":"valve-1","args":%s,"timeout":"2h"}`, id, intent, args)
	if body, status, err := p.s.Ask(p.t.Context(), http.MethodPost, "/v1/tasks", document); err != nil || status/100 != 2 {
		p.t.Fatalf("submit %s: status %d, %v: %s", id, status, err, body)
	}
	return id
}

// until waits for a task to be in a state.
func (p *pair) until(id, state string) scada.InstructionView {
	p.t.Helper()
	var task rig.Task
	err := rig.Await(p.t.Context(), rig.Patience, "task "+id+" "+state, func() (bool, error) {
		var err error
		task, _, err = p.s.Task(p.t.Context(), id)
		return len(task.Instructions) == 1 && task.State == state, err
	})
	if err != nil {
		p.t.Fatalf("%v; last seen %+v", err, task)
	}
	return task.Instructions[0]
}

// entered waits for an entry in the timeline.
func (p *pair) entered(seq uint64, what string) {
	p.t.Helper()
	var list string
	err := rig.Await(p.t.Context(), rig.Patience, what, func() (bool, error) {
		entries, err := p.s.Timeline(p.t.Context(), seq)
		list = whats(entries)
		return slices.Contains(strings.Fields(list), what), err
	})
	if err != nil {
		p.t.Fatalf("%v; timeline of %d: %q", err, seq, list)
	}
}

// works: done over the primary path, once, with every step in the timeline; and a
// lease whose end is told.
func (p *pair) works() {
	p.t.Helper()
	i := p.until(p.submit("write", "gpio.write", `{"pin":"valve","level":1,"max_on":"200ms"}`), "SUCCEEDED")
	if i.Path != "primary" || fmt.Sprint(i.Result["level"]) != "1" {
		p.t.Errorf("%s: path %s, result %v, want the level over the primary path", i.TaskID, i.Path, i.Result)
	}
	for _, what := range []string{"submitted", "dispatched", "received", "started", "processed", "lease_ended"} {
		p.entered(i.Seq, what)
	}
	p.once(i)
}

// once wants that the token of an instruction has set a pin on exactly once.
func (p *pair) once(i scada.InstructionView) {
	p.t.Helper()
	all, err := p.s.Actuations("valve-1")
	if err != nil {
		p.t.Fatal(err)
	}
	n := 0
	for _, a := range all {
		if a.Cause == i.Token && a.Level {
			n++
		}
	}
	if n != 1 {
		p.t.Errorf("%s with token %s has set its pin %d times, want once", i.TaskID, i.Token, n)
	}
}

// cancels stops a pulse that runs.
func (p *pair) cancels(id, path string) {
	p.t.Helper()
	id = p.submit(id, "gpio.pulse", `{"pin":"lamp","width":"50m"}`)
	p.until(id, "RUNNING")
	p.cancel(id, path)
}

func (p *pair) cancel(id, path string) {
	p.t.Helper()
	if body, status, err := p.s.Ask(p.t.Context(), http.MethodPost, "/v1/tasks/"+id+"/cancel", ""); err != nil || status/100 != 2 {
		p.t.Fatalf("cancel %s: status %d, %v: %s", id, status, err, body)
	}
	if i := p.until(id, "CANCELLED"); i.Path != path {
		p.t.Errorf("%s was confirmed as cancelled over %s, want %s", id, i.Path, path)
	}
}

// narrowband: a result and a cancellation are confirmed while the agent's events do
// not get through; the events join later.
func (p *pair) narrowband() {
	p.t.Helper()
	id := p.submit("cancelled-narrow", "gpio.pulse", `{"pin":"lamp","width":"50m"}`)
	p.until(id, "RUNNING")
	p.line.Hold(rig.Up)
	p.cancel(id, "narrowband")
	i := p.until(p.submit("narrow", "gpio.write", `{"pin":"lamp","level":1}`), "SUCCEEDED")
	if i.Path != "narrowband" {
		p.t.Errorf("%s came over %s while that path was dead", i.TaskID, i.Path)
	}
	p.once(i)
	p.line.Mend()
	p.entered(i.Seq, "joined")
}

// upgraded: the old side is replaced in the middle of work, as an upgrade does it.
func (p *pair) upgraded(newer rig.Programs, ruleless bool) {
	p.t.Helper()
	id := p.submit("over-the-upgrade", "gpio.pulse", `{"pin":"lamp","width":"50m"}`)
	p.until(id, "RUNNING")
	behind := p.submit("behind", "gpio.write", `{"pin":"lamp","level":1}`)
	// To an agent that follows no rules only one command of a line is handed out at a time:
	// the order is then the gateway's alone. A gateway of before sends it at once.
	if ruleless {
		p.until(behind, "PENDING")
	} else {
		p.entered(p.until(behind, "DISPATCHED").Seq, "received")
	}
	p.agent.Kill()
	p.s.KillGateway()
	p.install("apollo-gateway", newer)
	p.install("apollo-agent", newer)
	if _, err := p.s.StartGateway(p.t.Context()); err != nil {
		p.t.Fatal(err)
	}
	p.start()
	if i := p.until(id, "TIMEOUT"); i.Reason != "interrupted" || !i.OutcomeUnknown {
		p.t.Errorf("%s is %s with outcome unknown %v, want interrupted", id, stateText(i), i.OutcomeUnknown)
	}
	p.once(p.until(behind, "SUCCEEDED"))
	p.works()
}
