package executor

import (
	"maps"
	"slices"

	"github.com/apollo-11/apollo11/wire"
)

// Marks returns the highest number that has begun on each line, as far as the
// journal knows: the owner of the pins starts with them, before anything is driven.
// Key 0 stands for the whole board.
func (c *Core) Marks() map[wire.LineKey]uint64 { return maps.Clone(c.marks) }

// Holds returns the lines that are held at their safe levels until somebody
// releases them, sorted: the owner of the pins starts with them.
func (c *Core) Holds() []wire.LineKey { return slices.Sorted(maps.Keys(c.holds)) }

// Pulses returns the pulses that were under way when the agent ended. The owner of
// the pins drives their ends, between New and the performing of its Output.
func (c *Core) Pulses() []Pulse { return slices.Clone(c.pulses) }
