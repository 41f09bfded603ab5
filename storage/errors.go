package storage

import (
	"errors"
	"fmt"
)

// Errors that callers branch on.
var (
	// ErrDead says that the store has stopped for good: a write or fsync failed,
	// or the engine gave up. What was not acknowledged before is in an unknown
	// state until the process restarts and recovers. It wraps the cause.
	ErrDead = errors.New("store is dead, restart the process to recover from disk")
	// ErrClosed says that Close was called.
	ErrClosed = errors.New("store is closed")
	// ErrReservedKey says that a key is empty or begins with 0x00.
	ErrReservedKey = errors.New("key is empty or begins with 0x00, which belongs to the store")
	// ErrTooLarge says that a key exceeds MaxKeyBytes or a batch MaxBatchBytes.
	ErrTooLarge = errors.New("key or batch too large")
)

// OpenErrorKind is the reason why a store did not open.
type OpenErrorKind int

// The reasons, one for each different thing that an operator has to do.
const (
	// OpenIO is an error of the disk or file system that fits no other kind.
	OpenIO OpenErrorKind = iota
	// OpenLocked: another process, or another Store of this process, has it open.
	OpenLocked
	// OpenVersion: written by a newer version, or by one no longer supported.
	OpenVersion
	// OpenCorrupt: a file is damaged; nothing was dropped.
	OpenCorrupt
	// OpenNoSpace: the file system has less than Options.MinFreeBytes free.
	OpenNoSpace
	// OpenRolledBack: readable, but records that were acknowledged are missing.
	OpenRolledBack
	// OpenPermission: missing rights, or a read-only file system.
	OpenPermission
	// OpenStuck: the engine did not finish opening before the context ended.
	OpenStuck
)

// String names the kind in one word, as it appears in messages and logs.
func (k OpenErrorKind) String() string {
	switch k {
	case OpenIO:
		return "io"
	case OpenLocked:
		return "locked"
	case OpenVersion:
		return "version"
	case OpenCorrupt:
		return "corrupt"
	case OpenNoSpace:
		return "no-space"
	case OpenRolledBack:
		return "rolled-back"
	case OpenPermission:
		return "permission"
	case OpenStuck:
		return "stuck"
	}
	return fmt.Sprintf("unknown(%d)", int(k))
}

// advice is what the operator should do next.
func (k OpenErrorKind) advice(dir string) string {
	switch k {
	case OpenLocked:
		return fmt.Sprintf("stop the other process (find it with: fuser -v %s/%s/LOCK)", dir, engineDir)
	case OpenVersion:
		return "run the version that wrote it, or restore a backup made by this version"
	case OpenCorrupt:
		return "keep a copy of the directory, check the disk, then restore the newest backup"
	case OpenNoSpace:
		return "free space on this file system, then start again"
	case OpenRolledBack:
		return fmt.Sprintf("keep a copy of the directory and restore the newest backup; to go on without the missing records move %s/%s away", dir, headFile)
	case OpenPermission:
		return "check owner and mode of the directory and whether the file system is mounted read-only"
	case OpenStuck:
		return "check for a full or hanging disk, then restart the process"
	case OpenIO:
	}
	return "check the disk and the kernel log, then start again"
}

// OpenError is the only error type that Open returns.
type OpenError struct {
	Kind  OpenErrorKind
	Dir   string // the store directory
	Cause error  // what was found; never nil
}

// Error says what happened, where, and what to do next.
func (e *OpenError) Error() string {
	return fmt.Sprintf("open store %s: %s: %v; %s", e.Dir, e.Kind, e.Cause, e.Kind.advice(e.Dir))
}

// Unwrap gives the cause.
func (e *OpenError) Unwrap() error { return e.Cause }
