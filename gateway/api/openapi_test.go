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
