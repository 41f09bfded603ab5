package memstore

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/apollo-11/apollo11/gateway/ledger"
	"github.com/apollo-11/apollo11/storage"
)

// Errors of what has not reached the disk.
var (
	// ErrNotDurable means that Sync has not covered it.
	ErrNotDurable = errors.New("not on disk yet")
	// ErrLost means that a crash took it.
	ErrLost = errors.New("lost in a crash")
)

// Store is a store in memory. It belongs to one goroutine.
type Store struct {
	table   table
	pending []undo // applied and not durable, oldest first
	durable uint64 // number of the newest durable batch
	applied uint64
	era     int // counts crashes
	auto    bool
	failing error
}

// undo is how to take one batch back, newest change first when read backwards.
type undo []change

// change is one key before and after a batch touched it; nil is absent.
type change struct {
	key      string
	old, val []byte
}

var _ ledger.Store = (*Store)(nil)

// New returns an empty store.
func New() *Store { return &Store{} }

// Batch gathers changes.
type Batch struct {
	changes []change
	err     error
	over    bool
}

// NewBatch returns an empty batch.
func (s *Store) NewBatch() ledger.Batch { return &Batch{} }

// Set writes value under key. Both are copied.
func (b *Batch) Set(key, value []byte) {
	if b.check(key) {
		b.changes = append(b.changes, change{key: string(key), val: append([]byte{}, value...)})
	}
}

// Delete removes key.
func (b *Batch) Delete(key []byte) {
	if b.check(key) {
		b.changes = append(b.changes, change{key: string(key)})
	}
}

// Close drops the batch.
func (b *Batch) Close() { b.over = true }

func (b *Batch) check(key []byte) bool {
	if b.over {
		panic("bug: batch used after Apply or Close")
	}
	switch {
	case b.err != nil:
	case len(key) == 0 || key[0] == 0x00:
		b.err = fmt.Errorf("key %x: %w", key, storage.ErrReservedKey)
	case len(key) > storage.MaxKeyBytes:
		b.err = fmt.Errorf("key of %d bytes: %w", len(key), storage.ErrTooLarge)
	}
	return b.err == nil
}

// Apply makes a batch visible.
func (s *Store) Apply(in ledger.Batch) (ledger.Pending, error) {
	b, ok := in.(*Batch)
	if !ok || b.over {
		panic("bug: batch of another store, or used after Apply or Close")
	}
	b.over = true
	if b.err != nil {
		return nil, b.err
	}
	if s.failing != nil {
		return nil, s.failing
	}
	back := undo(b.changes)
	for k := range back {
		c := &back[k]
		c.old, _ = s.table.get(c.key)
		s.put(c.key, c.val)
	}
	s.applied++
	s.pending = append(s.pending, back)
	p := Pending{s, s.applied, s.era}
	if s.auto {
		s.Sync(s.applied)
	}
	return p, nil
}

func (s *Store) put(key string, val []byte) {
	if val == nil {
		s.table.remove(key)
		return
	}
	s.table.set(key, val)
}

// Pending is a batch that was applied.
type Pending struct {
	s    *Store
	head uint64
	era  int
}

// Wait returns nil when the batch is durable, and an error at once otherwise.
func (p Pending) Wait() error {
	switch {
	case p.s.era != p.era:
		return ErrLost
	case p.head > p.s.durable && p.s.failing != nil:
		return p.s.failing
	case p.head > p.s.durable:
		return ErrNotDurable
	}
	return nil
}

// Get returns the newest applied value of key.
func (s *Store) Get(key []byte) (value []byte, ok bool, err error) {
	if len(key) == 0 || key[0] == 0x00 {
		return nil, false, fmt.Errorf("get %x: %w", key, storage.ErrReservedKey)
	}
	v, ok := s.table.get(string(key))
	if !ok {
		return nil, false, nil
	}
	return append([]byte{}, v...), true, nil
}

// Scan calls fn for each key from lo to before hi, in order or in reverse.
func (s *Store) Scan(lo, hi []byte, reverse bool, fn func(k, v []byte) (more bool, err error)) error {
	if hi != nil && bytes.Compare(lo, hi) >= 0 {
		return nil
	}
	scan := s.table.scan
	if reverse {
		scan = s.table.scanBack
	}
	return scan(lo, hi, func(e entry) (bool, error) { return fn([]byte(e.key), bytes.Clone(e.val)) })
}

// Barrier returns nil when everything applied is durable, and an error at once
// otherwise.
func (s *Store) Barrier(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if s.durable < s.applied {
		return ErrNotDurable
	}
	return nil
}

// Applied is the number of the newest applied batch; the first one is 1.
func (s *Store) Applied() uint64 { return s.applied }

// Durable is the number of the newest durable batch.
func (s *Store) Durable() uint64 { return s.durable }

// Sync makes everything up to a batch durable.
func (s *Store) Sync(head uint64) {
	if n := min(head, s.applied); n > s.durable {
		k := n - s.durable
		clear(s.pending[:k])
		s.pending = s.pending[k:]
		s.durable = n
	}
}

// SetAuto makes batches durable as they are applied, or not any more.
func (s *Store) SetAuto(on bool) { s.auto = on }

// Fail makes Apply, and Wait of what is not durable, return err; nil ends that.
func (s *Store) Fail(err error) { s.failing = err }

// Crash is a power cut: of the batches that were not durable the first keep
// survive, the others are gone. Pendings from before are of no use any more.
func (s *Store) Crash(keep int) {
	keep = min(max(keep, 0), len(s.pending))
	for k := len(s.pending) - 1; k >= keep; k-- {
		back := s.pending[k]
		for n := len(back) - 1; n >= 0; n-- {
			s.put(back[n].key, back[n].old)
		}
	}
	s.durable += uint64(keep)
	s.applied, s.pending, s.era, s.failing = s.durable, nil, s.era+1, nil
}

// Copy returns another store with what is durable in this one.
func (s *Store) Copy() *Store {
	c := New()
	for _, chunk := range s.table.chunks {
		c.table.chunks = append(c.table.chunks, append(make([]entry, 0, chunkLen+1), chunk...))
	}
	for k := len(s.pending) - 1; k >= 0; k-- {
		back := s.pending[k]
		for n := len(back) - 1; n >= 0; n-- {
			c.put(back[n].key, back[n].old)
		}
	}
	return c
}
