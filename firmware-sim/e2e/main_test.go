package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// binDir holds the programs under test, built once from this tree.
var binDir string

func TestMain(m *testing.M) {
	if trigger := os.Getenv(badDisk); trigger != "" {
		os.Exit(gatewayOnBadDisk(trigger, os.Args[1:]))
	}
	if trigger := os.Getenv(hungDisk); trigger != "" {
		os.Exit(gatewayOnHungDisk(trigger, os.Args[1:]))
	}
	os.Exit(run(m))
}

func run(m *testing.M) int {
	dir, err := os.MkdirTemp("", "apollo-e2e-")
	if err != nil {
		fmt.Fprintln(os.Stderr, "e2e:", err)
		return 1
	}
	defer func() { _ = os.RemoveAll(dir) }()
	binDir = filepath.Join(dir, "bin")
	cmd := exec.Command("go", "build", "-o", binDir+"/", "./gateway/cmd/...", "./fieldagent/cmd/...")
	cmd.Dir = "../.."
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "e2e: build: %v\n%s", err, out)
		return 1
	}
	return m.Run()
}

// tool returns the path of a program that is not ours. Without it a developer's
// test is skipped with its reason; in CI its absence is a failure, so that the
// tests cannot silently stop running.
func tool(t *testing.T, name, debianPackage string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err == nil {
		return path
	}
	if os.Getenv("CI") == "true" {
		t.Fatalf("%s is missing: install %s (make deps)", name, debianPackage)
	}
	t.Skipf("%s is missing: install %s (make deps)", name, debianPackage)
	return ""
}

// within waits until ok returns true. It fails the test after the deadline,
// with what the last try had to say.
func within(t *testing.T, d time.Duration, what string, ok func() (bool, string)) {
	t.Helper()
	deadline := time.Now().Add(d)
	for {
		done, last := ok()
		if done {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s: not within %v; last seen: %s", what, d, last)
		}
		time.Sleep(20 * time.Millisecond)
	}
}
