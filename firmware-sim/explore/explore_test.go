package explore_test

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/apollo-11/apollo11/firmware-sim/explore"
	"github.com/apollo-11/apollo11/wire"
)

// seeds is how many seeds of profile all a test plays; EXPLORE_SEEDS sets another
// number, as CI does.
func seeds(t *testing.T) uint64 {
	t.Helper()
	n := uint64(300)
	if raceDetector {
		n = 20 // one goroutine a seed: there is little to race
	}
	if testing.Short() {
		n = 10
	}
	if s := os.Getenv("EXPLORE_SEEDS"); s != "" {
		v, err := strconv.ParseUint(s, 10, 32)
		if err != nil || v == 0 {
			t.Fatalf("EXPLORE_SEEDS is %q, it must be a number of seeds", s)
		}
		n = v
	}
	return n
}

func campaign(t *testing.T, c explore.Campaign) explore.Summary {
	t.Helper()
	c.Jobs = 2
	sum, err := c.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if sum.Failure != nil {
		t.Fatal(sum.Failure)
	}
	return sum
}

// TestEverythingHolds plays sites with every kind of fault.
func TestEverythingHolds(t *testing.T) {
	n := seeds(t)
	sum := campaign(t, explore.Campaign{Options: explore.Options{Profile: "all"}, First: 1, Last: n, TwiceEvery: 16})
	c := sum.Counts
	t.Logf("%d seeds in %v: %d instructions, %d executed, %d confirmed, %d duplicates, %d faults, %v of virtual time",
		sum.Seeds, sum.Took, c.Instructions, c.Executed, c.Confirmed, c.Duplicates, c.Faults, sum.Virtual)
	if n >= 300 && (slices.Contains(c.LeaseEnds[wire.LeaseExpired:wire.LeaseFailed], 0) || c.Edges == 0 || c.ByHand == 0) {
		t.Errorf("a kind of thing has not happened at the pins: leases %v, %d edges, %d refused by hand", c.LeaseEnds, c.Edges, c.ByHand)
	}
	if sum.Seeds != n || c.Instructions == 0 || c.Executed == 0 || c.Confirmed == 0 || c.Faults == 0 {
		t.Errorf("little happened: %+v", sum)
	}
}

// TestEachProfileHolds plays each kind of fault by itself, every seed twice.
func TestEachProfileHolds(t *testing.T) {
	for _, p := range explore.Profiles() {
		t.Run(p.Name, func(t *testing.T) {
			n := max(seeds(t)/10, 5)
			campaign(t, explore.Campaign{Options: explore.Options{Profile: p.Name}, First: 1, Last: n, TwiceEvery: 1})
		})
	}
}

// TestCalmSiteDoesEverythingOnce: without faults every instruction that was not
// cancelled, expired or refused is executed, and no token twice.
func TestCalmSiteDoesEverythingOnce(t *testing.T) {
	c := campaign(t, explore.Campaign{Options: explore.Options{Profile: "calm", Nodes: 5}, First: 1, Last: 20}).Counts
	if c.Faults != 0 || c.Duplicates != 0 || c.Confirmed*10 < c.Instructions*9 {
		t.Errorf("of %d instructions %d were confirmed, with %d faults and %d duplicates", c.Instructions, c.Confirmed, c.Faults, c.Duplicates)
	}
}

// TestA6_LossIsCompensatedInThreeRounds: with 30 % of the messages lost in both
// directions nearly every attempt is confirmed by the third round; 95 % is what
// is required.
func TestA6_LossIsCompensatedInThreeRounds(t *testing.T) {
	c := campaign(t, explore.Campaign{Options: explore.Options{Profile: "lossy"}, First: 1, Last: max(seeds(t)/5, 10)}).Counts
	t.Logf("%d of %d attempts", c.InThree, c.Attempts)
	if c.Attempts == 0 || c.InThree*1000 < c.Attempts*990 {
		t.Errorf("%d of %d attempts were confirmed by the third round", c.InThree, c.Attempts)
	}
}

// TestB3_UnknownForLessThanASecond: while the primary path swallows everything
// and the narrowband lives, the gateway knows within a second what became of an
// attempt.
func TestB3_UnknownForLessThanASecond(t *testing.T) {
	c := campaign(t, explore.Campaign{Options: explore.Options{Profile: "blackhole"}, First: 1, Last: max(seeds(t)/5, 10)}).Counts
	if p99 := c.Windows.Within(0.99); p99 == 0 || p99 > time.Second {
		t.Errorf("99 %% of the attempts had an unknown status for up to %v", p99)
	}
}

// TestBothStoresPlayTheSame: as long as the gateway's disk is not touched, the
// store in memory and the real one lead to the same run, to the last message.
func TestBothStoresPlayTheSame(t *testing.T) {
	for seed := uint64(1); seed <= 5; seed++ {
		var hash [2]uint64
		for k, store := range []explore.Store{explore.StoreMemory, explore.StorePebble} {
			r, err := explore.Run(explore.Options{Seed: seed, Profile: "flapping", Store: store})
			if err != nil || r.Violation != nil {
				t.Fatal(seed, store, err, r.Violation)
			}
			hash[k] = r.Hash
		}
		if hash[0] != hash[1] {
			t.Errorf("seed %d: %x in memory, %x with the real store", seed, hash[0], hash[1])
		}
	}
}

// TestRealStoreSurvivesPowerCuts plays cuts on the real store.
func TestRealStoreSurvivesPowerCuts(t *testing.T) {
	for _, p := range []string{"power", "disk"} {
		campaign(t, explore.Campaign{Options: explore.Options{Profile: p, Store: explore.StorePebble}, First: 1, Last: max(seeds(t)/60, 2), TwiceEvery: 2})
	}
}

// TestKnownSeedsHold plays what once broke.
func TestKnownSeedsHold(t *testing.T) {
	b, err := os.ReadFile("testdata/seeds.txt")
	if err != nil {
		t.Fatal(err)
	}
	played := 0
	for s := bufio.NewScanner(bytes.NewReader(b)); s.Scan(); {
		if line := s.Text(); line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		var o explore.Options
		if _, err := fmt.Sscan(s.Text(), &o.Profile, &o.Nodes, &o.Seed); err != nil {
			t.Fatalf("line %q: %v", s.Text(), err)
		}
		if o.Nodes > 50 && (raceDetector || testing.Short()) {
			t.Logf("left out, for it takes too long with the race detector or -short: %s", s.Text())
			continue
		}
		r, err := explore.Run(o)
		if err != nil || r.Violation != nil {
			t.Errorf("%s\n%v %v", s.Text(), err, r.Violation)
		}
		played++
	}
	if played < 5 {
		t.Errorf("only %d seeds were played", played)
	}
}

func TestTraceDoesNotChangeARun(t *testing.T) {
	var b bytes.Buffer
	silent, err1 := explore.Run(explore.Options{Seed: 3})
	told, err2 := explore.Run(explore.Options{Seed: 3, Trace: &b})
	if err1 != nil || err2 != nil || silent.Hash != told.Hash {
		t.Errorf("%x without a trace, %x with one (%v, %v)", silent.Hash, told.Hash, err1, err2)
	}
	for _, part := range []string{"submit", "starts", "SUCCEEDED", "the faults stop"} {
		if !strings.Contains(b.String(), part) {
			t.Errorf("the trace does not say %q", part)
		}
	}
}

func TestOptionsThatMakeNoSense(t *testing.T) {
	for _, o := range []explore.Options{{Profile: "nice"}, {Nodes: -1}, {Nodes: explore.MaxNodes + 1}, {Span: -1}, {Span: explore.MaxSpan + 1}, {Store: "tape"}} {
		if _, err := explore.Run(o); err == nil {
			t.Errorf("%+v is taken", o)
		}
	}
}
