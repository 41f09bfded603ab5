package api_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	"github.com/getkin/kin-openapi/routers/gorillamux"

	"github.com/apollo-11/apollo11/gateway/api"
	"github.com/apollo-11/apollo11/gateway/api/apitest"
	"github.com/apollo-11/apollo11/gateway/engine"
)

const base = "http://127.0.0.1:8080"

const writeTask = `{"intent":"gpio.write","node":"pump-1","args":{"pin":"GPIO17","level":1},"ttl":"30s"}`

// site is a gateway in memory behind the handler under test. Every answer that
// it gives is held against the OpenAPI document.
type site struct {
	t      *testing.T
	g      *apitest.Gateway
	h      http.Handler
	doc    *openapi3.T
	router routers.Router
}

func newSite(t *testing.T, o api.Options) *site {
	t.Helper()
	g := apitest.New(engine.Config{})
	if o.Metrics == nil {
		o.Metrics = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/plain; version=0.0.4")
			_, _ = io.WriteString(w, "apollo_up 1\n")
		})
	}
	if o.Now == nil {
		o.Now = g.Now
	}
	s := &site{t: t, g: g, h: api.New(g, g, o)}
	s.doc = loadDocument(t)
	var err error
	if s.router, err = gorillamux.NewRouter(s.doc); err != nil {
		t.Fatalf("router of the document: %v", err)
	}
	return s
}

func loadDocument(t *testing.T) *openapi3.T {
	t.Helper()
	doc, err := openapi3.NewLoader().LoadFromFile("openapi.yaml")
	if err != nil {
		t.Fatalf("openapi.yaml: %v", err)
	}
	if err := doc.Validate(context.Background()); err != nil {
		t.Fatalf("openapi.yaml: %v", err)
	}
	return doc
}

// request makes a request from the machine itself.
func request(method, path, body string, header ...string) *http.Request {
	r := httptest.NewRequest(method, base+path, strings.NewReader(body))
	r.RemoteAddr = "127.0.0.1:40000"
	for k := 0; k+1 < len(header); k += 2 {
		r.Header.Set(header[k], header[k+1])
	}
	return r
}

type answer struct {
	t      *testing.T
	status int
	header http.Header
	body   []byte
}

// call makes a request and checks the answer against the document.
func (s *site) call(method, path, body string, header ...string) answer {
	s.t.Helper()
	return s.do(request(method, path, body, header...))
}

func (s *site) do(r *http.Request) answer {
	s.t.Helper()
	w := httptest.NewRecorder()
	s.h.ServeHTTP(w, r)
	a := answer{s.t, w.Code, w.Header(), w.Body.Bytes()}
	if err := s.documented(r, a); err != nil {
		s.t.Errorf("%s %s: %d %s\nis not what the document says: %v", r.Method, r.URL, a.status, a.body, err)
	}
	return a
}

func (s *site) documented(r *http.Request, a answer) error {
	for name, want := range map[string]string{"X-Content-Type-Options": "nosniff", "Access-Control-Allow-Origin": ""} {
		if got := a.header.Get(name); got != want {
			return fmt.Errorf("header %s is %q, want %q", name, got, want)
		}
	}
	if a.header.Get("X-Request-Id") == "" {
		return fmt.Errorf("no X-Request-Id")
	}
	if r.Method == http.MethodHead {
		return nil
	}
	if a.header.Get("Content-Type") == api.ContentTypeLines {
		return s.documentedLines(a)
	}
	probe := request(r.Method, r.URL.RequestURI(), "")
	route, params, err := s.router.FindRoute(probe)
	if err != nil || a.status == http.StatusMethodNotAllowed {
		// No path of the document: still an error of the one shape.
		var v any
		if err := json.Unmarshal(a.body, &v); err != nil {
			return err
		}
		return s.doc.Components.Schemas["ErrorBody"].Value.VisitJSON(v)
	}
	return openapi3filter.ValidateResponse(context.Background(), &openapi3filter.ResponseValidationInput{
		RequestValidationInput: &openapi3filter.RequestValidationInput{Request: probe, PathParams: params, Route: route},
		Status:                 a.status, Header: a.header, Body: io.NopCloser(bytes.NewReader(a.body)),
		Options: &openapi3filter.Options{IncludeResponseStatus: true},
	})
}

// documentedLines holds each line of an export against the entry of a page.
func (s *site) documentedLines(a answer) error {
	entry := s.doc.Components.Schemas["AuditList"].Value.Properties["entries"].Value.Items.Value
	for line := range bytes.Lines(a.body) {
		var v any
		if err := json.Unmarshal(line, &v); err != nil {
			return err
		}
		if err := entry.VisitJSON(v); err != nil {
			return err
		}
	}
	return nil
}

// want checks the status and decodes the body.
func (a answer) want(status int, into any) answer {
	a.t.Helper()
	if a.status != status {
		a.t.Fatalf("status %d, want %d: %s", a.status, status, a.body)
	}
	if into != nil {
		if err := json.Unmarshal(a.body, into); err != nil {
			a.t.Fatalf("%v: %s", err, a.body)
		}
	}
	return a
}

// fault is the error of an answer.
type fault struct {
	Code, Message, Field, Hint string
	Line, Column               int
}

func (a answer) fault(status int) fault {
	a.t.Helper()
	var v struct{ Error fault }
	a.want(status, &v)
	if v.Error.Code == "" || v.Error.Message == "" {
		a.t.Fatalf("an error without code or message: %s", a.body)
	}
	return v.Error
}

// submitted is what comes back to a submission.
type submitted struct {
	TaskID       string `json:"task_id"`
	Existing     bool
	Trace        string `json:"trace_id"`
	Instructions []struct{ ID, Node string }
	Warnings     []struct{ Code, Message, Field string }
}

func (s *site) submit(body string, header ...string) submitted {
	s.t.Helper()
	var v submitted
	s.call("POST", "/v1/tasks", body, header...).want(http.StatusCreated, &v)
	return v
}
