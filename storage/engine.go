package storage

import (
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/bloom"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// engineDir is the engine's directory inside the store directory.
const engineDir = "db"

// engineFormat is pinned: since this format the log tells a damaged record from
// a torn tail. A store never goes back to a lower one.
const engineFormat = pebble.FormatWALSyncChunks

// Settings for a small box. The memtable decides about both speed and footprint:
// each one that fills costs a table, a log file and a handful of fsyncs. Measured
// against the bound of BenchmarkDurableRecords with 256 writers: 0.35 at 1 MiB,
// 0.65 at 4 MiB, 0.8 at 8 MiB. In return memory takes up to memTablesMax of them,
// and the disk keeps memTablesMax + 1 recycled log files of 1.1 times the size.
const (
	defaultMemTableBytes = 4 << 20
	minMemTableBytes     = 256 << 10
	maxMemTableBytes     = 64 << 20
	memTablesMax         = 3        // then writes stall
	cacheBytes           = 16 << 20 // holds the filters of a long history
	openFilesMax         = 100
	manifestBytes        = 4 << 20 // default 128 MiB; it is read at every start
	filterBitsByKey      = 10      // 1 % false positives for keys that are not there
	// trimDelay is how long a DeleteRange may wait in memory before it starts to
	// give disk space back.
	trimDelay = 10 * time.Second
)

// engineOptions builds the engine's options. It has no merger and no comparer of
// its own: their names are persisted and would have to match for ever.
func engineOptions(fsys vfs.FS, memTableBytes uint64, lock *pebble.Lock, e *events, d *death) *pebble.Options {
	o := &pebble.Options{
		FS:                          fsys,
		Lock:                        lock,
		Logger:                      engineLogger{e, d},
		EventListener:               e.listener(),
		FormatMajorVersion:          engineFormat,
		MemTableSize:                memTableBytes,
		MemTableStopWritesThreshold: memTablesMax,
		CacheSize:                   cacheBytes,
		MaxOpenFiles:                openFilesMax,
		MaxManifestFileSize:         manifestBytes,
		FlushDelayDeleteRange:       trimDelay,
	}
	for i := range o.Levels {
		o.Levels[i].FilterPolicy = bloom.FilterPolicy(filterBitsByKey)
	}
	return o
}

// engineExists says whether there is an engine in dir, and refuses formats that
// this build of the engine can't read, before the engine does it with one number
// instead of two.
func engineExists(fsys vfs.FS, dir string) (bool, error) {
	names, err := fsys.List(dir)
	if err != nil {
		return false, fmt.Errorf("list %s: %w", dir, err)
	}
	for _, name := range names {
		// marker.format-version.<change>.<format>
		rest, ok := strings.CutPrefix(name, "marker.format-version.")
		if !ok {
			continue
		}
		_, digits, _ := strings.Cut(rest, ".")
		v, err := strconv.ParseUint(digits, 10, 32)
		if err != nil {
			return false, fmt.Errorf("format marker %q: %w", name, err)
		}
		if f := pebble.FormatMajorVersion(v); f > pebble.FormatNewest || f < pebble.FormatMinSupported {
			return false, versionError{"engine format", v, uint64(pebble.FormatMinSupported), uint64(pebble.FormatNewest)}
		}
	}
	desc, err := pebble.Peek(dir, fsys)
	if err != nil {
		return false, fmt.Errorf("look at %s: %w", dir, err)
	}
	return desc.Exists, nil
}

// versionError says that something on disk has a version outside what is known.
type versionError struct {
	what             string
	found, low, high uint64
}

func (e versionError) Error() string {
	return fmt.Sprintf("%s is %d, this program knows %d to %d", e.what, e.found, e.low, e.high)
}

// enginePanic says that the engine panicked while it opened, which it does on
// some kinds of damage.
type enginePanic struct{ value any }

func (e enginePanic) Error() string { return fmt.Sprintf("engine panicked: %v", e.value) }

// kindOf sorts what went wrong while opening. Errors of the operating system
// carry an errno; an error without one is about the content of a file.
func kindOf(err error) OpenErrorKind {
	var (
		open *OpenError
		ver  versionError
		no   syscall.Errno
		hole *holeError
	)
	switch {
	case errors.As(err, &open):
		return open.Kind
	case errors.As(err, &ver):
		return OpenVersion
	case errors.As(err, &hole):
		return OpenRolledBack
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return OpenNoSpace
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EROFS):
		return OpenPermission
	case pebble.IsCorruptionError(err), errors.Is(err, fs.ErrNotExist):
		return OpenCorrupt
	case errors.As(err, &no):
		return OpenIO
	}
	return OpenCorrupt
}

// lockKind sorts what went wrong while locking: the lock call itself returns a
// bare errno, opening the lock file one with a path.
func lockKind(err error) OpenErrorKind {
	var path *fs.PathError
	if errors.As(err, &path) {
		return kindOf(err)
	}
	var no syscall.Errno
	if errors.As(err, &no) && no != syscall.EAGAIN && no != syscall.EACCES {
		return kindOf(err)
	}
	return OpenLocked
}
