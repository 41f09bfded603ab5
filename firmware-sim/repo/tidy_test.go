package repo_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// tracked lists the files that git knows, or those of the tree where there is
// no git (a source archive).
func tracked(t *testing.T) []string {
	t.Helper()
	cmd := exec.Command("git", "ls-files", "--cached", "--others", "--exclude-standard")
	cmd.Dir = root
	out, err := cmd.Output()
	if err != nil {
		t.Skipf("not a git checkout, so there is no list of files: %v", err)
	}
	var list []string
	for line := range strings.Lines(string(out)) {
		name := strings.TrimSpace(line)
		if _, err := os.Stat(filepath.Join(root, name)); err == nil {
			list = append(list, name)
		}
	}
	return list
}

// TestTopLevel holds what may lie at the top of the repository.
func TestTopLevel(t *testing.T) {
	allowed := []string{"gateway", "fieldagent", "broker", "wire", "storage", "firmware-sim", "deploy", "docs",
		"go.mod", "go.sum", "Makefile", "README.md", "LICENSE"}
	for _, name := range tracked(t) {
		first, _, _ := strings.Cut(name, "/")
		if !strings.HasPrefix(first, ".") && !slices.Contains(allowed, first) {
			t.Errorf("%s does not belong at the top level", first)
		}
	}
}

// TestFilesStayReadable bounds the length of a source file: one idea a file.
func TestFilesStayReadable(t *testing.T) {
	const most = 500
	for _, name := range tracked(t) {
		if !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			continue
		}
		b, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			t.Fatal(err)
		}
		if n := bytes.Count(b, []byte("\n")); n > most {
			t.Errorf("%s has %d lines, the limit is %d: split it by idea", name, n, most)
		}
	}
}

// TestNoMachinePaths refuses paths that exist on one machine only.
func TestNoMachinePaths(t *testing.T) {
	path := regexp.MustCompile(`(^|[^A-Za-z0-9._/-])/(home|root|work|Users)/[A-Za-z0-9]`)
	for _, name := range tracked(t) {
		b, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(name, "tidy_test.go") || bytes.IndexByte(b, 0) >= 0 {
			continue
		}
		for k, line := range strings.Split(string(b), "\n") {
			if path.MatchString(line) {
				t.Errorf("%s:%d: %s", name, k+1, strings.TrimSpace(line))
			}
		}
	}
}

// TestEveryDependencyHasItsReason holds go.mod against docs/decisions.md.
func TestEveryDependencyHasItsReason(t *testing.T) {
	mod, err := os.ReadFile(filepath.Join(root, "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	why, err := os.ReadFile(filepath.Join(root, "docs", "decisions.md"))
	if err != nil {
		t.Fatal(err)
	}
	req := regexp.MustCompile(`(?m)^\t([a-z0-9.-]+\.[a-z]+/\S+) v\S+$`)
	direct := req.FindAllStringSubmatch(string(mod), -1)
	if len(direct) < 5 {
		t.Fatalf("found only %d direct requirements in go.mod", len(direct))
	}
	for _, m := range direct {
		if !strings.Contains(string(why), m[1]) {
			t.Errorf("%s is required by go.mod but docs/decisions.md does not say why", m[1])
		}
	}
}
