package api_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/apollo-11/apollo11/gateway/api"
	"github.com/apollo-11/apollo11/gateway/api/apitest"
	"github.com/apollo-11/apollo11/gateway/engine"
)

func TestOnlyTheMachineItselfMayCall(t *testing.T) {
	closed, open := newSite(t, api.Options{}), newSite(t, api.Options{AllowRemote: true})
	for _, tc := range []struct {
		remote string
		local  bool
	}{
		{"127.0.0.1:1", true}, {"127.9.9.9:1", true}, {"[::1]:1", true}, {"[::ffff:127.0.0.1]:1", true},
		{"192.168.1.7:1", false}, {"[fe80::1%eth0]:1", false}, {"0.0.0.0:1", false}, {"@", false}, {"", false},
	} {
		for _, path := range []string{"/v1/tasks", "/healthz", "/metrics", "/v1/openapi.yaml"} {
			r := request("GET", path, "")
			r.RemoteAddr = tc.remote
			if tc.local {
				closed.do(r).want(200, nil)
			} else if f := closed.do(r).fault(403); f.Code != "remote_refused" {
				t.Errorf("%s: %+v", tc.remote, f)
			}
			open.do(r).want(200, nil)
		}
	}
}

// TestDNSRebinding: a page whose name was pointed at this machine sends its own
// name as Host.
func TestDNSRebinding(t *testing.T) {
	local := newSite(t, api.Options{Hosts: []string{"Gateway.plant"}})
	remote := newSite(t, api.Options{AllowRemote: true})
	for _, tc := range []struct {
		host                  string
		localGood, remoteGood bool
	}{
		{"127.0.0.1:8080", true, true}, {"localhost", true, true}, {"LOCALHOST.:8080", true, true}, {"[::1]:8080", true, true},
		{"gateway.plant:8080", true, false}, {"192.168.1.5", false, true}, {"[fe80::1]", false, true},
		{"evil.example", false, false}, {"127.0.0.1.evil.example", false, false}, {"localhost.evil", false, false}, {"", false, false},
		{"<script>", false, false},
	} {
		for s, good := range map[*site]bool{local: tc.localGood, remote: tc.remoteGood} {
			r := request("POST", "/v1/tasks/x/cancel", "")
			r.Host = tc.host
			want := 421
			if good {
				want = 404
			}
			s.do(r).fault(want)
		}
	}
}

// TestForeignPagesMoveNothing: a browser sends such requests without asking.
func TestForeignPagesMoveNothing(t *testing.T) {
	s := newSite(t, api.Options{})
	for _, header := range [][]string{
		{"Sec-Fetch-Site", "cross-site"}, {"Sec-Fetch-Site", "same-site"},
		{"Origin", "http://evil.example"}, {"Origin", "null"},
	} {
		a := s.call("POST", "/v1/tasks", writeTask, append([]string{"Content-Type", "text/plain"}, header...)...)
		if f := a.fault(403); f.Code != "cross_origin" {
			t.Errorf("%v: %+v", header, f)
		}
	}
	s.submit(writeTask, "Sec-Fetch-Site", "same-origin")
	s.submit(writeTask, "Origin", base)
}

func TestUsers(t *testing.T) {
	s := newSite(t, api.Options{Users: func(n, p string) bool { return p == "secret-"+n }})
	as := func(user, password string) *http.Request {
		r := request("POST", "/v1/tasks", yamlWith("a", "n"))
		r.SetBasicAuth(user, password)
		return r
	}
	a := s.call("POST", "/v1/tasks", yamlWith("a", "n"))
	if f := a.fault(401); f.Code != "unauthorized" || !strings.HasPrefix(a.header.Get("WWW-Authenticate"), "Basic ") {
		t.Errorf("%+v %v", f, a.header)
	}
	s.do(as("olga", "wrong")).fault(401)
	s.do(as("", "secret-")).fault(401)
	long := strings.Repeat("u", api.MaxActor+1)
	s.do(as(long, "secret-"+long)).fault(401)
	s.do(as("olga", "secret-olga")).want(201, nil)

	r := request("GET", "/v1/tasks/a", "")
	r.SetBasicAuth("piotr", "secret-piotr")
	var task struct{ Actor string }
	s.do(r).want(200, &task)
	if task.Actor != "olga" {
		t.Errorf("actor %q", task.Actor)
	}
	// A probe needs no password, and learns only whether tasks are taken.
	if a := s.call("GET", "/healthz", "").want(200, nil); string(a.body) != "{\"status\":\"ok\"}\n" {
		t.Errorf("%s", a.body)
	}
	s.call("GET", "/metrics", "").fault(401)
	s.call("GET", "/v1/openapi.yaml", "").fault(401)
}

// TestTooManyRequestsAreToldSo: the rest goes on.
func TestTooManyRequestsAreToldSo(t *testing.T) {
	s := newSite(t, api.Options{})
	gate := &gated{Gateway: s.g, inside: make(chan struct{}), leave: make(chan struct{})}
	s.h = api.New(gate, s.g, api.Options{CallTimeout: time.Minute})
	var wg sync.WaitGroup
	for range api.MaxAtOnce {
		wg.Go(func() { s.h.ServeHTTP(discard{}, request("POST", "/v1/tasks", writeTask)) })
	}
	for range api.MaxAtOnce {
		<-gate.inside
	}
	a := s.call("GET", "/v1/nodes", "")
	if f := a.fault(503); f.Code != "busy" || a.header.Get("Retry-After") == "" {
		t.Errorf("%+v", f)
	}
	s.call("GET", "/healthz", "").want(200, nil)
	close(gate.leave)
	wg.Wait()
	s.call("GET", "/v1/nodes", "").want(200, nil)
}

type gated struct {
	*apitest.Gateway
	inside, leave chan struct{}
}

func (g *gated) Submit(ctx context.Context, spec engine.Spec, src engine.Source) (engine.Reply, error) {
	g.inside <- struct{}{}
	<-g.leave
	return g.Gateway.Submit(ctx, spec, src)
}

// TestLogSaysWhoAndWhat: B6, and no secrets.
func TestLogSaysWhoAndWhat(t *testing.T) {
	var b strings.Builder
	log := slog.New(slog.NewTextHandler(&b, nil))
	s := newSite(t, api.Options{Log: log, Users: func(string, string) bool { return true }})
	r := request("POST", "/v1/tasks", yamlWith("a", "n"), "X-Request-Id", "req-7")
	r.SetBasicAuth("olga", "hunter2")
	s.do(r).want(201, nil)
	for _, want := range []string{"actor=olga", "request_id=req-7", "task=a", "trace="} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %s in %s", want, b.String())
		}
	}
	if strings.Contains(b.String(), "hunter2") {
		t.Errorf("the password is in the log: %s", b.String())
	}
}

// TestServerAnswersOverRealConnections: the answer to a body that is far too
// large is seen by its sender.
func TestServerAnswersOverRealConnections(t *testing.T) {
	g := apitest.New(engine.Config{})
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	srv := api.NewServer(api.New(g, g, api.Options{Now: g.Now}), slog.New(slog.DiscardHandler))
	if srv.ReadHeaderTimeout == 0 || srv.ReadTimeout == 0 || srv.WriteTimeout == 0 || srv.IdleTimeout == 0 || srv.MaxHeaderBytes == 0 {
		t.Errorf("a limit is missing: %+v", srv)
	}
	done := make(chan error, 1)
	go func() { done <- srv.Serve(ln) }()
	defer func() {
		if err := srv.Close(); err != nil {
			t.Error(err)
		}
		if err := <-done; !errors.Is(err, http.ErrServerClosed) {
			t.Error(err)
		}
	}()
	url := "http://" + ln.Addr().String() + "/v1/tasks"
	for _, tc := range []struct {
		body   string
		status int
	}{{writeTask, 201}, {strings.Repeat("x", 1<<20), 413}, {"{", 400}} {
		resp, err := http.Post(url, "application/json", strings.NewReader(tc.body))
		if err != nil {
			t.Fatalf("%d bytes: %v", len(tc.body), err)
		}
		text, err := io.ReadAll(resp.Body)
		if cerr := resp.Body.Close(); err != nil || cerr != nil {
			t.Fatal(err, cerr)
		}
		if resp.StatusCode != tc.status {
			t.Errorf("%d bytes: %d %s", len(tc.body), resp.StatusCode, text)
		}
	}
}
