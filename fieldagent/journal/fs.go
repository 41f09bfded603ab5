package journal

import "io"

// FS is what the journal needs of a file system. OS is the real one;
// journaltest has one that loses what was not synced. Names are paths as
// filepath.Join makes them. Errors wrap those of package io/fs and the errno,
// so that a full disk stays recognisable.
type FS interface {
	// Lock creates dir if need be, durably, and takes the exclusive lock named
	// name until the result is closed or the process ends. A lock that somebody
	// else holds is an ErrLocked, returned at once.
	Lock(dir, name string) (io.Closer, error)
	// ReadFile returns the content, or an error if it is more than limit bytes.
	ReadFile(name string, limit int64) ([]byte, error)
	// OpenFile opens a file for writing, creates it if it is missing and empties
	// it if asked to.
	OpenFile(name string, truncate bool) (File, error)
	// Rename replaces newname by oldname atomically; it is durable after SyncDir.
	Rename(oldname, newname string) error
	// SyncDir makes the names in a directory durable.
	SyncDir(dir string) error
}

// File is an open file. The journal writes at offsets it knows, not in append
// mode: the checksum of a frame names its offset, and Open has to write the
// last frame again in place.
type File interface {
	io.WriterAt
	// Truncate cuts the file to size bytes; durable after Sync.
	Truncate(size int64) error
	// Sync makes content and size durable. After an error nothing is known.
	Sync() error
	io.Closer
}
