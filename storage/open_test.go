package storage_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/apollo-11/apollo11/storage"
)

// holderEnv makes this test binary a second process that holds a store open.
const holderEnv = "STORAGE_TEST_HOLD"

func TestMain(m *testing.M) {
	dir := os.Getenv(holderEnv)
	if dir == "" {
		os.Exit(m.Run())
	}
	s, err := storage.Open(context.Background(), storage.Options{Dir: dir, BallastBytes: -1})
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println("open")
	if _, err := io.Copy(io.Discard, os.Stdin); err != nil { // until the parent closes it
		os.Exit(1)
	}
	if err := s.Close(); err != nil {
		os.Exit(1)
	}
	os.Exit(0)
}

func TestStoreHeldByAnotherProcessIsLocked(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	holder := exec.Command(os.Args[0])
	holder.Env = append(os.Environ(), holderEnv+"="+dir)
	in, err := holder.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := holder.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := holder.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil || line != "open\n" {
		t.Errorf("holder said %q, %v", line, err)
	} else {
		openFails(t, options(t, nil, dir), storage.OpenLocked)
	}
	if err := errors.Join(in.Close(), holder.Wait()); err != nil {
		t.Fatal(err)
	}
	closeStore(t, open(t, options(t, nil, dir)))
}

func TestStoreHeldByThisProcessIsLocked(t *testing.T) {
	for _, o := range []storage.Options{options(t, nil, t.TempDir()), options(t, vfs.NewMem(), "/s")} {
		s := open(t, o)
		openFails(t, o, storage.OpenLocked)
		put(t, s, "k", "v") // the first one is not disturbed
		closeStore(t, s)
		closeStore(t, open(t, o))
	}
}

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
	if !strings.Contains(oe.Cause.Error(), fmt.Sprint(15<<20)) || !strings.Contains(oe.Cause.Error(), fmt.Sprint(27<<20)) {
		t.Errorf("the cause does not say both numbers: %v", oe.Cause)
	}
	if got := files(t, disk, "/s"); len(got) != 0 {
		t.Errorf("left %v", got)
	}
	o.MinFreeBytes = 15 << 20
	closeStore(t, open(t, o))
}

// TestReserveIsGivenUpToOpen: what the reserve frees is enough.
func TestG3_ReserveIsGivenUpToOpen(t *testing.T) {
	disk := vfs.NewMem()
	o := options(t, usageFS{disk}, "/s")
	o.BallastBytes, o.MinFreeBytes = 4<<20, 16<<20
	s := open(t, o)
	put(t, s, "k", "v")
	closeStore(t, s)
	if got := readFile(t, disk, "/s/BALLAST"); len(got) != 4<<20 {
		t.Fatalf("reserve of %d bytes", len(got))
	}
	writeFile(t, disk, "/fill", make([]byte, 14<<20)) // 30 MiB - 14 - 4 = 12 free
	s = open(t, o)
	if v, ok, err := s.Get([]byte("k")); string(v) != "v" || !ok || err != nil {
		t.Errorf("get: %q %v %v", v, ok, err)
	}
	if st := s.Stats(); !st.BallastMissing || st.DiskFull != 1 {
		t.Errorf("stats %+v", st)
	}
	closeStore(t, s)
	writeFile(t, disk, "/fill", make([]byte, 20<<20))
	openFails(t, o, storage.OpenNoSpace)
}

// usageFS is a disk of 30 MiB on which only whole test files count.
type usageFS struct{ *vfs.MemFS }

func (u usageFS) GetDiskUsage(string) (vfs.DiskUsage, error) {
	const total = 30 << 20
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
