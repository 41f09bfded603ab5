package engine_test

import (
	"flag"
	"runtime"
	"strings"
	"sync"
	"testing"
)

var (
	seedCount = flag.Int("seeds", 0, "simulate this many seeds instead of the usual number")
	seedFirst = flag.Uint64("seed", 1, "the first seed")
)

// oldSeeds once broke a rule, and are played every time:
//
//	8     progress after a stop made a retry RUNNING, then CANCELLED
//	2174  a retry cancelled after an unknown outcome was CANCELLED
//	11143 an agent with a new journal took an old token before its welcome
//	31    what was taken out of a backlog did not let go what stood behind it
//	13    a retry ran again what the log had lost, an older copy of itself
//	91    an agent was not seen to know more, because others had been given its numbers
//	1247  a retry that was due before a quiet period was sent in it
//	2388  the cancel of a retry that had never been sent went out without a token
var oldSeeds = []uint64{8, 2174, 11143, 31, 13, 91, 1247, 2388}

// TestSimulatedSites plays many short lives of a site, each from its seed, twice:
// no rule may break, and both runs must be the same to the last message. To look
// into one: go test ./gateway/engine -run SimulatedSites -seed N -seeds 1
func TestSimulatedSites(t *testing.T) {
	n := 200
	if raceDetector {
		n = 20 // one goroutine: there is nothing to race
	}
	if testing.Short() {
		n = 10
	}
	if *seedCount > 0 {
		n = *seedCount
	}
	seeds := make([]uint64, 0, n)
	if *seedCount == 0 {
		seeds = append(seeds, oldSeeds...)
	}
	for k := range n {
		seeds = append(seeds, *seedFirst+uint64(k))
	}
	var mu sync.Mutex
	var rounds int
	inParallel(len(seeds), func(k int) {
		seed := seeds[k]
		w := newWorld(seed, plantNone)
		if err := w.run(); err != nil {
			t.Errorf("seed %d: %v\nthe last lines of its trace:\n%s", seed, err, strings.Join(w.tail, "\n"))
			return
		}
		again := newWorld(seed, plantNone)
		if err := again.run(); err != nil || again.hash != w.hash {
			t.Errorf("seed %d: the second run differs from the first (%x, %x, %v)", seed, w.hash, again.hash, err)
		}
		mu.Lock()
		rounds += w.rounds
		mu.Unlock()
	})
	t.Logf("%d seeds, %d rounds", len(seeds), rounds)
}

// TestPlantedFaultsAreCaught shows that the rules bite: each fault, planted
// between the engine and its site, breaks one within a bounded number of seeds.
func TestPlantedFaultsAreCaught(t *testing.T) {
	const most = 1000 // all but one take a handful
	for p := plantNone + 1; p < plantCount; p++ {
		t.Run(p.String(), func(t *testing.T) {
			for seed := uint64(1); seed <= most; seed++ {
				if err := newWorld(seed, p).run(); err != nil {
					t.Logf("seed %d: %.300s", seed, err)
					return
				}
			}
			t.Errorf("%d seeds did not catch it", most)
		})
	}
}

// inParallel calls do for 0 to n-1 on as many goroutines as there are cores.
func inParallel(n int, do func(k int)) {
	var wg sync.WaitGroup
	work := make(chan int)
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			for k := range work {
				do(k)
			}
		})
	}
	for k := range n {
		work <- k
	}
	close(work)
	wg.Wait()
}
