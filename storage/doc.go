// Package storage is the gateway's durable log store: Pebble, opened right.
//
// It knows keys, values and batches, and nothing of what they mean. The one
// promise it makes is small and absolute:
//
//	Pending.Wait returned nil  =>  the batch is on disk, whole, and everything
//	                               applied before it is on disk too.
//
// # The way of one batch
//
//	NewBatch -> Set/Delete/DeleteRange -> Apply ----------> Pending.Wait
//	                                       |                 |
//	                                       |                 +- nil: on disk, may be told to anyone
//	                                       |                 +- error: the store is dead, stop the process
//	                                       +- in the log's order, visible to Get and Scan, not yet on disk
//
// Apply and Wait are apart so that the caller can fill and apply the next batch
// while the disk works on the last one: many batches share one fdatasync.
// Because Apply makes a batch visible before it is durable, a reader that shows
// what it read to the outside calls Barrier between reading and showing.
//
// # The rules
//
//  1. A failed write or fsync is final. The store is dead from then on: every
//     Apply, Wait and Barrier returns ErrDead, and Options.OnFatal is called,
//     which by default ends the process with code 70. Nothing retries a sync.
//  2. The order of Apply calls is the order of the log. After a power cut the
//     store holds a prefix of that order, and of each batch all keys or none.
//  3. Nothing acknowledged vanishes silently. Every batch carries a number, the
//     head; a sidecar file remembers a head known to be on disk and the state of
//     the engine's manifest, and Open compares (see rungs.go and headfile.go).
//  4. Every refusal to open is an *OpenError that says what, where and what to
//     do next.
//  5. Callbacks of the engine run under its locks: they count and hand a note to
//     a goroutine, and never touch the database.
//
// # On disk
//
//	DIR/HEAD      sidecar, 40 bytes, replaced atomically, lazily
//	DIR/BALLAST   reserve of a few MiB, given up when the disk is full
//	DIR/db/       Pebble: log, tables, manifest, LOCK
//
// # Keys
//
// Keys are compared as bytes. Keys that begin with 0x00 belong to the store
// itself. The codec in key.go builds keys whose byte order is the order of
// their fields.
package storage
