package cli_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/apollo-11/apollo11/gateway/cli"
)

// TestM1_VisibleText: nothing that a terminal obeys comes out.
func TestM1_VisibleText(t *testing.T) {
	for in, want := range map[string]string{
		"":                 "",
		"GPIO17 ist hoch":  "GPIO17 ist hoch",
		"Pumpe läuft, 泵 ✓": "Pumpe läuft, 泵 ✓",
		"\x1b[2J":          `\x1b[2J`,
		"a\r\nb\tc":        `a\x0d\nb\tc`,
		"\u009b31m":        `\u009b31m`,
		"\u202edlrow":      `\u202edlrow`,
		"\u2066\u200b":     `\u2066\u200b`,
		"\u2028":           `\u2028`,
		"\xff\xfe":         `\xff\xfe`,
		"\x00\x7f":         `\x00\x7f`,
		"\ufffd":           "\ufffd",
	} {
		if got := cli.Visible(in); got != want {
			t.Errorf("%q became %q, want %q", in, got, want)
		}
	}
}

func FuzzVisible(f *testing.F) {
	f.Add("a\x1b[2J\u009b\xff\U000e0041")
	f.Fuzz(func(t *testing.T, s string) {
		got := cli.Visible(s)
		if !utf8.ValidString(got) || strings.ContainsFunc(got, func(r rune) bool { return !unicode.IsPrint(r) }) {
			t.Errorf("%q became %q", s, got)
		}
		if cli.Visible(got) != got {
			t.Errorf("%q is not stable", got)
		}
	})
}

// TestM1_JSONOutputMeansTheSame: what is escaped for the terminal is still the
// same document.
func TestM1_JSONOutputMeansTheSame(t *testing.T) {
	in := map[string]any{"a": "\u009b31m\u202e\x7f\U000e0041 läuft", "b": []any{1.5, nil, true}}
	raw, err := json.Marshal(in)
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := cli.PrintJSON(&b, raw); err != nil {
		t.Fatal(err)
	}
	for _, r := range b.String() {
		if r != '\n' && !unicode.IsPrint(r) {
			t.Errorf("%U came out", r)
		}
	}
	var out map[string]any
	if err := json.Unmarshal(b.Bytes(), &out); err != nil || out["a"] != in["a"] {
		t.Errorf("%v: %q", err, b.String())
	}
}

func TestColourOnlyOnATerminal(t *testing.T) {
	if got := cli.Coloured("FAILED", false); got != "FAILED" {
		t.Errorf("%q", got)
	}
	if got := cli.Coloured("FAILED", true); got != "\x1b[31mFAILED\x1b[0m" {
		t.Errorf("%q", got)
	}
	if got := cli.Coloured("\x1b[5m", true); strings.Contains(got, "\x1b") {
		t.Errorf("%q", got)
	}
}

func TestNearestName(t *testing.T) {
	for word, want := range map[string]string{
		"task sumbit": "task submit", "task lst": "task list", "timelin": "timeline", "nodes list": "node list",
		"deadletter list": "deadletters list", "xyzzy": "", "": "", strings.Repeat("a", 1000): "",
	} {
		if got := cli.Nearest(word, cli.Commands()); got != want {
			t.Errorf("%q: %q, want %q", word, got, want)
		}
	}
	if d := cli.Distance("kitten", "sitting"); d != 3 {
		t.Errorf("distance %d", d)
	}
}
