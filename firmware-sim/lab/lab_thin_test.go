package lab

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/apollo-11/apollo11/firmware-sim/lab/board"
)

func TestThin(t *testing.T) {
	dir := t.TempDir()
	guest := filepath.Join(dir, "guest")
	cmd := exec.Command("go", "build", "-ldflags", "-s -w", "-o", guest, "./guest")
	cmd.Env = append(cmd.Environ(), "CGO_ENABLED=0", "GOARCH=arm64")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v %s", err, out)
	}
	k := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/gokrazy/kernel.arm64")
	k.Dir = "kernel"
	out, err := k.Output()
	if err != nil {
		t.Fatal(err)
	}
	b, err := board.Start(t.Context(), board.Options{Kernel: filepath.Join(strings.TrimSpace(string(out)), "vmlinuz"), Dir: dir,
		Files: []board.File{{Path: "/init", Mode: 0o755, Source: guest}}, PullUp: 0xf0})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	t.Logf("boot took %v", b.BootTook)
	start := time.Now()
	s, err := b.ReadFile("/sys/kernel/debug/gpio")
	t.Logf("%v %v\n%s", time.Since(start), err, s)
	for n := range 8 {
		h, err := b.Lines().High(n)
		t.Log(n, h, err, b.Lines().Edges(n))
	}
	t.Log(b.Console())
}
