package storage_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/apollo-11/apollo11/storage"
)

// TestMissingRightsAreNamed injects them, because the tests may run as root.
func TestMissingRightsAreNamed(t *testing.T) {
	for _, errno := range []syscall.Errno{syscall.EACCES, syscall.EPERM, syscall.EROFS} {
		for _, where := range []string{"LOCK", "/var/s", "MANIFEST", "OPTIONS", "HEAD"} {
			disk := vfs.NewMem()
			if where != "/var/s" {
				closeStore(t, open(t, options(t, disk, "/var/s")))
			}
			faulty := newFaults(disk, func(op errorfs.Op) error {
				write := op.Kind == errorfs.OpCreate || op.Kind == errorfs.OpMkdirAll || op.Kind == errorfs.OpOpen || op.Kind == errorfs.OpLock
				if write && strings.Contains(op.Path, where) {
					return &os.PathError{Op: "open", Path: op.Path, Err: errno}
				}
				return nil
			})
			faulty.on.Store(true)
			t.Run(fmt.Sprint(errno, where), func(t *testing.T) {
				openFails(t, options(t, faulty, "/var/s"), storage.OpenPermission)
			})
		}
	}
}

func TestUnreadableDirectoryOnTheRealDisk(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Skip("root may do everything; TestMissingRightsAreNamed covers it by injection")
	}
	parent := t.TempDir()
	if err := os.Chmod(parent, 0o500); err != nil {
		t.Fatal(err)
	}
	openFails(t, options(t, nil, filepath.Join(parent, "store")), storage.OpenPermission)
}

func TestFileInTheWayOfTheDirectory(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	openFails(t, options(t, nil, file), storage.OpenIO)
	openFails(t, options(t, nil, filepath.Join(file, "store")), storage.OpenIO)
}

func TestG14_EachReasonOfAFullDiskIsNoSpace(t *testing.T) {
	for _, errno := range []syscall.Errno{syscall.ENOSPC, syscall.EDQUOT} {
		for _, where := range []string{"MANIFEST", "marker", ".log", ".dbtmp", "/s/db"} {
			faulty := newFaults(vfs.NewMem(), func(op errorfs.Op) error {
				if op.Kind.ReadOrWrite() == errorfs.OpIsWrite && strings.Contains(op.Path, where) {
					return errno
				}
				return nil
			})
			faulty.on.Store(true)
			t.Run(fmt.Sprint(errno, where), func(t *testing.T) {
				openFails(t, options(t, faulty, "/s"), storage.OpenNoSpace)
			})
		}
	}
}

func TestTooLittleSpaceIsRefusedBeforeAnythingIsWritten(t *testing.T) {
	disk := vfs.NewMem()
	disk.TestingSetDiskUsage(vfs.DiskUsage{AvailBytes: 15 << 20, TotalBytes: 1 << 30})
	o := options(t, disk, "/s")
	oe := openFails(t, o, storage.OpenNoSpace)
	if !strings.Contains(oe.Cause.Error(), fmt.Sprint(15<<20)) || !strings.Contains(oe.Cause.Error(), fmt.Sprint(16<<20)) {
		t.Errorf("the cause does not say both numbers: %v", oe.Cause)
	}
	if got := files(t, disk, "/s"); len(got) != 0 {
		t.Errorf("left %v", got)
	}
	o.MinFreeBytes = 15 << 20
	closeStore(t, open(t, o))
}

// TestG3_ReserveIsGivenUpToOpen: what the reserve frees is enough.
func TestG3_ReserveIsGivenUpToOpen(t *testing.T) {
	disk := vfs.NewMem()
	o := options(t, usageFS{disk}, "/s")
	o.BallastBytes, o.MinFreeBytes = 400<<10, 1600<<10
	s := open(t, o)
	put(t, s, "k", "v")
	closeStore(t, s)
	if got := readFile(t, disk, "/s/BALLAST"); len(got) != 400<<10 {
		t.Fatalf("reserve of %d bytes", len(got))
	}
	writeFile(t, disk, "/fill", make([]byte, 1200<<10)) // 3000 - 1200 - 400 = 1400 KiB free
	s = open(t, o)
	if v, ok, err := s.Get([]byte("k")); string(v) != "v" || !ok || err != nil {
		t.Errorf("get: %q %v %v", v, ok, err)
	}
	if st := s.Stats(); !st.BallastMissing || st.DiskFull != 1 {
		t.Errorf("stats %+v", st)
	}
	closeStore(t, s)
	writeFile(t, disk, "/fill", make([]byte, 2000<<10))
	openFails(t, o, storage.OpenNoSpace)
}

// usageFS is a disk of 3000 KiB on which only whole test files count.
type usageFS struct{ *vfs.MemFS }

func (u usageFS) GetDiskUsage(string) (vfs.DiskUsage, error) {
	const total = 3000 << 10
	used := uint64(0)
	for _, path := range []string{"/fill", "/s/BALLAST"} {
		if info, err := u.Stat(path); err == nil {
			used += uint64(info.Size())
		}
	}
	return vfs.DiskUsage{AvailBytes: total - used, TotalBytes: total, UsedBytes: used}, nil
}

func TestNewerStoreVersionIsRefusedWithBothNumbers(t *testing.T) {
	disk := vfs.NewMem()
	closeStore(t, open(t, options(t, disk, "/s")))
	db, err := pebble.Open("/s/db", &pebble.Options{FS: disk, FormatMajorVersion: pebble.FormatWALSyncChunks, Logger: quiet{}})
	if err != nil {
		t.Fatal(err)
	}
	err = db.Set([]byte{0, 'v'}, storage.AppendUint64(nil, 42), pebble.Sync)
	if err := errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
	oe := openFails(t, options(t, disk, "/s"), storage.OpenVersion)
	if !strings.Contains(oe.Error(), "42") || !strings.Contains(oe.Error(), "1") {
		t.Errorf("message %q does not say both numbers", oe)
	}
}

func TestUnknownEngineFormatIsRefusedWithBothNumbers(t *testing.T) {
	for _, format := range []string{"999", "007"} {
		disk := vfs.NewMem()
		closeStore(t, open(t, options(t, disk, "/s")))
		for _, path := range files(t, disk, "/s/db") {
			if strings.Contains(path, "marker.format-version.") {
				if err := disk.Rename(path, "/s/db/marker.format-version.000099."+format); err != nil {
					t.Fatal(err)
				}
			}
		}
		oe := openFails(t, options(t, disk, "/s"), storage.OpenVersion)
		if !strings.Contains(oe.Error(), strings.TrimLeft(format, "0")) || !strings.Contains(oe.Error(), fmt.Sprint(int(pebble.FormatNewest))) {
			t.Errorf("message %q does not say both numbers", oe)
		}
	}
}

func TestOpenWithoutDirectoryIsRefused(t *testing.T) {
	if _, err := storage.Open(ctx(t), storage.Options{}); err == nil {
		t.Error("opened without a directory")
	}
}

func TestRelativeDirectoryOnTheRealDisk(t *testing.T) {
	t.Chdir(t.TempDir())
	o := options(t, nil, filepath.Join("a", "b", "store"))
	s := open(t, o)
	put(t, s, "k", "v")
	closeStore(t, s)
	if _, err := os.Stat(filepath.Join("a", "b", "store", "HEAD")); err != nil {
		t.Error(err)
	}
}

type quiet struct{}

func (quiet) Infof(string, ...any)      {}
func (quiet) Errorf(string, ...any)     {}
func (quiet) Fatalf(f string, a ...any) { panic(fmt.Sprintf(f, a...)) }

// TestDirectoryThatCannotBeMadeIsNotDamage: a wrong path must not send anybody to
// the backups.
func TestDirectoryThatCannotBeMadeIsNotDamage(t *testing.T) {
	faulty := newFaults(vfs.NewMem(), func(op errorfs.Op) error {
		if op.Kind == errorfs.OpMkdirAll {
			return &os.PathError{Op: "mkdir", Path: op.Path, Err: syscall.ENOENT}
		}
		return nil
	})
	faulty.on.Store(true)
	openFails(t, options(t, faulty, "/proc/nowhere"), storage.OpenIO)
}
