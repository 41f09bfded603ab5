//go:build mutants

package explore_test

import (
	"runtime"
	"testing"

	"github.com/apollo-11/apollo11/firmware-sim/explore"
	"github.com/apollo-11/apollo11/wire/mutant"
)

// TestMutantsAreCaught proves that the simulator bites: with each planted fault it
// finds a broken rule within 500 seeds. Run it by `make mutants`.
func TestMutantsAreCaught(t *testing.T) {
	defer mutant.Plant(mutant.None)
	for _, f := range mutant.All() {
		t.Run(f.String(), func(t *testing.T) {
			if why := unseen[f]; why != "" {
				t.Skipf("the simulator does not see this fault within 500 seeds: %s", why)
			}
			mutant.Plant(f)
			c := explore.Campaign{Options: explore.Options{Nodes: 3, Profile: profileFor(f)}, First: 1, Last: 500, Jobs: runtime.NumCPU(), Quick: true}
			s, err := c.Run(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if s.Failure == nil {
				t.Fatalf("%d seeds, %d instructions, and no rule broken: the simulator does not see this fault", s.Seeds, s.Counts.Instructions)
			}
			t.Logf("seed %d: %+v", s.Failure.First.Options.Seed, *s.Failure.First.Violation)
		})
	}
}

// unseen are the faults that the simulator does not catch yet, and what does: those of
// gateway/engine are planted there, of fieldagent/executor it is believed only. They stay
// here, in everybody's sight, until it learns to.
var unseen = map[mutant.Fault]string{
	mutant.KeepIgnored:         "tests of fieldagent/executor do",
	mutant.ContactStale:        "nothing is known to catch it yet",
	mutant.RefusalSpares:       "tests of fieldagent/executor do",
	mutant.EpochIgnored:        "tests of fieldagent/executor do",
	mutant.SupersededBelieved:  "tests of gateway/engine do",
	mutant.WindowForgets:       "tests of gateway/engine do",
	mutant.TwinUnseen:          "tests of gateway/engine do",
	mutant.CompactCancelUnsent: "tests of gateway/engine do",
	mutant.UnknownUnasked:      "tests of gateway/engine do",
	mutant.LossIsEvent:         "nothing is known to catch it yet",
	mutant.HoldUnasked:         "nothing is known to catch it yet",
	mutant.LateAtPin:           "nothing is known to catch it yet",
	mutant.WindowIgnored:       "nothing is known to catch it yet",
	mutant.RefusedIsContact:    "nothing is known to catch it yet",
	mutant.AttemptsOverlap:     "nothing is known to catch it yet",
	mutant.KeptForever:         "nothing is known to catch it yet",
}

// profileFor is the profile that must catch a fault: all, or the one of the faults that
// it needs, which few sites of all meet.
func profileFor(f mutant.Fault) string {
	if f >= mutant.RestoreUnseen && f <= mutant.StrangerCancels {
		return "restore"
	}
	switch f {
	case mutant.OwnersActRetried, mutant.QueueUnoffered, mutant.HoldLost:
		return "power"
	case mutant.EpochIgnored, mutant.SupersededBelieved, mutant.HelloForAll, mutant.TwinUnseen, mutant.RefusedIsContact, mutant.MarkForgotten:
		return "restore"
	case mutant.NumberTwice, mutant.OffWaitsForLog, mutant.UrgentUnreserved, mutant.NarrowbandFirst, mutant.OffWaitsForJournal, mutant.OffWaitsForWorker, mutant.ContactStale, mutant.WithdrawalUnwritten, mutant.OffWaitsForRoom:
		return "disk"
	case mutant.LateAtPin:
		return "clock"
	case mutant.WindowIgnored, mutant.LossIsEvent, mutant.PriorityOvertakes, mutant.KeptForever, mutant.SafeAtCapacity, mutant.WithdrawnOffered, mutant.CompactCancelUnsent:
		return "flapping"
	}
	return "all"
}
