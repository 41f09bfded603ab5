package cli_test

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/apollo-11/apollo11/gateway/api"
	"github.com/apollo-11/apollo11/gateway/cli"
)

// TestB11_ChangedTrailIsNoticed: each line of an export counts.
func TestB11_ChangedTrailIsNoticed(t *testing.T) {
	s := newServer()
	defer s.http.Close()
	for k := range 5 {
		if code, _, errs := tool(t, s, "", "quiet", "on", "--reason", fmt.Sprintf("reason %d", k), "--for", "1h"); code != 0 {
			t.Fatal(errs)
		}
	}
	_, whole, _ := tool(t, s, "", "audit", "export")
	lines := strings.SplitAfter(whole, "\n")
	join := func(parts ...string) string { return strings.Join(parts, "") }
	for name, tc := range map[string]struct{ text, want string }{
		"whole":      {whole, ""},
		"begun":      {join(lines[:3]...), ""}, // nobody can tell without an anchor
		"no last LF": {strings.TrimSuffix(whole, "\n"), ""},
		"reworded":   {strings.Replace(whole, "reason 2", "reason 9", 1), "line 3: audit entry 3 was changed"},
		"taken out":  {join(lines[0], lines[1], lines[3]), "line 3: audit entry 4 follows entry 2: entries are missing"},
		"beheaded":   {join(lines[1:]...), "line 1: audit entry 2 follows entry 0"},
		"twice":      {join(lines[0], lines[0]), "line 2: audit entry 1 follows entry 1"},
		"laid out":   {strings.Replace(whole, `"number":2,`, `"number": 2,`, 1), "line 2: audit entry 2 is not written as a gateway writes it"},
		"CRLF":       {strings.ReplaceAll(whole, "\n", "\r\n"), "line 1: audit entry 1 is not written as a gateway writes it"},
		"torn":       {whole[:len(whole)-20], "line 5: not an audit entry"},
		"escape":     {"\x1b[2J\n", `line 1: not an audit entry`},
		"endless":    {strings.Repeat("x", 1<<20), "line 1: a line is longer than"},
	} {
		file := filepath.Join(t.TempDir(), "trail.jsonl")
		if err := os.WriteFile(file, []byte(tc.text), 0o600); err != nil {
			t.Fatal(err)
		}
		code, out, errs := tool(t, s, "", "audit", "verify", "--file", file)
		if tc.want == "" && (code != 0 || !strings.Contains(out, "the audit trail holds")) {
			t.Errorf("%s: exit code %d, stdout %q, stderr %q", name, code, out, errs)
		}
		if tc.want != "" && (code != 1 || out != "" || !strings.Contains(errs, tc.want) || strings.Contains(errs, "\x1b")) {
			t.Errorf("%s: exit code %d, stdout %q, stderr %q", name, code, out, errs)
		}
	}
}

// TestBrokenExportLeavesNoFile: and none that was there before is harmed.
func TestBrokenExportLeavesNoFile(t *testing.T) {
	const begun = `{"number":1}`
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", api.ContentTypeLines)
		_, _ = fmt.Fprintln(w, begun)
		_ = http.NewResponseController(w).Flush() // the client's error is the test's concern
		panic(http.ErrAbortHandler)
	}))
	defer srv.Close()
	dir := t.TempDir()
	file := filepath.Join(dir, "trail.jsonl")
	if err := os.WriteFile(file, []byte("of yesterday\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	var out, errs bytes.Buffer
	env := func(name string) string { return map[string]string{"APOLLO_GATEWAY": srv.URL}[name] }
	code := cli.Main(context.Background(), "v", []string{"audit", "export", "--file", file}, strings.NewReader(""), &out, &errs, env)
	if code != 1 || !strings.Contains(errs.String(), "broke off") {
		t.Errorf("exit code %d, stderr %q", code, errs.String())
	}
	old, err := os.ReadFile(file)
	if left, _ := os.ReadDir(dir); err != nil || string(old) != "of yesterday\n" || len(left) != 1 {
		t.Errorf("%v %q %v", err, old, left)
	}
}

// TestSilentGatewayEndsAnExport: within the wait for one answer.
func TestSilentGatewayEndsAnExport(t *testing.T) {
	free := make(chan struct{})
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", api.ContentTypeLines)
		w.WriteHeader(http.StatusOK)
		_ = http.NewResponseController(w).Flush() // the client's error is the test's concern
		<-free
	}))
	defer srv.Close()
	defer close(free)
	var out, errs bytes.Buffer
	code := cli.Main(context.Background(), "v", []string{"audit", "verify", "--gateway", srv.URL, "--request-timeout", "50ms"},
		strings.NewReader(""), &out, &errs, func(string) string { return "" })
	if code != 1 || !strings.Contains(errs.String(), "sent nothing for 50ms") {
		t.Errorf("exit code %d, stderr %q", code, errs.String())
	}
}

// TestActorIsTakenByTheGateway: whoever runs this test has a name that is.
func TestActorIsTakenByTheGateway(t *testing.T) {
	s := newServer()
	defer s.http.Close()
	if code, _, errs := tool(t, s, "", "quiet", "on", "--reason", "x", "--for", "1h"); code != 0 {
		t.Errorf("exit code %d, stderr %q", code, errs)
	}
	for in, want := range map[string]string{"olga": "olga", "Ölga Ä": "-lga--", "": "", strings.Repeat("o", 50): strings.Repeat("o", 24)} {
		if got := cli.Word(in, 24); got != want {
			t.Errorf("%q became %q", in, got)
		}
	}
}
