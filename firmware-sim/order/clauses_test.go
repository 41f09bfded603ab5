package order_test

import (
	"strings"
	"testing"

	"github.com/apollo-11/apollo11/firmware-sim/order"
)

// bound is how many seeds are searched for a row whose own seed shows nothing any
// more, after a change of the model.
const bound = 200_000

// rows leave out one clause each, and say with which seed what is found then.
var rows = []struct {
	without string // more than one where several stand behind each other
	seed    uint64
	finds   string
}{
	{"Reserve", 2, "number: "},
	{"RetryKeepsNumber", 6, "order: "},
	{"RetryRenumbered", 8, "deaf: "},
	{"NumberWhenDue", 8, "order: "},
	{"RecordLost", 1122, "false: "},
	{"KeyByLine", 4, "offered: "},
	{"Marks", 32, "order: "},
	{"MarksWritten", 955, "order: "},
	{"EpochEnds", 15, "epoch: "},
	{"Believe", 704, "deaf: "},
	{"RenumberSafe", 37, "delayed: "},
	{"HelloFirst", 14, "offered: "},
	{"HoldRestored", 21, "epoch: "},
	{"HoldReplaced", 45, "twice: "},
	{"NewerWaits", 2, "deaf: "},
	{"InOrder", 5, "deaf: "},
	{"TwoPlaces", 15, "window: "},
	{"StuckBudget", 165, "budget: "},
	{"KeepLine", 107, "deaf: "},
	{"KeepBounded", 36, "settle: "},
	{"UnknownHoldsNot", 1, "settle: "},
	{"SafePasses", 1, "delayed: "},
	{"SafeSlot", 3302, "delayed: "},
	{"SafeDrivesFirst", 30, "delayed: "},
	{"Withdraw", 2, "offered: "},
	{"SupersedeSurvives", 15, "offered: "},
	{"SaidAfterRecord", 30, "unrecorded: "},
	{"Offered", 1149, "order: "},
	{"OwnerChecks", 40, "order: "},
	{"EndsRunning", 35, "ends: "},
	{"DrivenSettlesNothing", 1, "unrecorded: "},
	{"NewerBegun", 19, "order: "},
	{"ResendSafe", 6, "budget: "},
	{"CompactNoRaise", 84, "deaf: "},
	{"HeldAtGateway", 1, "held: "},
	{"HeldAtBoard,HoldInHello", 277, "held: #9 drives"},
	{"HoldInHello", 74, "held: "},
	{"HoldEndsWaiting", 4234, "held: "},
	{"CutIsFinal", 5, "again: "},
	{"ActEndsEarlier", 1, "local: "},
	{"LossIsState", 2948, "loss: "},
	{"RenewalTTL", 31, "lease: "},
	{"LocalRefuses", 1, "local: "},
	{"RefusalsLeaveNoMark", 872, "deaf: "},
	{"CancelOvertakes", 78, "delayed: "},
	{"CancelOwnLease", 423, "ends: "},
	{"CancelBounded", 165, "budget: "},
	{"Jump", 185134, "deaf: "},
	{"LiftSafe", 43912, "held: "},
	{"LiftAway", 36, "deaf: "},
	{"FreshEnds", 44141, "order: "},
	{"OfferedEver", 2614, "deaf: "},
	{"OwedUntilBegun", 2455, "off: "},
	{"CompactAsks", 178, "order: "},
	{"OwnerRevokes", 17, "order: "},
	{"RefusedMarks", 40571, "order: "},
	{"HoldOwed", 27, "held: "},
	{"ReleaseNumbered", 2521, "held: "},
}

// redundant clauses say what others bring about in everything that is modelled.
var redundant = []string{
	"HeldAtBoard",      // the gateway and the hello refuse as well; with HoldInHello left out it is the last one
	"RefusedEndsOlder", // LOCAL empties the queue at the switch and refuses what comes; RefusedMarks ends what comes later
}

// TestEveryClauseIsNeeded leaves out one clause after the other.
func TestEveryClauseIsNeeded(t *testing.T) {
	seen := map[string]bool{}
	for _, row := range rows {
		seen[row.without] = true
		t.Run(row.without, func(t *testing.T) {
			rule := order.Without(strings.Split(row.without, ",")...)
			if wrong, _ := order.Run(row.seed, order.Whole(), false); wrong != "" {
				t.Errorf("seed %d finds something with every clause: %s", row.seed, wrong)
			}
			wrong, _ := order.Run(row.seed, rule, false)
			if strings.HasPrefix(wrong, row.finds) {
				return
			}
			seed := first(rule, bound)
			if seed == 0 {
				t.Fatalf("%d seeds find nothing: is the clause needed, or has the model lost its situation?", uint64(bound))
			}
			found, _ := order.Run(seed, rule, false)
			t.Errorf("seed %d finds %q, and not %q; the first that finds something is %d: %s", row.seed, wrong, row.finds, seed, found)
		})
	}
	for _, name := range redundant {
		seen[name] = true
		if seed := first(order.Without(name), 2_000); seed != 0 {
			t.Errorf("%s: seed %d finds something: make it a row", name, seed)
		}
	}
	for _, c := range order.Clauses() {
		if !seen[c.Name] {
			t.Errorf("%s (%s) has no row", c.Name, c.Says)
		}
	}
}
