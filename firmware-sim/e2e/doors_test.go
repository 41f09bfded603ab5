package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/apollo-11/apollo11/fieldagent/gpio"
)

// doors is a gateway with tasks in its queue that nothing at any door may touch.
type doors struct {
	*site
	pid    int
	ids    []string          // of all tasks that were taken, in order
	before map[string]string // path -> what the HTTP API says about the queue
}

const queuedID = "queued-1"

func newDoors(t *testing.T, args ...string) *doors {
	t.Helper()
	d := &doors{site: newSite(t, args...), before: map[string]string{}}
	d.pid = d.gateway.cmd.Process.Pid
	for k, level := range []string{"1", "0"} {
		d.take(fmt.Sprintf("queued-%d", k+1), writeDoc(fmt.Sprintf("queued-%d", k+1), level, ""))
	}
	d.take("queued-3", `{"task_id":"queued-3","intent":"collect_metrics","nodes":["pump-1","pump-2"]}`)
	for _, id := range d.ids {
		path := "/v1/tasks/" + id
		var task struct {
			Instructions []struct {
				ID string `json:"instruction"`
			} `json:"instructions"`
		}
		d.before[path] = d.fetch(path, &task)
		if len(task.Instructions) == 0 {
			t.Fatalf("no instructions in %s", d.before[path])
		}
		for _, in := range task.Instructions {
			path := "/v1/instructions/" + in.ID + "/timeline"
			d.before[path] = d.fetch(path, nil)
		}
	}
	return d
}

// take submits a task that must be taken.
func (d *doors) take(id, doc string) {
	d.t.Helper()
	if status, body := d.submit(doc, "application/json", nil); status != http.StatusCreated {
		d.t.Fatalf("task %s: %d %s", id, status, body)
	}
	d.ids = append(d.ids, id)
}

// unharmed holds that the gateway runs on, well and as the same process, that
// nothing which stood in the queue has changed, and that nothing else was taken.
func (d *doors) unharmed() {
	d.t.Helper()
	select {
	case <-d.gateway.done:
		d.t.Fatalf("the gateway has ended: %v", d.gateway.err)
	default:
	}
	var health struct{ Status string }
	if body := d.fetch("/healthz", &health); health.Status != "ok" || d.gateway.cmd.Process.Pid != d.pid {
		d.t.Errorf("health: %s", body)
	}
	for path, before := range d.before {
		if after := d.fetch(path, nil); after != before {
			d.t.Errorf("%s was %s, is %s", path, before, after)
		}
	}
	var list struct {
		Tasks []struct {
			ID string `json:"task_id"`
		}
		Next uint64
	}
	d.fetch("/v1/tasks?limit=500", &list)
	var ids []string
	for _, t := range list.Tasks {
		ids = append(ids, t.ID)
	}
	slices.Reverse(ids) // the newest came first
	if !slices.Equal(ids, d.ids) {
		d.t.Errorf("tasks %v, want %v", ids, d.ids)
	}
	if strings.Contains(d.gateway.output(), "panic") {
		d.t.Error("the gateway's log speaks of a panic")
	}
}

// works holds that what stood in the queue is executed, each once and in order.
func (d *doors) works() {
	d.t.Helper()
	d.agent("pump-1")
	d.agent("pump-2")
	for _, id := range []string{"queued-1", "queued-2", "queued-3"} {
		within(d.t, slow, id+" SUCCEEDED", func() (bool, string) {
			var v struct{ State string }
			body := d.fetch("/v1/tasks/"+id, &v)
			return v.State == "SUCCEEDED", body
		})
	}
	all, err := gpio.ReadTrace(d.trace("pump-1"))
	if err != nil || len(all) != 2 || all[0].Level != gpio.High || all[1].Level != gpio.Low {
		d.t.Errorf("at the pin: %v, %v; want high, then low, and no more", all, err)
	}
}

// is compares an answer with what the table wants, whatever the door.
func (b bad) is(t *testing.T, r refusal) {
	t.Helper()
	e := r.Error
	if e.Code != b.code || e.Field != b.field && b.code != "conflict" && b.code != "unknown_node" {
		t.Errorf("refused as %s of %q, want %s of %q: %s", e.Code, e.Field, b.code, b.field, r.says())
	}
	if !strings.Contains(r.says(), b.says) {
		t.Errorf("%q does not say %q", r.says(), b.says)
	}
	if e.Problem+e.Message == "" || e.Hint == "" && b.name != "1 MiB" {
		t.Errorf("no sentence or no hint: %+v", e)
	}
	if b.at != "" {
		b.line, b.column = 1, 1+strings.Index(b.doc, b.at)
	}
	if b.line != e.Line || b.column != 0 && b.column != e.Column || (e.Line == 0) != (e.Column == 0) {
		t.Errorf("at line %d, column %d, want %d, %d", e.Line, e.Column, b.line, b.column)
	}
}

// A18: every kind of bad document gets its answer at the MQTT door, with either
// protocol version and every QoS: a receipt so that it is not sent for ever, a
// reason code on MQTT 5, a sentence on the reply topic, and a dead letter.
func TestA18_BadDocumentsOverMQTT(t *testing.T) {
	d := newDoors(t)
	table := badDocuments(queuedID)
	if len(table) < 30 {
		t.Fatalf("only %d kinds", len(table))
	}
	last := uint64(0)
	for _, version := range []byte{4, 5} {
		for _, qos := range []byte{0, 1, 2} {
			c := d.dialMQTT(fmt.Sprintf("hmi-%d-%d", version, qos), version)
			var letters []bad
			for _, b := range table {
				if !t.Run(fmt.Sprintf("version %d QoS %d %s", version, qos, b.name), func(t *testing.T) {
					c.t = t
					ack := c.publish(taskTopic, b.doc, qos, false)
					if qos > 0 {
						b.receipt(t, version, ack.ReasonCode, ack.Properties.ReasonString)
					}
					b.is(t, c.refusal())
				}) {
					t.FailNow() // the next answers would be compared with the wrong question
				}
				switch {
				case b.code == "conflict", b.code == "unknown_node": // it could be read
				case b.name == "1 MiB": // it was not even stored
				default:
					letters = append(letters, b)
				}
			}
			c.quiet()
			last = d.deadLetters(last, c.id, letters)
		}
	}
	d.unharmed()
	d.works()
}

// receipt holds the receipt of a refused document.
func (b bad) receipt(t *testing.T, version, code byte, reason string) {
	t.Helper()
	want := byte(0x99)
	if b.code == "conflict" {
		want = 0x97
	}
	if version == 4 {
		want = 0
	}
	if code != want || version == 5 && reason == "" {
		t.Errorf("reason code %#x %q, want %#x", code, reason, want)
	}
}

// deadLetters waits for the dead letters of a client after a number, compares
// them and returns the last number.
func (d *doors) deadLetters(after uint64, client string, want []bad) uint64 {
	d.t.Helper()
	var list struct {
		Letters []struct {
			Number             uint64
			Kind, From, Reason string
		} `json:"dead_letters"`
	}
	within(d.t, slow, "dead letters of "+client, func() (bool, string) {
		list.Letters = nil
		d.fetch(fmt.Sprintf("/v1/deadletters?after=%d&limit=500", after), &list)
		return len(list.Letters) >= len(want), fmt.Sprintf("%d of %d", len(list.Letters), len(want))
	})
	if len(list.Letters) != len(want) {
		d.t.Errorf("%d dead letters of %s, want %d", len(list.Letters), client, len(want))
	}
	for k, l := range list.Letters[:min(len(list.Letters), len(want))] {
		if l.Kind != "task" || l.From != client || l.Reason == "" || !strings.Contains(l.Reason, want[k].says) {
			d.t.Errorf("dead letter for %s: %+v", want[k].name, l)
		}
		after = l.Number
	}
	return after
}

// The same table at the HTTP door: status, code, field, line, column and hint.
func TestA18_BadDocumentsOverHTTP(t *testing.T) {
	d := newDoors(t)
	for _, b := range badDocuments(queuedID) {
		t.Run(b.name, func(t *testing.T) {
			status, body := d.submit(b.doc, "application/json", nil)
			want := b.status
			if want == 0 {
				want = http.StatusBadRequest
			}
			var r refusal
			if err := json.Unmarshal([]byte(body), &r); err != nil || status != want {
				t.Fatalf("%d %s (%v), want %d", status, body, err, want)
			}
			b.is(t, r)
		})
	}
	d.unharmed()
	d.works()
}

// What is unusual but clear is taken, at either door, with a warning.
func TestOddDocumentsAreTaken(t *testing.T) {
	d := newDoors(t)
	c := d.dialMQTT("hmi", 5)
	for k, o := range oddDocuments() {
		t.Run(o.name, func(t *testing.T) {
			c.t = t
			id := fmt.Sprintf("odd-%d", k)
			if ack := c.publish(taskTopic, fmt.Sprintf(o.doc, id), 1, false); ack.ReasonCode != 0 {
				t.Errorf("MQTT: %#x %s", ack.ReasonCode, ack.Properties.ReasonString)
			}
			d.ids = append(d.ids, id)
			// The same document again is the same task, and no conflict (A4, A7).
			status, body := d.submit(fmt.Sprintf(o.doc, id), "application/json", nil)
			if status != http.StatusOK || !strings.Contains(body, `"existing":true`) {
				t.Errorf("HTTP, the same again: %d %s", status, body)
			}
			id += "-http"
			status, body = d.submit(fmt.Sprintf(o.doc, id), "application/json", nil)
			if status != http.StatusCreated || !strings.Contains(body, `"code":"`+o.warning+`"`) {
				t.Errorf("HTTP: %d %s, want the warning %s", status, body, o.warning)
			}
			d.ids = append(d.ids, id)
		})
	}
	c.quiet()
	d.unharmed()
	d.works()
}
