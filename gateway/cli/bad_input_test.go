package cli_test

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/apollo-11/apollo11/gateway/cli"
)

// tool runs the tool in this process.
func tool(t *testing.T, s *server, stdin string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	env := func(name string) string {
		if name == "APOLLO_GATEWAY" {
			return s.http.URL
		}
		return ""
	}
	code = cli.Main(context.Background(), "v1.2.3", args, strings.NewReader(stdin), &out, &errs, env)
	return code, out.String(), errs.String()
}

// TestBadInput: each kind of bad input is refused with what, where and what to
// do, as a file and over standard input; nothing is queued.
func TestBadInput(t *testing.T) {
	good := `{"task_id":"x","intent":"gpio.write","node":"pump-1","args":{"pin":"GPIO17","level":1}}`
	with := func(old, new string) string { return strings.Replace(good, old, new, 1) }
	for name, tc := range map[string]struct{ doc, want string }{
		"A6 empty":                 {"", "the document is empty"},
		"white space":              {" \r\n\t", "the document is empty"},
		"broken JSON":              {`{"intent":`, ""},
		"trailing comma":           {with(`"pump-1",`, `"pump-1",,`), ":1:54:"},
		"A17 object text":          {"[object Object]", ""},
		"array":                    {"[1,2]", ""},
		"trailing garbage":         {good + "x", ""},
		"two documents":            {good + good, ""},
		"binary":                   {"\x00\x01\x02", "byte 0x00"},
		"A15 UTF-16":               {"\xff\xfe{\x00", "UTF-16"},
		"A15 length bytes":         {"\x00\x55" + good, "byte 0x00"},
		"invalid UTF-8":            {with("pump-1", "pump\xff"), "byte 0xff"},
		"control character":        {with("pump-1", "pump\x1b[2J"), "byte 0x1b"},
		"unknown field":            {with(`"intent"`, `"ttll":"3s","intent"`), "ttl"},
		"duplicate key":            {with(`"intent"`, `"intent":"gpio.read","intent"`), "intent"},
		"missing intent":           {with(`"intent":"gpio.write",`, ""), "intent"},
		"missing node":             {with(`"node":"pump-1",`, ""), ""},
		"wrong type of node":       {with(`"pump-1"`, "7"), "node"},
		"wrong type of args":       {with(`{"pin":"GPIO17","level":1}`, `"x"`), "args"},
		"null":                     {with(`"pump-1"`, "null"), "node"},
		"A3 number as text":        {with(`"intent"`, `"timeout":"30","intent"`), "timeout"},
		"negative ttl":             {with(`"intent"`, `"ttl":"-5s","intent"`), "ttl"},
		"zero ttl":                 {with(`"intent"`, `"ttl":0,"intent"`), "ttl"},
		"A11 NaN":                  {with(`"level":1`, `"level":NaN`), ""},
		"A11 huge number":          {with(`"level":1`, `"level":1e999`), "level"},
		"64-bit integer":           {with(`"level":1`, `"level":9223372036854775808`), "level"},
		"A12 seconds as not_after": {with(`"intent"`, `"not_after":1712345678,"intent"`), "not_after"},
		"no zone":                  {with(`"intent"`, `"not_after":"2030-01-01T00:00:00","intent"`), "not_after"},
		"ttl and not_after":        {with(`"intent"`, `"ttl":"3s","not_after":"2030-01-01T00:00:00Z","intent"`), ""},
		"bad pin":                  {with("GPIO17", "GPIO/17"), "pin"},
		"bad level":                {with(`"level":1`, `"level":2`), "level"},
		"bad task id":              {with(`"x"`, `"x/#"`), "task_id"},
		"bad node name":            {with("pump-1", "pump/+"), "node"},
		"deep nesting":             {strings.Repeat("[", 10_000), ""},
		"deep arguments":           {with(`"pin":"GPIO17"`, `"pin":`+strings.Repeat("[", 40)+strings.Repeat("]", 40)), ""},
		"unsupported":              {with(`"intent"`, `"depends_on":["a"],"intent"`), "depends_on"},
		"1 MiB":                    {with("GPIO17", strings.Repeat("a", 1<<20)), "larger than 65536 bytes"},
		"YAML alias":               {"a: &x 1\nb: *x\n", ""},
		"YAML tag":                 {"intent: !!binary aGk=\nnode: n\n", ""},
		"unknown label":            {"intent: collect_metrics\ntarget_selector: {type: label, key: role, value: nobody}\n", "no node has the label"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newServer()
			defer s.http.Close()
			file := filepath.Join(t.TempDir(), "task")
			if err := os.WriteFile(file, []byte(tc.doc), 0o600); err != nil {
				t.Fatal(err)
			}
			for _, args := range [][]string{{file}, {"-"}} {
				code, out, errs := tool(t, s, tc.doc, append([]string{"task", "submit", "--file"}, args...)...)
				if code != 1 || out != "" || !strings.HasPrefix(errs, "apollo: ") || !strings.Contains(errs, tc.want) {
					t.Errorf("%v: exit code %d, stdout %q, stderr %q, want %q", args, code, out, errs, tc.want)
				}
			}
			if code, out, _ := tool(t, s, "", "task", "list"); code != 0 || out != "" {
				t.Errorf("something was queued: %s", out)
			}
		})
	}
}

// TestFlagsObeyTheSameRules: a task made of flags is refused like a document.
func TestFlagsObeyTheSameRules(t *testing.T) {
	base := []string{"task", "submit", "--intent", "gpio.write", "--node", "pump-1", "--arg", "pin=GPIO17"}
	for name, tc := range map[string]struct {
		args []string
		code int
		want string
	}{
		"bad pin":           {[]string{"--arg", "level=1", "--node", "a/b"}, 1, "nodes"},
		"NaN":               {[]string{"--arg", "level=NaN"}, 1, "level"},
		"huge":              {[]string{"--arg", "level=1e999"}, 1, "level"},
		"64 bits":           {[]string{"--arg", "level=9223372036854775808"}, 1, "level"},
		"unknown argument":  {[]string{"--arg", "level=1", "--arg", "lvl=1"}, 1, "lvl"},
		"negative ttl":      {[]string{"--arg", "level=1", "--ttl", "-5s"}, 1, "ttl"},
		"ttl without unit":  {[]string{"--arg", "level=1", "--ttl", "30"}, 1, "ttl"},
		"bad priority":      {[]string{"--arg", "level=1", "--priority", "urgent"}, 1, "priority"},
		"invalid UTF-8":     {[]string{"--arg", "level=\xff"}, 2, `\xff`},
		"invalid UTF-8 ttl": {[]string{"--ttl", "\xff"}, 2, `\xff`},
		"same node twice":   {[]string{"--arg", "level=1", "--node", "pump-1"}, 1, "pump-1"},
		"escape in a value": {[]string{"--arg", "level=\x1b[31m"}, 1, `level`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newServer()
			defer s.http.Close()
			code, out, errs := tool(t, s, "", append(base[:len(base):len(base)], tc.args...)...)
			if code != tc.code || out != "" || !strings.Contains(errs, tc.want) || strings.Contains(errs, "\x1b") {
				t.Errorf("exit code %d, stdout %q, stderr %q, want %q", code, out, errs, tc.want)
			}
		})
	}
}

// TestGoodInput: what people type and tools write is taken.
func TestGoodInput(t *testing.T) {
	for name, doc := range map[string]string{
		"A7 CRLF":  "{\"task_id\":\"x\",\r\n\"intent\":\"gpio.read\",\"node\":\"n\",\"args\":{\"pin\":\"GPIO17\"}}\r\n",
		"A15 BOM":  "\ufeff{\"task_id\":\"x\",\"intent\":\"gpio.read\",\"node\":\"n\",\"args\":{\"pin\":\"GPIO17\"}}",
		"YAML":     "task_id: x\nintent: gpio.read\nnode: n\nargs: {pin: GPIO17}\n",
		"A1 zero":  `{"task_id":"x","intent":"gpio.write","node":"n","args":{"pin":"GPIO17","level":0}}`,
		"A1 false": `{"task_id":"x","intent":"gpio.write","node":"n","args":{"pin":"GPIO17","level":false}}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newServer()
			defer s.http.Close()
			if code, out, errs := tool(t, s, doc, "task", "submit", "--file", "-"); code != 0 {
				t.Errorf("exit code %d, stdout %q, stderr %q", code, out, errs)
			}
		})
	}
}

// TestFaultIsShownInItsLine: a person sees where to look.
func TestFaultIsShownInItsLine(t *testing.T) {
	s := newServer()
	defer s.http.Close()
	file := filepath.Join(t.TempDir(), "pump.yaml")
	if err := os.WriteFile(file, []byte("intent: gpio.read\nnode: n\nprioritty: high\nargs: {pin: GPIO17}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, _, errs := tool(t, s, "", "task", "submit", "--file", file)
	if !strings.Contains(errs, "pump.yaml:3:1: prioritty") || !strings.Contains(errs, "      3 | prioritty: high\n          ^\n") {
		t.Errorf("stderr:\n%s", errs)
	}
}

// TestInterruptedReadEnds: Ctrl-C at a keyboard ends the tool.
func TestInterruptedReadEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _, _ = read.Close(), write.Close() }()
	var out, errs bytes.Buffer
	code := cli.Main(ctx, "v", []string{"task", "submit", "--file", "-"}, read, &out, &errs, func(string) string { return "" })
	if code != 1 || !strings.Contains(errs.String(), "interrupted") {
		t.Errorf("exit code %d, stderr %q", code, errs.String())
	}
}
