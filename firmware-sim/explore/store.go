package explore

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/apollo-11/apollo11/firmware-sim/explore/memstore"
	"github.com/apollo-11/apollo11/gateway/ledger"
	"github.com/apollo-11/apollo11/storage"
)

// disk is the gateway's disk: a store whose syncs the world decides about.
type disk interface {
	// open starts a process on what is durable.
	open() (ledger.Store, error)
	// recovered ends the start, in which everything is synced as it is written.
	recovered()
	// applied is the number of the newest batch of this process, from 1.
	applied() uint64
	// sync makes everything applied durable, or fails for good.
	sync(fail error) error
	// crash ends the process; of the batches that were not synced about share
	// survive. It returns the number of the newest survivor.
	crash(share float64) (uint64, error)
	// copy keeps a copy of what is durable now, in the place of any before.
	copy()
	// restore puts the copy in the place of the disk. The process must have ended.
	restore() error
	// close ends the simulation.
	close() error
}

// errDisk is what a disk says that is made to fail.
var errDisk = errors.New("input/output error (made by the simulation)")

// memDisk is the fast one.
type memDisk struct{ s, older *memstore.Store }

func newMemDisk() *memDisk { return &memDisk{s: memstore.New()} }

func (d *memDisk) open() (ledger.Store, error) {
	d.s.SetAuto(true)
	return d.s, nil
}
func (d *memDisk) recovered()      { d.s.SetAuto(false) }
func (d *memDisk) applied() uint64 { return d.s.Applied() }
func (d *memDisk) sync(fail error) error {
	if fail != nil {
		d.s.Fail(fail)
		return fail
	}
	d.s.Sync(d.s.Applied())
	return nil
}
func (d *memDisk) crash(share float64) (uint64, error) {
	open := float64(d.s.Applied() - d.s.Durable())
	d.s.Crash(int(open*share + 0.5))
	return d.s.Durable(), nil
}
func (d *memDisk) copy() { d.older = d.s.Copy() }
func (d *memDisk) restore() error {
	d.s = d.older.Copy()
	return nil
}
func (d *memDisk) close() error { return nil }

// pebbleDisk is the real store on a file system in memory that forgets what was
// not synced. After every sync it takes a copy of what a power cut at that moment
// would leave; a crash goes back to that copy, or keeps everything. (A part of
// what was not synced would depend on how far the engine's own goroutines have
// come, which no seed decides.)
type pebbleDisk struct {
	fs      *vfs.MemFS
	left    *vfs.MemFS // what the last sync left
	older   *vfs.MemFS // a copy of that
	store   *storage.Store
	pending []ledger.Pending
	start   bool // everything is synced as it is written
	head    uint64
}

// pebbleDir is where the store lies on its file system.
const pebbleDir = "/site/log"

// openLimit bounds an opening, in real time: a store in memory opens in
// milliseconds.
const openLimit = time.Minute

func newPebbleDisk() *pebbleDisk { return &pebbleDisk{fs: vfs.NewCrashableMem()} }

func (d *pebbleDisk) open() (ledger.Store, error) {
	ctx, cancel := context.WithTimeout(context.Background(), openLimit)
	defer cancel()
	s, err := storage.Open(ctx, storage.Options{Dir: pebbleDir, FS: d.fs, Logger: slog.New(slog.DiscardHandler),
		OnFatal: func(error) {}, BallastBytes: -1, HeadInterval: time.Hour})
	if err != nil {
		return nil, fmt.Errorf("open the real store: %w", err)
	}
	d.store, d.pending, d.start, d.head = s, nil, true, s.Stats().Applied
	return pebbleStore{ledger.OnDisk(s), d}, nil
}

func (d *pebbleDisk) recovered() {
	d.start = false
	d.take()
}

// take copies what a power cut would leave now.
func (d *pebbleDisk) take() { d.left = d.fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 0}) }

func (d *pebbleDisk) applied() uint64 { return d.head }

func (d *pebbleDisk) sync(fail error) error {
	if fail != nil || len(d.pending) == 0 {
		return fail
	}
	for _, p := range d.pending {
		if err := p.Wait(); err != nil {
			return fmt.Errorf("sync the real store: %w", err)
		}
	}
	d.pending = nil
	d.take()
	return nil
}

func (d *pebbleDisk) crash(share float64) (uint64, error) {
	if share >= 0.5 {
		if err := d.sync(nil); err != nil {
			return 0, err
		}
	}
	kept, left := d.head-uint64(len(d.pending)), d.left
	if err := d.close(); err != nil {
		return 0, err
	}
	if left != nil {
		d.fs = left
	}
	d.head = kept
	return kept, nil
}

// copy copies what the last sync left: a crash goes on with that.
func (d *pebbleDisk) copy() {
	d.older = d.left.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 0})
}

func (d *pebbleDisk) restore() error {
	d.fs = d.older.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 0})
	return nil
}

// close lets go of the process's store, whatever it still had to write.
func (d *pebbleDisk) close() error {
	if d.store == nil {
		return nil
	}
	for _, p := range d.pending {
		if err := p.Wait(); err != nil {
			return fmt.Errorf("let go of the real store: %w", err)
		}
	}
	s := d.store
	d.store, d.pending, d.left = nil, nil, nil
	return s.Close()
}

// pebbleStore notes what is applied. Its Pendings are waited for by sync.
type pebbleStore struct {
	ledger.Store
	d *pebbleDisk
}

func (s pebbleStore) Apply(b ledger.Batch) (ledger.Pending, error) {
	p, err := s.Store.Apply(b)
	if err != nil {
		return nil, err
	}
	s.d.head++
	if s.d.start {
		return p, nil // its caller waits by itself
	}
	s.d.pending = append(s.d.pending, p)
	return waited{s.d, s.d.head}, nil
}

// waited is a Pending that sync waits for.
type waited struct {
	d    *pebbleDisk
	head uint64
}

func (p waited) Wait() error {
	if p.head > p.d.head-uint64(len(p.d.pending)) {
		return memstore.ErrNotDurable
	}
	return nil
}
