package storage

import (
	"errors"
	"fmt"
	"io/fs"
	"syscall"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// ReplaceFile makes the file at path hold exactly data, or leaves it as it was:
// write a temporary file beside it, sync it, rename it over path, sync the
// directory. After a power cut at any moment the file is the old or the new one,
// never empty and never a mixture. It is the only way in which this package
// replaces a file. A nil fsys is the real disk. Not for two writers of one path.
func ReplaceFile(fsys vfs.FS, path string, data []byte) error {
	if fsys == nil {
		fsys = vfs.Default
	}
	tmp := path + ".tmp"
	if err := writeSynced(fsys, tmp, data); err != nil {
		return fmt.Errorf("replace %s: %w", path, errors.Join(err, removeIfThere(fsys, tmp)))
	}
	if err := fsys.Rename(tmp, path); err != nil {
		return fmt.Errorf("replace %s: %w", path, errors.Join(err, removeIfThere(fsys, tmp)))
	}
	return syncDir(fsys, fsys.PathDir(path))
}

// writeSynced creates path with data in it and syncs it. The name itself is
// durable only after the directory is synced too.
func writeSynced(fsys vfs.FS, path string, data []byte) error {
	f, err := fsys.Create(path, vfs.WriteCategoryUnspecified)
	if err != nil {
		return fmt.Errorf("create %s: %w", path, err)
	}
	if _, err := f.Write(data); err != nil {
		return fmt.Errorf("write %s: %w", path, errors.Join(err, f.Close()))
	}
	if err := f.Sync(); err != nil {
		return fmt.Errorf("sync %s: %w", path, errors.Join(err, f.Close()))
	}
	if err := f.Close(); err != nil {
		return fmt.Errorf("close %s: %w", path, err)
	}
	return nil
}

// removeIfThere removes path; that it was not there is no error.
func removeIfThere(fsys vfs.FS, path string) error {
	if err := fsys.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove %s: %w", path, err)
	}
	return nil
}

// syncDir makes the names in dir durable.
func syncDir(fsys vfs.FS, dir string) error {
	d, err := fsys.OpenDir(dir)
	if err != nil {
		return fmt.Errorf("open directory %s: %w", dir, err)
	}
	if err := d.Sync(); err != nil {
		return fmt.Errorf("sync directory %s: %w", dir, errors.Join(err, d.Close()))
	}
	if err := d.Close(); err != nil {
		return fmt.Errorf("close directory %s: %w", dir, err)
	}
	return nil
}

// makeDirs creates dir and its parents and makes their names durable. Parents
// that were there already are synced as well, because whoever made them may not
// have done it, and a store below a name that a power cut forgets is gone. Only
// for those it is no error when they can't be synced for lack of rights, or
// because they are on a read-only or immutable file system.
func makeDirs(fsys vfs.FS, dir string) error {
	made := map[string]bool{}
	for d := dir; ; d = fsys.PathDir(d) {
		if _, err := fsys.Stat(d); err == nil {
			break
		} else if !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("look for %s: %w", d, err)
		}
		made[d] = true
		made[fsys.PathDir(d)] = true
		if fsys.PathDir(d) == d {
			break
		}
	}
	if err := fsys.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("create %s: %w", dir, err)
	}
	for d := dir; ; d = fsys.PathDir(d) {
		err := syncDir(fsys, d)
		if err != nil && (made[d] || !cannotSync(err)) {
			return err
		}
		if fsys.PathDir(d) == d {
			return nil
		}
	}
}

// cannotSync says that a directory can't be synced by its nature or for lack of
// rights, as opposed to a sync that went wrong.
func cannotSync(err error) bool {
	return errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EROFS) ||
		errors.Is(err, syscall.EINVAL) || errors.Is(err, syscall.ENOTSUP)
}
