package executor

import (
	"math"
	"slices"

	"github.com/apollo-11/apollo11/wire"
)

// hand takes what the board says of people who work at it: the LOCAL switch and
// the outputs that somebody else has changed (C15). The gateway hears of it at
// once.
func (c *Core) hand(in Hand) {
	foreign := in.Foreign[:min(len(in.Foreign), wire.MaxForeign)]
	if in.Local != c.local {
		text := "the LOCAL switch is off"
		if in.Local {
			text = "the LOCAL switch is on: what would actuate is refused"
		}
		c.note(LevelInfo, text, "")
	} else if slices.Equal(foreign, c.foreign) {
		return
	}
	for _, f := range foreign {
		if !slices.Contains(c.foreign, f) {
			c.note(LevelWarn, "an output was changed by somebody else", f.Pin)
		}
	}
	c.local, c.foreign = in.Local, slices.Clone(foreign)
	if c.session.welcomed {
		c.session.nextAt = min(c.session.nextAt, c.now.Mono)
	}
}

// foundOn stands for the throw of a LOCAL switch that was on when the process began.
const foundOn = math.MaxUint64

// disturbed reports whether the LOCAL switch has been thrown since the attempt came, or
// since the gateway had heard when the attempt was handed out. What would move something away from its safe level ends then, whether the switch is still on
// or not: it was asked for by somebody who did not know (docs/safety.md 8).
func (c *Core) disturbed(now Now, a *attempt) bool {
	return a.actuates && !a.towards && a.throws != now.Throws
}

// byHand is the refusal of what would actuate while the LOCAL switch is on.
func (c *Core) byHand() Result {
	return Result{Code: wire.CodeLocal, Detail: "the LOCAL switch of this node is on: somebody works there by hand"}
}

// wasByHand is that of what was there when it was thrown.
func (c *Core) wasByHand() Result {
	if c.local || c.now.Local {
		return c.byHand()
	}
	return Result{Code: wire.CodeLocal, Detail: "the LOCAL switch of this node was thrown after this had been asked for: it is not begun by itself later"}
}
