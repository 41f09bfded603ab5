package api_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/apollo-11/apollo11/gateway/api"
	"github.com/apollo-11/apollo11/gateway/api/apitest"
	"github.com/apollo-11/apollo11/gateway/engine"
	"github.com/apollo-11/apollo11/wire"
)

const yamlTask = `task_id: collect-metrics-1712345678-b7e2
intent: collect_metrics
target_selector: {type: label, key: role, value: worker}
timeout: 120
retry_policy: {max_retries: 3, initial_interval: 5, max_interval: 60, backoff: exponential}
metadata: {operator: ops-team, change_ticket: CHG-2024-001}
`

func TestCommandGoesAllTheWay(t *testing.T) {
	s := newSite(t, api.Options{})
	s.g.Connect("pump-1", nil, apitest.Behaviour{Payload: map[string]any{"level": 1}})
	sub := s.submit(writeTask, "Content-Type", "application/json")
	if sub.Existing || len(sub.Instructions) != 1 || sub.Instructions[0].Node != "pump-1" || sub.Trace == "" {
		t.Fatalf("submitted %+v", sub)
	}
	var task struct {
		State, Via, Actor string
		Settled           bool
		Instructions      []struct {
			Instruction, State, Code, Path string
			Seq                            uint64
			Result                         map[string]any
		}
	}
	s.call("GET", "/v1/tasks/"+sub.TaskID, "").want(200, &task)
	if task.State != "SUCCEEDED" || !task.Settled || task.Via != "http" || task.Actor != "127.0.0.1" || len(task.Instructions) != 1 {
		t.Fatalf("task %+v", task)
	}
	in := task.Instructions[0]
	if in.Code != "ok" || in.Path != "primary" || in.Result["level"] != 1.0 || in.Instruction != sub.Instructions[0].ID {
		t.Errorf("instruction %+v", in)
	}
	var tl struct {
		Instruction struct{ State string }
		Entries     []struct{ What, From, To, Path string }
	}
	s.call("GET", "/v1/instructions/"+in.Instruction+"/timeline", "").want(200, &tl)
	var steps []string
	for _, e := range tl.Entries {
		steps = append(steps, e.What)
	}
	if got := strings.Join(steps, " "); got != "submitted dispatched received started processed" {
		t.Errorf("timeline %s", got)
	}
	if tl.Entries[0].Path != "http" || tl.Entries[4].To != "SUCCEEDED" {
		t.Errorf("entries %+v", tl.Entries)
	}
	s.call("GET", fmt.Sprintf("/v1/instructions/%d/timeline", in.Seq), "").want(200, &tl)
}

func TestYAMLTaskOfTheRequirements(t *testing.T) {
	s := newSite(t, api.Options{})
	s.g.Connect("w-1", map[string]string{"role": "worker"}, apitest.Behaviour{})
	s.g.Connect("w-2", map[string]string{"role": "worker"}, apitest.Behaviour{})
	a := s.call("POST", "/v1/tasks", yamlTask, "Content-Type", "application/yaml")
	var sub submitted
	a.want(201, &sub)
	if len(sub.Instructions) != 2 || sub.TaskID != "collect-metrics-1712345678-b7e2" {
		t.Errorf("submitted %+v", sub)
	}
	if loc := a.header.Get("Location"); loc != "/v1/tasks/"+sub.TaskID {
		t.Errorf("location %q", loc)
	}
}

// TestA4_SameTaskTwice: the same task_id is one task, other content a conflict.
func TestA4_SameTaskTwice(t *testing.T) {
	s := newSite(t, api.Options{})
	first := s.submit(yamlWith("a", "pump-1"), "Content-Type", "text/yaml")
	var again submitted
	s.call("POST", "/v1/tasks", yamlWith("a", "pump-1")+"\r\n", "Content-Type", "text/yaml").want(200, &again)
	if !again.Existing || again.TaskID != first.TaskID || again.Instructions[0] != first.Instructions[0] {
		t.Errorf("first %+v, again %+v", first, again)
	}
	f := s.call("POST", "/v1/tasks", yamlWith("a", "pump-2")).fault(409)
	if f.Code != "conflict" || f.Field != "task_id" || f.Hint == "" {
		t.Errorf("fault %+v", f)
	}
}

func yamlWith(id, node string) string {
	return fmt.Sprintf("task_id: %s\nintent: gpio.read\nnode: %s\nargs: {pin: GPIO17}\n", id, node)
}

func TestIdempotencyKeyNamesTheTask(t *testing.T) {
	s := newSite(t, api.Options{})
	sub := s.submit(writeTask, "Idempotency-Key", `"8e03978e-40d5"`)
	if sub.TaskID != "8e03978e-40d5" {
		t.Fatalf("task %s", sub.TaskID)
	}
	for _, w := range sub.Warnings {
		if w.Code == "no_task_id" {
			t.Errorf("the task has a name, but was warned about: %+v", w)
		}
	}
	var again submitted
	s.call("POST", "/v1/tasks", writeTask, "Idempotency-Key", "8e03978e-40d5").want(200, &again)
	if !again.Existing {
		t.Errorf("again %+v", again)
	}
	if f := s.call("POST", "/v1/tasks", yamlWith("b", "n"), "Idempotency-Key", "c").fault(400); f.Code != "contradicts" {
		t.Errorf("fault %+v", f)
	}
	if f := s.call("POST", "/v1/tasks", writeTask, "Idempotency-Key", "a/b").fault(400); f.Field != "Idempotency-Key" {
		t.Errorf("fault %+v", f)
	}
}

func TestWarningsReachTheSubmitter(t *testing.T) {
	s := newSite(t, api.Options{})
	sub := s.submit(writeTask)
	var codes []string
	for _, w := range sub.Warnings {
		codes = append(codes, w.Code)
	}
	if got := strings.Join(codes, " "); got != "no_task_id node" {
		t.Errorf("warnings %+v", sub.Warnings)
	}
}

func TestSelectorWithoutNodes(t *testing.T) {
	s := newSite(t, api.Options{})
	f := s.call("POST", "/v1/tasks", yamlTask).fault(422)
	if f.Code != "unknown_node" || f.Field != "target_selector" || !strings.Contains(f.Hint, "node list") {
		t.Errorf("fault %+v", f)
	}
}

func TestFullQueueAsksToComeBack(t *testing.T) {
	s := newSite(t, api.Options{})
	g := apitest.New(engine.Config{Capacity: 10})
	s.g, s.h = g, api.New(g, g, api.Options{})
	for k := range 9 {
		s.submit(yamlWith(fmt.Sprintf("t%d", k), "away"))
	}
	a := s.call("POST", "/v1/tasks", yamlWith("t9", "away"))
	if f := a.fault(503); f.Code != "full" || a.header.Get("Retry-After") == "" {
		t.Errorf("fault %+v, headers %v", f, a.header)
	}
	// A4: what was taken before is still answered.
	s.call("POST", "/v1/tasks", yamlWith("t3", "away")).want(200, nil)
}

// TestA2_NoSuccessWithoutTheLog: what the log did not confirm is never a 2xx.
func TestA2_NoSuccessWithoutTheLog(t *testing.T) {
	s := newSite(t, api.Options{})
	s.submit(yamlWith("old", "pump-1"))
	for _, tc := range []struct {
		err    error
		status int
		code   string
	}{
		{api.ErrStopping, 503, "stopping"},
		{fmt.Errorf("put: %w", api.ErrStopping), 503, "stopping"},
		{context.DeadlineExceeded, 504, "outcome_unknown"},
		{errors.New("commit: input/output error"), 504, "outcome_unknown"},
	} {
		s.g.Fail(tc.err)
		f := s.call("POST", "/v1/tasks", yamlWith("x", "pump-1")).fault(tc.status)
		if f.Code != tc.code || strings.Contains(f.Message+f.Hint, "input/output") {
			t.Errorf("%v: %+v", tc.err, f)
		}
		if f := s.call("POST", "/v1/tasks/old/cancel", "").fault(tc.status); f.Code != tc.code {
			t.Errorf("%v: cancel %+v", tc.err, f)
		}
	}
}

func TestSlowCommitEndsInTime(t *testing.T) {
	s := newSite(t, api.Options{})
	s.h = api.New(stalled{s.g}, s.g, api.Options{CallTimeout: 10 * time.Millisecond})
	if f := s.call("POST", "/v1/tasks", yamlWith("x", "pump-1")).fault(504); f.Code != "outcome_unknown" || !strings.Contains(f.Hint, "task x") {
		t.Errorf("fault %+v", f)
	}
}

// stalled is a gateway whose disk does not answer.
type stalled struct{ *apitest.Gateway }

func (stalled) Submit(ctx context.Context, _ engine.Spec, _ engine.Source) (engine.Reply, error) {
	<-ctx.Done()
	return engine.Reply{}, ctx.Err()
}

func TestCancel(t *testing.T) {
	s := newSite(t, api.Options{})
	s.g.Connect("busy", nil, apitest.Behaviour{Hold: true})
	s.g.Connect("quick", nil, apitest.Behaviour{})
	s.submit("task_id: c\nintent: gpio.read\nnodes: [away, busy, quick]\nargs: {pin: GPIO17}")
	var c struct {
		TaskID                  string `json:"task_id"`
		Cancelled, Asked, Final int
	}
	s.call("POST", "/v1/tasks/c/cancel", `{"reason":"valve <stuck>"}`).want(200, &c)
	if c.TaskID != "c" || c.Cancelled != 1 || c.Asked != 1 || c.Final != 1 {
		t.Errorf("cancelled %+v", c)
	}
	var tl struct {
		Entries []struct{ What, Actor, Detail, Path string }
	}
	s.call("GET", "/v1/instructions/1/timeline", "").want(200, &tl)
	last := tl.Entries[len(tl.Entries)-1]
	if last.What != "cancelled" || last.Detail != "valve <stuck>" || last.Actor != "127.0.0.1" || last.Path != "http" {
		t.Errorf("entry %+v", last)
	}
	s.call("POST", "/v1/tasks/c/cancel", "").want(200, &c)
	if c.Final != 3 {
		t.Errorf("cancelled again %+v", c)
	}
	if f := s.call("POST", "/v1/tasks/none/cancel", "").fault(404); f.Code != "not_found" {
		t.Errorf("fault %+v", f)
	}
}

func TestFailureIsShownWithItsCodeAndSentence(t *testing.T) {
	s := newSite(t, api.Options{})
	s.g.Connect("pump-1", nil, apitest.Behaviour{Code: wire.CodeNoSuchPin, Detail: "the board has no pin GPIO17"})
	sub := s.submit(writeTask)
	var task struct {
		State        string
		Instructions []struct{ Code, Detail string }
	}
	s.call("GET", "/v1/tasks/"+sub.TaskID, "").want(200, &task)
	if task.State != "FAILED" || task.Instructions[0].Code != "no_such_pin" || task.Instructions[0].Detail == "" {
		t.Errorf("task %+v", task)
	}
}

func TestRequestIDIsTakenWhenHarmless(t *testing.T) {
	s := newSite(t, api.Options{})
	for id, taken := range map[string]bool{"abc-1": true, "a b": false, "x\x1b[1m": false, strings.Repeat("a", 65): false} {
		a := s.call("GET", "/v1/nodes", "", "X-Request-Id", id).want(http.StatusOK, nil)
		if got := a.header.Get("X-Request-Id"); (got == id) != taken {
			t.Errorf("%q became %q", id, got)
		}
	}
}
