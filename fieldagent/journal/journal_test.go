package journal_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/apollo-11/apollo11/fieldagent/journal"
	"github.com/apollo-11/apollo11/fieldagent/journal/journaltest"
)

const (
	dir  = "/data"
	path = "/data/agent.journal"
)

func TestAppendedRecordsComeBackInOrder(t *testing.T) {
	onBothFS(t, func(t *testing.T, fsys journal.FS, dir string) {
		j := mustOpen(t, fsys, dir)
		must(t, j.Append([]byte("a")))
		must(t, j.Append([]byte("b"), nil, []byte("c")))
		must(t, j.Append())
		must(t, j.Close())
		j, got := open(t, fsys, dir)
		wantRecords(t, got, []string{"a", "b", "", "c"})
		must(t, j.Append([]byte("d")))
		must(t, j.Close())
		_, got = open(t, fsys, dir)
		wantRecords(t, got, []string{"a", "b", "", "c", "d"})
	})
}

func TestRewriteReplacesEverything(t *testing.T) {
	onBothFS(t, func(t *testing.T, fsys journal.FS, dir string) {
		j := mustOpen(t, fsys, dir)
		for i := range 100 {
			must(t, j.Append(fmt.Appendf(nil, "old %d", i)))
		}
		before := j.Size()
		must(t, j.Rewrite([][]byte{[]byte("kept")}))
		if j.Size() >= before {
			t.Errorf("size %d after the rewrite, %d before", j.Size(), before)
		}
		must(t, j.Append([]byte("new")))
		must(t, j.Close())
		_, got := open(t, fsys, dir)
		wantRecords(t, got, []string{"kept", "new"})
	})
}

func TestRewriteSplitsIntoFrames(t *testing.T) {
	d := journaltest.New()
	j := mustOpen(t, d, dir)
	var records [][]byte
	var want []string
	for i := range 40 { // 40 x 100 KiB is four frames' worth
		r := bytes.Repeat([]byte{byte(i)}, 100<<10)
		records, want = append(records, r), append(want, string(r))
	}
	must(t, j.Rewrite(records))
	must(t, j.Close())
	_, got := open(t, d, dir)
	wantRecords(t, got, want)
}

func TestSecondAgentIsRefused(t *testing.T) {
	onBothFS(t, func(t *testing.T, fsys journal.FS, dir string) {
		j := mustOpen(t, fsys, dir)
		if _, _, err := journal.Open(fsys, dir, journal.Options{}); !errors.Is(err, journal.ErrLocked) {
			t.Fatalf("second open: %v, want ErrLocked", err)
		}
		must(t, j.Close())
		mustOpen(t, fsys, dir)
	})
}

func TestLockNamesItsHolder(t *testing.T) {
	dir := t.TempDir()
	mustOpen(t, journal.OS(), dir)
	_, _, err := journal.Open(journal.OS(), dir, journal.Options{})
	if err == nil || !strings.Contains(err.Error(), fmt.Sprintf("process %d holds", os.Getpid())) {
		t.Errorf("error does not name the holder: %v", err)
	}
}

func TestOpenCreatesTheDirectory(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "var", "lib", "agent")
	must(t, mustOpen(t, journal.OS(), dir).Append([]byte("x")))
}

func TestLimitsWriteNothingAndLeaveTheJournalInUse(t *testing.T) {
	d := journaltest.New()
	j, _, err := journal.Open(d, dir, journal.Options{MaxBytes: 3 << 20})
	must(t, err)
	t.Cleanup(func() { _ = j.Close() })
	big := make([]byte, journal.MaxRecord)
	for name, c := range map[string]struct {
		records [][]byte
		want    error
	}{
		"record": {[][]byte{make([]byte, journal.MaxRecord+1)}, journal.ErrTooLarge},
		"batch":  {[][]byte{big, big, big, big, big, big, big, big}, journal.ErrTooLarge},
	} {
		if err := j.Append(c.records...); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
	var n int
	for {
		if err = j.Append(big); err != nil {
			break
		}
		n++
	}
	if !errors.Is(err, journal.ErrFull) || errors.Is(err, journal.ErrDead) {
		t.Fatalf("after %d appends: %v, want ErrFull alone", n, err)
	}
	must(t, j.Rewrite([][]byte{[]byte("kept")}))
	must(t, j.Append([]byte("goes on")))
	must(t, j.Close())
	_, got := open(t, d, dir)
	wantRecords(t, got, []string{"kept", "goes on"})
}

func TestG12_FailedSyncIsFinalAndNeverRetried(t *testing.T) {
	d := journaltest.New()
	j := mustOpen(t, d, dir)
	must(t, j.Append([]byte("a")))
	syncs := 0
	d.Inject(func(op journaltest.Op) *journaltest.Fault {
		if op.Kind != journaltest.OpSync {
			return nil
		}
		syncs++
		return &journaltest.Fault{Err: syscall.EIO}
	})
	err := j.Append([]byte("b"))
	if !errors.Is(err, journal.ErrDead) || !errors.Is(err, syscall.EIO) {
		t.Fatalf("append: %v, want ErrDead and EIO", err)
	}
	d.Inject(nil)
	for name, call := range map[string]func() error{
		"append":  func() error { return j.Append([]byte("c")) },
		"rewrite": func() error { return j.Rewrite(nil) },
	} {
		if err := call(); !errors.Is(err, journal.ErrDead) || !errors.Is(err, syscall.EIO) {
			t.Errorf("%s afterwards: %v, want the same ErrDead", name, err)
		}
	}
	if syncs != 1 {
		t.Errorf("%d syncs, want 1", syncs)
	}
}

// A page that a failed fsync left behind is readable and "clean", so the next
// process's fsync would not write it. What Open returned must survive all the
// same.
func TestG12_RecordsReadAfterAFailedSyncSurviveAPowerCut(t *testing.T) {
	d := journaltest.New()
	j := mustOpen(t, d, dir)
	must(t, j.Append([]byte("a")))
	d.Inject(failing(journaltest.OpSync, syscall.EIO))
	if err := j.Append([]byte("b")); err == nil {
		t.Fatal("append succeeded without a sync")
	}
	d.Inject(nil)
	d.Kill()
	_, got := open(t, d, dir)
	wantRecords(t, got, []string{"a", "b"})
	d.PowerCut(nil)
	_, got = open(t, d, dir)
	wantRecords(t, got, []string{"a", "b"})
}

func TestG12_WriteErrorIsFinal(t *testing.T) {
	for name, errno := range map[string]syscall.Errno{
		"no room on the volume":      syscall.ENOSPC,
		"the volume is read-only":    syscall.EROFS,
		"the disk reports an error":  syscall.EIO,
		"free some space or inodes:": syscall.EDQUOT,
	} {
		d := journaltest.New()
		j := mustOpen(t, d, dir)
		must(t, j.Append([]byte("a")))
		d.Inject(func(op journaltest.Op) *journaltest.Fault {
			return &journaltest.Fault{Err: errno, Written: op.Bytes / 2}
		})
		err := j.Append([]byte("b"))
		if !errors.Is(err, journal.ErrDead) || !errors.Is(err, errno) || !strings.Contains(err.Error(), name) {
			t.Errorf("%v: %v, want ErrDead, the errno and %q", errno, err, name)
		}
		d.Inject(nil)
		must(t, j.Close())
		_, got := open(t, d, dir)
		wantRecords(t, got, []string{"a"})
	}
}

func TestFullDiskDuringRewriteKeepsTheOldFileInUse(t *testing.T) {
	d := journaltest.New()
	j := mustOpen(t, d, dir)
	must(t, j.Append(make([]byte, 1000)))
	d.SetSpace(j.Size() + 500)
	err := j.Rewrite([][]byte{make([]byte, 900)})
	if !errors.Is(err, syscall.ENOSPC) || errors.Is(err, journal.ErrDead) {
		t.Fatalf("rewrite: %v, want ENOSPC alone", err)
	}
	must(t, j.Append([]byte("still works"))) // the half-written file gave its room back
	must(t, j.Close())
	_, got := open(t, d, dir)
	wantRecords(t, got, []string{string(make([]byte, 1000)), "still works"})
}

// A full disk must not keep the agent from starting (G3): opening an intact or
// torn journal needs no new room.
func TestOpenNeedsNoRoom(t *testing.T) {
	d := journaltest.New()
	j := mustOpen(t, d, dir)
	must(t, j.Append([]byte("a")))
	content, _ := d.Content(path)
	d.Spoil(path, append(content, 1, 2, 3))
	d.SetSpace(0)
	must(t, j.Close())
	j, got := open(t, d, dir)
	wantRecords(t, got, []string{"a"})
	if content, _ := d.Content(path); int64(len(content)) != j.Size() {
		t.Errorf("the torn tail is still there: %d bytes, size %d", len(content), j.Size())
	}
}

// onBothFS runs one test on the real file system and on the simulated one, so
// that they can't drift apart.
func onBothFS(t *testing.T, test func(t *testing.T, fsys journal.FS, dir string)) {
	t.Run("real", func(t *testing.T) { test(t, journal.OS(), t.TempDir()) })
	t.Run("simulated", func(t *testing.T) { test(t, journaltest.New(), dir) })
}

func open(t *testing.T, fsys journal.FS, dir string) (*journal.Journal, [][]byte) {
	t.Helper()
	j, records, err := journal.Open(fsys, dir, journal.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = j.Close() })
	return j, records
}

func mustOpen(t *testing.T, fsys journal.FS, dir string) *journal.Journal {
	t.Helper()
	j, _ := open(t, fsys, dir)
	return j
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func wantRecords(t *testing.T, got [][]byte, want []string) {
	t.Helper()
	if !sameRecords(got, want) {
		t.Fatalf("records %.200q, want %.200q", got, want)
	}
}

func sameRecords(got [][]byte, want []string) bool {
	if len(got) != len(want) {
		return false
	}
	for i := range got {
		if string(got[i]) != want[i] {
			return false
		}
	}
	return true
}

func failing(kind journaltest.Kind, err error) func(journaltest.Op) *journaltest.Fault {
	return func(op journaltest.Op) *journaltest.Fault {
		if op.Kind != kind {
			return nil
		}
		return &journaltest.Fault{Err: err}
	}
}
