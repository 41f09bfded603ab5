package api_test

import (
	"slices"
	"testing"

	"github.com/apollo-11/apollo11/gateway/api"
)

// TestDocumentAndRoutesAgree walks both, so that neither has a route more.
func TestDocumentAndRoutesAgree(t *testing.T) {
	var documented []string
	for path, item := range loadDocument(t).Paths.Map() {
		for method := range item.Operations() {
			documented = append(documented, method+" "+path)
		}
	}
	routes := api.Routes()
	slices.Sort(documented)
	slices.Sort(routes)
	if !slices.Equal(documented, routes) {
		t.Errorf("the document has\n%q\nthe handlers have\n%q", documented, routes)
	}
}

func TestEveryOperationCanBeRefusedByTheGuard(t *testing.T) {
	for path, item := range loadDocument(t).Paths.Map() {
		for method, op := range item.Operations() {
			for _, status := range []int{403, 421} {
				if op.Responses.Status(status) == nil {
					t.Errorf("%s %s does not document %d", method, path, status)
				}
			}
		}
	}
}

func TestDocumentIsServed(t *testing.T) {
	s := newSite(t, api.Options{})
	a := s.call("GET", "/v1/openapi.yaml", "").want(200, nil)
	if ct := a.header.Get("Content-Type"); ct != "application/yaml" {
		t.Errorf("content type %q", ct)
	}
}

// TestTheDocumentBites: the check that every other test relies on refuses what
// the document does not say.
func TestTheDocumentBites(t *testing.T) {
	s := newSite(t, api.Options{})
	good := s.call("GET", "/healthz", "")
	for name, change := range map[string]func(*answer){
		"unknown field":     func(a *answer) { a.body = []byte(`{"status":"ok","mood":"fine"}`) },
		"missing field":     func(a *answer) { a.body = []byte(`{}`) },
		"wrong type":        func(a *answer) { a.body = []byte(`{"status":1}`) },
		"unknown value":     func(a *answer) { a.body = []byte(`{"status":"fine"}`) },
		"not JSON":          func(a *answer) { a.body = []byte(`ok`) },
		"undocumented code": func(a *answer) { a.status = 418 },
		"content type":      func(a *answer) { a.header.Set("Content-Type", "text/html") },
		"no request id":     func(a *answer) { a.header.Del("X-Request-Id") },
	} {
		bad := good
		bad.header = good.header.Clone()
		change(&bad)
		if s.documented(request("GET", "/healthz", ""), bad) == nil {
			t.Errorf("%s was let through", name)
		}
	}
}

// TestDocumentedFieldsExist: a field of the document is a field of a task.
func TestDocumentedFieldsExist(t *testing.T) {
	s := newSite(t, api.Options{})
	for field := range s.doc.Components.Schemas["Task"].Value.Properties {
		f := s.call("POST", "/v1/tasks", `{"`+field+`":null}`).fault(400)
		if f.Code == "unknown_field" || f.Code == "unsupported" {
			t.Errorf("%s: %+v", field, f)
		}
	}
}
