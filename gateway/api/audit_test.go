package api_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/apollo-11/apollo11/gateway/api"
	"github.com/apollo-11/apollo11/gateway/api/apitest"
	"github.com/apollo-11/apollo11/gateway/engine"
)

// deeds does n things by hand.
func (s *site) deeds(n int) {
	s.t.Helper()
	for k := range n {
		s.call("PUT", "/v1/quiet", fmt.Sprintf(`{"reason":"<b>%d</b> \u2028 \"über\" \ud83d\ude00","for":"1h"}`, k)).want(200, nil)
	}
}

func verify(t *testing.T, text []byte) error {
	t.Helper()
	var trail engine.Trail
	for line := range bytes.Lines(text) {
		a, err := api.ParseAuditLine(bytes.TrimSuffix(line, []byte("\n")))
		if err != nil {
			return err
		}
		if err := trail.Check(a); err != nil {
			return err
		}
	}
	return nil
}

// TestB11_ExportCanBeVerified: what is exported holds, and nothing in it can be
// changed or taken out.
func TestB11_ExportCanBeVerified(t *testing.T) {
	s := newSite(t, api.Options{})
	if a := s.call("GET", "/v1/audit?format=jsonl", "").want(200, nil); len(a.body) != 0 {
		t.Errorf("an empty trail exports %s", a.body)
	}
	s.deeds(api.ExportPage + 3) // more than a page
	a := s.call("GET", "/v1/audit?format=jsonl", "").want(200, nil)
	if ct := a.header.Get("Content-Type"); ct != api.ContentTypeLines {
		t.Errorf("content type %q", ct)
	}
	if n := bytes.Count(a.body, []byte("\n")); n != api.ExportPage+3 {
		t.Fatalf("%d lines", n)
	}
	if err := verify(t, a.body); err != nil {
		t.Fatal(err)
	}
	if strings.ContainsAny(string(a.body), "<>&\u2028") {
		t.Error("markup is not escaped")
	}
	lines := strings.SplitAfter(string(a.body), "\n")
	edit := func(old, new string) string { return strings.Replace(lines[6], old, new, 1) }
	for name, bad := range map[string][]string{
		"taken out":               {lines[0], lines[2]},
		"first taken out":         {lines[1]},
		"twice":                   {lines[0], lines[0]},
		"exchanged":               {lines[1], lines[0]},
		"changed note":            append(lines[:6:6], edit("6\\u003c", "7\\u003c")),
		"changed actor":           append(lines[:6:6], edit("127.0.0.1", "127.0.0.2")),
		"changed path":            append(lines[:6:6], edit(`"http"`, `"mqtt"`)),
		"unknown path":            append(lines[:6:6], edit(`"http"`, `"fax"`)),
		"changed time":            append(lines[:6:6], edit("2025", "2024")),
		"another way of the time": append(lines[:6:6], edit(`Z"`, `+00:00"`)),
		"no time":                 append(lines[:6:6], edit("2025", "soon")),
		"changed number":          append(lines[:6:6], edit(`"number":7`, `"number":8`)),
		"another spelling":        append(lines[:6:6], edit(`"number":7`, `"number": 7`)),
		"a key twice":             append(lines[:6:6], edit(`"note":`, `"note":"harmless","note":`)),
		"another key":             append(lines[:6:6], edit(`"note":`, `"more":1,"note":`)),
		"key in capitals":         append(lines[:6:6], edit(`"note":`, `"Note":`)),
		"short hash":              append(lines[:6:6], edit(`"}`, `" }`)),
		"hash in capitals":        append(lines[:6:6], strings.ToUpper(lines[6])),
		"not JSON":                append(lines[:6:6], "x\n"),
		"empty line":              append(lines[:6:6], "\n"),
		"carriage return":         append(lines[:6:6], edit("\n", "\r\n")),
	} {
		if err := verify(t, []byte(strings.Join(bad, ""))); err == nil {
			t.Errorf("%s was not noticed", name)
		}
	}
	if err := verify(t, []byte(strings.Join(append(lines[:6:6], edit("6\\u003c", "7\\u003c")), ""))); !strings.Contains(err.Error(), "entry 7") {
		t.Errorf("the first bad entry is not named: %v", err)
	}
}

func TestAuditGoesPageByPage(t *testing.T) {
	s := newSite(t, api.Options{})
	s.deeds(5)
	var v struct {
		Entries []deed
		Next    uint64
	}
	s.call("GET", "/v1/audit?limit=3", "").want(200, &v)
	if len(v.Entries) != 3 || v.Entries[0].Number != 1 || v.Next != 3 {
		t.Errorf("%+v", v)
	}
	v.Entries = nil
	s.call("GET", "/v1/audit?limit=3&after=3", "").want(200, &v)
	if len(v.Entries) != 2 || v.Next != 0 {
		t.Errorf("%+v", v)
	}
}

// TestBrokenExportIsNoExport: a part is not taken for the whole.
func TestBrokenExportIsNoExport(t *testing.T) {
	s := newSite(t, api.Options{})
	s.deeds(api.ExportPage)
	srv := httptest.NewServer(api.New(s.g, torn{s.g}, api.Options{}))
	defer srv.Close()
	resp, err := http.Get(srv.URL + "/v1/audit?format=jsonl")
	if err != nil {
		t.Fatal(err)
	}
	_, err = io.ReadAll(resp.Body)
	if cerr := resp.Body.Close(); cerr != nil {
		t.Fatal(cerr)
	}
	if err == nil {
		t.Error("the answer ended as if it were complete")
	}
}

// torn is a log of which only the first page can be read.
type torn struct{ *apitest.Gateway }

func (g torn) Audit(ctx context.Context, after uint64, limit int) ([]engine.Audit, error) {
	if after != 0 {
		return nil, errors.New("checksum")
	}
	return g.Gateway.Audit(ctx, after, limit)
}
