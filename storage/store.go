package storage

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// Store is an open store. Its methods may be called from any goroutine.
type Store struct {
	db  *pebble.DB
	dir string
	log *slog.Logger
	fs  vfs.FS // below the watcher for full disks

	events  *events
	death   *death
	ballast *ballast
	minFree uint64
	closers []io.Closer // released at the end of Close, last first

	gate    gate
	applied atomic.Uint64 // head of the newest applied batch
	durable watermark

	applyMu sync.Mutex // serialises Apply, and with it the numbers of batches

	// keeper owns the sidecar between Open and Close.
	mark       manifestMark
	written    uint64 // head in the sidecar
	layout     uint64 // events.layout at the last look at the manifest
	stopKeeper chan struct{}
	keeper     sync.WaitGroup
}

// Get returns the newest applied value of key, which belongs to the caller.
func (s *Store) Get(key []byte) (value []byte, ok bool, err error) {
	if len(key) == 0 || key[0] == 0x00 {
		return nil, false, fmt.Errorf("get %x: %w", key, ErrReservedKey)
	}
	if !s.gate.enter() {
		return nil, false, ErrClosed
	}
	defer s.gate.leave()
	return get(s.db, key)
}

func get(db *pebble.DB, key []byte) (value []byte, ok bool, err error) {
	v, closer, err := db.Get(key)
	if errors.Is(err, pebble.ErrNotFound) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, fmt.Errorf("get %x: %w", key, err)
	}
	value = bytes.Clone(v)
	if value == nil {
		value = []byte{}
	}
	if err := closer.Close(); err != nil {
		return nil, false, fmt.Errorf("get %x: %w", key, err)
	}
	return value, true, nil
}

// Scan calls fn for each key from lo (included) to hi (not included), in order
// or in reverse, until fn says that it wants no more or returns an error, which
// Scan returns as it is. nil bounds mean the first and the last key. All of a
// Scan sees the store at one moment. k and v are valid only during fn; fn may
// read the store but must not Close it. A long Scan holds back the reclaiming of
// disk space, so page through large ranges.
func (s *Store) Scan(lo, hi []byte, reverse bool, fn func(k, v []byte) (more bool, err error)) (err error) {
	if !s.gate.enter() {
		return ErrClosed
	}
	defer s.gate.leave()
	if first := []byte{0x01}; bytes.Compare(lo, first) < 0 {
		lo = first
	}
	if hi != nil && bytes.Compare(lo, hi) >= 0 {
		return nil
	}
	it, err := s.db.NewIter(&pebble.IterOptions{LowerBound: lo, UpperBound: hi})
	if err != nil {
		return fmt.Errorf("scan: %w", err)
	}
	// Close also returns what stopped the iterator: without it a damaged block
	// looks like the end of the data.
	defer func() {
		if cerr := it.Close(); cerr != nil && err == nil {
			err = fmt.Errorf("scan: %w", cerr)
		}
	}()
	first, next := it.First, it.Next
	if reverse {
		first, next = it.Last, it.Prev
	}
	for ok := first(); ok; ok = next() {
		v, err := it.ValueAndErr()
		if err != nil {
			return fmt.Errorf("scan at %x: %w", it.Key(), err)
		}
		if more, err := fn(it.Key(), v); err != nil || !more {
			return err
		}
	}
	return nil
}

// Barrier waits until everything applied before the call is on disk, so that
// what was read before it can be shown: a power cut can't take it back any more.
// It returns the context's error, or ErrDead.
func (s *Store) Barrier(ctx context.Context) error {
	err := s.durable.wait(ctx, s.applied.Load())
	if errors.Is(err, ErrDead) {
		return s.death.fate()
	}
	return err
}

// Stats is a snapshot of counters since Open.
type Stats struct {
	Applied uint64 // number of the newest applied batch, across restarts
	Durable uint64 // number up to which everything is on disk
	Dead    bool   // see ErrDead
	Stalled bool   // the engine holds back writes: disk full or far too slow

	BackgroundErrors  uint64 // failed flushes and compactions (they are retried)
	Stalls            uint64
	DiskSlow          uint64 // disk operations of more than 5 s
	LowDiskSpace      uint64
	Corruptions       uint64 // damaged blocks met by a read
	DiskFull          uint64 // times the reserve was asked for
	SidecarErrors     uint64
	BallastMissing    bool   // the reserve was given up and is not back
	LogBytes          uint64 // size of the live log files
	TableBytes        uint64 // size of the live tables
	DiskBytes         uint64 // all of the engine's files
	Flushes           int64
	CompactionBacklog uint64 // bytes that compactions still have to move
}

// Stats never blocks on the disk. After Close it holds only the counters.
func (s *Store) Stats() Stats {
	st := Stats{
		Applied:          s.applied.Load(),
		Durable:          s.durable.level(),
		Dead:             s.death.err() != nil,
		Stalled:          s.events.stalled.Load(),
		BackgroundErrors: s.events.count(noteBackgroundError),
		Stalls:           s.events.count(noteStallBegin),
		DiskSlow:         s.events.count(noteDiskSlow),
		LowDiskSpace:     s.events.count(noteLowSpace),
		Corruptions:      s.events.count(noteCorruption),
		DiskFull:         s.events.count(noteDiskFull),
		SidecarErrors:    s.events.count(noteSidecar),
		BallastMissing:   s.ballast.gone.Load(),
	}
	if st.Dead || !s.gate.enter() {
		return st
	}
	defer s.gate.leave()
	m := s.db.Metrics()
	st.LogBytes = m.WAL.Size
	st.TableBytes = uint64(max(m.Total().TablesSize, 0))
	st.DiskBytes = m.DiskSpaceUsage()
	st.Flushes = m.Flush.Count
	st.CompactionBacklog = m.Compact.EstimatedDebt
	return st
}

// EnsureBallast makes the reserve again if it was given up and there is room for
// it, and says whether it is there. It writes some MiB: call it from a goroutine
// that may wait, when space has come back.
func (s *Store) EnsureBallast() (bool, error) {
	if !s.gate.enter() {
		return false, ErrClosed
	}
	defer s.gate.leave()
	return s.ballast.ensure(s.minFree)
}

// Close waits for reads and applies that are under way, makes everything that
// was applied durable and closes the store. Call it once the committer has no
// Pending left to wait for. The Close of a dead store leaves the engine alone
// (it may hang in it) and returns ErrDead: only the end of the process frees it.
// A second Close returns ErrClosed.
func (s *Store) Close() error {
	if !s.gate.shut() {
		return ErrClosed
	}
	close(s.stopKeeper)
	s.keeper.Wait()
	if err := s.death.err(); err != nil {
		s.events.close()
		return err
	}
	s.gate.users.Wait()
	err := s.closeEngine()
	if err == nil {
		s.durable.raise(s.applied.Load())
		err = s.writeSidecar()
	}
	s.durable.fail(ErrClosed)
	s.events.close()
	return errors.Join(err, s.closeAll())
}

// closeEngine turns a panic of the engine (leaked iterators, failed log) into an
// error.
func (s *Store) closeEngine() (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("close store %s: %w", s.dir, panicError(r))
		}
	}()
	if err := s.db.Close(); err != nil {
		return fmt.Errorf("close store %s: %w", s.dir, err)
	}
	return nil
}

// closeAll releases the lock and the disk watcher.
func (s *Store) closeAll() error {
	var err error
	for i := len(s.closers) - 1; i >= 0; i-- {
		err = errors.Join(err, s.closers[i].Close())
	}
	s.closers = nil
	return err
}

// keepSidecar writes the sidecar now and then until Close.
func (s *Store) keepSidecar(every time.Duration) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-s.stopKeeper:
			return
		case <-tick.C:
		}
		if s.death.err() != nil {
			return
		}
		if err := s.writeSidecar(); err != nil {
			s.events.tell(noteSidecar, err.Error())
		}
	}
}

// writeSidecar writes the sidecar if there is something new to remember. A
// failure loses nothing: the old sidecar stays, and is still true.
func (s *Store) writeSidecar() error {
	head, layout := s.durable.level(), s.events.layout.Load()
	mark := s.mark
	if layout != s.layout || mark.num == 0 {
		m, err := manifestNow(s.fs, s.fs.PathJoin(s.dir, engineDir), mark)
		if err != nil {
			return err
		}
		mark = m
	}
	if head == s.written && mark == s.mark {
		s.layout = layout
		return nil
	}
	content := sidecar{head: head, manifest: mark}.encode()
	if err := ReplaceFile(s.fs, s.fs.PathJoin(s.dir, headFile), content); err != nil {
		return err
	}
	s.written, s.mark, s.layout = head, mark, layout
	return nil
}
