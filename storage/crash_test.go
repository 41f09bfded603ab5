package storage_test

import (
	"encoding/binary"
	"fmt"
	"maps"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/apollo-11/apollo11/storage"
)

const (
	crashSeeds   = 5
	crashWaiters = 8
	crashClones  = 3  // of each running store
	crashSpare   = 30 // batches that may be under way beyond those waited for
)

// load applies batches from one goroutine and lets others wait for them, as the
// gateway does. Batch n writes n under three keys, and one key that all share.
type load struct {
	s     *storage.Store
	grant chan int // how many more batches to write
	mu    sync.Mutex
	acked map[uint64]bool // batches whose Wait returned nil
	last  uint64
}

func keysOf(n uint64) [3][]byte {
	var k [3][]byte
	for i, prefix := range []string{"r", "i", "t"} {
		k[i] = storage.AppendUint64([]byte(prefix), n)
	}
	return k
}

// run writes what is granted, so that the store does not grow while a test is
// busy elsewhere; the size of values is drawn from r.
func (l *load) run(t *testing.T, r *rand.Rand) {
	pending := make(chan *storage.Pending, 2*crashWaiters)
	var waiters sync.WaitGroup
	for range crashWaiters {
		waiters.Go(func() {
			for p := range pending {
				if err := p.Wait(); err != nil {
					t.Error(err)
					return
				}
				l.mu.Lock()
				l.acked[p.Head()] = true
				l.last = max(l.last, p.Head())
				l.mu.Unlock()
			}
		})
	}
	defer waiters.Wait()
	defer close(pending)
	for n := range l.grant {
		for range n {
			p, err := l.apply(r)
			if err != nil {
				t.Error(err)
				return
			}
			pending <- p
		}
	}
}

func (l *load) apply(r *rand.Rand) (*storage.Pending, error) {
	b := l.s.NewBatch()
	n := l.s.Stats().Applied + 1
	value := binary.BigEndian.AppendUint64(make([]byte, 0, 4096), n)
	value = value[:8+r.IntN(1000)]
	for _, k := range keysOf(n) {
		b.Set(k, value)
	}
	b.Set([]byte("newest"), value[:8])
	return l.s.Apply(b)
}

func (l *load) snapshot() (acked map[uint64]bool, last uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return maps.Clone(l.acked), l.last
}

// goOn lets the load run and waits until n more batches are acknowledged; others
// are still under way when it returns.
func (l *load) goOn(t *testing.T, n int) {
	_, from := l.snapshot()
	l.grant <- n + crashSpare
	until(t, "more acknowledged batches", func() bool {
		_, now := l.snapshot()
		return now >= from+uint64(n) || t.Failed()
	})
}

// checkRecovered opens what a power cut left and compares it with the promise.
func checkRecovered(t *testing.T, fs vfs.FS, dir string, acked map[uint64]bool) uint64 {
	t.Helper()
	s := open(t, options(t, fs, dir))
	defer closeStore(t, s)
	head := s.Stats().Applied
	for n := range acked {
		if n > head {
			t.Fatalf("batch %d was acknowledged, recovered only up to %d", n, head)
		}
	}
	for n := uint64(1); n <= head; n++ {
		for _, k := range keysOf(n) {
			v, ok, err := s.Get(k)
			if err != nil || !ok || len(v) < 8 || binary.BigEndian.Uint64(v) != n {
				t.Fatalf("batch %d of %d: key %x: %d bytes, there %v, %v", n, head, k, len(v), ok, err)
			}
		}
	}
	for _, k := range keysOf(head + 1) {
		if _, ok, err := s.Get(k); ok || err != nil {
			t.Fatalf("half of batch %d is there (%v)", head+1, err)
		}
	}
	if v, ok, err := s.Get([]byte("newest")); err != nil || ok != (head > 0) || ok && binary.BigEndian.Uint64(v) != head {
		t.Fatalf("newest is %x (%v), head is %d", v, err, head)
	}
	return head
}

// TestG5_PowerCutLosesNothingAcknowledged cuts the power of a running store at
// arbitrary moments. The directory is three levels deep and nobody but the store
// has synced it.
func TestG5_PowerCutLosesNothingAcknowledged(t *testing.T) {
	const dir = "/var/lib/site/store"
	for _, percent := range []int{0, 20, 50, 100} {
		for seed := range uint64(crashSeeds) {
			t.Run(fmt.Sprintf("unsynced=%d/seed=%d", percent, seed), func(t *testing.T) {
				r := rand.New(rand.NewPCG(seed, uint64(percent)))
				disk := vfs.NewCrashableMem()
				o := options(t, disk, dir)
				o.MemTableBytes = 256 << 10 // flushes happen in between
				o.HeadInterval = time.Millisecond
				l := &load{s: open(t, o), acked: map[uint64]bool{}, grant: make(chan int, crashClones)}
				var writer sync.WaitGroup
				writer.Go(func() { l.run(t, rand.New(rand.NewPCG(seed, 1))) })
				for range crashClones {
					l.goOn(t, r.IntN(80))
					acked, _ := l.snapshot() // before the clone: the clone must have these
					cfg := vfs.CrashCloneCfg{UnsyncedDataPercent: percent, RNG: r}
					once := disk.CrashClone(cfg)
					head := checkRecovered(t, once, dir, acked)
					// And again, right after the recovery: it must not owe anything.
					all := map[uint64]bool{}
					for n := uint64(1); n <= head; n++ {
						all[n] = true
					}
					checkRecovered(t, once.CrashClone(cfg), dir, all)
				}
				close(l.grant)
				writer.Wait()
				closeStore(t, l.s)
				acked, last := l.snapshot()
				if head := checkRecovered(t, disk.CrashClone(vfs.CrashCloneCfg{}), dir, acked); head != last {
					t.Errorf("after a clean close %d of %d batches", head, last)
				}
			})
		}
	}
}

// TestPowerCutDuringCreationLeavesAStoreThatOpens cuts at each operation of the
// very first Open that changes the disk.
func TestPowerCutDuringCreationLeavesAStoreThatOpens(t *testing.T) {
	const dir = "/a/b/store"
	for _, percent := range []int{0, 30, 60, 100} {
		disk := vfs.NewCrashableMem()
		r := rand.New(rand.NewPCG(11, uint64(percent)))
		var clones []*vfs.MemFS
		watch := newCuts(disk, func() {
			clones = append(clones, disk.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: percent, RNG: r}))
		})
		closeStore(t, open(t, options(t, watch, dir)))
		if len(clones) < 20 {
			t.Fatalf("only %d operations seen", len(clones))
		}
		for i, c := range clones {
			s := open(t, options(t, c, dir))
			put(t, s, "k", fmt.Sprint(i))
			closeStore(t, s)
			s = open(t, options(t, c, dir))
			if v, ok, err := s.Get([]byte("k")); err != nil || !ok || string(v) != fmt.Sprint(i) {
				t.Errorf("cut %d: got %q %v %v", i, v, ok, err)
			}
			closeStore(t, s)
		}
	}
}

// TestG15_PowerCutWhileReplacingAFileLeavesOldOrNew: the promise for every file that this
// package replaces.
func TestG15_PowerCutWhileReplacingAFileLeavesOldOrNew(t *testing.T) {
	for _, percent := range []int{0, 50, 100} {
		disk := vfs.NewCrashableMem()
		r := rand.New(rand.NewPCG(12, uint64(percent)))
		if err := storage.ReplaceFile(disk, "/f", []byte("old")); err != nil {
			t.Fatal(err)
		}
		seen := map[string]int{}
		look := func() {
			c := disk.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: percent, RNG: r})
			seen[readFile(t, c, "/f")]++
		}
		if err := storage.ReplaceFile(newCuts(disk, look), "/f", []byte("new content")); err != nil {
			t.Fatal(err)
		}
		if got := readFile(t, disk.CrashClone(vfs.CrashCloneCfg{}), "/f"); got != "new content" {
			t.Errorf("after ReplaceFile returned: %q", got)
		}
		delete(seen, "old")
		delete(seen, "new content")
		if len(seen) > 0 {
			t.Errorf("%d %%: neither old nor new: %v", percent, seen)
		}
	}
}
