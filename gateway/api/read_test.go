package api_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/apollo-11/apollo11/gateway/api"
	"github.com/apollo-11/apollo11/gateway/api/apitest"
	"github.com/apollo-11/apollo11/wire"
)

// page is a list of tasks.
type page struct {
	Tasks []struct {
		TaskID string `json:"task_id"`
		State  string
	}
	Next uint64
}

func (s *site) page(query string) page {
	s.t.Helper()
	var p page
	s.call("GET", "/v1/tasks"+query, "").want(200, &p)
	return p
}

func (p page) ids() string {
	var ids []string
	for _, t := range p.Tasks {
		ids = append(ids, t.TaskID)
	}
	return strings.Join(ids, " ")
}

func TestListGoesPageByPage(t *testing.T) {
	s := newSite(t, api.Options{})
	if p := s.page(""); len(p.Tasks) != 0 || p.Next != 0 {
		t.Errorf("empty list %+v", p)
	}
	for k := range 7 {
		s.submit(yamlWith(fmt.Sprintf("t%d", k), "away"))
	}
	var got []string
	query := "?limit=3"
	for range 4 {
		p := s.page(query)
		got = append(got, p.ids())
		if p.Next == 0 {
			break
		}
		query = fmt.Sprintf("?limit=3&before=%d", p.Next)
	}
	if all := strings.Join(got, " | "); all != "t6 t5 t4 | t3 t2 t1 | t0" {
		t.Errorf("pages %s", all)
	}
}

func TestListByState(t *testing.T) {
	s := newSite(t, api.Options{})
	s.g.Connect("good", nil, apitest.Behaviour{})
	s.g.Connect("bad", nil, apitest.Behaviour{Code: wire.CodeNoSuchPin})
	for k := range 3 * api.ReadAtOnce {
		node := "good"
		if k%10 == 0 {
			node = "bad"
		}
		s.submit(yamlWith(fmt.Sprintf("t%d", k), node))
	}
	p := s.page("?state=FAILED&limit=3")
	if p.ids() != "t70 t60 t50" || p.Next == 0 {
		t.Fatalf("first page %+v", p)
	}
	var rest []string
	for p.Next != 0 {
		p = s.page(fmt.Sprintf("?state=FAILED&limit=3&before=%d", p.Next))
		rest = append(rest, p.ids())
	}
	if got := strings.TrimSpace(strings.Join(rest, " ")); got != "t40 t30 t20 t10 t0" {
		t.Errorf("the rest %s", got)
	}
	if p := s.page("?state=RUNNING"); len(p.Tasks) != 0 || p.Next != 0 {
		t.Errorf("running %+v", p)
	}
}

// TestListLooksAtBoundedlyMany: a filter that matches nothing does not read the
// whole log in one request.
func TestListLooksAtBoundedlyMany(t *testing.T) {
	s := newSite(t, api.Options{})
	for k := range api.MaxScan + 50 {
		spec := yamlWith(fmt.Sprintf("t%d", k), "away")
		s.h.ServeHTTP(discard{}, request("POST", "/v1/tasks", spec))
	}
	p := s.page("?state=FAILED")
	if len(p.Tasks) != 0 || p.Next != 51 {
		t.Errorf("%+v", p)
	}
	if p = s.page(fmt.Sprintf("?state=FAILED&before=%d", p.Next)); p.Next != 0 {
		t.Errorf("%+v", p)
	}
}

// discard is an answer that nobody reads.
type discard struct{}

func (discard) Header() http.Header         { return http.Header{} }
func (discard) Write(b []byte) (int, error) { return len(b), nil }
func (discard) WriteHeader(int)             {}

func TestWhatIsNotThere(t *testing.T) {
	s := newSite(t, api.Options{})
	s.submit(yamlWith("a", "n"))
	other := wire.Key{Site: "other", Millis: apitest.Start().UnixMilli() + 5, Seq: 1}
	for _, path := range []string{"/v1/tasks/b", "/v1/nodes/n", "/v1/instructions/99/timeline",
		"/v1/instructions/" + other.String() + "/timeline"} {
		if f := s.call("GET", path, "").fault(404); f.Code != "not_found" || f.Hint == "" {
			t.Errorf("%s: %+v", path, f)
		}
	}
	for _, path := range []string{"/", "/v1", "/v1/", "/v1/tasks/", "/v2/tasks", "/v1//tasks", "/v1/../v1/tasks", "/favicon.ico"} {
		if f := s.call("GET", path, "").fault(404); f.Code != "no_such_path" || f.Hint == "" {
			t.Errorf("%s: %+v", path, f)
		}
	}
}

func TestMethodsAreNamed(t *testing.T) {
	s := newSite(t, api.Options{})
	for _, tc := range []struct{ method, path, allow string }{
		{"DELETE", "/v1/tasks", "GET, HEAD, POST"},
		{"PUT", "/v1/tasks/x", "GET, HEAD"},
		{"GET", "/v1/tasks/x/cancel", "POST"},
		{"OPTIONS", "/v1/tasks", "GET, HEAD, POST"},
		{"POST", "/healthz", "GET, HEAD"},
		{"BREW", "/v1/nodes", "GET, HEAD"},
	} {
		a := s.call(tc.method, tc.path, "")
		if f := a.fault(405); f.Code != "method_not_allowed" || a.header.Get("Allow") != tc.allow {
			t.Errorf("%s %s: %+v, Allow %q", tc.method, tc.path, f, a.header.Get("Allow"))
		}
	}
	s.call("HEAD", "/v1/tasks", "").want(200, nil)
	s.call("HEAD", "/healthz", "").want(200, nil)
}

func TestNodes(t *testing.T) {
	s := newSite(t, api.Options{})
	s.g.Connect("b", map[string]string{"role": "worker"}, apitest.Behaviour{Hold: true})
	s.g.Connect("a", nil, apitest.Behaviour{})
	s.submit(yamlWith("x", "b"))
	s.submit(yamlWith("y", "never-seen"))
	s.g.Disconnect("a", "stopped")
	type node struct {
		Node, State, Reason, Short, Board string
		Running                           int
		Labels                            map[string]string
	}
	var list struct{ Nodes []node }
	s.call("GET", "/v1/nodes", "").want(200, &list)
	if len(list.Nodes) != 2 || list.Nodes[0].Node != "a" || list.Nodes[0].State != "offline" || list.Nodes[0].Reason != "stopped" {
		t.Errorf("nodes %+v", list.Nodes)
	}
	var one node
	s.call("GET", "/v1/nodes/b", "").want(200, &one)
	if one.State != "online" || one.Running != 1 || one.Labels["role"] != "worker" || one.Short != wire.Short("b") {
		t.Errorf("node %+v", one)
	}
}

func TestDeadLetters(t *testing.T) {
	s := newSite(t, api.Options{})
	for k := range 3 {
		s.g.Garbage("task", "hmi", "unreadable", []byte{byte(k), 0xff})
	}
	type letters struct {
		DeadLetters []struct {
			Number uint64
			Raw    []byte `json:"raw_base64"`
			Text   string
		} `json:"dead_letters"`
		Next uint64
	}
	var l letters
	s.call("GET", "/v1/deadletters?limit=2", "").want(200, &l)
	if len(l.DeadLetters) != 2 || l.Next != 2 || string(l.DeadLetters[1].Raw) != "\x01\xff" || l.DeadLetters[0].Text != "" {
		t.Errorf("first page %+v", l)
	}
	l = letters{}
	s.call("GET", "/v1/deadletters?limit=2&after=2", "").want(200, &l)
	if len(l.DeadLetters) != 1 || l.Next != 0 {
		t.Errorf("second page %+v", l)
	}
}

func TestUnreadableLog(t *testing.T) {
	s := newSite(t, api.Options{})
	paths := []string{"/v1/tasks", "/v1/tasks/x", "/v1/instructions/1/timeline", "/v1/nodes", "/v1/nodes/n", "/v1/deadletters"}
	for _, tc := range []struct {
		err    error
		status int
	}{{errors.New("pebble: secret path /data"), 500}, {context.DeadlineExceeded, 504}, {api.ErrStopping, 503}} {
		s.g.Fail(tc.err)
		for _, path := range paths {
			a := s.call("GET", path, "")
			if f := a.fault(tc.status); strings.Contains(string(a.body), "secret") || f.Hint == "" {
				t.Errorf("%s: %+v", path, f)
			}
		}
	}
}

func TestHealth(t *testing.T) {
	s := newSite(t, api.Options{})
	s.submit(yamlWith("a", "n"))
	var h struct {
		Status, Version, Epoch string
		Uptime                 int `json:"uptime_s"`
		Open                   int `json:"open_instructions"`
		Listeners              []api.Listener
		Degraded               []string
	}
	s.call("GET", "/healthz", "").want(200, &h)
	if h.Status != "ok" || h.Version != "v1.2.3" || h.Uptime != 90 || h.Open != 1 || h.Epoch != "1122334455667788" || len(h.Listeners) != 1 {
		t.Errorf("health %+v", h)
	}
	s.g.SetHealth(api.Health{Ready: true, Degraded: []string{"the disk is 85 % full"}})
	s.call("GET", "/healthz", "").want(200, &h)
	if h.Status != "degraded" || len(h.Degraded) != 1 {
		t.Errorf("health %+v", h)
	}
	s.g.SetHealth(api.Health{})
	s.call("GET", "/healthz", "").want(503, &h)
	if h.Status != "unavailable" {
		t.Errorf("health %+v", h)
	}
}

func TestMetricsArePassedOn(t *testing.T) {
	s := newSite(t, api.Options{})
	if a := s.call("GET", "/metrics", "").want(200, nil); string(a.body) != "apollo_up 1\n" {
		t.Errorf("%s", a.body)
	}
	s.h = api.New(s.g, s.g, api.Options{})
	s.h.ServeHTTP(discard{}, request("GET", "/metrics", ""))
}
