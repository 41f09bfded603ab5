package api_test

import (
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/apollo-11/apollo11/gateway/api"
	"github.com/apollo-11/apollo11/gateway/engine"
)

func TestDeadLetterIsShownAsItCame(t *testing.T) {
	s := newSite(t, api.Options{})
	s.g.Garbage("task", "hmi", "unreadable", []byte("{\"a\":\n"))
	s.g.Garbage("event", "pump-1", "unreadable", []byte{0, 0xff})
	s.g.Garbage("task", "hmi", "too long", []byte(strings.Repeat("x", engine.MaxDeadLetterBytes+1)))
	type letter struct {
		Number             uint64
		Kind, From, Reason string
		Raw                []byte `json:"raw_base64"`
		Text               string
		Cut                bool
	}
	var one, two, three letter
	s.call("GET", "/v1/deadletters/1", "").want(200, &one)
	s.call("GET", "/v1/deadletters/2", "").want(200, &two)
	s.call("GET", "/v1/deadletters/3", "").want(200, &three)
	if one.Text != "{\"a\":\n" || string(one.Raw) != one.Text || one.Kind != "task" || one.From != "hmi" || one.Cut {
		t.Errorf("%+v", one)
	}
	if two.Text != "" || string(two.Raw) != "\x00\xff" || two.Kind != "event" {
		t.Errorf("%+v", two)
	}
	if !three.Cut || len(three.Raw) != engine.MaxDeadLetterBytes {
		t.Errorf("cut %v, %d bytes", three.Cut, len(three.Raw))
	}
	if f := s.call("GET", "/v1/deadletters/4", "").fault(404); f.Hint == "" {
		t.Errorf("%+v", f)
	}
}

func TestDropForgetsForGood(t *testing.T) {
	s := newSite(t, api.Options{})
	s.g.Garbage("event", "pump-1", "unreadable", []byte{1})
	s.call("DELETE", "/v1/deadletters/1?note=understood", "").want(200, nil)
	s.call("GET", "/v1/deadletters/1", "").fault(404)
	s.call("DELETE", "/v1/deadletters/1", "").fault(404)
	if got := s.audit(); len(got) != 1 || got[0].Action != "dead_drop" || got[0].Subject != "1" || got[0].Note != "understood" {
		t.Errorf("audit %+v", got)
	}
}

// TestB10_ReplaySubmitsAndForgets: the YAML that a tool published to the JSON
// topic becomes a task after all.
func TestB10_ReplaySubmitsAndForgets(t *testing.T) {
	s := newSite(t, api.Options{})
	s.g.Garbage("task", "hmi", "line 1: is not JSON", []byte(yamlWith("a", "away")))
	var sub submitted
	a := s.call("POST", "/v1/deadletters/1/replay", "", "X-Actor", "olga@panel").want(201, &sub)
	if sub.TaskID != "a" || sub.Existing || a.header.Get("Location") != "/v1/tasks/a" {
		t.Errorf("%+v", sub)
	}
	var task struct{ Actor, Via string }
	s.call("GET", "/v1/tasks/a", "").want(200, &task)
	if task.Actor != "olga@panel" || task.Via != "http" {
		t.Errorf("%+v", task)
	}
	s.call("GET", "/v1/deadletters/1", "").fault(404)
	s.call("POST", "/v1/deadletters/1/replay", "").fault(404)
	if got := s.audit(); len(got) != 1 || got[0].Action != "dead_replay" || got[0].Note != "as task a" {
		t.Errorf("audit %+v", got)
	}
}

// TestReplayTwiceIsOneTask: also when the power fails between the task and the
// forgetting, and when two operators are at it.
func TestReplayTwiceIsOneTask(t *testing.T) {
	s := newSite(t, api.Options{})
	const nameless = "intent: gpio.read\nnode: away\nargs: {pin: GPIO17}\n"
	s.g.Garbage("task", "hmi", "line 1: is not JSON", []byte(nameless))
	broken := &deaf{Gateway: s.g, err: api.ErrStopping}
	whole := s.h
	s.h = api.New(broken, s.g, api.Options{Now: s.g.Now})
	s.call("POST", "/v1/deadletters/1/replay", "").fault(503)
	s.h = whole
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() { s.h.ServeHTTP(discard{}, request("POST", "/v1/deadletters/1/replay", "")) })
	}
	wg.Wait()
	if p := s.page(""); len(p.Tasks) != 1 || !strings.HasPrefix(p.Tasks[0].TaskID, "deadletter-1-") {
		t.Errorf("tasks %+v", p.Tasks)
	}
	s.call("GET", "/v1/deadletters/1", "").fault(404)
	if got := s.audit(); len(got) != 1 {
		t.Errorf("audit %+v", got)
	}
}

// TestA9_ReplayIsNotLate: a time limit counts from when the message came.
func TestA9_ReplayIsNotLate(t *testing.T) {
	s := newSite(t, api.Options{})
	s.g.Garbage("task", "hmi", "line 1: is not JSON", []byte(yamlWith("a", "away")+"ttl: 1h\n"))
	s.g.Garbage("task", "hmi", "line 1: is not JSON", []byte(yamlWith("b", "away")+"not_after: 2025-03-01T10:00:00Z\n"))
	s.g.Advance(20 * time.Minute)
	var task struct {
		Instructions []struct {
			NotAfter string `json:"not_after"`
		}
	}
	s.call("POST", "/v1/deadletters/1/replay", "").want(201, nil)
	s.call("GET", "/v1/tasks/a", "").want(200, &task)
	if got := task.Instructions[0].NotAfter; got != "2025-03-01T10:30:00.005Z" {
		t.Errorf("may run until %s", got)
	}
	s.g.Garbage("task", "hmi", "line 1: is not JSON", []byte(yamlWith("c", "away")+"ttl: 30s\n"))
	s.g.Advance(20 * time.Minute)
	for _, n := range []string{"2", "3"} {
		if f := s.call("POST", "/v1/deadletters/"+n+"/replay", "").fault(422); f.Code != "not_replayable" || !strings.Contains(f.Message, "time limit") || f.Hint == "" {
			t.Errorf("%s: %+v", n, f)
		}
		s.call("GET", "/v1/deadletters/"+n, "").want(200, nil)
	}
}

func TestWhatCannotBeReplayed(t *testing.T) {
	s := newSite(t, api.Options{})
	s.submit(yamlWith("taken", "pump-1"))
	for k, tc := range []struct {
		kind, raw string
		status    int
		code      string
	}{
		{"event", yamlWith("a", "n"), 422, "not_replayable"},
		{"compact", "\x01\x02", 422, "not_replayable"},
		{"task", yamlWith("a", "n") + "metadata: {x: " + strings.Repeat("x", engine.MaxDeadLetterBytes) + "}", 422, "not_replayable"},
		{"task", `{"intent":`, 422, "syntax"},
		{"task", "", 422, "empty"},
		{"task", "\x00\x01", 422, "encoding"},
		{"task", yamlWith("taken", "pump-2"), 409, "conflict"},
		{"task", "intent: gpio.read\ntarget_selector: {type: label, key: a, value: b}\nargs: {pin: GPIO17}", 422, "unknown_node"},
	} {
		s.g.Garbage(tc.kind, "hmi", "unreadable", []byte(tc.raw))
		path := "/v1/deadletters/" + string(rune('1'+k))
		if f := s.call("POST", path+"/replay", "").fault(tc.status); f.Code != tc.code || f.Hint == "" {
			t.Errorf("%d: %+v", k, f)
		}
		s.call("GET", path, "").want(200, nil)
	}
	if p := s.page(""); len(p.Tasks) != 1 {
		t.Errorf("tasks %+v", p.Tasks)
	}
	if got := s.audit(); len(got) != 0 {
		t.Errorf("audit %+v", got)
	}
}
