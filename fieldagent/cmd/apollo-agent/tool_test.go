package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/apollo-11/apollo11/fieldagent/gpio"
)

// benchFile writes a configuration with simulated pins and returns its path and
// those of its data directory and trace.
func benchFile(t *testing.T, pins string) (file, data, trace string) {
	t.Helper()
	dir := t.TempDir()
	file, data, trace = filepath.Join(dir, "agent.yaml"), filepath.Join(dir, "data"), filepath.Join(dir, "trace")
	text := fmt.Sprintf("gateway: tcp://127.0.0.1:1\nnode: n1\ngpio: sim\ndata: %s\ngpio_trace: %s\n%s", data, trace, pins)
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return file, data, trace
}

const benchPins = `pins:
  - {name: valve, line: GPIO17, direction: out, active_low: true, safe: 0, max_on: 10m}
  - {name: lamp, line: GPIO18, direction: out}
  - {name: pump, line: GPIO19, direction: out, safe: 1}
  - {name: float, line: GPIO22, direction: in}
`

func call(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	var out, errs bytes.Buffer
	code = Run(ctx, args, &out, &errs)
	return code, out.String(), errs.String()
}

func trace(t *testing.T, file string) string {
	t.Helper()
	acts, err := gpio.ReadTrace(file)
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for _, a := range acts {
		fmt.Fprintf(&b, "%s %s %s\n", a.Pin, a.Level, a.Cause)
	}
	return b.String()
}

func TestBenchCommands(t *testing.T) {
	for _, c := range []struct {
		name string
		args string
		code int
		out  string // part of standard output
		err  string // part of standard error
	}{
		{"list names the pin map", "gpio list", exitOK, "GPIO17  -     valve", ""},
		{"list for machines", "gpio list -o json", exitOK, `"line":"GPIO17","mapped":"valve"`, ""},
		{"get an input", "gpio get float", exitOK, "float is 0 (off)", ""},
		{"get for machines", "gpio get -o json float", exitOK, `"pin":"float","level":0`, ""},
		{"get by the line's name", "gpio get GPIO5", exitOK, "GPIO5 is 0", ""},
		{"set and fall back", "gpio set valve on --for 10ms", exitOK, "valve is safe again: 0 (off)", ""},
		{"set without a safe level", "gpio set --for 10ms lamp 1", exitOK, "lamp is let go as it is", ""},
		{"watch begins with the level", "gpio watch float --for 10ms", exitOK, "float is 0 (off)", ""},
		{"safe", "safe", exitOK, "2 of 3 outputs, 0 failed", ""},
		{"help", "gpio --help", exitOK, "apollo-agent gpio watch PIN", ""},
		{"help of safe", "safe --help", exitOK, "--config FILE", ""},
		{"no such pin", "gpio get tank", exitError, "", "the pin map has valve, lamp, pump, float"},
		{"a bare number", "gpio get 17", exitError, "", "a bare number"},
		{"set an input", "gpio set float 1", exitError, "", "float is an input"},
		{"watch an output", "gpio watch valve", exitError, "", "valve is an output"},
		{"no level", "gpio set valve maybe", exitUsage, "", `"maybe" is neither`},
		{"too few", "gpio set valve", exitUsage, "", "takes 2 arguments, got 1"},
		{"unknown", "gpio fly", exitUsage, "", "write list, get, set or watch"},
		{"unknown flag", "gpio list --fast", exitUsage, "", "fast"},
		{"unknown format", "gpio list -o xml", exitUsage, "", "write -o json"},
		{"safe takes no pin", "safe valve", exitUsage, "", "apollo-agent safe --config"},
	} {
		t.Run(c.name, func(t *testing.T) {
			file, _, _ := benchFile(t, benchPins)
			code, out, errs := call(t, append(strings.Fields(c.args), "--config", file)...)
			if code != c.code || !strings.Contains(out, c.out) || !strings.Contains(errs, c.err) {
				t.Errorf("exit %d, want %d\nstdout %s\nstderr %s", code, c.code, out, errs)
			}
			if c.code == exitUsage && !strings.Contains(errs, "--help") {
				t.Errorf("no way to the help: %s", errs)
			}
		})
	}
}

func TestBenchMovesWhatItSays(t *testing.T) {
	file, _, tr := benchFile(t, benchPins)
	if code, _, errs := call(t, "gpio", "set", "valve", "1", "--for", "1ms", "--config", file); code != exitOK {
		t.Fatal(errs)
	}
	if code, _, errs := call(t, "safe", "--config", file); code != exitOK {
		t.Fatal(errs)
	}
	want := "GPIO17 high bench\nGPIO17 low bench:safe\nGPIO17 low safe:tool\nGPIO19 high safe:tool\n"
	if got := trace(t, tr); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// A pin that can't be driven does not keep the others from their safe levels.
func TestSafeDrivesWhatItCan(t *testing.T) {
	file, _, tr := benchFile(t, `pins:
  - {name: gone, line: GPIO99, direction: out, safe: 0}
  - {name: pump, line: GPIO19, direction: out, safe: 1}
`)
	code, out, errs := call(t, "safe", "--config", file)
	if code != exitError || !strings.Contains(errs, "pin gone is not safe") || !strings.Contains(out, "1 of 2 outputs, 1 failed") {
		t.Errorf("exit %d\nstdout %s\nstderr %s", code, out, errs)
	}
	if got := trace(t, tr); got != "GPIO19 high safe:tool\n" {
		t.Errorf("moved\n%s", got)
	}
}

// While an agent has the pins nobody else moves them.
func TestBenchRefusesWhileAnAgentHasThePins(t *testing.T) {
	file, _, _ := benchFile(t, benchPins)
	ctx, cancel := context.WithCancel(t.Context())
	started := make(chan struct{})
	errs := &watcher{until: "agent started", found: func() { close(started) }}
	done := make(chan int, 1)
	go func() { done <- Run(ctx, []string{"--config", file}, &bytes.Buffer{}, errs) }()
	select {
	case <-started:
	case <-time.After(20 * time.Second):
		t.Fatal("the agent does not start")
	}
	for _, args := range [][]string{{"gpio", "set", "valve", "1", "--for", "1ms"}, {"gpio", "get", "valve"}, {"safe"}} {
		code, _, said := call(t, append(args, "--config", file)...)
		if code != exitError || !strings.Contains(said, "the agent has the pins") || !strings.Contains(said, fmt.Sprint(os.Getpid())) {
			t.Errorf("%v: exit %d, %s", args, code, said)
		}
	}
	if code, _, said := call(t, "gpio", "list", "--config", file); code != exitOK {
		t.Errorf("list: %s", said)
	}
	cancel()
	if code := <-done; code != exitOK {
		t.Errorf("the agent ended with %d", code)
	}
}

// A3: agent.yaml is being edited. What was in force is driven all the same, with what
// can be read; the rest is said, in text and exit code.
func TestA3_SafeWorksWhileTheFileIsEdited(t *testing.T) {
	const good = "pins:\n  - {name: valve-1, line: GPIO17, direction: out, safe: 0, max_on: 10m}\n"
	force := `{"version":1,"gpio":"sim","pins":[{"name":"valve-1","line":"GPIO17","safe":0},{"name":"horn","line":"GPIO5"}]}`
	for name, c := range map[string]struct {
		pins  string
		force string
		code  int
		moved string
		says  string
	}{
		"the good file alone":         {good, "", exitOK, "GPIO17 low", ""},
		"the good file":               {good, force, exitOK, "GPIO17 low", "horn has no safe level"},
		"a typo somewhere else":       {good + "log_leve: debug\n", force, exitLook, "GPIO17 low", "log_leve"},
		"the same, never started":     {good + "log_leve: debug\n", "", exitLook, "GPIO17 low", "log_leve"},
		"one bad pin":                 {good + "  - {name: lamp, line: GPIO27, direction: uot}\n", force, exitLook, "GPIO17 low", "uot"},
		"one bad pin, never started":  {good + "  - {name: lamp, line: GPIO27, direction: uot}\n", "", exitLook, "GPIO17 low", "uot"},
		"a bad time of the pin":       {strings.Replace(good, "10m", "10", 1), "", exitLook, "GPIO17 low", "max_on"},
		"a misspelt polarity":         {strings.Replace(good, "safe", "active_lwo: true, safe", 1), "", exitUsage, "", "active_lwo"},
		"the pin was taken out":       {"pins:\n  - {name: lamp, line: GPIO27, direction: out, safe: 0}\n", force, exitOK, "GPIO17 low GPIO27 low", ""},
		"another name, and at high":   {strings.NewReplacer("valve-1", "valve-2", "safe: 0", "safe: 1").Replace(good), force, exitOK, "GPIO17 low", ""},
		"its name on another line":    {strings.Replace(good, "GPIO17", "GPIO27", 1), force, exitOK, "GPIO17 low GPIO27 low", ""},
		"a typo, and no such line":    {strings.Replace(good, "GPIO17", "GPIO99", 1) + "log_leve: debug\n", force, exitError, "GPIO17 low", "GPIO99"},
		"of another back end":         {good, `{"version":1,"gpio":"chardev","pins":[{"name":"v","line":"GPIO22","safe":0}]}`, exitOK, "GPIO17 low", ""},
		"of a newer program":          {good, strings.Replace(force, `"version":1`, `"version":2`, 1), exitLook, "GPIO17 low", "version 2"},
		"of an older program":         {good, strings.Replace(force, `"version":1`, `"version":0`, 1), exitLook, "GPIO17 low", "version 0"},
		"more than a board has":       {good, `{"version":1,"gpio":"sim","pins":[` + strings.Repeat(`{"name":"v","line":"GPIO5"},`, 512) + `{"name":"v","line":"GPIO5"}]}`, exitLook, "GPIO17 low", "lists 513 pins"},
		"larger than it may be":       {good, `{"version":1,"gpio":"` + strings.Repeat("x", 1<<20) + `"}`, exitLook, "GPIO17 low", "more than"},
		"renamed, and at high":        {strings.Replace(good, "safe: 0", "safe: 1", 1), force, exitOK, "GPIO17 low", ""},
		"no YAML at all":              {good + "\t\t: [", force, exitLook, "GPIO17 low", "config"},
		"no YAML, never started":      {good + "\t\t: [", "", exitUsage, "", "config"},
		"the file in force is broken": {good, "{", exitLook, "GPIO17 low", "pins-in-force.json"},
		"a line that is not there":    {strings.Replace(good, "GPIO17", "GPIO99", 1), force, exitError, "GPIO17 low", "GPIO99"},
	} {
		t.Run(name, func(t *testing.T) {
			file, data, tr := benchFile(t, c.pins)
			if err := os.MkdirAll(data, 0o755); err != nil {
				t.Fatal(err)
			}
			if c.force != "" {
				if err := os.WriteFile(filepath.Join(data, "pins-in-force.json"), []byte(c.force), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			code, out, errs := call(t, "safe", "--config", file)
			moved := strings.ReplaceAll(strings.TrimSpace(strings.ReplaceAll(trace(t, tr), " safe:tool", "")), "\n", " ")
			if code != c.code || moved != c.moved || !strings.Contains(out+errs, c.says) {
				t.Errorf("exit %d, want %d; moved %q, want %q\nstdout %s\nstderr %s", code, c.code, moved, c.moved, out, errs)
			}
		})
	}
}

// A3: the file is not there, and systemd names the directory.
func TestA3_SafeFindsTheDirectoryWithoutAFile(t *testing.T) {
	data := t.TempDir()
	if err := os.WriteFile(filepath.Join(data, "pins-in-force.json"), []byte(`{"version":1,"gpio":"sim","pins":[{"name":"v","line":"GPIO17","safe":1}]}`), 0o644); err != nil {
		t.Fatal(err)
	}
	t.Setenv("STATE_DIRECTORY", data)
	code, out, errs := call(t, "safe", "--config", filepath.Join(data, "agent.yaml"))
	if levels, err := gpio.ReadLevels(filepath.Join(data, "gpio-levels.json")); code != exitLook || err != nil || levels["GPIO17"] != gpio.High {
		t.Errorf("exit %d, %v, %v\n%s%s", code, levels, err, out, errs)
	}
}

// An agent.yaml or a pin file that is empty, missing or unreadable is said with its
// name and what to do; what can be driven all the same is.
func TestSafeSaysWhatIsMissing(t *testing.T) {
	const inForce = `{"version":1,"gpio":"sim","pins":[{"name":"v","line":"GPIO17","safe":1}]}`
	for name, c := range map[string]struct {
		file  func(t *testing.T, file string)
		force string // content of the file in force, "-" for none
		code  int
		says  []string
	}{
		"empty, never started":      {write(""), "-", exitUsage, []string{"agent.yaml is empty", "nothing says what to drive", "--data"}},
		"comments, never started":   {write("# later\n"), "-", exitUsage, []string{"agent.yaml is empty", "nothing says what to drive", "--data"}},
		"empty":                     {write(""), inForce, exitLook, []string{"agent.yaml is empty"}},
		"missing, never started":    {func(*testing.T, string) {}, "-", exitUsage, []string{"agent.yaml: no such file", "nothing says what to drive", "--data"}},
		"missing":                   {func(*testing.T, string) {}, inForce, exitLook, []string{"agent.yaml: no such file"}},
		"unreadable, never started": {mkdir, "-", exitUsage, []string{"agent.yaml: is a directory", "nothing says what to drive", "--data"}},
		"unreadable":                {mkdir, inForce, exitLook, []string{"agent.yaml: is a directory"}},
		"an empty pin file":         {write(""), "", exitUsage, []string{"data/pins-in-force.json", "nothing says what to drive"}},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			file, data := filepath.Join(dir, "agent.yaml"), filepath.Join(dir, "data")
			mkdir(t, data)
			c.file(t, file)
			if c.force != "-" {
				write(c.force)(t, filepath.Join(data, "pins-in-force.json"))
			}
			t.Setenv("STATE_DIRECTORY", data)
			code, out, errs := call(t, "safe", "--config", file)
			levels, _ := gpio.ReadLevels(filepath.Join(data, "gpio-levels.json"))
			if code != c.code || (levels["GPIO17"] == gpio.High) != (c.code == exitLook) {
				t.Errorf("exit %d, want %d; levels %v", code, c.code, levels)
			}
			for _, s := range c.says {
				if strings.Count(errs, s) != 1 {
					t.Errorf("not said once: %s\nstdout %s\nstderr %s", s, out, errs)
				}
			}
		})
	}
}

func write(text string) func(*testing.T, string) {
	return func(t *testing.T, file string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func mkdir(t *testing.T, dir string) {
	t.Helper()
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
}

// A3: what the command line says of the data directory counts before the file.
func TestA3_SafeTakesTheDirectoryThatItIsGiven(t *testing.T) {
	file, _, tr := benchFile(t, "pins:\n  - {name: lamp, line: GPIO27, direction: out, safe: 0}\n")
	data := t.TempDir()
	if err := os.WriteFile(filepath.Join(data, "pins-in-force.json"), []byte(`{"version":1,"gpio":"sim","pins":[{"name":"v","line":"GPIO17","safe":0}]}`), 0o644); err != nil {
		t.Fatal(err)
	}
	if code, out, errs := call(t, "safe", "--config", file, "--data", data); code != exitOK || !strings.Contains(trace(t, tr), "GPIO17 low") {
		t.Errorf("exit %d\n%s%s", code, out, errs)
	}
}
