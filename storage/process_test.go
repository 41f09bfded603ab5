package storage_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/apollo-11/apollo11/storage"
)

// These tests need a second process: this test binary, told by the environment
// what to be.
const (
	roleEnv = "STORAGE_TEST_ROLE"
	dirEnv  = "STORAGE_TEST_DIR"
)

func TestMain(m *testing.M) {
	role, dir := os.Getenv(roleEnv), os.Getenv(dirEnv)
	var err error
	switch role {
	case "":
		os.Exit(m.Run())
	case "hold":
		err = holdStore(dir)
	case "write":
		err = writeForEver(dir)
	default:
		err = failIn(role)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// process starts this binary in a role.
func process(t *testing.T, role, dir string) (c *exec.Cmd, in io.Closer, out *bufio.Reader) {
	t.Helper()
	c = exec.Command(os.Args[0])
	c.Env = append(os.Environ(), roleEnv+"="+role, dirEnv+"="+dir)
	stdin, err1 := c.StdinPipe()
	stdout, err2 := c.StdoutPipe()
	if err := errors.Join(err1, err2, c.Start()); err != nil {
		t.Fatal(err)
	}
	return c, stdin, bufio.NewReader(stdout)
}

// holdStore keeps a store open until its input ends.
func holdStore(dir string) error {
	s, err := storage.Open(context.Background(), storage.Options{Dir: dir, BallastBytes: -1})
	if err != nil {
		return err
	}
	fmt.Println("open")
	_, err = io.Copy(io.Discard, os.Stdin)
	return errors.Join(err, s.Close())
}

func TestStoreHeldByAnotherProcessIsLocked(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	holder, in, out := process(t, "hold", dir)
	if line, err := out.ReadString('\n'); err != nil || line != "open\n" {
		t.Errorf("holder said %q, %v", line, err)
	} else {
		openFails(t, options(t, nil, dir), storage.OpenLocked)
	}
	if err := errors.Join(in.Close(), holder.Wait()); err != nil {
		t.Fatal(err)
	}
	closeStore(t, open(t, options(t, nil, dir)))
}

// writeForEver commits records, several under way, and prints each number after
// it is on disk.
func writeForEver(dir string) error {
	s, err := storage.Open(context.Background(), storage.Options{Dir: dir, BallastBytes: -1, MemTableBytes: 256 << 10})
	if err != nil {
		return err
	}
	pending := make(chan *storage.Pending, 8)
	failed := make(chan error, 1)
	go func() {
		for p := range pending {
			if err := p.Wait(); err != nil {
				failed <- err
				return
			}
			fmt.Println(p.Head())
		}
	}()
	value := make([]byte, 400)
	for {
		b := s.NewBatch()
		b.Set(storage.AppendUint64([]byte("r"), s.Stats().Applied+1), value)
		p, err := s.Apply(b)
		if err != nil {
			return err
		}
		select {
		case pending <- p:
		case err := <-failed:
			return err
		}
	}
}

// TestKilledProcessLosesNothingAcknowledged: SIGKILL, again and again, on the
// real disk.
func TestKilledProcessLosesNothingAcknowledged(t *testing.T) {
	dir := t.TempDir()
	for round := range 4 {
		writer, in, out := process(t, "write", dir)
		acked := 0
		for lines := 0; ; lines++ {
			if lines == 50+200*round {
				if err := writer.Process.Kill(); err != nil {
					t.Fatal(err)
				}
			}
			line, err := out.ReadString('\n') // until the pipe is empty
			if err != nil {
				break
			}
			if acked, err = strconv.Atoi(strings.TrimSpace(line)); err != nil {
				t.Fatal(err)
			}
		}
		// Wait reports the kill; closing the pipe may find it closed already.
		t.Log("round", round, "acknowledged", acked, writer.Wait(), in.Close())
		s := open(t, options(t, nil, dir))
		n, err := count(s)
		if err != nil || n < acked || acked < 50 || uint64(n) != s.Stats().Applied {
			t.Errorf("round %d: %d records, %d acknowledged, %v", round, n, acked, err)
		}
		closeStore(t, s)
	}
}

// failIn opens a store with the default OnFatal, on a disk that fails as role
// says, and writes until the process ends.
func failIn(role string) error {
	faulty := newFaults(vfs.NewMem(), func(op errorfs.Op) error {
		switch {
		case role == "log-sync" && isLog(op) && isSync(op),
			role == "log-write" && isLog(op) && op.Kind == errorfs.OpFileWrite,
			role == "manifest-sync" && strings.Contains(op.Path, "MANIFEST") && isSync(op):
			return syscall.EIO
		}
		return nil
	})
	s, err := storage.Open(context.Background(), storage.Options{FS: faulty, Dir: "/s", MemTableBytes: 256 << 10, HeadInterval: 1 << 40})
	if err != nil {
		return err
	}
	faulty.on.Store(true)
	for {
		b := s.NewBatch()
		b.Set([]byte("k"), make([]byte, 10<<10))
		if err := s.Commit(b); err != nil {
			return fmt.Errorf("the process should have ended before this: %w", err)
		}
	}
}

// TestG12_ProcessEndsWhenDurabilityIsUnknown: the default OnFatal.
func TestG12_ProcessEndsWhenDurabilityIsUnknown(t *testing.T) {
	for _, role := range []string{"log-sync", "log-write", "manifest-sync"} {
		c := exec.Command(os.Args[0])
		c.Env = append(os.Environ(), roleEnv+"="+role)
		out, err := c.CombinedOutput()
		var exit *exec.ExitError
		if !errors.As(err, &exit) || exit.ExitCode() != 70 {
			t.Errorf("%s: ended with %v, want exit code 70:\n%s", role, err, out)
		}
		for _, part := range []string{"store is dead, restart the process", syscall.EIO.Error()} {
			if !strings.Contains(string(out), part) {
				t.Errorf("%s: message %q does not say %q", role, out, part)
			}
		}
		if strings.Contains(string(out), "goroutine ") {
			t.Errorf("%s: a panic overtook the message: %s", role, out)
		}
	}
}
