package repo_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/apollo-11/apollo11/wire"
)

// rows returns the names in the first column of the table that follows a line
// which begins like this.
func rows(t *testing.T, doc, before string) []string {
	t.Helper()
	_, rest, ok := strings.Cut(doc, "\n"+before)
	if !ok {
		t.Fatalf("docs/operations.md has no line that begins with %q", before)
	}
	var names []string
	for _, line := range strings.Split(rest, "\n") {
		name, isRow := strings.CutPrefix(line, "| `")
		if !isRow {
			if len(names) > 0 && !strings.HasPrefix(line, "|") {
				break
			}
			continue
		}
		name, _, _ = strings.Cut(name, "`")
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// inSource returns what a pattern's group matches in source files.
func inSource(t *testing.T, glob, pattern string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(root, glob))
	if err != nil {
		t.Fatal(err)
	}
	re := regexp.MustCompile(pattern)
	var names []string
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range re.FindAllStringSubmatch(string(b), -1) {
			names = append(names, m[1])
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// TestOperationsSaysWhatTheCodeDoes holds the tables of docs/operations.md
// against the code: nothing is missing, and nothing is made up.
func TestOperationsSaysWhatTheCodeDoes(t *testing.T) {
	b, err := os.ReadFile(filepath.Join(root, "docs", "operations.md"))
	if err != nil {
		t.Fatal(err)
	}
	doc := string(b)
	var codes []string
	for c := range 256 {
		if wire.Code(c).Final() {
			codes = append(codes, wire.Code(c).String())
		}
	}
	slices.Sort(codes)
	for _, c := range []struct {
		table string
		want  []string
	}{
		{"`/metrics` is for Prometheus", inSource(t, "gateway/*.go", `"(apollo_[a-z_]+)"`)},
		{"**Alarms**", inSource(t, "gateway/engine/*.go", `(?:e\.(?:alarm|incident|condition)\(now, |alarm[A-Z][A-Za-z]+ += )"([a-z_]+)"`)},
		{"**Reasons**", inSource(t, "gateway/engine/*.go", `\tReason[A-Z][a-z]+ += "([a-z_]+)"`)},
		{"**Result codes**", codes},
		{"**Exit codes**", []string{"apollo", "apollo-agent", "apollo-gateway"}},
	} {
		if got := rows(t, doc, c.table); !slices.Equal(got, c.want) || len(got) == 0 {
			t.Errorf("the table under %q has\n%v, the code has\n%v", c.table, got, c.want)
		}
	}
	for _, step := range inSource(t, "gateway/metrics.go", `\{"([a-z_]+)", c\.[A-Z]`) {
		if !strings.Contains(doc, "`"+step+"`") {
			t.Errorf("the step %s of apollo_engine_total is not explained", step)
		}
	}
}

// TestLinksOfDocuments holds that what a document links to is there.
func TestLinksOfDocuments(t *testing.T) {
	link := regexp.MustCompile(`\]\(([^)#]+)[^)]*\)`)
	for _, name := range tracked(t) {
		if !strings.HasSuffix(name, ".md") {
			continue
		}
		b, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range link.FindAllStringSubmatch(string(b), -1) {
			if strings.Contains(m[1], "://") {
				continue
			}
			if _, err := os.Stat(filepath.Join(root, filepath.Dir(name), m[1])); err != nil {
				t.Errorf("%s links to %s, which is not there", name, m[1])
			}
		}
	}
}
