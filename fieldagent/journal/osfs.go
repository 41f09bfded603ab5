//go:build unix

package journal

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// OS returns the real file system.
func OS() FS { return osFS{} }

type osFS struct{}

// Modes: the journal holds commands and results, which are nobody else's.
const (
	dirMode  = 0o700
	fileMode = 0o600
)

func (osFS) Lock(dir, name string) (io.Closer, error) {
	if err := mkdirDurable(dir); err != nil {
		return nil, err
	}
	path := filepath.Join(dir, name)
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|syscall.O_CLOEXEC, fileMode)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		err = lockError(f, path, err)
		return nil, errors.Join(err, f.Close())
	}
	// The number only helps people to find the holder; the lock is the kernel's.
	pid := strconv.Itoa(os.Getpid()) + "\n"
	if err := f.Truncate(0); err != nil {
		return nil, errors.Join(fmt.Errorf("note the process in %s: %w", path, err), f.Close())
	}
	if _, err := f.WriteAt([]byte(pid), 0); err != nil && !errors.Is(err, syscall.ENOSPC) {
		return nil, errors.Join(fmt.Errorf("note the process in %s: %w", path, err), f.Close())
	}
	return f, nil
}

// lockError explains a refused lock.
func lockError(f *os.File, path string, err error) error {
	if !errors.Is(err, syscall.EWOULDBLOCK) {
		return fmt.Errorf("lock %s: %w", path, err)
	}
	holder := "another process"
	buf := make([]byte, 16)
	if n, _ := f.ReadAt(buf, 0); n > 0 {
		holder = "process " + strings.TrimSpace(string(buf[:n]))
	}
	return fmt.Errorf("%w: %s holds %s: stop it, or give this agent a data directory of its own", ErrLocked, holder, path)
}

// mkdirDurable creates dir and its missing parents, each synced into the one
// above it: a directory that vanishes takes the journal with it.
func mkdirDurable(dir string) error {
	info, err := os.Stat(dir)
	if err == nil {
		if !info.IsDir() {
			return fmt.Errorf("%s is not a directory: name one for the agent's data", dir)
		}
		return nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	parent := filepath.Dir(dir)
	if parent != dir {
		if err := mkdirDurable(parent); err != nil {
			return err
		}
	}
	if err := os.Mkdir(dir, dirMode); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return osFS{}.SyncDir(parent)
}

func (osFS) ReadFile(name string, limit int64) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	data, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err == nil && int64(len(data)) > limit {
		err = fmt.Errorf("read %s: it is larger than the limit of %d bytes", name, limit)
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return nil, err
	}
	return data, nil
}

func (osFS) OpenFile(name string, truncate bool) (File, error) {
	flags := os.O_RDWR | os.O_CREATE | syscall.O_CLOEXEC
	if truncate {
		flags |= os.O_TRUNC
	}
	f, err := os.OpenFile(name, flags, fileMode)
	if err != nil {
		return nil, err
	}
	return osFile{f}, nil
}

func (osFS) Rename(oldname, newname string) error { return os.Rename(oldname, newname) }

func (osFS) SyncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	if err := d.Sync(); err != nil {
		return errors.Join(fmt.Errorf("sync directory %s: %w", dir, err), d.Close())
	}
	return d.Close()
}

// osFile is an os.File whose Sync leaves out the times where the system can.
type osFile struct{ *os.File }

func (f osFile) Sync() error {
	if err := datasync(f.File); err != nil {
		return &fs.PathError{Op: "fdatasync", Path: f.Name(), Err: err}
	}
	return nil
}
