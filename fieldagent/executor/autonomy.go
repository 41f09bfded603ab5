package executor

import (
	"fmt"
	"time"

	"github.com/apollo-11/apollo11/wire/mutant"
)

// reached reports whether the gateway can be heard and works with this agent: it has
// welcomed this session, or the narrowband connection to it is up. One that refuses
// the agent cannot command its outputs and is as good as gone.
func (c *Core) reached() bool {
	return c.session.welcomed || c.narrowband && (c.session.refused == "" || mutant.On(mutant.RefusedIsContact))
}

// touch notes that the gateway was heard.
func (c *Core) touch() { c.contact = c.now.Mono }

// parted notes that a connection has been gone since then: what has waited while the
// loop hung is not contact of now.
func (c *Core) parted(at time.Duration) {
	if at > 0 && !c.reached() {
		c.contact = min(c.contact, at)
	}
}

// mindAutonomy looks whether the gateway has been gone for longer than the
// autonomy window (C8). Then nothing that waits is started, and what runs ends. When
// the gateway is heard again all goes on as before. Outputs that are to fall then
// fall by the timer of the owner of the pins, which Output.Contact feeds: it does not
// wait for a disk.
func (c *Core) mindAutonomy() {
	if c.cfg.Autonomy == 0 {
		return
	}
	if c.reached() {
		c.touch()
		if c.alone {
			c.alone = false
			c.note(LevelInfo, "the gateway is heard again", "work goes on")
		}
		return
	}
	if !c.alone && c.now.Mono-c.contact >= c.cfg.Autonomy {
		c.alone = true
		c.note(LevelWarn, "the gateway is gone for longer than the autonomy window",
			fmt.Sprintf("%v: nothing new is started until it is heard again", c.cfg.Autonomy))
	}
}

func (c *Core) autonomyDeadline(at func(time.Duration)) {
	if c.cfg.Autonomy > 0 && !c.alone && !c.reached() {
		at(c.contact + c.cfg.Autonomy)
	}
	if c.cfg.Autonomy > 0 && c.reached() {
		at(c.now.Mono + max(c.cfg.Autonomy/contactParts, minContact))
	}
}

// deserted reports whether the autonomy window may have ended by then. A loop that has
// hung for as long does not know that its connection stands.
func (c *Core) deserted(now Now) bool {
	return c.cfg.Autonomy > 0 && now.Mono-c.contact >= c.cfg.Autonomy
}
