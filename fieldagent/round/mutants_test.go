//go:build mutants

package round_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/apollo-11/apollo11/fieldagent/executor"
	"github.com/apollo-11/apollo11/wire"
	"github.com/apollo-11/apollo11/wire/mutant"
	"github.com/apollo-11/apollo11/wire/mutant/mutanttest"
)

// TestMutantsOfTheRound: the order of effects breaks with each of these faults.
func TestMutantsOfTheRound(t *testing.T) {
	unwritten := func(in ...executor.Input) func() string {
		return func() string {
			s := newSite(t)
			s.give(executor.NarrowbandUp{})
			s.did, s.fails = nil, errors.New("the disk is gone")
			s.give(append(in, s.deliver(1, time.Minute))...)
			return fmt.Sprint(s.did)
		}
	}
	mutanttest.Bites(t,
		mutanttest.Case{Fault: mutant.ActsFirst, Want: "[died]", Play: unwritten()},
		mutanttest.Case{Fault: mutant.NarrowbandFirst, Want: "[died]", Play: unwritten(executor.ReceivedCompact{Frame: wire.CompactCancel{Seq: 7, Attempt: 1}})},
		mutanttest.Case{Fault: mutant.ContactStale, Want: "contact false", Play: func() string {
			return fmt.Sprint("contact ", contactAfterLoss(t))
		}},
	)
}
