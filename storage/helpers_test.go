package storage_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/apollo-11/apollo11/storage"
)

// patience bounds every wait of these tests; it is never waited out when all is
// well.
const patience = 60 * time.Second

func ctx(t testing.TB) context.Context {
	c, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	return c
}

// noExit is an OnFatal for tests that expect none.
func noExit(t testing.TB) func(error) {
	return func(err error) { t.Errorf("unexpected OnFatal: %v", err) }
}

// options are small, so that flushes are frequent: no reserve, and a sidecar only
// at Close.
func options(t testing.TB, fs vfs.FS, dir string) storage.Options {
	return storage.Options{Dir: dir, FS: fs, OnFatal: noExit(t), MemTableBytes: 512 << 10, BallastBytes: -1, HeadInterval: time.Hour}
}

func open(t testing.TB, o storage.Options) *storage.Store {
	t.Helper()
	s, err := storage.Open(ctx(t), o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// openFails opens and demands an OpenError of the kind with a complete message.
func openFails(t testing.TB, o storage.Options, kind storage.OpenErrorKind) *storage.OpenError {
	t.Helper()
	s, err := storage.Open(ctx(t), o)
	if err == nil {
		t.Fatal("opened, want an error of kind", kind, errors.Join(s.Close()))
	}
	return wantKind(t, err, o.Dir, kind)
}

func wantKind(t testing.TB, err error, dir string, kind storage.OpenErrorKind) *storage.OpenError {
	t.Helper()
	var oe *storage.OpenError
	if !errors.As(err, &oe) {
		t.Fatalf("got %T (%v), want *OpenError", err, err)
	}
	if oe.Kind != kind {
		t.Fatalf("kind %v, want %v: %v", oe.Kind, kind, err)
	}
	for _, part := range []string{dir, kind.String(), oe.Cause.Error(), "; "} {
		if !bytes.Contains([]byte(err.Error()), []byte(part)) {
			t.Errorf("message %q does not say %q", err, part)
		}
	}
	return oe
}

func closeStore(t testing.TB, s *storage.Store) {
	t.Helper()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

// put commits one record.
func put(t testing.TB, s *storage.Store, key, value string) {
	t.Helper()
	b := s.NewBatch()
	b.Set([]byte(key), []byte(value))
	if err := s.Commit(b); err != nil {
		t.Fatal(err)
	}
}

// scan returns "key=value" of everything between the bounds.
func scan(t testing.TB, s *storage.Store, lo, hi string, reverse bool) []string {
	t.Helper()
	var got []string
	err := s.Scan(bound(lo), bound(hi), reverse, func(k, v []byte) (bool, error) {
		got = append(got, fmt.Sprintf("%s=%s", k, v))
		return true, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func bound(s string) []byte {
	if s == "" {
		return nil
	}
	return []byte(s)
}

// until polls for a condition that other goroutines bring about.
func until(t testing.TB, what string, ok func() bool) {
	t.Helper()
	deadline := time.Now().Add(patience)
	for !ok() {
		if time.Now().After(deadline) {
			t.Fatalf("never happened: %s", what)
		}
		time.Sleep(time.Millisecond)
	}
}

// logBuffer is a logger that a test can read.
type logBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func (l *logBuffer) logger() *slog.Logger { return slog.New(slog.NewTextHandler(l, nil)) }
