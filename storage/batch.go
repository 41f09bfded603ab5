package storage

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2"
)

const (
	// MaxKeyBytes bounds a key: far above any key this gateway builds, far below
	// what would hurt the engine's index blocks.
	MaxKeyBytes = 1024
	// MaxBatchBytes bounds a batch. It must stay clearly below the engine's limit
	// of 4 GiB and fit a small box's memory several times.
	MaxBatchBytes = 4 << 20
	// GoodBatchBytes is where a caller that gathers many records should stop and
	// apply: a batch of half a memtable (2 MiB by default) takes a slower way through the
	// engine, and beyond 64 KiB sharing an fsync gains nothing more.
	GoodBatchBytes = 64 << 10
)

// Batch gathers changes that become visible and durable together or not at all.
// It is for one goroutine at a time. Errors of Set, Delete and DeleteRange are
// kept and returned by Apply, which then applies nothing.
type Batch struct {
	p   Pending
	err error
}

// NewBatch returns an empty batch. Hand it to Apply or Close it.
func (s *Store) NewBatch() *Batch {
	return &Batch{p: Pending{s: s, b: s.db.NewBatch()}}
}

// Set writes value under key. Both are copied.
func (b *Batch) Set(key, value []byte) {
	if b.check(key, len(value)) {
		b.note(b.engine().Set(key, value, nil))
	}
}

// Delete removes key; that it is not there is no error.
func (b *Batch) Delete(key []byte) {
	if b.check(key, 0) {
		b.note(b.engine().Delete(key, nil))
	}
}

// DeleteRange removes all keys from lo (included) to hi (not included); nothing
// if lo is not below hi, which the engine itself does not forgive.
func (b *Batch) DeleteRange(lo, hi []byte) {
	if b.check(lo, 0) && b.check(hi, 0) && bytes.Compare(lo, hi) < 0 {
		b.note(b.engine().DeleteRange(lo, hi, nil))
	}
}

// Empty says whether nothing was put into the batch.
func (b *Batch) Empty() bool { return b.engine().Empty() }

// Size is the length of the batch in the log, in bytes.
func (b *Batch) Size() int { return b.engine().Len() }

// Close drops a batch that is not going to be applied. After Apply it does
// nothing, so that it can be deferred.
func (b *Batch) Close() { b.p.release() }

// engine is the batch of the engine, while it is the caller's.
func (b *Batch) engine() *pebble.Batch {
	if b.p.applied || b.p.b == nil {
		panic("bug: batch used after Apply or Close")
	}
	return b.p.b
}

func (b *Batch) check(key []byte, more int) bool {
	switch {
	case b.err != nil:
	case len(key) == 0 || key[0] == 0x00:
		b.err = fmt.Errorf("key %x: %w", key, ErrReservedKey)
	case len(key) > MaxKeyBytes:
		b.err = fmt.Errorf("key of %d bytes, limit %d: %w", len(key), MaxKeyBytes, ErrTooLarge)
	case more > MaxBatchBytes || b.engine().Len()+len(key)+more > MaxBatchBytes:
		b.err = fmt.Errorf("batch of more than %d bytes: %w", MaxBatchBytes, ErrTooLarge)
	}
	return b.err == nil
}

func (b *Batch) note(err error) {
	if err != nil && b.err == nil {
		b.err = fmt.Errorf("add to batch: %w", err)
	}
}

// Apply appends the batch to the log and makes it visible to readers. It is not
// durable before Wait of the returned Pending says so; there must be exactly one
// Wait for each Pending, otherwise Barrier waits in vain. The batch belongs to
// the store from here on, whatever is returned.
//
// The order of Apply calls is the order of the log; calls exclude each other.
// Apply may block while the engine catches up or the disk is full (Stats.Stalled).
// Errors: the batch's own (nothing happened), ErrClosed, or ErrDead.
func (s *Store) Apply(b *Batch) (*Pending, error) {
	if b.p.s != s || b.p.applied || b.p.b == nil {
		panic("bug: batch of another store, or used after Apply or Close")
	}
	if b.err != nil {
		b.Close()
		return nil, b.err
	}
	if !s.gate.enter() {
		b.Close()
		return nil, ErrClosed
	}
	defer s.gate.leave()
	s.applyMu.Lock()
	defer s.applyMu.Unlock()
	if err := s.death.fate(); err != nil {
		b.Close()
		return nil, err
	}
	return s.applyLocked(&b.p)
}

// applyLocked needs applyMu. A panic of the engine means that its log can't be
// written: the store is dead.
func (s *Store) applyLocked(p *Pending) (_ *Pending, err error) {
	defer func() {
		if r := recover(); r != nil {
			s.death.declare(fmt.Errorf("apply batch: %w", panicError(r)))
			err = s.death.err()
		}
	}()
	head := s.applied.Load() + 1
	key, value := rungKey(rungOf(head)), [8]byte{}
	binary.BigEndian.PutUint64(value[:], head)
	if err := p.b.Set(key[:], value[:], nil); err != nil {
		p.release()
		return nil, fmt.Errorf("number the batch: %w", err)
	}
	p.head = head
	p.applied = true
	if err := s.db.ApplyNoSyncWait(p.b, pebble.Sync); err != nil {
		s.death.declare(fmt.Errorf("apply batch: %w", err))
		return nil, s.death.err()
	}
	s.applied.Store(head)
	return p, nil
}

// panicError makes an error of what the engine panicked with.
func panicError(r any) error {
	if err, ok := r.(error); ok {
		return err
	}
	return fmt.Errorf("engine: %v", r)
}

// Pending is a batch on its way to the disk.
type Pending struct {
	s       *Store
	b       *pebble.Batch
	head    uint64
	applied bool
	waited  atomic.Bool
}

// Wait returns nil when the batch, and every batch applied before it, is on
// disk. Any error means that the store is dead: it is unknown whether this batch
// will be there after recovery. Waits may run on other goroutines than Apply and
// in any order, but once for each Pending. Wait takes as long as the disk does;
// the disk has no deadline, the caller's answer to its client should have one.
func (p *Pending) Wait() error {
	if !p.waited.CompareAndSwap(false, true) {
		panic("bug: Pending.Wait called twice")
	}
	if err := p.b.SyncWait(); err != nil {
		p.s.death.declare(fmt.Errorf("sync log: %w", err))
		return p.s.death.err()
	}
	if err := p.b.Close(); err != nil {
		p.s.death.declare(fmt.Errorf("release batch: %w", err))
	}
	p.b = nil
	if err := p.s.death.fate(); err != nil {
		return err
	}
	p.s.durable.raise(p.head)
	return nil
}

// Head is the number of this batch in the order of the log: the first batch of a
// store is 1, each next one higher by 1, across restarts.
func (p *Pending) Head() uint64 { return p.head }

// release gives a batch that was not applied back. After Apply it must not even
// look at p.b, which is Wait's.
func (p *Pending) release() {
	if p.applied || p.b == nil {
		return
	}
	// Close of a batch that was never committed has no error but "closed twice".
	if err := p.b.Close(); err != nil && !errors.Is(err, pebble.ErrClosed) {
		panic("bug: close batch: " + err.Error())
	}
	p.b = nil
}

// Commit is Apply and Wait in one: nil means on disk.
func (s *Store) Commit(b *Batch) error {
	p, err := s.Apply(b)
	if err != nil {
		return err
	}
	return p.Wait()
}
