package main

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"golang.org/x/sys/unix"
)

// recordBytes is the size of one record in the raw measures: about what one
// instruction takes in the log.
const recordBytes = 256

// syncTimes appends records one at a time, each made durable, for d.
func syncTimes(dir string, d time.Duration) (times []time.Duration, err error) {
	f, err := os.Create(filepath.Join(dir, "floor"))
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // scratch file
	rec := make([]byte, recordBytes)
	for start := time.Now(); time.Since(start) < d; {
		t := time.Now()
		if _, err := f.Write(rec); err != nil {
			return nil, err
		}
		if err := unix.Fdatasync(int(f.Fd())); err != nil {
			return nil, err
		}
		times = append(times, time.Since(t))
	}
	return times, nil
}

// groupBound is the most that n writers can get durable per second when all that
// wait share one write and one fdatasync: the bound of any group commit.
func groupBound(dir string, n int, d time.Duration) (perSecond float64, err error) {
	f, err := os.Create(filepath.Join(dir, "bound"))
	if err != nil {
		return 0, err
	}
	defer func() { _ = f.Close() }() // scratch file
	queue := make(chan chan error, n)
	stop := make(chan struct{})
	var writers, committer sync.WaitGroup
	committer.Go(func() {
		for first := range queue {
			waiting := []chan error{first}
			for len(queue) > 0 {
				waiting = append(waiting, <-queue)
			}
			_, err := f.Write(make([]byte, recordBytes*len(waiting)))
			if err == nil {
				err = unix.Fdatasync(int(f.Fd()))
			}
			for _, w := range waiting {
				w <- err
			}
		}
	})
	counts := make([]int, n)
	errs := make([]error, n)
	start := time.Now()
	for k := range n {
		writers.Go(func() {
			done := make(chan error, 1)
			for {
				select {
				case <-stop:
					return
				default:
				}
				queue <- done
				if errs[k] = <-done; errs[k] != nil {
					return
				}
				counts[k]++
			}
		})
	}
	time.Sleep(d)
	close(stop)
	writers.Wait()
	took := time.Since(start)
	close(queue)
	committer.Wait()
	return perSec(counts, errs, took)
}

// pebbleRate is what n writers get from plain Pebble: a batch of three keys each,
// committed with Sync by each writer itself.
func pebbleRate(dir string, n int, d time.Duration) (perSecond float64, err error) {
	db, err := pebble.Open(filepath.Join(dir, "pebble"), &pebble.Options{Logger: quiet{}})
	if err != nil {
		return 0, err
	}
	defer func() { _ = db.Close() }() // scratch store
	return writers(n, d, func(k, i int) error {
		b := db.NewBatch()
		key := fmt.Appendf(nil, "%06d-%09d", k, i)
		for _, tab := range []string{"i", "o", "t"} {
			v := make([]byte, 16)
			if tab == "i" {
				v = make([]byte, recordBytes)
			}
			if err := b.Set(append([]byte(tab), key...), v, nil); err != nil {
				return err
			}
		}
		return b.Commit(pebble.Sync)
	})
}

// writers runs f in n goroutines for d and returns how often per second.
func writers(n int, d time.Duration, f func(k, i int) error) (perSecond float64, err error) {
	counts := make([]int, n)
	errs := make([]error, n)
	deadline := time.Now().Add(d)
	start := time.Now()
	var group sync.WaitGroup
	for k := range n {
		group.Go(func() {
			for i := 0; time.Now().Before(deadline); i++ {
				if errs[k] = f(k, i); errs[k] != nil {
					return
				}
				counts[k]++
			}
		})
	}
	group.Wait()
	return perSec(counts, errs, time.Since(start))
}

func perSec(counts []int, errs []error, took time.Duration) (float64, error) {
	sum := 0
	for k, c := range counts {
		if errs[k] != nil {
			return 0, errs[k]
		}
		sum += c
	}
	return float64(sum) / took.Seconds(), nil
}

// quiet is Pebble's logger in a measurement.
type quiet struct{}

func (quiet) Infof(string, ...any)         {}
func (quiet) Errorf(f string, args ...any) { fmt.Fprintf(os.Stderr, "pebble: "+f+"\n", args...) }
func (quiet) Fatalf(f string, args ...any) {
	fmt.Fprintf(os.Stderr, "pebble: "+f+"\n", args...)
	os.Exit(1)
}
