package executor

import (
	"maps"
	"slices"

	"github.com/apollo-11/apollo11/wire"
)

// Released returns the number of the newest release of each line, as far as the journal
// knows; key 0 stands for the whole board. An older gpio.safe that comes once more, or
// comes late, drives there and does not hold (docs/safety.md 6).
func (c *Core) Released() map[wire.LineKey]uint64 { return maps.Clone(c.released) }

// release ends the holds that an instruction releases: those of its lines, or all if it
// names none.
func (c *Core) release(lines []wire.LineKey, order uint64) {
	r := holdRecord{Kind: kindHold, Lines: c.releasable(lines, order), Order: order, Off: true, Named: lines, All: len(lines) == 0}
	for _, l := range r.Lines {
		delete(c.holds, l)
	}
	c.noteReleased(r)
	c.record(r)
}

// noteReleased remembers a release. One that finds no room is forgotten, the oldest
// first: that holds too much rather than too little.
func (c *Core) noteReleased(r holdRecord) {
	c.table.see(r.Order, 0) // the gateway goes on above it
	if r.All {
		c.released[wholeBoard] = max(c.released[wholeBoard], r.Order)
	}
	for _, l := range r.Named {
		c.released[l] = max(c.released[l], r.Order)
	}
	for len(c.released) > maxHolds {
		low := wholeBoard
		for _, l := range slices.Sorted(maps.Keys(c.released)) {
			if l != wholeBoard && (low == wholeBoard || c.released[l] < c.released[low]) {
				low = l
			}
		}
		delete(c.released, low)
	}
}

// releasedSince reports whether a line was released after that number.
func (c *Core) releasedSince(l wire.LineKey, order uint64) bool {
	return order < max(c.released[l], c.released[wholeBoard])
}

// stillHolds reports whether something that holds its lines does so at any of them.
func (c *Core) stillHolds(a *attempt) bool {
	return a.holdsSafe && slices.ContainsFunc(a.lines, func(l wire.LineKey) bool { return !c.releasedSince(l, a.order) })
}

// releasedRecords are the releases in a snapshot.
func (c *Core) releasedRecords() (list []holdRecord) {
	for _, l := range slices.Sorted(maps.Keys(c.released)) {
		r := holdRecord{Kind: kindHold, Order: c.released[l], Off: true, Named: []wire.LineKey{l}}
		if l == wholeBoard {
			r.Named, r.All = nil, true
		}
		list = append(list, r)
	}
	return list
}
