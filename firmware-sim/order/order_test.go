package order_test

import (
	"flag"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/apollo-11/apollo11/firmware-sim/order"
)

var (
	seedFlag    = flag.Uint64("seed", 0, "play this seed and print what happened")
	withoutFlag = flag.String("without", "", "with -seed: the clause to leave out")
)

// first returns the lowest seed up to most that finds something, 0 for none.
func first(rule order.Rule, most uint64) uint64 {
	var next, found atomic.Uint64
	found.Store(most + 1)
	var wg sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			for {
				seed := next.Add(1)
				if seed >= found.Load() {
					return
				}
				if wrong, _ := order.Run(seed, rule, false); wrong == "" {
					continue
				}
				for was := found.Load(); seed < was && !found.CompareAndSwap(was, seed); was = found.Load() {
				}
			}
		})
	}
	wg.Wait()
	if seed := found.Load(); seed <= most {
		return seed
	}
	return 0
}

func show(t *testing.T, seed uint64, rule order.Rule) {
	t.Helper()
	wrong, log := order.Run(seed, rule, true)
	t.Logf("seed %d: %s\n%s", seed, wrong, strings.Join(log, "\n"))
}

// TestSeed plays one seed: go test -run Seed -v ./firmware-sim/order -seed 42 -without Offered
func TestSeed(t *testing.T) {
	if *seedFlag == 0 {
		t.Skip("no -seed")
	}
	rule := order.Whole()
	if *withoutFlag != "" {
		rule = order.Without(strings.Split(*withoutFlag, ",")...)
	}
	show(t, *seedFlag, rule)
}

// TestTheWholeRuleHolds plays seeds under the rule with every clause.
func TestTheWholeRuleHolds(t *testing.T) {
	most := uint64(20_000)
	if testing.Short() || raceEnabled {
		most = 2_000
	}
	if s := os.Getenv("APOLLO_ORDER_SEEDS"); s != "" {
		n, err := strconv.ParseUint(s, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		most = n
	}
	if seed := first(order.Whole(), most); seed != 0 {
		show(t, seed, order.Whole())
		t.Fatalf("seed %d of %d finds a hole", seed, most)
	}
}

// TestASeedIsOneRun holds that nothing but the seed decides.
func TestASeedIsOneRun(t *testing.T) {
	for seed := uint64(1); seed <= 50; seed++ {
		_, a := order.Run(seed, order.Whole(), true)
		_, b := order.Run(seed, order.Whole(), true)
		if len(a) == 0 || !slices.Equal(a, b) {
			t.Fatalf("seed %d gives two different runs", seed)
		}
	}
}
