package explore_test

import (
	"os"
	"runtime"
	"strconv"
	"testing"

	"github.com/apollo-11/apollo11/firmware-sim/explore"
)

// seeds is how many seeds the test plays: EXPLORE_SEEDS, else a few hundred, or
// fewer under the race detector. CI plays 2,000 more without it, by make explore.
func seeds(t *testing.T) uint64 {
	t.Helper()
	if s := os.Getenv("EXPLORE_SEEDS"); s != "" {
		n, err := strconv.ParseUint(s, 10, 32)
		if err != nil || n == 0 {
			t.Fatalf("EXPLORE_SEEDS=%q is not a number of seeds", s)
		}
		return n
	}
	return defaultSeeds
}

func report(t *testing.T, f *explore.Failure) {
	t.Helper()
	for _, line := range f.Trace {
		t.Log(line)
	}
	o := f.Small.Options
	t.Fatalf("seed %d breaks a rule: %+v\nto see all of it: go run ./firmware-sim/explore/cmd --seeds %d --nodes %d --faults %s --trace",
		o.Seed, f.First.Violation, o.Seed, o.Nodes, o.Profile)
}

// TestSitesKeepTheirRules plays seeds of every profile. One seed in sixteen is
// played twice, and both plays must be the same.
func TestSitesKeepTheirRules(t *testing.T) {
	n := seeds(t)
	for _, p := range []struct {
		profile string
		share   uint64 // of the seeds, in tenths
	}{{"all", 5}, {"lossy", 1}, {"power", 1}, {"disk", 1}, {"clock", 1}, {"flapping", 1}} {
		c := explore.Campaign{Options: explore.Options{Nodes: 3, Profile: p.profile}, First: 1, Last: n * p.share / 10,
			Jobs: runtime.NumCPU(), TwiceEvery: 16}
		s, err := c.Run(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if s.Failure != nil {
			report(t, s.Failure)
		}
		t.Logf("profile %s: %d seeds, %d instructions, %d executed, %d confirmed, %d duplicates, %v of virtual time in %v",
			p.profile, s.Seeds, s.Counts.Instructions, s.Counts.Executed, s.Counts.Confirmed, s.Counts.Duplicates, s.Virtual, s.Took)
		if s.Counts.Confirmed == 0 || s.Counts.Duplicates != 0 {
			t.Errorf("profile %s: %d confirmed, %d duplicates", p.profile, s.Counts.Confirmed, s.Counts.Duplicates)
		}
	}
}
