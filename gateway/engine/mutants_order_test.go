//go:build mutants

package engine_test

import (
	"testing"

	"github.com/apollo-11/apollo11/wire/mutant"
)

// TestMutantsOfOrder: what the scripts and tests of order at a line and the way to safe
// demand breaks with each of these faults.
func TestMutantsOfOrder(t *testing.T) {
	six := "submit node=a pin=p1\nsubmit node=a pin=p2\nsubmit node=a pin=p3\nsubmit node=a pin=p4\nsubmit node=a pin=p5\nsubmit node=a pin=p6"
	bites(t, []planted{
		{mutant.PriorityOvertakes, []string{"hello a pins=lamp:-\ngoodbye a\nsubmit node=a pin=lamp level=1\nsubmit node=a pin=lamp level=0 prio=high", "hello a pins=lamp:-"}, "send a instruction 1 "},
		{mutant.SafeAtCapacity, []string{"config capacity=10\nhello a pins=valve:0\nsubmit node=b count=9", "submit node=a pin=valve level=0"}, "accepted"},
		{mutant.WithdrawnOffered, []string{"hello a pins=valve:0\nsubmit node=a pin=valve level=1", "event a seq=1 received", "goodbye a lost\nsubmit node=a pin=valve level=0", "hello a pins=valve:0"}, "send a cancel 1"},
		{mutant.SupersededBelieved, []string{"hello a pins=lamp:-\nsubmit node=a pin=lamp", "event a seq=1 processed superseded"}, "order_lost"},
		{mutant.WindowForgets, []string{"config window=1\nhello a\n" + six, "event a seq=1 received", "event a seq=2 received", "event a seq=3 received", "event a seq=4 received\nshow"}, "2 queued"},
		{mutant.HoldLost, []string{"hello a pins=valve:0\nsubmit node=a intent=gpio.safe", "restart\nsubmit node=a pin=valve level=1"}, "refused"},
	})
	mutant.Plant(mutant.NumberTwice)
	defer mutant.Plant(mutant.None)
	if given, again := numbersAfterLoss(t); again >= given {
		t.Errorf("%v planted: numbers go on with %d after %d", mutant.NumberTwice, again, given)
	}
}
