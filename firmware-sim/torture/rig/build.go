package rig

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// Patience is how long a wait for something that must happen may take: far above
// what a busy machine needs, so that only a fault reaches it.
const Patience = 60 * time.Second

// Programs is a directory with the programs under test.
type Programs struct{ Dir string }

// Build builds the gateway and the agent of this source tree into dir. It needs
// the go command and must be called from inside the tree.
func Build(ctx context.Context, dir string) (Programs, error) {
	root, err := moduleRoot(ctx)
	if err != nil {
		return Programs{}, err
	}
	return BuildTree(ctx, root, dir)
}

// BuildTree is Build for the source tree in root, which may be another revision
// than the one that this code belongs to.
func BuildTree(ctx context.Context, root, dir string) (Programs, error) {
	p := Programs{filepath.Join(dir, "bin")}
	cmd := exec.CommandContext(ctx, "go", "build", "-buildvcs=false", "-o", p.Dir+"/", "./gateway/cmd/apollo-gateway", "./fieldagent/cmd/apollo-agent")
	cmd.Dir = root
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return Programs{}, fmt.Errorf("build the programs: %w\n%s", err, out)
	}
	return p, nil
}

func moduleRoot(ctx context.Context) (string, error) {
	out, err := exec.CommandContext(ctx, "go", "env", "GOMOD").Output()
	if err != nil {
		return "", fmt.Errorf("find the module: %w", err)
	}
	mod := strings.TrimSpace(string(out))
	if filepath.Base(mod) != "go.mod" {
		return "", errors.New("find the module: run this inside the source tree")
	}
	return filepath.Dir(mod), nil
}

func (p Programs) path(name string) string { return filepath.Join(p.Dir, name) }

// Await calls ok every few milliseconds until it returns true, and gives up after
// limit or with ctx. what names the awaited thing in the error.
func Await(ctx context.Context, limit time.Duration, what string, ok func() (bool, error)) error {
	const every = 10 * time.Millisecond
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	t := time.NewTicker(every)
	defer t.Stop()
	var last error
	for {
		done, err := ok()
		if done {
			return nil
		}
		if err != nil && ctx.Err() == nil {
			last = err
		}
		select {
		case <-t.C:
		case <-ctx.Done():
			return errors.Join(fmt.Errorf("%s: not within %v", what, limit), last)
		}
	}
}

// Pause waits for d. That is chance or load, never patience: nothing relies on
// what happens in it. It returns the error of ctx if that ends first.
func Pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
