package storage_test

import (
	"errors"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
)

// isLog says whether an operation is on a log file of the engine.
func isLog(op errorfs.Op) bool { return strings.HasSuffix(op.Path, ".log") }

func isSync(op errorfs.Op) bool {
	return op.Kind == errorfs.OpFileSync || op.Kind == errorfs.OpFileSyncData || op.Kind == errorfs.OpFileSyncTo
}

// slowSyncs holds syncs of the log back for as long as a test wants.
type slowSyncs struct {
	vfs.FS
	gate sync.RWMutex
}

func newSlowSyncs(inner vfs.FS) *slowSyncs {
	s := &slowSyncs{}
	s.FS = errorfs.Wrap(inner, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if isLog(op) && isSync(op) {
			s.gate.RLock()
			defer s.gate.RUnlock()
		}
		return nil
	}))
	return s
}

func (s *slowSyncs) hold()  { s.gate.Lock() }
func (s *slowSyncs) letGo() { s.gate.Unlock() }

// faults returns what fail says for each operation while it is on.
type faults struct {
	vfs.FS
	on   atomic.Bool
	hits atomic.Int64
}

func newFaults(inner vfs.FS, fail func(op errorfs.Op) error) *faults {
	f := &faults{}
	f.FS = errorfs.Wrap(inner, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if !f.on.Load() {
			return nil
		}
		err := fail(op)
		if err != nil {
			f.hits.Add(1)
		}
		return err
	}))
	return f
}

// newCuts calls cut before each operation that changes the disk, one at a time.
func newCuts(inner vfs.FS, cut func()) vfs.FS {
	var mu sync.Mutex
	return errorfs.Wrap(inner, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if op.Kind.ReadOrWrite() == errorfs.OpIsWrite {
			mu.Lock()
			defer mu.Unlock()
			cut()
		}
		return nil
	}))
}

func readFile(t testing.TB, fs vfs.FS, path string) string {
	t.Helper()
	f, err := fs.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	b, err := io.ReadAll(f)
	if err := errors.Join(err, f.Close()); err != nil {
		t.Fatal(err)
	}
	return string(b)
}
