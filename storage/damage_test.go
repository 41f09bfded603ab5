package storage_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/apollo-11/apollo11/storage"
)

// fill commits records until n are there: record i under its number, 400 bytes.
func fill(t *testing.T, s *storage.Store, n int) {
	t.Helper()
	r := rand.New(rand.NewPCG(5, 5))
	for i := int(s.Stats().Applied) + 1; i <= n; i++ {
		value := make([]byte, 400)
		for j := range value {
			value[j] = byte(r.Uint32())
		}
		b := s.NewBatch()
		b.Set(storage.AppendUint64([]byte("r"), uint64(i)), value)
		if err := s.Commit(b); err != nil {
			t.Fatal(err)
		}
	}
}

// count returns how many records are there; they must be the first ones.
func count(s *storage.Store) (int, error) {
	n := 0
	err := s.Scan([]byte("r"), []byte("s"), false, func(k, v []byte) (bool, error) {
		n++
		if i, _, err := storage.CutUint64(k[1:]); err != nil || i != uint64(n) || len(v) != 400 {
			return false, fmt.Errorf("record %d is %x of %d bytes", n, k, len(v))
		}
		return true, nil
	})
	return n, err
}

// damages are the ways to spoil a file; nil is its removal.
func damages(content []byte) map[string][]byte {
	n := len(content)
	if n == 0 {
		return map[string][]byte{"removed": nil, "garbage added": []byte("\x01garbage")}
	}
	d := map[string][]byte{
		"removed":         nil,
		"emptied":         {},
		"zeroed":          make([]byte, n),
		"cut in half":     content[:n/2],
		"last byte cut":   content[:n-1],
		"second half 0":   append(bytes.Clone(content[:n/2]), make([]byte, n-n/2)...),
		"garbage in tail": append(bytes.Clone(content[:n-n/8]), bytes.Repeat([]byte{0xA5}, n/8)...),
	}
	for i := range 8 {
		at := i * (n - 1) / 7
		c := bytes.Clone(content)
		c[at] ^= 0x10
		d[fmt.Sprintf("bit flip at %d of %d", at, n)] = c
	}
	return d
}

// TestG5_DamagedFileIsNeverSilentLoss spoils every file of a store that was
// closed cleanly, and of one whose power was cut while its sidecar was current.
// Either the store doesn't open and says why, or all records are there, or
// reading them is an error.
func TestG5_DamagedFileIsNeverSilentLoss(t *testing.T) {
	const dir, records = "/store", 3000 // 1.2 MB: tables, logs, several manifest edits
	disk := vfs.NewMem()
	o := options(t, disk, dir)
	o.MemTableBytes = 256 << 10
	s := open(t, o)
	fill(t, s, records)
	closeStore(t, s)

	results := map[string]int{}
	for _, path := range files(t, disk, dir) {
		if strings.HasSuffix(path, "LOCK") {
			continue
		}
		content := []byte(readFile(t, disk, path))
		all := damages(content)
		for _, name := range sortedKeys(all) {
			t.Run(disk.PathBase(path)+"/"+name, func(t *testing.T) {
				copied := vfs.NewMem()
				if ok, err := vfs.Clone(disk, copied, "/", "/"); err != nil || !ok {
					t.Fatal(ok, err)
				}
				if all[name] == nil {
					if err := copied.Remove(path); err != nil {
						t.Fatal(err)
					}
				} else {
					writeFile(t, copied, path, all[name])
				}
				got := judge(t, copied, dir, records)
				results[got]++
				if strings.HasPrefix(disk.PathBase(path), "MANIFEST") && got != "corrupt" {
					t.Errorf("spoiled manifest: %s", got)
				}
			})
		}
	}
	t.Log(results)
}

// judge opens a damaged store and demands one of the honest outcomes.
func judge(t *testing.T, fs vfs.FS, dir string, records int) string {
	t.Helper()
	var log logBuffer
	o := options(t, fs, dir)
	o.Logger = log.logger()
	s, err := storage.Open(ctx(t), o)
	if err != nil {
		var oe *storage.OpenError
		if !errors.As(err, &oe) {
			t.Fatalf("%T: %v", err, err)
		}
		switch oe.Kind {
		case storage.OpenCorrupt, storage.OpenRolledBack, storage.OpenVersion:
		default:
			t.Errorf("kind %v: %v", oe.Kind, err)
		}
		return oe.Kind.String()
	}
	n, err := count(s)
	if err == nil && n != records {
		t.Errorf("opened without complaint, %d of %d records", n, records)
	}
	outcome := "intact"
	if err != nil {
		outcome = "read error"
		if st := s.Stats(); st.Corruptions == 0 {
			t.Errorf("read error without a count: %v", err)
		}
	}
	if err := s.Close(); err != nil {
		t.Logf("close: %v", err)
	}
	if strings.Contains(log.String(), "sidecar damaged") {
		outcome += ", sidecar put aside"
	}
	return outcome
}

func files(t testing.TB, fs vfs.FS, dir string) []string {
	t.Helper()
	names, err := fs.List(dir)
	if err != nil {
		t.Fatal(err)
	}
	sort.Strings(names)
	var paths []string
	for _, n := range names {
		p := fs.PathJoin(dir, n)
		info, err := fs.Stat(p)
		if err != nil {
			t.Fatal(err)
		}
		if info.IsDir() {
			paths = append(paths, files(t, fs, p)...)
		} else {
			paths = append(paths, p)
		}
	}
	return paths
}

func writeFile(t testing.TB, fs vfs.FS, path string, content []byte) {
	t.Helper()
	f, err := fs.Create(path, vfs.WriteCategoryUnspecified)
	if err != nil {
		t.Fatal(err)
	}
	_, err = f.Write(bytes.Clone(content))
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		t.Fatal(err)
	}
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	return keys
}

// logOf returns the newest log file of a store on the real disk, which holds the
// newest records, and where its content ends.
func logOf(t *testing.T, dir string) (path string, content []byte) {
	t.Helper()
	logs, err := filepath.Glob(filepath.Join(dir, "db", "*.log"))
	if err != nil || len(logs) == 0 {
		t.Fatal("no log file", err)
	}
	sort.Strings(logs)
	for _, l := range logs {
		b, err := os.ReadFile(l)
		if err != nil {
			t.Fatal(err)
		}
		if b := bytes.TrimRight(b, "\x00"); len(b) > len(content) {
			path, content = l, b
		}
	}
	return path, content
}

// TestG5_TornTailOfTheLog spoils the log of a store on the real disk whose process died:
// its sidecar knows of the first 100 records, 100 more came after it.
func TestG5_TornTailOfTheLog(t *testing.T) {
	const known, records = 100, 200
	dir := t.TempDir()
	o := options(t, nil, dir)
	s := open(t, o)
	fill(t, s, known)
	closeStore(t, s) // writes the sidecar
	s = open(t, o)
	fill(t, s, records)
	died := t.TempDir() // what a killed process leaves
	if err := os.CopyFS(died, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	closeStore(t, s)
	path, content := logOf(t, died)
	name := filepath.Base(path)

	for _, c := range []struct {
		name    string
		spoil   func(b []byte) []byte
		kind    storage.OpenErrorKind // 0: opens
		atLeast int
	}{
		{"untouched", func(b []byte) []byte { return b }, 0, records},
		{"last record torn", func(b []byte) []byte { return b[:len(b)-100] }, 0, records - 1},
		{"last bytes garbled", func(b []byte) []byte { copy(b[len(b)-50:], "garbage"); return b }, 0, records - 1},
		{"garbage after the end", func(b []byte) []byte { return append(b, "garbage garbage"...) }, 0, records},
		{"zeros after the end", func(b []byte) []byte { return append(b, make([]byte, 9000)...) }, 0, records},
		{"bit flip in the middle", func(b []byte) []byte { b[len(b)/2] ^= 1; return b }, storage.OpenCorrupt, 0},
		{"4 KiB of zeros in the middle", func(b []byte) []byte { clear(b[len(b)/2:][:4096]); return b }, storage.OpenCorrupt, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			again := t.TempDir()
			if err := os.CopyFS(again, os.DirFS(died)); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(again, "db", name), c.spoil(bytes.Clone(content)), 0o600); err != nil {
				t.Fatal(err)
			}
			if c.kind != 0 {
				openFails(t, options(t, nil, again), c.kind)
				return
			}
			s := open(t, options(t, nil, again))
			defer closeStore(t, s)
			if n, err := count(s); err != nil || n < c.atLeast || n > records {
				t.Errorf("%d records (%v), want at least %d", n, err, c.atLeast)
			}
		})
	}
}

func TestG5_CutLogIsReportedAsRolledBack(t *testing.T) {
	dir := t.TempDir()
	o := options(t, nil, dir)
	s := open(t, o)
	fill(t, s, 100)
	closeStore(t, s)
	path, content := logOf(t, dir)
	for _, keep := range []int{len(content) / 2, 0} {
		if err := os.Truncate(path, int64(keep)); err != nil {
			t.Fatal(err)
		}
		again := t.TempDir()
		if err := os.CopyFS(again, os.DirFS(dir)); err != nil {
			t.Fatal(err)
		}
		o := options(t, nil, again)
		for range 2 { // it does not get better by trying again
			oe := openFails(t, o, storage.OpenRolledBack)
			if !strings.Contains(oe.Cause.Error(), "acknowledged records are missing") || !strings.Contains(oe.Cause.Error(), "100") {
				t.Errorf("cause %v", oe.Cause)
			}
		}
		// The way out that the message names.
		if err := os.Rename(filepath.Join(again, "HEAD"), filepath.Join(again, "HEAD.old")); err != nil {
			t.Fatal(err)
		}
		s := open(t, o)
		if n, err := count(s); err != nil || n >= 100 {
			t.Errorf("%d records, %v", n, err)
		}
		put(t, s, "k", "v")
		closeStore(t, s)
	}
}

func TestG5_VanishedEngineIsReportedAsRolledBack(t *testing.T) {
	dir := t.TempDir()
	o := options(t, nil, dir)
	s := open(t, o)
	fill(t, s, 3)
	closeStore(t, s)
	if err := os.RemoveAll(filepath.Join(dir, "db")); err != nil {
		t.Fatal(err)
	}
	openFails(t, o, storage.OpenRolledBack)
}

// TestRunningStoreKeepsItsSidecarCurrent: the sidecar must follow without Close.
func TestRunningStoreKeepsItsSidecarCurrent(t *testing.T) {
	disk := vfs.NewMem()
	o := options(t, disk, "/s")
	o.HeadInterval = time.Millisecond
	s := open(t, o)
	defer closeStore(t, s)
	before := readFile(t, disk, "/s/HEAD")
	fill(t, s, 10)
	until(t, "new sidecar", func() bool { return readFile(t, disk, "/s/HEAD") != before })
}
