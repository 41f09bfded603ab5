package storage_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/apollo-11/apollo11/storage"
)

func TestBatchIsReadBackAndSurvivesReopening(t *testing.T) {
	dir := t.TempDir()
	for _, o := range []storage.Options{options(t, vfs.NewMem(), "/var/store"), options(t, nil, dir)} {
		s := open(t, o)
		b := s.NewBatch()
		if !b.Empty() {
			t.Error("new batch is not empty")
		}
		b.Set([]byte("a"), []byte("1"))
		b.Set([]byte("b"), nil)
		b.Set([]byte("c"), []byte("3"))
		b.Set([]byte("d"), []byte("4"))
		if b.Empty() || b.Size() < 10 {
			t.Errorf("batch: empty %v, size %d", b.Empty(), b.Size())
		}
		if err := s.Commit(b); err != nil {
			t.Fatal(err)
		}
		b.Close() // after Apply it does nothing
		b = s.NewBatch()
		b.Delete([]byte("a"))
		b.DeleteRange([]byte("c"), []byte("d"))
		b.DeleteRange([]byte("z"), []byte("b")) // upside down: nothing
		b.Set([]byte("e"), []byte("5"))
		if err := s.Commit(b); err != nil {
			t.Fatal(err)
		}
		want := []string{"b=", "d=4", "e=5"}
		for round := range 2 {
			if got := scan(t, s, "", "", false); !reflect.DeepEqual(got, want) {
				t.Errorf("round %d: %v, want %v", round, got, want)
			}
			if v, ok, err := s.Get([]byte("b")); err != nil || !ok || v == nil || len(v) != 0 {
				t.Errorf("get b: %v %v %v", v, ok, err)
			}
			if _, ok, err := s.Get([]byte("a")); ok || err != nil {
				t.Errorf("get a: %v %v", ok, err)
			}
			closeStore(t, s)
			if round == 0 {
				s = open(t, o)
			}
		}
	}
}

func TestScanHonoursBoundsOrderAndStop(t *testing.T) {
	s := open(t, options(t, vfs.NewMem(), "/s"))
	defer closeStore(t, s)
	for _, k := range []string{"a", "b", "c", "d"} {
		put(t, s, k, strings.ToUpper(k))
	}
	for _, c := range []struct {
		lo, hi  string
		reverse bool
		want    []string
	}{
		{"", "", false, []string{"a=A", "b=B", "c=C", "d=D"}},
		{"", "", true, []string{"d=D", "c=C", "b=B", "a=A"}},
		{"b", "d", false, []string{"b=B", "c=C"}},
		{"b", "d", true, []string{"c=C", "b=B"}},
		{"bb", "", false, []string{"c=C", "d=D"}},
		{"\x00", "b", false, []string{"a=A"}}, // the store's own keys stay hidden
		{"x", "", false, nil},
		{"d", "b", false, nil},
		{"b", "b", true, nil},
		{"", "\x00", false, nil},
	} {
		if got := scan(t, s, c.lo, c.hi, c.reverse); !reflect.DeepEqual(got, c.want) {
			t.Errorf("scan %q..%q reverse %v: %v, want %v", c.lo, c.hi, c.reverse, got, c.want)
		}
	}
	n, stop := 0, errors.New("stop")
	err := s.Scan(nil, nil, false, func(k, v []byte) (bool, error) { n++; return n < 2, nil })
	if n != 2 || err != nil {
		t.Errorf("stopped scan: %d keys, %v", n, err)
	}
	if err := s.Scan(nil, nil, false, func(k, v []byte) (bool, error) { return true, stop }); err != stop {
		t.Errorf("scan returned %v, want the callback's own error", err)
	}
}

func TestBadBatchIsRefusedAsAWhole(t *testing.T) {
	s := open(t, options(t, vfs.NewMem(), "/s"))
	defer closeStore(t, s)
	long := make([]byte, storage.MaxKeyBytes+1)
	long[0] = 'k'
	for _, c := range []struct {
		name string
		add  func(b *storage.Batch)
		want error
	}{
		{"empty key", func(b *storage.Batch) { b.Set(nil, nil) }, storage.ErrReservedKey},
		{"reserved key", func(b *storage.Batch) { b.Set([]byte{0, 'h'}, nil) }, storage.ErrReservedKey},
		{"delete reserved key", func(b *storage.Batch) { b.Delete([]byte{0}) }, storage.ErrReservedKey},
		{"range from the start", func(b *storage.Batch) { b.DeleteRange(nil, []byte("z")) }, storage.ErrReservedKey},
		{"range over reserved keys", func(b *storage.Batch) { b.DeleteRange([]byte{0}, []byte("z")) }, storage.ErrReservedKey},
		{"long key", func(b *storage.Batch) { b.Set(long, nil) }, storage.ErrTooLarge},
		{"large value", func(b *storage.Batch) { b.Set([]byte("k"), make([]byte, storage.MaxBatchBytes)) }, storage.ErrTooLarge},
	} {
		b := s.NewBatch()
		b.Set([]byte("good"), []byte("1"))
		c.add(b)
		b.Set([]byte("good too"), []byte("1"))
		if err := s.Commit(b); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", c.name, err, c.want)
		}
	}
	if got := scan(t, s, "", "", false); got != nil {
		t.Errorf("a refused batch left %v", got)
	}
	if _, _, err := s.Get([]byte{0, 'h', 0}); !errors.Is(err, storage.ErrReservedKey) {
		t.Errorf("get of a reserved key: %v", err)
	}
	put(t, s, "k", "works after refusals")
}

func TestAppliedIsVisibleBeforeItIsDurableAndBarrierWaits(t *testing.T) {
	disk := newSlowSyncs(vfs.NewMem())
	s := open(t, options(t, disk, "/s"))
	disk.hold()
	b := s.NewBatch()
	b.Set([]byte("k"), []byte("v"))
	p, err := s.Apply(b)
	if err != nil {
		t.Fatal(err)
	}
	if v, ok, err := s.Get([]byte("k")); err != nil || !ok || string(v) != "v" {
		t.Errorf("applied but not visible: %q %v %v", v, ok, err)
	}
	if st := s.Stats(); st.Applied != 1 || st.Durable != 0 {
		t.Errorf("applied %d, durable %d before the sync", st.Applied, st.Durable)
	}
	short, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
	defer cancel()
	if err := s.Barrier(short); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("barrier before the sync: %v", err)
	}
	var all sync.WaitGroup
	all.Go(func() {
		if err := s.Barrier(ctx(t)); err != nil {
			t.Errorf("barrier: %v", err)
		}
		if st := s.Stats(); st.Durable != 1 {
			t.Errorf("barrier returned with durable = %d", st.Durable)
		}
	})
	disk.letGo()
	if err := p.Wait(); err != nil {
		t.Error(err)
	}
	all.Wait()
	closeStore(t, s)
}

func TestWaitsMayComeInAnyOrderOnOtherGoroutines(t *testing.T) {
	s := open(t, options(t, vfs.NewMem(), "/s"))
	defer closeStore(t, s)
	var pending []*storage.Pending
	for i := range 100 {
		b := s.NewBatch()
		b.Set(fmt.Appendf(nil, "k%03d", i), []byte("v"))
		p, err := s.Apply(b)
		if err != nil {
			t.Fatal(err)
		}
		if p.Head() != uint64(i+1) {
			t.Fatalf("batch %d has number %d", i+1, p.Head())
		}
		pending = append(pending, p)
	}
	var all sync.WaitGroup
	for i := range pending {
		all.Go(func() {
			if err := pending[len(pending)-1-i].Wait(); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if err := s.Barrier(ctx(t)); err != nil {
		t.Error(err)
	}
	if st := s.Stats(); st.Applied != 100 || st.Durable != 100 {
		t.Errorf("applied %d, durable %d", st.Applied, st.Durable)
	}
}

func TestAppliesExcludeEachOther(t *testing.T) {
	s := open(t, options(t, vfs.NewMem(), "/s"))
	defer closeStore(t, s)
	const writers, each = 8, 50
	var (
		all   sync.WaitGroup
		mu    sync.Mutex
		heads = map[uint64]bool{}
	)
	for w := range writers {
		all.Go(func() {
			for i := range each {
				b := s.NewBatch()
				b.Set(fmt.Appendf(nil, "%d-%d", w, i), nil)
				p, err := s.Apply(b)
				if err == nil {
					err = p.Wait()
				}
				b.Close()
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				heads[p.Head()] = true
				mu.Unlock()
			}
		})
	}
	all.Wait()
	if len(heads) != writers*each || s.Stats().Durable != writers*each {
		t.Errorf("%d different numbers, durable %d", len(heads), s.Stats().Durable)
	}
}

func TestNumbersRiseAcrossRestarts(t *testing.T) {
	o := options(t, vfs.NewMem(), "/s")
	want := uint64(0)
	for range 5 {
		s := open(t, o)
		if st := s.Stats(); st.Applied != want || st.Durable != want {
			t.Errorf("opened at %d/%d, want %d", st.Applied, st.Durable, want)
		}
		for range 7 {
			put(t, s, "k", "v")
			want++
		}
		closeStore(t, s)
	}
}

func TestLargeBatchTakesTheSameWay(t *testing.T) {
	o := options(t, vfs.NewMem(), "/s")
	s := open(t, o)
	big := make([]byte, 64<<10)
	b := s.NewBatch()
	for i := range 40 { // 2.5 MiB, several memtables
		b.Set(fmt.Appendf(nil, "big%02d", i), big)
	}
	put(t, s, "before", "1")
	if err := s.Commit(b); err != nil {
		t.Fatal(err)
	}
	put(t, s, "later", "1")
	for range 2 {
		if n := len(scan(t, s, "", "", false)); n != 42 {
			t.Errorf("%d keys, want 42", n)
		}
		closeStore(t, s)
		s = open(t, o)
	}
	closeStore(t, s)
}

func TestClosedStoreSaysSo(t *testing.T) {
	s := open(t, options(t, vfs.NewMem(), "/s"))
	b := s.NewBatch()
	b.Set([]byte("k"), nil)
	p, err := s.Apply(b)
	if err != nil {
		t.Fatal(err)
	}
	closeStore(t, s)
	if err := p.Wait(); err != nil {
		t.Errorf("wait after close, which made it durable: %v", err)
	}
	for name, err := range map[string]error{
		"commit": s.Commit(s.NewBatch()),
		"scan":   s.Scan(nil, nil, false, nil),
		"get":    func() error { _, _, err := s.Get([]byte("k")); return err }(),
		"close":  s.Close(),
	} {
		if !errors.Is(err, storage.ErrClosed) {
			t.Errorf("%s after close: %v", name, err)
		}
	}
	if st := s.Stats(); st.Durable != 1 {
		t.Errorf("durable %d after close", st.Durable)
	}
}

func TestReadersAndCloseDoNotCollide(t *testing.T) {
	s := open(t, options(t, vfs.NewMem(), "/s"))
	for i := range 100 {
		put(t, s, fmt.Sprint("k", i), "v")
	}
	var all sync.WaitGroup
	started := make(chan struct{}, 8)
	for range 8 {
		all.Go(func() {
			for i := 0; ; i++ {
				err := s.Scan(nil, nil, i%2 == 0, func(k, v []byte) (bool, error) { return true, nil })
				if errors.Is(err, storage.ErrClosed) {
					return
				}
				if err != nil {
					t.Error(err)
					return
				}
				if i == 0 {
					started <- struct{}{}
				}
				s.Stats()
			}
		})
	}
	for range 8 {
		<-started
	}
	closeStore(t, s)
	all.Wait()
}
