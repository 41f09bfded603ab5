package formats

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/apollo-11/apollo11/firmware-sim/torture/rig"
)

// root is the top of the repository, seen from this package.
const root = "../.."

// recorded is the revision whose recording lies in testdata, and against whose
// programs today's are run.
const recorded = "fada08b3e5ab8f6305146b5fe9b2ff2a5ba4c519"

// recording is the directory of the recording.
const recording = "testdata/fada08b"

// maxUnpacked bounds one file of an archive: all of them are ours, and small.
const maxUnpacked = 64 << 20

// scratch holds the programs, which are built at most once.
var scratch string

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	var err error
	if scratch, err = os.MkdirTemp("", "apollo-formats-"); err != nil {
		fmt.Fprintln(os.Stderr, "formats:", err)
		return 1
	}
	defer func() { _ = os.RemoveAll(scratch) }()
	return m.Run()
}

// errNoHistory says that the repository does not have the recorded revision.
var errNoHistory = errors.New("no history")

var newPrograms = sync.OnceValues(func() (rig.Programs, error) {
	return rig.Build(context.Background(), filepath.Join(scratch, "new"))
})

var oldPrograms = sync.OnceValues(func() (rig.Programs, error) {
	ctx, dir := context.Background(), filepath.Join(scratch, "old")
	tree := filepath.Join(dir, "tree")
	if err := checkout(ctx, recorded, tree); err != nil {
		return rig.Programs{}, err
	}
	return rig.BuildTree(ctx, tree, dir)
})

// checkout writes the tree of a revision into dir.
func checkout(ctx context.Context, revision, dir string) error {
	out, err := exec.CommandContext(ctx, "git", "-C", root, "cat-file", "-e", revision+"^{commit}").CombinedOutput()
	if err != nil {
		return fmt.Errorf("%w: this clone does not have revision %.7s (git fetch --unshallow brings it): %s", errNoHistory, revision, strings.TrimSpace(string(out)))
	}
	cmd := exec.CommandContext(ctx, "git", "-C", root, "archive", "--format=tar", revision)
	cmd.Stderr = os.Stderr
	pipe, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	// The pipe is emptied, or git would wait for ever.
	err = untar(pipe, dir)
	_, cerr := io.Copy(io.Discard, pipe)
	if err := errors.Join(err, cerr, cmd.Wait()); err != nil {
		return fmt.Errorf("check out %.7s: %w", revision, err)
	}
	return nil
}

// untar unpacks the directories and files of an archive.
func untar(r io.Reader, dir string) error {
	in := tar.NewReader(r)
	for {
		h, err := in.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if !filepath.IsLocal(h.Name) {
			return fmt.Errorf("the archive names %q, which is outside", h.Name)
		}
		name := filepath.Join(dir, h.Name)
		switch h.Typeflag {
		case tar.TypeDir:
			err = os.MkdirAll(name, 0o755)
		case tar.TypeReg:
			err = unpackFile(in, h, name)
		}
		if err != nil {
			return err
		}
	}
}

func unpackFile(r io.Reader, h *tar.Header, name string) error {
	if h.Size > maxUnpacked {
		return fmt.Errorf("%s has %d bytes, the limit is %d", h.Name, h.Size, maxUnpacked)
	}
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return err
	}
	f, err := os.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, fs.FileMode(h.Mode).Perm()|0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, r)
	return errors.Join(err, f.Close())
}

// unpacked returns a directory of its own with the recorded site.
func unpacked(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	f, err := os.Open(filepath.Join(recording, "site.tar.gz"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }() // only read from
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	if err := untar(z, dir); err != nil {
		t.Fatalf("unpack the recording: %v", err)
	}
	return dir
}

// built returns programs, and skips the test where they cannot be had.
func built(t *testing.T, programs func() (rig.Programs, error)) rig.Programs {
	t.Helper()
	if testing.Short() {
		t.Skip("starts real programs, which -short leaves out")
	}
	p, err := programs()
	if errors.Is(err, errNoHistory) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	return p
}
