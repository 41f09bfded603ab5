package storage_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/apollo-11/apollo11/storage"
)

// A record of the benchmark is what one submission costs the gateway: a record,
// an index entry and a timeline entry.
const (
	benchValue = 256
	benchBytes = benchValue + 3*16
)

func benchKeys(n uint64) [3][]byte {
	var k [3][]byte
	for i, p := range []byte("rit") {
		k[i] = storage.AppendUint64([]byte{p}, n)
	}
	return k
}

// BenchmarkDurableRecords lets 1 to 256 goroutines insert records, each waiting
// until its own is on disk, in three ways that take turns within one run:
//
//	bound   one goroutine writes the same bytes of all that wait and calls fdatasync
//	store   one goroutine puts all that wait into one batch, another waits for it
//	pebble  each goroutine commits its own batch with Sync
//
// Compare store/bound and store/pebble; times depend on the disk.
func BenchmarkDurableRecords(b *testing.B) {
	for _, writers := range []int{1, 16, 64, 256} {
		b.Run(fmt.Sprintf("writers=%d", writers), func(b *testing.B) {
			ways := []way{newBound(b), newStoreWay(b), newPebbleWay(b)}
			var took [3]time.Duration
			const turns = 3
			share := max(b.N/turns, writers)
			b.ResetTimer()
			for range turns {
				for i, w := range ways {
					took[i] += insert(b, w, writers, share)
				}
			}
			b.StopTimer()
			for _, w := range ways {
				w.stop()
			}
			rate := func(i int) float64 { return float64(turns*share) / took[i].Seconds() }
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(rate(0), "bound/s")
			b.ReportMetric(rate(1), "store/s")
			b.ReportMetric(rate(1)/rate(0), "store/bound")
			b.ReportMetric(rate(2)/rate(0), "pebble/bound")
			b.ReportMetric(rate(1)/rate(2), "store/pebble")
		})
	}
}

// way is one way to make a record durable.
type way struct {
	insert func(n uint64) error
	stop   func()
}

func insert(b *testing.B, w way, writers, records int) time.Duration {
	var (
		next atomic.Uint64
		all  sync.WaitGroup
	)
	start := time.Now()
	for range writers {
		all.Go(func() {
			for {
				n := next.Add(1)
				if n > uint64(records) {
					return
				}
				if err := w.insert(n); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
	return time.Since(start)
}

// request is one record that waits for its durability.
type request struct {
	n    uint64
	done chan error
}

var requests = sync.Pool{New: func() any { return &request{done: make(chan error, 1)} }}

// through hands a record to a single goroutine and waits.
func through(queue chan<- *request) func(n uint64) error {
	return func(n uint64) error {
		r := requests.Get().(*request)
		defer requests.Put(r)
		r.n = n
		queue <- r
		return <-r.done
	}
}

// gather takes what waits in the queue, at least one, at most limit.
func gather(queue <-chan *request, into []*request, limit int) []*request {
	r, ok := <-queue
	if !ok {
		return nil
	}
	into = append(into[:0], r)
	for len(into) < limit {
		select {
		case r, ok := <-queue:
			if !ok {
				return into
			}
			into = append(into, r)
		default:
			return into
		}
	}
	return into
}

const gatherMax = 200 // records; about storage.GoodBatchBytes

func newBound(b *testing.B) way {
	f, err := os.Create(filepath.Join(b.TempDir(), "bound"))
	if err != nil {
		b.Fatal(err)
	}
	queue := make(chan *request, 1024)
	var done sync.WaitGroup
	done.Go(func() {
		var payload [benchBytes]byte
		var buf []byte
		var waiting []*request
		for {
			waiting = gather(queue, waiting, 1024)
			if waiting == nil {
				return
			}
			buf = buf[:0]
			for range waiting {
				buf = append(buf, payload[:]...)
			}
			_, err := f.Write(buf)
			if err == nil {
				err = syscall.Fdatasync(int(f.Fd()))
			}
			for _, r := range waiting {
				r.done <- err
			}
		}
	})
	return way{through(queue), func() {
		close(queue)
		done.Wait()
		if err := f.Close(); err != nil {
			b.Error(err)
		}
	}}
}

// round is a batch on its way and those who wait for it.
type round struct {
	p       *storage.Pending
	waiting []*request
}

func newStoreWay(b *testing.B) way {
	s := open(b, storage.Options{Dir: b.TempDir(), OnFatal: noExit(b), BallastBytes: -1})
	queue := make(chan *request, 1024)
	// Batches are applied while earlier ones are being synced; the limit keeps them
	// from becoming many and small when the disk is slow.
	rounds := make(chan round, 8)
	free := make(chan []*request, 4)
	var done sync.WaitGroup
	done.Go(func() {
		value := make([]byte, benchValue)
		for {
			var waiting []*request
			select {
			case waiting = <-free:
			default:
			}
			if waiting = gather(queue, waiting, gatherMax); waiting == nil {
				close(rounds)
				return
			}
			batch := s.NewBatch()
			for _, r := range waiting {
				for i, k := range benchKeys(r.n) {
					if i == 0 {
						batch.Set(k, value)
					} else {
						batch.Set(k, value[:8])
					}
				}
			}
			p, err := s.Apply(batch)
			if err != nil {
				b.Error(err)
				return
			}
			rounds <- round{p, waiting}
		}
	})
	done.Go(func() {
		for r := range rounds {
			err := r.p.Wait()
			for _, w := range r.waiting {
				w.done <- err
			}
			select {
			case free <- r.waiting:
			default:
			}
		}
	})
	return way{through(queue), func() {
		close(queue)
		done.Wait()
		closeStore(b, s)
	}}
}

func newPebbleWay(b *testing.B) way {
	db, err := pebble.Open(b.TempDir(), &pebble.Options{FormatMajorVersion: pebble.FormatWALSyncChunks, MemTableSize: 4 << 20, MemTableStopWritesThreshold: 3, Logger: quiet{}})
	if err != nil {
		b.Fatal(err)
	}
	value := make([]byte, benchValue)
	return way{
		func(n uint64) error {
			batch := db.NewBatch()
			for i, k := range benchKeys(n) {
				v := value
				if i > 0 {
					v = value[:8]
				}
				if err := batch.Set(k, v, nil); err != nil {
					return err
				}
			}
			return errors.Join(batch.Commit(pebble.Sync), batch.Close())
		},
		func() {
			if err := db.Close(); err != nil {
				b.Error(err)
			}
		},
	}
}

// BenchmarkCommitInMemory is the cost of the store's own bookkeeping, without a disk.
func BenchmarkCommitInMemory(b *testing.B) {
	s := open(b, options(b, vfs.NewMem(), "/s"))
	defer closeStore(b, s)
	value := make([]byte, benchValue)
	keys := benchKeys(7)
	b.ReportAllocs()
	for b.Loop() {
		batch := s.NewBatch()
		for _, k := range keys {
			batch.Set(k, value)
		}
		if err := s.Commit(batch); err != nil {
			b.Fatal(err)
		}
	}
}
