package executor

import (
	"slices"

	"github.com/apollo-11/apollo11/wire"
)

// newPins takes another pin map, tells the gateway, and judges what waits by it.
func (c *Core) newPins(in Pins) {
	c.cfg.Hello.Pins, c.cfg.Hello.Traits, c.levels = in.Names, in.Traits, nil
	c.recheckQueue()
	if c.session.welcomed {
		c.session.asked = false
		c.hello()
	}
}

// traits are those of the pins, and how they stand now.
func (c *Core) traits() []wire.PinTraits {
	list := slices.Clone(c.cfg.Hello.Traits)
	for i := range list {
		t := &list[i]
		t.Flags &^= wire.PinCommanded | wire.PinHigh | wire.PinHeld
		switch wire.UnpackLevel(c.levels, i) {
		case wire.LevelLow:
			t.Flags |= wire.PinCommanded
		case wire.LevelHigh:
			t.Flags |= wire.PinCommanded | wire.PinHigh
		case wire.LevelHeld:
			t.Flags |= wire.PinCommanded | wire.PinHeld
			if high, _ := t.Safe(); high {
				t.Flags |= wire.PinHigh
			}
		}
		if _, held := c.holds[t.Line]; held {
			t.Flags |= wire.PinHeld // the owner of the pins may not have driven it yet
		}
	}
	return list
}

// Pulses returns the pulses that were under way when the agent ended. The owner of
// the pins drives their ends between New and the performing of its Output, which says
// of them that they were interrupted; at the next start they are not known any more.
func (c *Core) Pulses() []Pulse { return slices.Clone(c.pulses) }
