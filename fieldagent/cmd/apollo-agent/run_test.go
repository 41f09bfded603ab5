package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// run runs the program with a context that ends when it has logged what until
// says, or after a while.
func run(t *testing.T, until string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	var out bytes.Buffer
	errs := &watcher{until: until, found: cancel}
	code = Run(ctx, args, &out, errs)
	return code, out.String(), errs.String()
}

type watcher struct {
	bytes.Buffer
	until string
	found func()
}

func (w *watcher) Write(p []byte) (int, error) {
	if w.until != "" && bytes.Contains(p, []byte(w.until)) {
		w.found()
	}
	return w.Buffer.Write(p)
}

// needed is a command line without fault; nobody listens at the address.
func needed(t *testing.T) []string {
	t.Helper()
	return []string{"--gateway", "tcp://127.0.0.1:1", "--node", "pump-1", "--gpio", "sim", "--data", filepath.Join(t.TempDir(), "data")}
}

func TestHelpAndVersion(t *testing.T) {
	for _, flag := range []string{"--help", "-h"} {
		code, out, _ := run(t, "", flag)
		if code != 0 || !strings.Contains(out, "--gpio sim|periph") || !strings.Contains(out, "Examples") {
			t.Errorf("%s: %d %s", flag, code, out)
		}
	}
	code, out, _ := run(t, "", "--version")
	if code != 0 || !strings.HasPrefix(out, "apollo-agent ") {
		t.Errorf("--version: %d %s", code, out)
	}
}

func TestEveryFlagIsInTheHelp(t *testing.T) {
	_, out, _ := run(t, "", "--help")
	for _, name := range []string{"gateway", "narrowband", "node", "site", "label", "gpio", "gpio-trace", "data", "username", "password-file",
		"narrowband-username", "narrowband-password-file", "workers", "config", "log-level", "log-format", "version", "help"} {
		if !strings.Contains(out, "--"+name) {
			t.Errorf("--%s is not explained", name)
		}
	}
}

func TestFaultsAreNamedWithWhatToWrite(t *testing.T) {
	cases := map[string]struct {
		args []string
		want []string
	}{
		"nothing":       {nil, []string{"--gateway tcp://", "--node pump-1", "--gpio sim", "--data /var"}},
		"unknown flag":  {[]string{"--gatway", "x"}, []string{"gatway", "--help"}},
		"argument":      {[]string{"start"}, []string{`"start"`, "flag"}},
		"address":       {[]string{"--gateway", "10.0.0.5:1883"}, []string{"gateway", "tcp://10.0.0.5:1883"}},
		"node":          {[]string{"--node", "pump 1"}, []string{`"pump 1"`, "allowed"}},
		"pins":          {[]string{"--gpio", "simulated"}, []string{"sim or periph"}},
		"label":         {[]string{"--label", "role"}, []string{"KEY=VALUE"}},
		"trace":         {[]string{"--gpio", "periph", "--gpio-trace", "f"}, []string{"only simulated pins"}},
		"workers":       {[]string{"--workers", "0"}, []string{"1 to"}},
		"workers word":  {[]string{"--workers", "many"}, []string{"many"}},
		"log":           {[]string{"--log-level", "loud", "--log-format", "xml"}, []string{"debug, info", "text, json"}},
		"password":      {[]string{"--username", "u"}, []string{"belong together"}},
		"missing file":  {[]string{"--config", "/does/not/exist.yaml"}, []string{"/does/not/exist.yaml"}},
		"secret in URL": {[]string{"--gateway", "tcp://u:secret@h:1"}, []string{"credentials do not belong"}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			code, out, errs := run(t, "", c.args...)
			if code != 2 || out != "" {
				t.Errorf("exit %d, printed %q", code, out)
			}
			for _, w := range c.want {
				if !strings.Contains(errs, w) {
					t.Errorf("does not say %q:\n%s", w, errs)
				}
			}
			if strings.Contains(errs, "secret") {
				t.Errorf("tells the secret:\n%s", errs)
			}
		})
	}
}

func TestRunsUntilItIsStopped(t *testing.T) {
	code, _, errs := run(t, "agent started", append(needed(t), "--log-format", "json", "--label", "role=worker")...)
	if code != 0 || !strings.Contains(errs, `"node":"pump-1"`) || !strings.Contains(errs, "agent stopped") {
		t.Errorf("exit %d:\n%s", code, errs)
	}
}

func TestFailureToStartIsOne(t *testing.T) {
	args := append(needed(t), "--username", "u", "--password-file", "/does/not/exist")
	code, _, errs := run(t, "", args...)
	if code != 1 || !strings.Contains(errs, "/does/not/exist") {
		t.Errorf("exit %d:\n%s", code, errs)
	}
}

func TestConfigFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "agent.yaml")
	write := func(s string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(s), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("gateway: tcp://127.0.0.1:1\nnode: from-file\ngpio: sim\nlabels: {role: worker, floor: 2}\nworkers: 3\ndata: " + t.TempDir() + "\n")
	code, _, errs := run(t, "agent started", "--config", file)
	if code != 0 || !strings.Contains(errs, "node=from-file") || !strings.Contains(errs, "workers=3") {
		t.Errorf("exit %d:\n%s", code, errs)
	}
	// Flags win, wherever they stand.
	code, _, errs = run(t, "agent started", "--node", "from-flag", "--config", file)
	if code != 0 || !strings.Contains(errs, "node=from-flag") {
		t.Errorf("exit %d:\n%s", code, errs)
	}
	write("gateway: tcp://127.0.0.1:1\n\nnod: pump-1\nworkers: many\nnode: [a]\ngpio: sim\ngpio: sim\n")
	code, _, errs = run(t, "", "--config", file)
	for _, want := range []string{`line 3, column 1: unknown setting "nod"`, "line 4, column 1: workers is a whole number", "line 5, column 1: node is a text", "line 7, column 1: gpio is set twice"} {
		if code != 2 || !strings.Contains(errs, want) {
			t.Errorf("exit %d, does not say %q:\n%s", code, want, errs)
		}
	}
	for _, bad := range []string{"just text", "- a\n- b\n", "a: [", "gateway: \x00"} {
		write(bad)
		if code, _, errs = run(t, "", "--config", file); code != 2 {
			t.Errorf("%q: exit %d:\n%s", bad, code, errs)
		}
	}
}
