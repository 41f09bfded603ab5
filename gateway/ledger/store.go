package ledger

import (
	"context"
	"fmt"

	"github.com/apollo-11/apollo11/storage"
)

// Store is what a ledger needs of the store under it. In production that is a
// *storage.Store (New); the simulator of whole sites has one in memory that can
// be crashed at will (Over). One conformance suite runs on both.
//
// The rules are those of package storage: Apply makes a batch visible at once,
// Wait of its Pending says that it is on disk, batches reach the disk in the
// order of Apply, and of each all or nothing.
type Store interface {
	// NewBatch returns an empty batch, to be handed to Apply or Closed.
	NewBatch() Batch
	// Apply appends a batch to the log. There is exactly one Wait for each
	// Pending.
	Apply(Batch) (Pending, error)
	// Get returns the newest applied value, which belongs to the caller.
	Get(key []byte) (value []byte, ok bool, err error)
	// Scan calls fn for the keys from lo to before hi, in order or in reverse,
	// until it wants no more; nil bounds are the first and the last key.
	Scan(lo, hi []byte, reverse bool, fn func(k, v []byte) (more bool, err error)) error
	// Barrier waits until everything applied before it is on disk.
	Barrier(ctx context.Context) error
}

// Batch gathers changes that are made together or not at all. Its errors come
// out of Apply.
type Batch interface {
	Set(key, value []byte)
	Delete(key []byte)
	// Close drops a batch that was not applied; after Apply it does nothing.
	Close()
}

// Pending is a batch on its way to the disk.
type Pending interface {
	// Wait returns nil when the batch and everything before it is on disk.
	Wait() error
}

// onDisk is a *storage.Store as a Store. Its types fit into the interfaces as
// they are, so that this costs nothing.
type onDisk struct{ *storage.Store }

func (d onDisk) NewBatch() Batch { return d.Store.NewBatch() }

func (d onDisk) Apply(b Batch) (Pending, error) {
	own, ok := b.(*storage.Batch)
	if !ok {
		return nil, fmt.Errorf("bug: a batch of type %T in a store on disk", b)
	}
	p, err := d.Store.Apply(own)
	if err != nil {
		return nil, err
	}
	return p, nil
}

// OnDisk returns a store on disk as a ledger sees it.
func OnDisk(s *storage.Store) Store { return onDisk{s} }
