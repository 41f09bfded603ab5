package api_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/apollo-11/apollo11/gateway/api"
	"github.com/apollo-11/apollo11/gateway/api/apitest"
	"github.com/apollo-11/apollo11/gateway/engine"
	"github.com/apollo-11/apollo11/wire"
)

// queued is what the queue shows.
type queued struct {
	Instructions []struct {
		Instruction, State, Node string
		Seq                      uint64
		OutcomeUnknown           bool `json:"outcome_unknown"`
	}
	Next uint64
}

func (s *site) queue(query string) (q queued) {
	s.t.Helper()
	s.call("GET", "/v1/queue"+query, "").want(200, &q)
	return q
}

// deed is one entry of the audit trail.
type deed struct {
	Number                             uint64
	Actor, Path, Action, Subject, Note string
}

func (s *site) audit() []deed {
	s.t.Helper()
	var v struct{ Entries []deed }
	s.call("GET", "/v1/audit", "").want(200, &v)
	return v.Entries
}

// failed puts an instruction into the operator queue that has failed for good.
func (s *site) failed(task string) {
	s.t.Helper()
	s.g.Connect("bad", nil, apitest.Behaviour{Code: wire.CodeNoSuchPin})
	s.submit(yamlWith(task, "bad"))
}

// unknown puts one there of which nobody knows whether it has happened.
func (s *site) unknown(task string) {
	s.t.Helper()
	s.g.Connect("cut", nil, apitest.Behaviour{Code: wire.CodeInterrupted, Detail: "the power failed in between"})
	s.submit(fmt.Sprintf(`{"task_id":%q,"intent":"gpio.pulse","node":"cut","args":{"pin":"GPIO17","level":1,"width_ms":100}}`, task))
}

func TestQueueGoesPageByPage(t *testing.T) {
	s := newSite(t, api.Options{})
	if q := s.queue(""); len(q.Instructions) != 0 || q.Next != 0 {
		t.Errorf("empty queue %+v", q)
	}
	s.submit(yamlWith("open", "away"))
	for k := range 3 {
		s.failed(fmt.Sprintf("t%d", k))
	}
	q := s.queue("?limit=2")
	if len(q.Instructions) != 2 || q.Instructions[0].Seq != 2 || q.Instructions[0].State != "FAILED" || q.Next != 3 {
		t.Fatalf("first page %+v", q)
	}
	if q = s.queue("?limit=2&after=3"); len(q.Instructions) != 1 || q.Instructions[0].Seq != 4 || q.Next != 0 {
		t.Errorf("second page %+v", q)
	}
}

func TestRetryFromTheQueue(t *testing.T) {
	s := newSite(t, api.Options{})
	s.failed("a")
	id := s.queue("").Instructions[0].Instruction
	s.g.Connect("bad", nil, apitest.Behaviour{})
	var done struct{ Action, Subject, Text string }
	s.call("POST", "/v1/instructions/"+id+"/retry", `{"note":"the pin was renamed"}`, "X-Actor", "olga@panel").want(200, &done)
	if done.Action != "retry" || done.Subject != id || done.Text == "" {
		t.Errorf("done %+v", done)
	}
	if q := s.queue(""); len(q.Instructions) != 0 {
		t.Errorf("queue %+v", q)
	}
	var task struct{ State string }
	s.call("GET", "/v1/tasks/a", "").want(200, &task)
	if task.State != "SUCCEEDED" {
		t.Errorf("task %+v", task)
	}
	want := deed{1, "olga@panel", "http", "retry", id, "the pin was renamed"}
	if got := s.audit(); len(got) != 1 || got[0] != want {
		t.Errorf("audit %+v", got)
	}
	if f := s.call("POST", "/v1/instructions/"+id+"/retry", "").fault(409); f.Code != "conflict" || f.Field != "" {
		t.Errorf("again %+v", f)
	}
	s.call("POST", "/v1/instructions/99/retry", "").fault(404)
}

// TestC14_RetryOfAnUnknownOutcomeNeedsAWordMore: the same may happen twice.
func TestC14_RetryOfAnUnknownOutcomeNeedsAWordMore(t *testing.T) {
	s := newSite(t, api.Options{})
	s.unknown("a")
	if q := s.queue(""); len(q.Instructions) != 1 || !q.Instructions[0].OutcomeUnknown {
		t.Fatalf("queue %+v", q)
	}
	for _, body := range []string{"", "{}", `{"note":"x"}`, `{"accept_unknown":false}`} {
		f := s.call("POST", "/v1/instructions/1/retry", body).fault(409)
		if f.Code != "confirm_unknown" || !strings.Contains(f.Message, "second time") || f.Hint == "" {
			t.Errorf("%s: %+v", body, f)
		}
	}
	if got := s.audit(); len(got) != 0 {
		t.Errorf("refused, and yet in the audit: %+v", got)
	}
	s.call("POST", "/v1/instructions/1/retry", `{"accept_unknown":true,"note":"looked at it"}`).want(200, nil)
	if got := s.audit(); len(got) != 1 || got[0].Action != "retry" {
		t.Errorf("audit %+v", got)
	}
}

func TestResolveNeedsANote(t *testing.T) {
	s := newSite(t, api.Options{})
	s.unknown("a")
	if f := s.call("POST", "/v1/instructions/1/resolve", `{"note":""}`).fault(400); f.Code != "bad_value" || f.Hint == "" {
		t.Errorf("%+v", f)
	}
	s.call("POST", "/v1/instructions/1/resolve", `{"note":"closed by hand"}`).want(200, nil)
	if q := s.queue(""); len(q.Instructions) != 0 {
		t.Errorf("queue %+v", q)
	}
	var tl struct {
		Instruction struct{ State string }
		Entries     []struct{ What, Detail, Actor string }
	}
	s.call("GET", "/v1/instructions/1/timeline", "").want(200, &tl)
	if last := tl.Entries[len(tl.Entries)-1]; tl.Instruction.State != "TIMEOUT" || last.What != "resolved" || last.Detail != "closed by hand" {
		t.Errorf("timeline %+v", tl)
	}
}

func TestCancelOneInstruction(t *testing.T) {
	s := newSite(t, api.Options{})
	s.failed("a")
	s.submit("task_id: b\nintent: gpio.read\nnodes: [away-1, away-2]\nargs: {pin: GPIO17}")
	var c struct {
		TaskID    string `json:"task_id"`
		Cancelled int
	}
	for _, seq := range []int{1, 2} {
		s.call("POST", fmt.Sprintf("/v1/instructions/%d/cancel", seq), `{"note":"not needed"}`).want(200, &c)
		if c.Cancelled != 1 {
			t.Errorf("%d: %+v", seq, c)
		}
	}
	if q := s.queue(""); len(q.Instructions) != 0 {
		t.Errorf("queue %+v", q)
	}
	var task struct {
		Instructions []struct{ State string }
	}
	s.call("GET", "/v1/tasks/b", "").want(200, &task)
	if task.Instructions[0].State != "CANCELLED" || task.Instructions[1].State != "PENDING" {
		t.Errorf("task %+v", task)
	}
	if got := s.audit(); len(got) != 2 || got[0].Action != "cancel" || got[0].Note != "not needed" || got[0].Subject == got[1].Subject {
		t.Errorf("audit %+v", got)
	}
}

func TestA8_QuietPeriod(t *testing.T) {
	s := newSite(t, api.Options{})
	type quiet struct {
		On                       bool
		Since, Until, By, Reason string
	}
	look := func() (q quiet) { s.call("GET", "/v1/quiet", "").want(200, &q); return q }
	if q := look(); q != (quiet{}) {
		t.Errorf("%+v", q)
	}
	var d struct{ Action, Until string }
	s.call("PUT", "/v1/quiet", `{"reason":"valve 3 is being replaced","for":"2h"}`, "X-Actor", "olga@panel").want(200, &d)
	q := look()
	if !q.On || q.By != "olga@panel" || q.Reason != "valve 3 is being replaced" || q.Until != d.Until || q.Until != "2025-03-01T11:30:00.000Z" {
		t.Errorf("%+v, done %+v", q, d)
	}
	s.call("PUT", "/v1/quiet", `{"reason":"longer","until":"2025-03-01T20:00:00+01:00"}`).want(200, nil)
	if q = look(); q.Until != "2025-03-01T19:00:00.000Z" || q.By != "127.0.0.1" {
		t.Errorf("%+v", q)
	}
	s.call("DELETE", "/v1/quiet?note=done", "").want(200, nil)
	if q = look(); q.On {
		t.Errorf("%+v", q)
	}
	s.call("DELETE", "/v1/quiet", "").fault(409)
	s.call("PUT", "/v1/quiet", `{"reason":"forgotten","for":"1m"}`).want(200, nil)
	s.g.Advance(2 * time.Minute)
	if q = look(); q.On {
		t.Errorf("did not end by itself: %+v", q)
	}
	var actions []string
	for _, a := range s.audit() {
		actions = append(actions, a.Action+" "+a.Actor)
	}
	if got := strings.Join(actions, ", "); got != "quiet_on olga@panel, quiet_on 127.0.0.1, quiet_off 127.0.0.1, quiet_on 127.0.0.1, quiet_off gateway" {
		t.Errorf("audit: %s", got)
	}
}

func TestBadQuietPeriods(t *testing.T) {
	s := newSite(t, api.Options{})
	for body, field := range map[string]string{
		"":                                             "for",
		`{"reason":"x"}`:                               "for",
		`{"reason":"x","for":""}`:                      "for",
		`{"reason":"x","for":"2"}`:                     "for",
		`{"reason":"x","for":"-2h"}`:                   "for",
		`{"reason":"x","for":"0s"}`:                    "for",
		`{"reason":"x","for":2}`:                       "for",
		`{"reason":"x","for":"9999999h"}`:              "for",
		`{"reason":"x","until":"tomorrow"}`:            "until",
		`{"reason":"x","until":"2025-03-01T20:00:00"}`: "until",
		`{"reason":"x","for":"2h","until":"2025-03-01T20:00:00Z"}`: "until",
		`{"reason":"x","until":"2025-03-01T09:00:00Z"}`:            "",
		`{"reason":"x","for":"169h"}`:                              "",
		`{"for":"2h"}`:                                             "",
		`{"reason":"x","for":"2h","why":"y"}`:                      "why",
	} {
		if f := s.call("PUT", "/v1/quiet", body).fault(400); f.Field != field || f.Hint == "" {
			t.Errorf("%s: %+v", body, f)
		}
	}
	if got := s.audit(); len(got) != 0 {
		t.Errorf("audit %+v", got)
	}
}

func TestAlarms(t *testing.T) {
	s := newSite(t, api.Options{})
	s.g.Connect("pump-1", nil, apitest.Behaviour{})
	s.g.Connect("pump-2", nil, apitest.Behaviour{})
	s.g.Input(&engine.Compact{Short: wire.Short("pump-1"), Ack: wire.CompactAck{Seq: 77, Attempt: 1, Code: wire.CodeOK}})
	s.g.Advance(time.Minute)
	type alarm struct{ Alarm, Subject, Detail, Raised string }
	var v struct{ Standing, Recent []alarm }
	s.call("GET", "/v1/alarms", "").want(200, &v)
	if len(v.Standing) != 2 || v.Standing[0].Alarm != "node_offline" || v.Standing[1].Subject != "pump-2" || v.Standing[0].Detail == "" {
		t.Errorf("standing %+v", v.Standing)
	}
	if len(v.Recent) != 1 || v.Recent[0].Alarm != "unknown_report" {
		t.Errorf("recent %+v", v.Recent)
	}
	var n struct {
		Node, State      string
		InFlight         int `json:"in_flight"`
		Standing, Recent []alarm
	}
	s.call("GET", "/v1/nodes/pump-1", "").want(200, &n)
	if n.State != "offline" || len(n.Standing) != 1 || len(n.Recent) != 1 {
		t.Errorf("node %+v", n)
	}
	s.call("GET", "/v1/nodes/pump-2", "").want(200, &n)
	if len(n.Standing) != 1 || len(n.Recent) != 0 {
		t.Errorf("node %+v", n)
	}
}

// TestDeclaredActor: a name that nobody checks never looks like one that was.
func TestDeclaredActor(t *testing.T) {
	open := newSite(t, api.Options{})
	for _, bad := range []string{"olga", "@panel", "olga@", "olga@a@b", "ol ga@panel", "olga@pa\x7fnel", "ol<b>@panel", strings.Repeat("o", 60) + "@panel", "ölga@panel"} {
		if f := open.call("POST", "/v1/tasks", yamlWith("x", "n"), "X-Actor", bad).fault(400); f.Field != "X-Actor" {
			t.Errorf("%q: %+v", bad, f)
		}
	}
	open.call("POST", "/v1/tasks", yamlWith("x", "n"), "X-Actor", "o.l-g_a+1@panel-2.plant").want(201, nil)
	closed := newSite(t, api.Options{Users: func(string, string) bool { return true }})
	r := request("POST", "/v1/tasks", yamlWith("x", "n"), "X-Actor", "root@gateway")
	r.SetBasicAuth("piotr", "p")
	closed.do(r).want(201, nil)
	for s, want := range map[*site]string{open: "o.l-g_a+1@panel-2.plant", closed: "piotr"} {
		r := request("GET", "/v1/tasks/x", "")
		r.SetBasicAuth("anybody", "p")
		var task struct{ Actor string }
		if s.do(r).want(200, &task); task.Actor != want {
			t.Errorf("actor %q, want %q", task.Actor, want)
		}
	}
}

// TestA2_NoActionWithoutTheLog: what the log did not confirm is never a 2xx.
func TestA2_NoActionWithoutTheLog(t *testing.T) {
	s := newSite(t, api.Options{})
	s.failed("a")
	s.g.Garbage("task", "hmi", "unreadable", []byte(yamlWith("b", "n")))
	broken := &deaf{Gateway: s.g}
	s.h = api.New(broken, s.g, api.Options{Now: s.g.Now})
	calls := [][3]string{
		{"POST", "/v1/instructions/1/retry", ""}, {"POST", "/v1/instructions/1/resolve", `{"note":"x"}`},
		{"PUT", "/v1/quiet", `{"reason":"x","for":"1h"}`}, {"DELETE", "/v1/quiet", ""},
		{"DELETE", "/v1/deadletters/1", ""}, {"POST", "/v1/deadletters/1/replay", ""},
	}
	for err, want := range map[error]fault{
		api.ErrStopping:                          {Code: "stopping"},
		context.DeadlineExceeded:                 {Code: "outcome_unknown"},
		errors.New("commit: input/output error"): {Code: "outcome_unknown"},
	} {
		broken.err = err
		for _, c := range calls {
			status := 504
			if want.Code == "stopping" {
				status = 503
			}
			if f := s.call(c[0], c[1], c[2]).fault(status); f.Code != want.Code || f.Hint == "" || strings.Contains(f.Message, "output") {
				t.Errorf("%v: %s %s: %+v", err, c[0], c[1], f)
			}
		}
	}
	// The task of the replay is on disk; the dead letter stands until it is told.
	s.h = api.New(s.g, s.g, api.Options{Now: s.g.Now})
	s.call("POST", "/v1/deadletters/1/replay", "").want(200, nil)
}

// deaf is a gateway whose operators get no answer.
type deaf struct {
	*apitest.Gateway
	err error
}

func (d *deaf) Operate(context.Context, engine.Operate) (engine.Reply, error) {
	return engine.Reply{}, d.err
}

func TestUnreadableLogOfTheOperator(t *testing.T) {
	s := newSite(t, api.Options{})
	s.g.Connect("n", nil, apitest.Behaviour{})
	s.g.Fail(errors.New("pebble: secret path /data"))
	for _, path := range []string{"GET /v1/queue", "GET /v1/alarms", "GET /v1/quiet", "GET /v1/audit", "GET /v1/audit?format=jsonl",
		"GET /v1/deadletters/1", "POST /v1/instructions/1/retry", "POST /v1/deadletters/1/replay"} {
		method, path, _ := strings.Cut(path, " ")
		a := s.call(method, path, "")
		if a.fault(500); strings.Contains(string(a.body), "secret") {
			t.Errorf("%s: %s", path, a.body)
		}
	}
}

func TestBadParametersOfTheOperator(t *testing.T) {
	s := newSite(t, api.Options{})
	s.failed("a")
	for call, field := range map[string]string{
		"GET /v1/queue?limit=0": "limit", "GET /v1/queue?before=1": "before", "GET /v1/queue?after=x": "after",
		"GET /v1/alarms?x=1": "x", "GET /v1/quiet?x=1": "x", "GET /v1/audit?limit=501": "limit", "GET /v1/audit?format=csv": "format",
		"GET /v1/audit?format=": "format", "GET /v1/audit?format=jsonl&limit=5": "limit", "GET /v1/deadletters/0": "number",
		"GET /v1/deadletters/x": "number", "GET /v1/deadletters/-1": "number", "GET /v1/deadletters/1?x=1": "x",
		"DELETE /v1/deadletters/18446744073709551615": "number", "DELETE /v1/deadletters/1?note=" + long(257): "note",
		"DELETE /v1/quiet?note=" + long(257): "note", "POST /v1/instructions/x/retry": "instruction", "POST /v1/instructions/1/retry?force=1": "force",
		"POST /v1/deadletters/1/replay?as=x": "as",
	} {
		method, path, _ := strings.Cut(call, " ")
		if f := s.call(method, path, "").fault(400); f.Field != field {
			t.Errorf("%s: %+v", call, f)
		}
	}
	for body, field := range map[string]string{
		`{"accept_unknown":"yes"}`: "accept_unknown", `{"accept_unknown":1}`: "accept_unknown", `{"accept_unknown":null}`: "accept_unknown",
		`{"note":true}`: "note", `{"note":"` + long(257) + `"}`: "note", `{"reason":"x"}`: "reason", `[]`: "",
	} {
		if f := s.call("POST", "/v1/instructions/1/retry", body).fault(400); f.Field != field || f.Line == 0 || f.Hint == "" {
			t.Errorf("%s: %+v", body, f)
		}
	}
	if q := s.queue(""); len(q.Instructions) != 1 {
		t.Errorf("queue %+v", q)
	}
}

// TestEveryChangeIsInTheAudit: no route that changes something by hand leaves no
// trace.
func TestEveryChangeIsInTheAudit(t *testing.T) {
	s := newSite(t, api.Options{})
	for k := range 3 {
		s.failed(fmt.Sprintf("t%d", k))
		s.g.Garbage("task", "hmi", "unreadable", []byte(yamlWith(fmt.Sprintf("d%d", k), "away")))
	}
	covered := []string{"POST /v1/tasks", // their timelines say who
		"POST /v1/safe/{node}", "POST /v1/safe/{node}/{pin}", "POST /v1/safe/owed", "POST /v1/release/{node}", "POST /v1/release/{node}/{pin}"}
	for _, c := range [][3]string{
		{"POST /v1/tasks/{task_id}/cancel", "/v1/tasks/t0/cancel", ""},
		{"POST /v1/instructions/{instruction}/retry", "/v1/instructions/1/retry", ""},
		{"POST /v1/instructions/{instruction}/resolve", "/v1/instructions/2/resolve", `{"note":"x"}`},
		{"POST /v1/instructions/{instruction}/cancel", "/v1/instructions/3/cancel", ""},
		{"PUT /v1/quiet", "/v1/quiet", `{"reason":"x","for":"1h"}`},
		{"DELETE /v1/quiet", "/v1/quiet", ""},
		{"DELETE /v1/deadletters/{number}", "/v1/deadletters/1", ""},
		{"POST /v1/deadletters/{number}/replay", "/v1/deadletters/2/replay", ""},
	} {
		covered = append(covered, c[0])
		method, _, _ := strings.Cut(c[0], " ")
		before := len(s.audit())
		if a := s.call(method, c[1], c[2], "X-Actor", "olga@panel"); a.status >= 300 {
			t.Errorf("%s: %d %s", c[0], a.status, a.body)
		}
		if got := s.audit(); len(got) != before+1 || got[before].Actor != "olga@panel" {
			t.Errorf("%s: audit %+v", c[0], got)
		}
	}
	for _, r := range api.Routes() {
		if !strings.HasPrefix(r, "GET ") && !slices.Contains(covered, r) {
			t.Errorf("%s is not in this test", r)
		}
	}
}
