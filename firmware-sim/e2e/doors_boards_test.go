package e2e

import (
	"context"
	"crypto/sha256"
	"debug/buildinfo"
	"debug/elf"
	"encoding/hex"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// board is a processor level that agents are built for, and how to run it here.
type board struct {
	level        string // as in the name of the file
	goarch, arm  string
	machine      elf.Machine
	emulator     string
	cpu          string   // the oldest processor of that level
	suites       []string // unit tests that run on it
	slowest      string   // of them, left out unless APOLLO_ARM_ALL=1
	othersCannot string   // the processor of another board that must not run it
}

// boards: all suites run on the oldest processor, on the others those whose code
// depends on the width of a word, the byte order or the system.
func boards() []board {
	some := []string{"wire", "fieldagent/journal", "fieldagent/gpio", "fieldagent/intent"}
	all := append([]string{"fieldagent", "fieldagent/executor", "fieldagent/link", "fieldagent/lines", "fieldagent/round"}, some...)
	return []board{
		{level: "armv6", goarch: "arm", arm: "6", machine: elf.EM_ARM, emulator: "qemu-arm-static", cpu: "arm1176", suites: all,
			slowest: "TestPromisesHoldThroughCrashesAndLoss"},
		{level: "armv7", goarch: "arm", arm: "7", machine: elf.EM_ARM, emulator: "qemu-arm-static", cpu: "cortex-a7", suites: some,
			othersCannot: "arm1176"},
		{level: "arm64", goarch: "arm64", machine: elf.EM_AARCH64, emulator: "qemu-aarch64-static", cpu: "cortex-a53", suites: some},
	}
}

// J1: every agent that make agents builds starts on the oldest processor of its
// level and does its work: over the primary path, over the narrowband one, and
// again after a power cut.
func TestJ1_AgentsOnTheirProcessors(t *testing.T) {
	emulated(t)
	dist := t.TempDir()
	cmd := exec.Command("sh", "deploy/cross.sh", "apollo-agent")
	cmd.Dir = "../.."
	cmd.Env = append(os.Environ(), "DIST="+dist, "VERSION=v6.7.8")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("cross.sh: %v\n%s", err, out)
	}
	t.Logf("%s", out)
	sums := checksums(t, dist)
	s := newSite(t)
	for _, b := range boards() {
		t.Run(b.level, func(t *testing.T) {
			name := "apollo-agent-linux-" + b.level
			program := filepath.Join(dist, name)
			if sums[name] == "" || !strings.Contains(string(out), name+" ") {
				t.Errorf("%s has no checksum or its size was not printed", name)
			}
			b.claims(t, program)
			version, err := exec.Command(b.emulator, "-cpu", b.cpu, program, "--version").CombinedOutput()
			if err != nil || string(version) != "apollo-agent v6.7.8\n" {
				t.Fatalf("--version on %s: %v: %s", b.cpu, err, version)
			}
			if b.othersCannot != "" { // so the emulator tells the levels apart
				if out, err := exec.Command(b.emulator, "-cpu", b.othersCannot, program, "--version").CombinedOutput(); err == nil {
					t.Errorf("%s runs on %s too: %s", b.level, b.othersCannot, out)
				}
			}
			on := *s
			on.t = t
			on.works(b, program)
		})
	}
}

// emulated skips the test where there is no emulator.
func emulated(t *testing.T) {
	t.Helper()
	for _, b := range boards() {
		tool(t, b.emulator, "qemu-user-static")
	}
}

// checksums verifies SHA256SUMS and returns it by file name.
func checksums(t *testing.T, dist string) map[string]string {
	t.Helper()
	list, err := os.ReadFile(filepath.Join(dist, "SHA256SUMS"))
	if err != nil {
		t.Fatal(err)
	}
	sums := map[string]string{}
	for line := range strings.Lines(string(list)) {
		sum, name, ok := strings.Cut(strings.TrimSpace(line), "  ")
		if !ok {
			t.Fatalf("SHA256SUMS: %q", line)
		}
		b, err := os.ReadFile(filepath.Join(dist, name))
		if err != nil {
			t.Fatal(err)
		}
		if is := sha256.Sum256(b); hex.EncodeToString(is[:]) != sum {
			t.Errorf("the checksum of %s is wrong", name)
		}
		sums[name] = sum
	}
	return sums
}

// claims holds what the file says about itself: its machine, that it needs no
// library of the board, that it is stripped, and the level it was built for.
func (b board) claims(t *testing.T, program string) {
	t.Helper()
	f, err := elf.Open(program)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }() // only read from
	if f.Machine != b.machine {
		t.Errorf("built for %v, want %v", f.Machine, b.machine)
	}
	for _, p := range f.Progs {
		if p.Type == elf.PT_INTERP {
			t.Error("is not static: it asks for a loader")
		}
	}
	if f.Section(".symtab") != nil || f.Section(".debug_info") != nil {
		t.Error("is not stripped")
	}
	info, err := buildinfo.ReadFile(program)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, s := range info.Settings {
		got[s.Key] = s.Value
	}
	if got["GOARCH"] != b.goarch || got["GOARM"] != b.arm || got["CGO_ENABLED"] != "0" || got["-trimpath"] != "true" {
		t.Errorf("build settings GOARCH=%s GOARM=%s CGO_ENABLED=%s -trimpath=%s, want %s %s 0 true",
			got["GOARCH"], got["GOARM"], got["CGO_ENABLED"], got["-trimpath"], b.goarch, b.arm)
	}
}

// works takes commands all the way through an emulated agent.
func (s *site) works(b board, program string) {
	s.t.Helper()
	run := func(mqtt string) *process {
		args := append([]string{"-cpu", b.cpu, program}, s.agentArgs(b.level, mqtt, s.narrow)...)
		return startCmd(s.t, "agent on "+b.cpu, exec.Command(b.emulator, args...))
	}
	command := func(id, intent, args string) {
		s.publish(taskJSON(b.level+"-"+id, intent, b.level, args, `,"ttl":"5m"`))
	}
	agent := run(s.mqtt)
	command("on", "gpio.write", `{"pin":"GPIO17","level":1}`)
	command("pulse", "gpio.pulse", `{"pin":"GPIO4","width_ms":20}`)
	command("read", "gpio.read", `{"pin":"GPIO17"}`)
	command("metrics", "collect_metrics", `{}`)
	for _, id := range []string{"on", "pulse", "read", "metrics"} {
		s.seenSettled(b.level+"-"+id, "SUCCEEDED")
	}
	var status struct {
		Instructions []struct {
			Result struct {
				Level int
				Agent struct{ Arch string }
			}
		}
	}
	s.get("/v1/tasks/"+b.level+"-read", &status)
	if status.Instructions[0].Result.Level != 1 {
		s.t.Errorf("read: %+v, want level 1", status)
	}
	s.get("/v1/tasks/"+b.level+"-metrics", &status)
	if status.Instructions[0].Result.Agent.Arch != b.goarch {
		s.t.Errorf("metrics: %+v, want architecture %s", status, b.goarch)
	}
	agent.kill() // a power cut; the journal must be readable again
	agent = run(s.mqtt)
	command("off", "gpio.write", `{"pin":"GPIO17","level":0}`)
	s.seenSettled(b.level+"-off", "SUCCEEDED")
	if n, m := s.count(b.level, "GPIO17"), s.count(b.level, "GPIO4"); n != 2 || m != 2 {
		s.t.Errorf("%d actuations of GPIO17 and %d of GPIO4, want 2 and 2", n, m)
	}
	if code := agent.stop(); code != 0 {
		s.t.Errorf("exit code %d after SIGTERM", code)
	}
}

// J1, J2: the unit suites of what runs on a board, on each of its processors.
func TestJ1_UnitSuitesOnTheirProcessors(t *testing.T) {
	emulated(t)
	for _, b := range boards() {
		t.Run(b.level, func(t *testing.T) {
			dir := t.TempDir()
			args := []string{"test", "-c", "-o", dir + "/"}
			for _, p := range b.suites {
				args = append(args, "./"+p)
			}
			cmd := exec.Command("go", args...)
			cmd.Dir = "../.."
			cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH="+b.goarch, "GOARM="+b.arm)
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Fatalf("go %v: %v\n%s", args, err, out)
			}
			for _, p := range b.suites {
				t.Run(p, func(t *testing.T) {
					b.suite(t, filepath.Join(dir, filepath.Base(p)+".test"), filepath.Join("../..", p))
				})
			}
		})
	}
}

// suite runs a test program on the emulated processor, in the directory of its
// package.
func (b board) suite(t *testing.T, program, dir string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*slow)
	defer cancel()
	args := []string{"-cpu", b.cpu, program, "-test.short", "-test.v"}
	if b.slowest != "" && os.Getenv("APOLLO_ARM_ALL") != "1" {
		args = append(args, "-test.skip", "^"+b.slowest+"$")
	}
	cmd := exec.CommandContext(ctx, b.emulator, args...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %v\n%s", args, err, tail(string(out), 8000))
	}
	passed := strings.Count("\n"+string(out), "\n--- PASS")
	if passed == 0 {
		t.Errorf("no test ran: %s", tail(string(out), 2000))
	}
	t.Logf("%s on %s: %d tests passed", dir, b.cpu, passed)
}

func tail(s string, n int) string { return s[max(0, len(s)-n):] }
