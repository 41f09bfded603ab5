package scada_test

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/apollo-11/apollo11/gateway/scada"
)

var update = flag.Bool("update", false, "rewrite testdata from what the code says")

// block is one case of a script: a name, the document, and what is said of it.
type block struct {
	name string
	doc  string
	want string
}

// readBlocks reads a script: blocks apart by a blank line, each "# name", lines
// of the document after "> ", then the expected lines.
func readBlocks(t testing.TB, path string) []block {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var blocks []block
	for chunk := range strings.SplitSeq(strings.TrimSpace(string(raw)), "\n\n") {
		var b block
		var doc, want []string
		for line := range strings.SplitSeq(chunk, "\n") {
			switch {
			case strings.HasPrefix(line, "# ") && b.name == "":
				b.name = line[2:]
			case strings.HasPrefix(line, "> "):
				doc = append(doc, line[2:])
			default:
				want = append(want, line)
			}
		}
		if b.name == "" || len(doc) == 0 {
			t.Fatalf("%s: block without a name or a document:\n%s", path, chunk)
		}
		b.doc, b.want = strings.Join(doc, "\n"), strings.Join(want, "\n")
		blocks = append(blocks, b)
	}
	return blocks
}

func writeBlocks(t testing.TB, path string, blocks []block) {
	t.Helper()
	var out strings.Builder
	for i, b := range blocks {
		if i > 0 {
			out.WriteByte('\n')
		}
		fmt.Fprintf(&out, "# %s\n> %s\n%s\n", b.name, strings.ReplaceAll(b.doc, "\n", "\n> "), b.want)
	}
	if err := os.WriteFile(path, []byte(out.String()), 0o644); err != nil {
		t.Fatal(err)
	}
}

// say lists all faults of an error, a line each.
func say(err error) string {
	var fault *scada.Error
	if !errors.As(err, &fault) {
		return fmt.Sprintf("not a *scada.Error: %v", err)
	}
	var lines []string
	for _, f := range append([]*scada.Error{fault}, fault.More...) {
		alone := *f
		alone.More = nil
		lines = append(lines, fmt.Sprintf("%s: %s", f.Code, alone.Error()))
	}
	return strings.Join(lines, "\n")
}

// Every case of testdata/refused.*.txt is refused with the words that stand there.
func TestRefusals(t *testing.T) {
	for _, c := range []struct {
		file   string
		format scada.Format
	}{
		{"refused.json.txt", scada.JSON},
		{"refused.yaml.txt", scada.YAML},
	} {
		path := filepath.Join("testdata", c.file)
		blocks := readBlocks(t, path)
		for i := range blocks {
			b := &blocks[i]
			t.Run(c.file+"/"+b.name, func(t *testing.T) {
				spec, warnings, err := scada.ParseTask([]byte(b.doc), c.format, scada.Options{Site: "default"})
				if err == nil {
					t.Fatalf("accepted as %+v", spec)
				}
				if len(warnings) != 0 || spec.Intent != "" {
					t.Errorf("a refused document gives %+v and warnings %v", spec, warnings)
				}
				got := say(err)
				if *update {
					b.want = got
				}
				if got != b.want {
					t.Errorf("got:\n%s\nwant:\n%s", got, b.want)
				}
			})
		}
		if *update {
			writeBlocks(t, path, blocks)
		}
	}
}

// Every fault says what, where and what to do.
func TestRefusalsAreComplete(t *testing.T) {
	for _, file := range []string{"refused.json.txt", "refused.yaml.txt"} {
		format := scada.JSON
		if strings.Contains(file, "yaml") {
			format = scada.YAML
		}
		for _, b := range readBlocks(t, filepath.Join("testdata", file)) {
			_, _, err := scada.ParseTask([]byte(b.doc), format, scada.Options{})
			var fault *scada.Error
			if !errors.As(err, &fault) {
				t.Errorf("%s: %v", b.name, err)
				continue
			}
			if fault.Code == "" || fault.Problem == "" || fault.Hint == "" || fault.Line == 0 {
				t.Errorf("%s: incomplete: %+v", b.name, fault)
			}
			if len(fault.More) > scada.MaxFaults-1 {
				t.Errorf("%s: %d faults", b.name, len(fault.More)+1)
			}
		}
	}
}
