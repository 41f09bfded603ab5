package storage

import (
	"errors"
	"strings"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// markerFS puts the engine's marker files in order with what they stand for.
//
// A marker is an empty file whose name says which manifest (or format) is the
// current one. To move it the engine creates the new name, removes the old one,
// and syncs the directory once, at the end. A file system that keeps names in no
// order may then, after a power cut, have the new marker but not the manifest it
// names, or neither marker, and the store doesn't open. So the directory is
// synced before a marker is made and again before the engine removes the old
// one. It happens a few times in the life of a process.
type markerFS struct{ vfs.FS }

func (m markerFS) Create(name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	if !strings.HasPrefix(m.PathBase(name), "marker.") {
		return m.FS.Create(name, c)
	}
	dir := m.PathDir(name)
	if err := syncDir(m.FS, dir); err != nil {
		return nil, err
	}
	f, err := m.FS.Create(name, c)
	if err != nil {
		return nil, err
	}
	if err := syncDir(m.FS, dir); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// Unwrap gives the file system below.
func (m markerFS) Unwrap() vfs.FS { return m.FS }
