package explore

import (
	"time"

	"github.com/apollo-11/apollo11/wire"
)

// Counts say what happened in a run.
type Counts struct {
	Steps        int // of virtual time
	Faults       int
	Submitted    int // tasks
	Instructions int
	Executed     int                     // starts at the pins
	Confirmed    int                     // instructions whose result the gateway has
	Duplicates   int                     // tokens executed twice
	Unnoticed    int                     // tokens executed again after a card was restored and nobody could notice
	Attempts     int                     // of instructions without a time limit, handed out
	InThree      int                     // of them those confirmed by the third compensation round
	Leases       int                     // begun
	LeaseEnds    [wire.LeaseHand + 1]int // as they were told in the end
	Edges        int                     // seen by watches
	ByHand       int                     // refused because of the LOCAL switch
	Ahead        int                     // what left the gateway before its record
	AheadLost    int                     // what was told of it by a node after its record was lost
	Windows      Windows
}

// compensationRounds is how many resends may be needed (A6).
const compensationRounds = 3

// Add adds another run's counts.
func (c *Counts) Add(o *Counts) {
	c.Steps += o.Steps
	c.Faults += o.Faults
	c.Submitted += o.Submitted
	c.Instructions += o.Instructions
	c.Executed += o.Executed
	c.Confirmed += o.Confirmed
	c.Duplicates += o.Duplicates
	c.Unnoticed += o.Unnoticed
	c.Attempts += o.Attempts
	c.InThree += o.InThree
	c.Leases += o.Leases
	c.Edges += o.Edges
	c.ByHand += o.ByHand
	c.Ahead += o.Ahead
	c.AheadLost += o.AheadLost
	for k, n := range o.LeaseEnds {
		c.LeaseEnds[k] += n
	}
	for k, n := range o.Windows {
		c.Windows[k] += n
	}
}

// Windows counts status-unknown windows (B3), the times from handing an attempt
// out to the first word of it, in slots of windowSlot; the last slot holds all
// that are longer.
type Windows [200]int

const windowSlot = 50 * time.Millisecond

func (w *Windows) note(d time.Duration) {
	w[min(max(0, int(d/windowSlot)), len(w)-1)]++
}

// Within is the time within which a share of the windows ended, rounded up to a
// slot; 0 when there are none.
func (w *Windows) Within(share float64) time.Duration {
	total := 0
	for _, n := range w {
		total += n
	}
	seen := 0
	for k, n := range w {
		if seen += n; seen > 0 && float64(seen) >= share*float64(total) {
			return time.Duration(k+1) * windowSlot
		}
	}
	return 0
}
