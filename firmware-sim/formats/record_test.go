package formats

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/apollo-11/apollo11/firmware-sim/torture/rig"
	"github.com/apollo-11/apollo11/gateway/scada"
)

// TestRecord makes a recording with the programs of the recorded revision, and
// prints what is in it as rows for its README.md:
//
//	APOLLO_FORMATS_RECORD=/tmp/site.tar.gz go test ./firmware-sim/formats -run TestRecord -count=1 -v
//
// It is the description of how site.tar.gz came about. To record another revision
// is to add a directory to testdata, not to replace this one.
func TestRecord(t *testing.T) {
	file := os.Getenv("APOLLO_FORMATS_RECORD")
	if file == "" {
		t.Skip("recordings are made once: set APOLLO_FORMATS_RECORD to a file name to make one")
	}
	dir := t.TempDir()
	r := &recorder{t: t, ctx: t.Context()}
	var err error
	if r.s, err = rig.NewSite(r.ctx, built(t, oldPrograms), dir, rig.Options{}); err != nil {
		t.Fatal(err)
	}
	defer r.s.Close()
	r.line, err = rig.NewProxy(r.s.Door().MQTT)
	r.must(err)
	defer r.line.Close()
	r.agents()
	r.finished()
	r.restart()
	r.failed()
	r.waiting()
	r.byOperators()
	r.interruptedByThePowerCut()
	if err := pack(file, dir); err != nil {
		t.Fatal(err)
	}
}

// pinMap is the agent.yaml of valve-1.
const pinMap = "pins:\n  - {name: valve, line: GPIO17, direction: out, safe: 0, max_on: 48h}\n"

type recorder struct {
	t      *testing.T
	ctx    context.Context
	s      *rig.Site
	client *rig.Client
	line   *rig.Proxy // between pump-1 and the MQTT door
	pump   *rig.Process
	others []*rig.Process
}

func (r *recorder) must(err error) {
	r.t.Helper()
	if err != nil {
		r.t.Fatal(err)
	}
}

// agents: pump-1 on a line that can be held, queue-1 with two workers, valve-1
// with a pin map and so with leases, full-1 whose pins fail because their trace has
// no room. absent-1 never comes.
func (r *recorder) agents() {
	pins := filepath.Join(r.t.TempDir(), "agent.yaml")
	r.must(os.WriteFile(pins, []byte(pinMap), 0o600))
	r.startPump()
	for node, args := range map[string][]string{"queue-1": {"--workers", "2"}, "valve-1": {"--config", pins}, "full-1": {"--gpio-trace", "/dev/full"}} {
		p, err := r.s.StartAgent(node, r.s.Door(), append(args, "--label", "role=side")...)
		r.must(err)
		r.others = append(r.others, p)
	}
	r.connect()
}

// connect waits for the agents and connects the client.
func (r *recorder) connect() {
	for _, node := range []string{"pump-1", "queue-1", "valve-1", "full-1"} {
		r.online(node)
	}
	var err error
	r.client, err = r.s.Client(r.ctx, "scada-1")
	r.must(err)
}

// restart kills the gateway, so that what comes before is in a table of the store
// and what comes after in its log.
func (r *recorder) restart() {
	r.client.Close()
	r.s.KillGateway()
	_, err := r.s.StartGateway(r.ctx)
	r.must(err)
	r.connect()
}

func (r *recorder) startPump() {
	var err error
	r.pump, err = r.s.StartAgent("pump-1", rig.Door{MQTT: r.line.Addr(), Narrowband: r.s.Door().Narrowband}, "--workers", "2", "--label", "role=pump")
	r.must(err)
}

func (r *recorder) online(node string) {
	r.t.Helper()
	_, err := r.s.AwaitNode(r.ctx, node, scada.PresenceOnline)
	r.must(err)
}

// submit publishes a task as a SCADA tool does. more is the rest of the document.
func (r *recorder) submit(id, intent, more string) {
	r.t.Helper()
	_, err := r.client.Submit(rig.TaskTopic, fmt.Sprintf(`{"task_id":%q,"intent":%q,%s}`, id, intent, more))
	r.must(err)
	// What was refused is a dead letter: the receipt would not tell.
	_, found, err := r.s.Task(r.ctx, id)
	if err != nil || !found {
		dead, _, _ := r.s.Ask(r.ctx, http.MethodGet, "/v1/deadletters", "")
		r.t.Fatalf("task %s is not there: %v\n%s", id, err, dead)
	}
}

func (r *recorder) until(id, what string, ok func(rig.Task) bool) {
	r.t.Helper()
	err := rig.Await(r.ctx, rig.Patience, "task "+id+" "+what, func() (bool, error) {
		task, found, err := r.s.Task(r.ctx, id)
		return err == nil && found && ok(task), err
	})
	if err != nil {
		task, _, _ := r.s.Ask(r.ctx, http.MethodGet, "/v1/tasks/"+id, "")
		r.t.Fatalf("%v\n%s", err, task)
	}
}

func (r *recorder) in(id, state string) {
	r.t.Helper()
	r.until(id, state, func(v rig.Task) bool { return v.State == state })
}

// has waits for an entry of the timeline of a task's first instruction.
func (r *recorder) has(id, what string) {
	r.t.Helper()
	r.until(id, what, func(v rig.Task) bool {
		entries, err := r.s.Timeline(r.ctx, v.Instructions[0].Seq)
		return err == nil && strings.Contains(" "+whats(entries)+" ", " "+what+" ")
	})
}

func (r *recorder) ask(method, path, document string) {
	r.t.Helper()
	body, status, err := r.s.Ask(r.ctx, method, path, document)
	if err != nil || status/100 != 2 {
		r.t.Fatalf("%s %s: status %d, %v: %s", method, path, status, err, body)
	}
}

func (r *recorder) operate(id, action, document string) {
	r.t.Helper()
	task, found, err := r.s.Task(r.ctx, id)
	if err != nil || !found {
		r.t.Fatalf("task %s: %v, %v", id, found, err)
	}
	r.ask(http.MethodPost, fmt.Sprintf("/v1/instructions/%d/%s", task.Instructions[0].Seq, action), document)
}

// finished is work that has succeeded, by every way that it can.
func (r *recorder) finished() {
	const succeeded = "SUCCEEDED"
	r.submit("done-write", "gpio.write", `"node":"pump-1","args":{"pin":"GPIO17","level":1},"metadata":{"order":"4711"},"priority":"high"`)
	r.submit("done-read", "gpio.read", `"node":"pump-1","args":{"pin":"GPIO17"}`)
	r.submit("done-pulse", "gpio.pulse", `"node":"pump-1","args":{"pin":"GPIO4","width":"400ms"},"timeout":"5s"`)
	r.submit("done-metrics", "collect_metrics", `"target_selector":{"type":"label","key":"role","value":"side"}`)
	r.submit("done-watch", "gpio.watch", `"node":"pump-1","args":{"pin":"GPIO26","for":"1s"}`)
	for _, id := range []string{"done-write", "done-read", "done-pulse", "done-metrics", "done-watch"} {
		r.in(id, succeeded)
	}
	r.line.Hold(rig.Up)
	r.submit("by-narrowband", "gpio.write", `"node":"pump-1","args":{"pin":"GPIO22","level":1}`)
	r.in("by-narrowband", succeeded)
	r.line.Mend()
	r.has("by-narrowband", "joined")
	r.submit("lease-over", "gpio.write", `"node":"valve-1","args":{"pin":"valve","level":1,"max_on":"1s"}`)
	r.has("lease-over", "lease_ended")
}

// failed is work that did not succeed, for every reason.
func (r *recorder) failed() {
	for _, id := range []string{"no-pin", "no-pin-retried", "no-pin-resolved"} {
		r.submit(id, "gpio.write", `"node":"valve-1","args":{"pin":"GPIO99","level":1}`)
		r.in(id, "FAILED")
	}
	r.submit("expired", "gpio.write", `"node":"absent-1","args":{"pin":"GPIO17","level":1},"ttl":"1s"`)
	r.in("expired", "TIMEOUT")
	r.submit("cancelled-waiting", "gpio.write", `"node":"absent-1","args":{"pin":"GPIO17","level":1}`)
	r.ask(http.MethodPost, "/v1/tasks/cancelled-waiting/cancel", "")
	r.in("cancelled-waiting", "CANCELLED")
	const long = `"node":"pump-1","args":{"pin":"GPIO5","width":"50m"},"timeout":"2h"`
	r.submit("cancelled-running", "gpio.pulse", long)
	r.in("cancelled-running", "RUNNING")
	r.ask(http.MethodPost, "/v1/tasks/cancelled-running/cancel", `{"reason":"not today"}`)
	r.in("cancelled-running", "CANCELLED")
	r.submit("unknown-outcome", "gpio.pulse", long)
	r.in("unknown-outcome", "RUNNING")
	r.pump.Kill()
	r.startPump()
	r.in("unknown-outcome", "TIMEOUT")
	r.submit("retrying", "gpio.write", `"node":"full-1","args":{"pin":"GPIO6","level":1},
		"retry_policy":{"max_retries":3,"initial_interval":"2m","max_interval":"2m","backoff":"fixed"}`)
	r.in("retrying", "RETRYING")
}

// waiting is work for a node that is away: three commands of one pin in their
// order, one before them that is more urgent, two with limits, one that is late.
func (r *recorder) waiting() {
	for k, id := range []string{"one-pin-1", "one-pin-2", "one-pin-3"} {
		r.submit(id, "gpio.write", fmt.Sprintf(`"node":"absent-1","args":{"pin":"GPIO17","level":%d}`, (k+1)%2))
	}
	r.submit("urgent", "gpio.write", `"node":"absent-1","args":{"pin":"GPIO27","level":1},"priority":"high"`)
	r.submit("far-limit", "gpio.write", `"node":"absent-1","args":{"pin":"GPIO22","level":1},"ttl":"8784h"`)
	r.submit("limit-of-minutes", "gpio.write", `"node":"absent-1","args":{"pin":"GPIO23","level":1},"ttl":"2m"`)
	r.submit("several", "gpio.write", `"nodes":["absent-1","pump-1"],"args":{"pin":"GPIO24","level":1}`)
	r.until("several", "done at one node", func(v rig.Task) bool { return v.Instructions[1].State == "SUCCEEDED" })
}

// byOperators is what people did: the audit trail, a dead letter that stayed and
// one that was dropped, a quiet period.
func (r *recorder) byOperators() {
	r.operate("no-pin-retried", "retry", `{"note":"pin map mended"}`)
	r.until("no-pin-retried", "failed again", func(v rig.Task) bool { return v.State == "FAILED" && v.Instructions[0].Attempt == 2 })
	r.operate("no-pin-resolved", "resolve", `{"note":"opened by hand"}`)
	for _, text := range []string{`{"intnet":"gpio.write"}`, "no task at all"} {
		_, err := r.client.Submit(rig.TaskTopic, text)
		r.must(err)
	}
	r.must(rig.Await(r.ctx, rig.Patience, "two dead letters", func() (bool, error) {
		_, status, err := r.s.Ask(r.ctx, http.MethodGet, "/v1/deadletters/2", "")
		return status == http.StatusOK, err
	}))
	r.ask(http.MethodDelete, "/v1/deadletters/1", "")
	r.ask(http.MethodPut, "/v1/quiet", `{"reason":"valve 3 is being replaced","for":"168h"}`)
}

// interruptedByThePowerCut is what was under way when first the gateway's power
// failed, and then that of the boards.
func (r *recorder) interruptedByThePowerCut() {
	for k, pin := range []string{"GPIO5", "GPIO6"} {
		id := fmt.Sprintf("held-%d", k+1)
		r.submit(id, "gpio.pulse", fmt.Sprintf(`"node":"queue-1","args":{"pin":%q,"width":"50m"},"timeout":"2h"`, pin))
		r.in(id, "RUNNING")
	}
	r.submit("behind-1", "gpio.write", `"node":"queue-1","args":{"pin":"GPIO17","level":1}`)
	r.submit("behind-2", "gpio.write", `"node":"queue-1","args":{"pin":"GPIO17","level":0}`)
	r.submit("behind-pulse", "gpio.pulse", `"node":"queue-1","args":{"pin":"GPIO5","width":"100ms"}`)
	r.submit("behind-late", "gpio.write", `"node":"queue-1","args":{"pin":"GPIO22","level":1},"ttl":"2m"`)
	for _, id := range []string{"behind-1", "behind-2", "behind-pulse", "behind-late"} {
		r.has(id, "received")
	}
	r.submit("lease-open", "gpio.write", `"node":"valve-1","args":{"pin":"valve","level":1,"max_on":"24h"}`)
	r.in("lease-open", "SUCCEEDED")
	r.submit("told-late", "gpio.pulse", `"node":"pump-1","args":{"pin":"GPIO4","width":"3s"}`)
	r.in("told-late", "RUNNING")
	before, err := r.s.Actuations("pump-1")
	r.must(err)
	rows(r)
	// The sidecar of the store is at most a second behind.
	r.must(rig.Pause(r.ctx, 1500*time.Millisecond))
	r.s.KillGateway()
	r.must(rig.Await(r.ctx, rig.Patience, "the pulse of pump-1 over", func() (bool, error) {
		now, err := r.s.Actuations("pump-1")
		return len(now) > len(before), err
	}))
	r.must(rig.Pause(r.ctx, time.Second)) // its result is written after the pin
	for _, p := range append(r.others, r.pump) {
		p.Signal(syscall.SIGKILL)
		_, err := p.Wait(rig.Patience)
		r.must(err)
	}
}

// rows prints what the gateway has just before the end.
func rows(r *recorder) {
	body, status, err := r.s.Ask(r.ctx, http.MethodGet, "/v1/tasks?limit=100", "")
	if err != nil || status != http.StatusOK {
		r.t.Fatalf("list of tasks: status %d, %v", status, err)
	}
	for _, id := range taskIDs(r.t, body) {
		task, _, err := r.s.Task(r.ctx, id)
		r.must(err)
		for _, i := range task.Instructions {
			entries, err := r.s.Timeline(r.ctx, i.Seq)
			r.must(err)
			fmt.Printf("| `%s` | %s | %s | | %s |\n", id, i.Node, stateText(i), whats(entries))
		}
	}
}

// pack writes the directories of a site. The traces and the store's reserve,
// which is noise and made anew, are left out.
func pack(file, dir string) (err error) {
	f, err := os.Create(file)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	z, err := gzip.NewWriterLevel(f, gzip.BestCompression)
	if err != nil {
		return err
	}
	out := tar.NewWriter(z)
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.Name() == "BALLAST" || path == dir || !d.IsDir() && filepath.Dir(path) == dir {
			return err
		}
		return packOne(out, dir, path, d)
	})
	return errors.Join(err, out.Close(), z.Close())
}

func packOne(out *tar.Writer, dir, path string, d fs.DirEntry) error {
	name, err := filepath.Rel(dir, path)
	if err != nil {
		return err
	}
	info, err := d.Info()
	if err != nil {
		return err
	}
	h := &tar.Header{Name: filepath.ToSlash(name), Mode: int64(info.Mode().Perm()), Size: info.Size(), Typeflag: tar.TypeReg}
	if d.IsDir() {
		h.Name, h.Size, h.Typeflag = h.Name+"/", 0, tar.TypeDir
	}
	if err := out.WriteHeader(h); err != nil || d.IsDir() {
		return err
	}
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, f)
	return errors.Join(err, f.Close())
}
