package lab

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/apollo-11/apollo11/firmware-sim/lab/board"
	"github.com/apollo-11/apollo11/firmware-sim/torture/rig"
)

// level is a processor level that agents are built for. Each has a node, an output
// and an input of its own, so that all three share one board.
type level struct {
	name    string
	out, in int
}

var levels = []level{{"armv6", 0, 1}, {"armv7", 2, 4}, {"arm64", 5, 6}}

const (
	// heldLine belongs to another program in the tests that need one, relayLine
	// switches a relay that is on when the line is low.
	heldLine  = 3
	relayLine = 7
	// pullUp: the relay is off while nobody drives its line.
	pullUp = 1 << relayLine
	chip   = "9030000.pl061"
	// chipFile is the chip on the board.
	chipFile = "/dev/gpiochip0"
)

// line is how an agent names a line.
func line(n int) string { return fmt.Sprintf("%s:%d", chip, n) }

// kit is what every test uses: the kernel and the programs, built once.
type kit struct {
	dir      string
	kernel   string
	guest    string // /init of the board
	relay    string
	host     rig.Programs // gateway and agent of this machine
	agents   string       // directory of the agents for boards, as make agents names them
	gateway  string       // for the board
	took     time.Duration
	bootTook []time.Duration
}

var (
	theKit   *kit
	kitError error
	kitOnce  sync.Once
	kitDir   string // removed at the end
)

func TestMain(m *testing.M) {
	began := time.Now()
	code := m.Run()
	if k := theKit; k != nil && len(k.bootTook) > 0 {
		fmt.Printf("lab: %d boots of %v to %v, programs built in %v, %v in all\n", len(k.bootTook), slices.Min(k.bootTook).Round(time.Millisecond),
			slices.Max(k.bootTook).Round(time.Millisecond), k.took.Round(time.Second), time.Since(began).Round(time.Second))
	}
	if kitDir != "" {
		_ = os.RemoveAll(kitDir)
	}
	os.Exit(code)
}

// required says that a missing tool is a failure: in CI, and when asked for.
func required() bool { return os.Getenv("CI") == "true" || os.Getenv("APOLLO_LAB") == "1" }

// lab returns the kit. Where the tools are missing it skips the test and says why,
// or fails it where that must not happen.
func lab(t *testing.T) *kit {
	t.Helper()
	if raceDetector {
		t.Skip("the board lab is run by make lab, not under the race detector: what it tests are other processes")
	}
	if testing.Short() {
		t.Skip("the board lab takes minutes: not with -short")
	}
	if missing := missingTools(); len(missing) > 0 {
		text := "the board lab is not run: install " + strings.Join(missing, ", ") + " (make deps)"
		if required() {
			t.Fatal(text)
		}
		t.Skip(text)
	}
	kitOnce.Do(func() { theKit, kitError = newKit(context.Background()) })
	if kitError != nil {
		t.Fatal(kitError)
	}
	return theKit
}

func missingTools() []string {
	var missing []string
	for _, need := range []struct{ program, debianPackage string }{
		{board.Emulator, "qemu-system-arm"}, {"mke2fs", "e2fsprogs"}, {"mosquitto_pub", "mosquitto-clients"}} {
		if _, err := exec.LookPath(need.program); err != nil {
			missing = append(missing, need.program+" (package "+need.debianPackage+")")
		}
	}
	return missing
}

const moduleRoot = "../.."

func newKit(ctx context.Context) (*kit, error) {
	began := time.Now()
	dir, err := os.MkdirTemp("", "apollo-lab-")
	if err != nil {
		return nil, err
	}
	kitDir = dir
	k := &kit{dir: dir, guest: filepath.Join(dir, "guest"), relay: filepath.Join(dir, "relay"), agents: filepath.Join(dir, "agents")}
	if k.kernel, err = kernel(ctx); err != nil {
		return nil, err
	}
	if k.host, err = rig.Build(ctx, dir); err != nil {
		return nil, err
	}
	gateways := filepath.Join(dir, "gateways")
	k.gateway = filepath.Join(gateways, "apollo-gateway")
	err = errors.Join(
		command(ctx, ".", []string{"CGO_ENABLED=0", "GOOS=linux", "GOARCH=arm64"}, "go", "build", "-ldflags", "-s -w", "-o", k.guest, "./guest"),
		command(ctx, ".", []string{"CGO_ENABLED=0"}, "go", "build", "-o", k.relay, "./relay"),
		command(ctx, moduleRoot, []string{"DIST=" + k.agents}, "sh", "deploy/cross.sh", "apollo-agent"),
		command(ctx, moduleRoot, []string{"CGO_ENABLED=0", "GOOS=linux", "GOARCH=arm64"}, "go", "build", "-trimpath", "-ldflags", "-s -w", "-o", k.gateway, "./gateway/cmd/apollo-gateway"),
	)
	k.took = time.Since(began)
	return k, err
}

// command runs a program of the build; its output is in the error.
func command(ctx context.Context, dir string, env []string, name string, args ...string) error {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), env...)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s %s: %w\n%s", name, strings.Join(args, " "), err, out)
	}
	return nil
}

// kernel installs the board's kernel, as the module beside this package pins it.
func kernel(ctx context.Context) (string, error) {
	const module = "github.com/gokrazy/kernel.arm64"
	if err := command(ctx, "kernel", nil, "go", "mod", "download", module); err != nil {
		return "", fmt.Errorf("install the kernel: %w", err)
	}
	cmd := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", module)
	cmd.Dir = "kernel"
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("find the kernel: %w", err)
	}
	file := filepath.Join(strings.TrimSpace(string(out)), "vmlinuz")
	_, err = os.Stat(file)
	return file, err
}

// files are the programs of a board with these agents.
func (k *kit) files(agents ...level) []board.File {
	files := []board.File{{Path: "/init", Mode: 0o755, Source: k.guest}, {Path: "/bin/kill", Mode: 0o755, Source: k.guest}}
	for _, l := range agents {
		files = append(files, board.File{Path: agentPath(l.name), Mode: 0o755, Source: k.agentFile(l.name)})
	}
	return files
}

func (k *kit) agentFile(name string) string {
	return filepath.Join(k.agents, "apollo-agent-linux-"+name)
}

func agentPath(name string) string { return "/usr/local/bin/apollo-agent-" + name }

// pull is how long the cable test pulls the cable.
func pull(t *testing.T) time.Duration {
	t.Helper()
	text := os.Getenv("APOLLO_LAB_CABLE")
	if text == "" {
		return cablePull
	}
	d, err := time.ParseDuration(text)
	if err != nil || d < 0 || d > time.Hour {
		t.Fatalf("APOLLO_LAB_CABLE=%q: give a time, for example 2m", text)
	}
	return d
}
