package storage

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2/vfs"
)

const ballastFile = "BALLAST"

// ballast is a file of some MiB beside the engine's directory. When a write
// meets a full disk it is removed and the write is tried once more, so that what
// is in flight still gets to the disk and the process can stop taking new work
// instead of dying. It uses the file system below the one that notices full
// disks, so that it never waits for itself.
type ballast struct {
	fs   vfs.FS
	path string
	size int64 // 0: no ballast
	gone atomic.Bool
	tell func(noteKind, string)
}

// drop gives the reserve up. It is the callback of a full disk: all writes of the
// engine wait while it runs, so it removes one file and leaves a note.
func (b *ballast) drop() {
	if b.size == 0 {
		b.tell(noteDiskFull, "there is no reserve")
		return
	}
	detail := b.path
	if err := removeIfThere(b.fs, b.path); err != nil {
		detail = err.Error()
	}
	b.gone.Store(true)
	b.tell(noteDiskFull, detail)
}

// present says whether the reserve is there in full length.
func (b *ballast) present() (bool, error) {
	info, err := b.fs.Stat(b.path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("look for reserve %s: %w", b.path, err)
	}
	return info.Size() == b.size, nil
}

// ensure makes the reserve if it is missing and leaves at least minFree after
// that. It says whether the reserve is there now.
func (b *ballast) ensure(minFree uint64) (bool, error) {
	if b.size == 0 {
		return false, nil
	}
	if ok, err := b.present(); ok || err != nil {
		b.gone.Store(!ok)
		return ok, err
	}
	usage, err := b.fs.GetDiskUsage(b.fs.PathDir(b.path))
	if err != nil {
		return false, fmt.Errorf("ask for free space: %w", err)
	}
	if usage.AvailBytes < minFree+uint64(b.size) {
		b.gone.Store(true)
		return false, nil
	}
	b.gone.Store(false) // before the write, which the disk may answer with drop
	if err := b.write(); err != nil {
		b.gone.Store(true)
		return false, errors.Join(err, removeIfThere(b.fs, b.path))
	}
	if err := syncDir(b.fs, b.fs.PathDir(b.path)); err != nil {
		return false, err
	}
	return !b.gone.Load(), nil
}

// write fills the file with noise: zeros would take no room on a file system
// that compresses or keeps holes.
func (b *ballast) write() error {
	noise := make([]byte, min(b.size, 1<<20))
	if _, err := rand.NewChaCha8([32]byte{}).Read(noise); err != nil {
		return fmt.Errorf("make noise for the reserve: %w", err)
	}
	f, err := b.fs.Create(b.path, vfs.WriteCategoryUnspecified)
	if err != nil {
		return fmt.Errorf("create reserve: %w", err)
	}
	for left := b.size; left > 0 && err == nil; left -= int64(len(noise)) {
		_, err = f.Write(noise[:min(left, int64(len(noise)))])
	}
	if err == nil {
		err = f.Sync()
	}
	if err := errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("write reserve %s: %w", b.path, err)
	}
	return nil
}
