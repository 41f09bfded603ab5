package e2e

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// tool runs the operator's tool with something on its standard input, and
// returns both of its outputs and its exit code.
func (s *site) tool(stdin string, args ...string) (stdout, stderr string, code int) {
	s.t.Helper()
	cmd := exec.Command(filepath.Join(binDir, "apollo"), args...)
	cmd.Env = append(os.Environ(), "APOLLO_GATEWAY=http://"+s.http)
	cmd.Stdin = strings.NewReader(stdin)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	if cmd.ProcessState == nil {
		s.t.Fatalf("apollo %v: %v", args, err)
	}
	return out.String(), errs.String(), cmd.ProcessState.ExitCode()
}

// The table of bad documents at the command line: exit code 1, nothing on
// stdout, and on stderr the place, the problem and what to do.
func TestA18_BadDocumentsOnTheCommandLine(t *testing.T) {
	d := newDoors(t)
	for _, b := range badDocuments(queuedID) {
		t.Run(b.name, func(t *testing.T) {
			stdout, stderr, code := d.tool(b.doc, "task", "submit", "--file", "-")
			if code != 1 || stdout != "" {
				t.Fatalf("exit code %d, stdout %q, stderr %q, want 1 and nothing on stdout", code, stdout, stderr)
			}
			for _, want := range []string{"apollo: ", b.field, b.says} {
				if !strings.Contains(stderr, want) {
					t.Errorf("%q does not say %q", stderr, want)
				}
			}
			if b.at != "" {
				b.line, b.column = 1, 1+strings.Index(b.doc, b.at)
			}
			place := fmt.Sprintf("standard input:%d:", b.line)
			if b.column != 0 {
				place += fmt.Sprintf("%d:", b.column)
			}
			if b.line != 0 && !strings.Contains(stderr, place) {
				t.Errorf("%q does not say %q", stderr, place)
			}
			if n := strings.Count(stderr, "\n"); n < 2 || n > 40 || len(stderr) > 4000 {
				t.Errorf("%d lines of %d bytes are no answer for people: %q", n, len(stderr), stderr)
			}
		})
	}
	d.unharmed()
	d.works()
}

// A wrong command line is exit code 2, and nothing is sent.
func TestBadCommandLines(t *testing.T) {
	d := newDoors(t)
	for _, c := range []struct {
		args string
		code int
		says string
	}{
		{"", 2, "task submit"},
		{"task", 2, "task submit"},
		{"task sumbit", 2, "did you mean apollo task submit?"},
		{"frobnicate", 2, "apollo help"},
		{"task submit", 2, "--file"},
		{"task submit --fiel x", 2, "did you mean --file?"},
		{"task submit --intent gpio.write", 2, "--node"},
		{"task submit --intent gpio.write --node a --label role=b", 2, "exclude"},
		{"task submit --intent gpio.write --node a --arg pin", 2, "KEY=VALUE"},
		{"task submit --file - --node a", 2, "--task-id"},
		{"task submit --intent collect_metrics --node a --timeout 1s", 2, "--wait"},
		{"task submit --file /does/not/exist", 1, "no file"},
		{"task submit --file /", 1, "directory"},
		{"task submit --intent gpio.write --node pump-1 --arg pin=GPIO17 --arg level=2", 1, "level"},
		{"task submit --intent collect_metrics --node pump-1 --ttl -5s", 1, "ttl"},
		{"task status", 2, "ID"},
		{"task status a b", 2, "too many"},
		{"task status nobody", 1, "not known"},
		{"task status a/b", 1, "'/'"},
		{"task cancel nobody", 1, "not known"},
		{"timeline nobody", 1, "no task and no instruction"},
		{"task list -o xml", 2, "-o text or -o json"},
		{"task list --gateway tcp://127.0.0.1:1883", 2, "not of MQTT"},
		{"task list --gateway http://127.0.0.1:1", 1, "nothing listens"},
	} {
		t.Run(c.args, func(t *testing.T) {
			stdout, stderr, code := d.tool("", strings.Fields(c.args)...)
			if code != c.code || stdout != "" || !strings.Contains(stderr, c.says) {
				t.Errorf("exit code %d, stdout %q, stderr %q; want %d and %q", code, stdout, stderr, c.code, c.says)
			}
		})
	}
	d.unharmed()
}
