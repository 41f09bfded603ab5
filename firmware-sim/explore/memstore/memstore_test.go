package memstore_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/apollo-11/apollo11/firmware-sim/explore/memstore"
	"github.com/apollo-11/apollo11/gateway/ledger"
	"github.com/apollo-11/apollo11/storage"
)

// system is one of the two stores with its disk.
type system interface {
	ledger.Store
	// settle makes everything applied durable.
	settle(t *testing.T)
	// crash cuts the power and comes back with what was durable.
	crash(t *testing.T) system
}

type inMemory struct{ *memstore.Store }

func (s inMemory) settle(*testing.T) { s.Sync(s.Applied()) }
func (s inMemory) crash(*testing.T) system {
	s.Crash(0)
	return s
}

type onDisk struct {
	ledger.Store
	fs    *vfs.MemFS
	store *storage.Store
	wait  *[]ledger.Pending
}

func openDisk(t *testing.T, fs *vfs.MemFS) onDisk {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	s, err := storage.Open(ctx, storage.Options{Dir: "/log", FS: fs, Logger: slog.New(slog.DiscardHandler),
		OnFatal: func(err error) { t.Error(err) }, BallastBytes: -1, HeadInterval: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	return onDisk{ledger.OnDisk(s), fs, s, &[]ledger.Pending{}}
}

func (s onDisk) Apply(b ledger.Batch) (ledger.Pending, error) {
	p, err := s.Store.Apply(b)
	if err == nil {
		*s.wait = append(*s.wait, p)
	}
	return p, err
}

func (s onDisk) settle(t *testing.T) {
	for _, p := range *s.wait {
		if err := p.Wait(); err != nil {
			t.Fatal(err)
		}
	}
	*s.wait = nil
}

func (s onDisk) crash(t *testing.T) system {
	s.settle(t)
	left := s.fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 0})
	if err := s.store.Close(); err != nil {
		t.Fatal(err)
	}
	next := openDisk(t, left)
	t.Cleanup(func() { _ = next.store.Close() }) // a second Close is no matter
	return next
}

// onBoth runs a test on either store: whatever holds for one must hold for the
// other.
func onBoth(t *testing.T, test func(t *testing.T, s system)) {
	t.Run("memory", func(t *testing.T) { test(t, inMemory{memstore.New()}) })
	t.Run("disk", func(t *testing.T) {
		s := openDisk(t, vfs.NewCrashableMem())
		t.Cleanup(func() { _ = s.store.Close() })
		test(t, s)
	})
}

// put applies a batch of "key=value" and "-key".
func put(t *testing.T, s system, changes ...string) {
	t.Helper()
	b := s.NewBatch()
	defer b.Close()
	for _, c := range changes {
		if k, v, ok := strings.Cut(c, "="); ok {
			b.Set([]byte(k), []byte(v))
		} else {
			b.Delete([]byte(c[1:]))
		}
	}
	if _, err := s.Apply(b); err != nil {
		t.Fatal(err)
	}
}

func scan(t *testing.T, s system, lo, hi string, reverse bool, most int) (list []string) {
	t.Helper()
	bound := func(s string) []byte {
		if s == "" {
			return nil
		}
		return []byte(s)
	}
	err := s.Scan(bound(lo), bound(hi), reverse, func(k, v []byte) (bool, error) {
		list = append(list, fmt.Sprintf("%s=%s", k, v))
		return len(list) < most, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return list
}

func want(t *testing.T, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestWhatIsAppliedIsSeenInOrder(t *testing.T) {
	onBoth(t, func(t *testing.T, s system) {
		put(t, s, "b=2", "a=1", "c=3", "ab=12")
		put(t, s, "b=two", "-c", "-nothing", "empty=")
		want(t, scan(t, s, "", "", false, 9), "a=1", "ab=12", "b=two", "empty=")
		want(t, scan(t, s, "", "", true, 9), "empty=", "b=two", "ab=12", "a=1")
		want(t, scan(t, s, "ab", "empty", false, 9), "ab=12", "b=two")
		want(t, scan(t, s, "ab", "empty", true, 9), "b=two", "ab=12")
		want(t, scan(t, s, "aa", "", false, 1), "ab=12")
		want(t, scan(t, s, "zz", "", false, 9))
		want(t, scan(t, s, "c", "b", false, 9))
		v, ok, err := s.Get([]byte("empty"))
		if err != nil || !ok || v == nil || len(v) != 0 {
			t.Errorf("empty value: %v %v %v", v, ok, err)
		}
		if _, ok, err := s.Get([]byte("c")); ok || err != nil {
			t.Errorf("deleted key: %v %v", ok, err)
		}
		s.settle(t)
	})
}

func TestLastChangeOfAKeyInABatchCounts(t *testing.T) {
	onBoth(t, func(t *testing.T, s system) {
		put(t, s, "k=1", "-k", "k=2", "l=1", "-l")
		want(t, scan(t, s, "", "", false, 9), "k=2")
		s.settle(t)
	})
}

func TestBatchKeepsNoSlices(t *testing.T) {
	onBoth(t, func(t *testing.T, s system) {
		k, v := []byte("key"), []byte("value")
		b := s.NewBatch()
		b.Set(k, v)
		copy(k, "xxx")
		copy(v, "xxxxx")
		if _, err := s.Apply(b); err != nil {
			t.Fatal(err)
		}
		want(t, scan(t, s, "", "", false, 9), "key=value")
		got, _, _ := s.Get([]byte("key"))
		copy(got, "xxxxx")
		want(t, scan(t, s, "", "", false, 9), "key=value")
		s.settle(t)
	})
}

func TestBadKeysAreRefusedWhole(t *testing.T) {
	onBoth(t, func(t *testing.T, s system) {
		for key, is := range map[string]error{"": storage.ErrReservedKey, "\x00a": storage.ErrReservedKey,
			strings.Repeat("k", storage.MaxKeyBytes+1): storage.ErrTooLarge} {
			b := s.NewBatch()
			b.Set([]byte("good"), nil)
			b.Set([]byte(key), nil)
			if _, err := s.Apply(b); !errors.Is(err, is) {
				t.Errorf("key %.10q: %v, want %v", key, err, is)
			}
		}
		if _, _, err := s.Get(nil); !errors.Is(err, storage.ErrReservedKey) {
			t.Errorf("get of no key: %v", err)
		}
		want(t, scan(t, s, "", "", false, 9))
	})
}

func TestErrorOfTheCallerEndsAScan(t *testing.T) {
	onBoth(t, func(t *testing.T, s system) {
		put(t, s, "a=1", "b=2")
		stop := errors.New("stop")
		n := 0
		err := s.Scan(nil, nil, false, func(_, _ []byte) (bool, error) { n++; return true, stop })
		if !errors.Is(err, stop) || n != 1 {
			t.Errorf("%v after %d", err, n)
		}
		s.settle(t)
	})
}

func TestWhatIsDurableSurvivesACrash(t *testing.T) {
	onBoth(t, func(t *testing.T, s system) {
		put(t, s, "a=1", "b=1")
		put(t, s, "-a", "b=2", "c=2")
		s.settle(t)
		if err := s.Barrier(t.Context()); err != nil {
			t.Errorf("barrier when everything is durable: %v", err)
		}
		s = s.crash(t)
		want(t, scan(t, s, "", "", false, 9), "b=2", "c=2")
		put(t, s, "d=3")
		s.settle(t)
		want(t, scan(t, s, "", "", false, 9), "b=2", "c=2", "d=3")
	})
}

// The two stores play the same random history and never differ.
func TestStoresAgreeOnRandomHistories(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	mem := system(inMemory{memstore.New()})
	first := openDisk(t, vfs.NewCrashableMem())
	t.Cleanup(func() { _ = first.store.Close() })
	disk := system(first)
	for round := range 300 {
		var changes []string
		for range 1 + r.IntN(20) {
			key := fmt.Sprintf("%c%03d", 'a'+r.IntN(3), r.IntN(400))
			if r.IntN(4) == 0 {
				changes = append(changes, "-"+key)
			} else {
				changes = append(changes, fmt.Sprintf("%s=%d", key, round))
			}
		}
		put(t, mem, changes...)
		put(t, disk, changes...)
		if r.IntN(3) == 0 {
			mem.settle(t)
			disk.settle(t)
		}
		if r.IntN(60) == 0 {
			mem.settle(t)
			disk.settle(t)
			mem, disk = mem.crash(t), disk.crash(t)
		}
		lo, hi := fmt.Sprintf("%c%d", 'a'+r.IntN(3), r.IntN(400)), fmt.Sprintf("%c%d", 'a'+r.IntN(4), r.IntN(400))
		back, most := r.IntN(2) == 0, 1+r.IntN(500)
		if a, b := scan(t, mem, lo, hi, back, most), scan(t, disk, lo, hi, back, most); !slices.Equal(a, b) {
			t.Fatalf("round %d, %s to %s: memory has %q, the disk %q", round, lo, hi, a, b)
		}
	}
	disk.settle(t)
}

func TestCrashTakesASuffixAndNoPartOfABatch(t *testing.T) {
	for keep := range 4 {
		s := inMemory{memstore.New()}
		put(t, s, "a=1")
		s.settle(t)
		put(t, s, "a=2", "b=2", "b=22")
		put(t, s, "-a", "c=3")
		put(t, s, "a=4", "-b")
		s.Crash(keep)
		want(t, scan(t, s, "", "", false, 9), [][]string{{"a=1"}, {"a=2", "b=22"}, {"b=22", "c=3"}, {"a=4", "c=3"}}[keep]...)
		if s.Applied() != uint64(1+keep) || s.Durable() != s.Applied() {
			t.Errorf("keep %d: applied %d, durable %d", keep, s.Applied(), s.Durable())
		}
	}
}

func TestWaitSaysWhatIsDurable(t *testing.T) {
	s := memstore.New()
	apply := func() ledger.Pending {
		b := s.NewBatch()
		b.Set([]byte("k"), bytes.Repeat([]byte("v"), 10))
		p, err := s.Apply(b)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	p, q := apply(), apply()
	if err := p.Wait(); !errors.Is(err, memstore.ErrNotDurable) {
		t.Errorf("before the sync: %v", err)
	}
	if err := s.Barrier(t.Context()); !errors.Is(err, memstore.ErrNotDurable) {
		t.Errorf("barrier before the sync: %v", err)
	}
	s.Sync(1)
	if err := p.Wait(); err != nil {
		t.Errorf("after the sync: %v", err)
	}
	failed := errors.New("failed")
	s.Fail(failed)
	if err := q.Wait(); !errors.Is(err, failed) {
		t.Errorf("after a failure: %v", err)
	}
	if _, err := s.Apply(s.NewBatch()); !errors.Is(err, failed) {
		t.Errorf("apply after a failure: %v", err)
	}
	s.Crash(0)
	if err := q.Wait(); !errors.Is(err, memstore.ErrLost) {
		t.Errorf("after the crash: %v", err)
	}
	s.SetAuto(true)
	if err := apply().Wait(); err != nil {
		t.Errorf("synced as it is written: %v", err)
	}
}

// TestCopyHasWhatIsDurable: a copy knows nothing of what was not durable when it was
// made, and goes its own way.
func TestCopyHasWhatIsDurable(t *testing.T) {
	s := memstore.New()
	put(t, inMemory{s}, "a=1", "b=2")
	s.Sync(s.Applied())
	put(t, inMemory{s}, "a=one", "-b", "c=3")
	c := s.Copy()
	want(t, scan(t, inMemory{c}, "", "", false, 9), "a=1", "b=2")
	put(t, inMemory{c}, "d=4")
	want(t, scan(t, inMemory{s}, "", "", false, 9), "a=one", "c=3")
	s.Crash(0)
	want(t, scan(t, inMemory{s}, "", "", false, 9), "a=1", "b=2")
	want(t, scan(t, inMemory{c}, "", "", false, 9), "a=1", "b=2", "d=4")
}
