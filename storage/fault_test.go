package storage_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/apollo-11/apollo11/storage"
)

// fatals counts OnFatal and returns, as only a test may.
type fatals struct {
	n    atomic.Int64
	last atomic.Value
}

func (f *fatals) on(err error) { f.n.Add(1); f.last.Store(err) }

// wantDead demands the sticky end of a store, for the cause.
func wantDead(t *testing.T, s *storage.Store, f *fatals, cause error) {
	t.Helper()
	b := s.NewBatch()
	b.Set([]byte("later"), nil)
	for name, err := range map[string]error{
		"commit":  s.Commit(b),
		"barrier": s.Barrier(ctx(t)),
		"close":   s.Close(),
	} {
		if !errors.Is(err, storage.ErrDead) || !errors.Is(err, cause) {
			t.Errorf("%s on a dead store: %v", name, err)
		}
	}
	if n := f.n.Load(); n != 1 {
		t.Errorf("OnFatal called %d times", n)
	}
	if err, _ := f.last.Load().(error); !errors.Is(err, storage.ErrDead) || !errors.Is(err, cause) {
		t.Errorf("OnFatal got %v", err)
	}
	if !s.Stats().Dead {
		t.Error("stats do not say dead")
	}
}

// TestG12_FailedSyncKillsTheStore injects EIO into the sync of the log, once:
// the next sync would succeed, and must not be believed.
func TestG12_FailedSyncKillsTheStore(t *testing.T) {
	disk := vfs.NewCrashableMem()
	faulty := newFaults(disk, func(op errorfs.Op) error {
		if isLog(op) && isSync(op) {
			return syscall.EIO
		}
		return nil
	})
	var f fatals
	o := options(t, faulty, "/s")
	o.OnFatal = f.on
	s := open(t, o)
	put(t, s, "good", "1")

	var pending []*storage.Pending
	faulty.on.Store(true)
	for i := range 5 {
		b := s.NewBatch()
		b.Set(fmt.Appendf(nil, "lost%d", i), nil)
		p, err := s.Apply(b)
		if err != nil {
			break // the failure was quicker
		}
		pending = append(pending, p)
	}
	until(t, "an injected fault", func() bool { return faulty.hits.Load() > 0 })
	faulty.on.Store(false)
	var all sync.WaitGroup
	all.Go(func() {
		if err := s.Barrier(ctx(t)); !errors.Is(err, storage.ErrDead) {
			t.Errorf("barrier: %v", err)
		}
	})
	for _, p := range pending {
		if err := p.Wait(); !errors.Is(err, storage.ErrDead) || !errors.Is(err, syscall.EIO) {
			t.Errorf("wait: %v", err)
		}
	}
	all.Wait()
	if st := s.Stats(); st.Durable != 1 {
		t.Errorf("durable %d, want 1", st.Durable)
	}
	wantDead(t, s, &f, syscall.EIO)

	again := open(t, options(t, disk.CrashClone(vfs.CrashCloneCfg{}), "/s"))
	if got := scan(t, again, "", "", false); len(got) != 1 || got[0] != "good=1" {
		t.Errorf("recovered %v", got)
	}
	closeStore(t, again)
}

// TestG12_LogThatCannotBeWrittenKillsTheStore is EIO on the write itself, before any sync.
func TestG12_LogThatCannotBeWrittenKillsTheStore(t *testing.T) {
	for _, cause := range []error{syscall.EIO, syscall.EROFS} {
		faulty := newFaults(vfs.NewMem(), func(op errorfs.Op) error {
			if isLog(op) && (op.Kind == errorfs.OpFileWrite || isSync(op)) {
				return cause
			}
			return nil
		})
		var f fatals
		o := options(t, faulty, "/s")
		o.OnFatal = f.on
		s := open(t, o)
		faulty.on.Store(true)
		b := s.NewBatch()
		b.Set([]byte("k"), make([]byte, 100<<10))
		if err := s.Commit(b); !errors.Is(err, storage.ErrDead) || !errors.Is(err, cause) {
			t.Errorf("%v: commit: %v", cause, err)
		}
		wantDead(t, s, &f, cause)
	}
}

// TestDeadStoreStillReads: queries are answered until the process is gone.
func TestDeadStoreStillReads(t *testing.T) {
	faulty := newFaults(vfs.NewMem(), func(op errorfs.Op) error {
		if isLog(op) && isSync(op) {
			return syscall.EIO
		}
		return nil
	})
	var f fatals
	o := options(t, faulty, "/s")
	o.OnFatal = f.on
	s := open(t, o)
	put(t, s, "k", "v")
	faulty.on.Store(true)
	if err := s.Commit(s.NewBatch()); !errors.Is(err, storage.ErrDead) {
		t.Fatal(err)
	}
	if v, ok, err := s.Get([]byte("k")); string(v) != "v" || !ok || err != nil {
		t.Errorf("get: %q %v %v", v, ok, err)
	}
	wantDead(t, s, &f, syscall.EIO)
}

// TestG1_FullDiskGivesUpTheReserve: each write that meets a full disk is tried once
// more after the reserve is gone, and nobody notices.
func TestG1_FullDiskGivesUpTheReserve(t *testing.T) {
	disk := vfs.NewMem()
	disk.TestingSetDiskUsage(vfs.DiskUsage{AvailBytes: 1 << 30, TotalBytes: 1 << 40})
	const ballast = "/s/BALLAST"
	there := func() bool { _, err := disk.Stat(ballast); return err == nil }
	faulty := newFaults(disk, func(op errorfs.Op) error {
		write := op.Kind == errorfs.OpFileWrite || op.Kind == errorfs.OpCreate || op.Kind == errorfs.OpReuseForWrite
		if write && strings.Contains(op.Path, "/db/") && there() {
			return syscall.ENOSPC
		}
		return nil
	})
	var log logBuffer
	o := options(t, faulty, "/s")
	o.BallastBytes, o.Logger = 3<<20, log.logger()
	s := open(t, o)
	if info, err := disk.Stat(ballast); err != nil || info.Size() != o.BallastBytes {
		t.Fatalf("no reserve: %v", err)
	}
	faulty.on.Store(true)
	put(t, s, "k", "v")
	if there() {
		t.Error("reserve still there")
	}
	if st := s.Stats(); st.DiskFull != 1 || !st.BallastMissing || st.Dead {
		t.Errorf("stats %+v", st)
	}
	// Too little room for the reserve: it is not made.
	disk.TestingSetDiskUsage(vfs.DiskUsage{AvailBytes: 18 << 20, TotalBytes: 1 << 40})
	if ok, err := s.EnsureBallast(); ok || err != nil {
		t.Errorf("ensure on a full disk: %v %v", ok, err)
	}
	disk.TestingSetDiskUsage(vfs.DiskUsage{AvailBytes: 1 << 30, TotalBytes: 1 << 40})
	faulty.on.Store(false)
	if ok, err := s.EnsureBallast(); !ok || err != nil || !there() {
		t.Errorf("ensure with space: %v %v", ok, err)
	}
	if st := s.Stats(); st.BallastMissing {
		t.Errorf("stats %+v", st)
	}
	closeStore(t, s)
	if !strings.Contains(log.String(), "disk full, reserve given up") {
		t.Errorf("log: %s", log.String())
	}
}

// TestFullDiskWithoutReserveKillsTheStore: the log itself meets ENOSPC.
func TestFullDiskWithoutReserveKillsTheStore(t *testing.T) {
	disk := vfs.NewCrashableMem()
	faulty := newFaults(disk, func(op errorfs.Op) error {
		if isLog(op) && op.Kind == errorfs.OpFileWrite {
			return syscall.ENOSPC
		}
		return nil
	})
	var f fatals
	o := options(t, faulty, "/s")
	o.OnFatal = f.on
	s := open(t, o)
	put(t, s, "good", "1")
	faulty.on.Store(true)
	b := s.NewBatch()
	b.Set([]byte("lost"), nil)
	if err := s.Commit(b); !errors.Is(err, storage.ErrDead) || !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("commit: %v", err)
	}
	wantDead(t, s, &f, syscall.ENOSPC)
	again := open(t, options(t, disk.CrashClone(vfs.CrashCloneCfg{}), "/s"))
	if v, ok, err := again.Get([]byte("good")); string(v) != "1" || !ok || err != nil {
		t.Errorf("good: %q %v %v", v, ok, err)
	}
	closeStore(t, again)
}

// TestG1_StallIsVisibleAndEnds: flushes fail, so writes stall; the numbers say so, reads
// go on, and nothing is lost once the disk works again.
func TestG1_StallIsVisibleAndEnds(t *testing.T) {
	faulty := newFaults(vfs.NewMem(), func(op errorfs.Op) error {
		if op.Kind == errorfs.OpFileWrite && strings.HasSuffix(op.Path, ".sst") {
			return syscall.EIO
		}
		return nil
	})
	var log logBuffer
	o := options(t, faulty, "/s")
	o.Logger = log.logger()
	s := open(t, o)
	faulty.on.Store(true)
	const records = 40
	done := make(chan error, 1)
	go func() {
		for i := range records {
			b := s.NewBatch()
			b.Set(fmt.Appendf(nil, "k%d", i), make([]byte, 200<<10))
			if err := s.Commit(b); err != nil {
				done <- err
				return
			}
		}
		done <- nil
	}()
	until(t, "a stall", func() bool { st := s.Stats(); return st.Stalled && st.BackgroundErrors > 0 })
	if _, _, err := s.Get([]byte("k0")); err != nil {
		t.Errorf("read during the stall: %v", err)
	}
	faulty.on.Store(false)
	select {
	case err := <-done:
		if err != nil {
			t.Fatal(err)
		}
	case <-time.After(patience):
		t.Fatal("the stall never ended")
	}
	if n := len(scan(t, s, "", "", false)); n != records {
		t.Errorf("%d records", n)
	}
	if st := s.Stats(); st.Stalled || st.Stalls == 0 {
		t.Errorf("stats %+v", st)
	}
	closeStore(t, s)
	if !strings.Contains(log.String(), "writes are stalled") {
		t.Errorf("log: %s", log.String())
	}
}

// TestSidecarFaultIsCountedNotFatal: the sidecar only guards, so its failure is counted.
func TestSidecarFaultIsCountedNotFatal(t *testing.T) {
	faulty := newFaults(vfs.NewMem(), func(op errorfs.Op) error {
		if strings.HasSuffix(op.Path, "HEAD.tmp") {
			return syscall.ENOSPC
		}
		return nil
	})
	o := options(t, faulty, "/s")
	o.HeadInterval = time.Millisecond
	s := open(t, o)
	faulty.on.Store(true)
	put(t, s, "k", "v")
	until(t, "a counted fault", func() bool { return s.Stats().SidecarErrors > 0 })
	faulty.on.Store(false)
	put(t, s, "k", "v2")
	closeStore(t, s)
	closeStore(t, open(t, o))
}

// TestG3_OpenThatHangsIsReported: the disk is full when the engine recovers, which retries
// for ever.
func TestG3_OpenThatHangsIsReported(t *testing.T) {
	disk := vfs.NewCrashableMem()
	s := open(t, options(t, disk, "/s"))
	put(t, s, "k", "v")
	died := disk.CrashClone(vfs.CrashCloneCfg{})
	closeStore(t, s)
	faulty := newFaults(died, func(op errorfs.Op) error {
		if op.Kind == errorfs.OpFileWrite && strings.HasSuffix(op.Path, ".sst") {
			return syscall.ENOSPC
		}
		return nil
	})
	faulty.on.Store(true)
	soon, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() {
		for faulty.hits.Load() < 3 { // the engine has begun to retry
			time.Sleep(time.Millisecond)
		}
		cancel()
	}()
	_, err := storage.Open(soon, options(t, faulty, "/s"))
	oe := wantKind(t, err, "/s", storage.OpenStuck)
	if !errors.Is(oe, context.Canceled) || !strings.Contains(oe.Error(), syscall.ENOSPC.Error()) {
		t.Errorf("cause %v", oe.Cause)
	}
	// Space comes back: the opening that was given up ends and lets go.
	faulty.on.Store(false)
	until(t, "the late opener to let go", func() bool {
		s, err := storage.Open(ctx(t), options(t, faulty, "/s"))
		if err != nil {
			return false
		}
		v, ok, err := s.Get([]byte("k"))
		closeStore(t, s)
		return ok && err == nil && string(v) == "v"
	})
}
