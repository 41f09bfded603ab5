package executor

import (
	"time"

	"github.com/apollo-11/apollo11/wire"
	"github.com/apollo-11/apollo11/wire/mutant"
)

// What waits may have been withdrawn while the agent was gone, or another board under its
// name may have answered for it: only the gateway knows. It offers again in each session
// what still counts, by handing it out once more or by a question that names it; nothing
// else that would move something begins. A gateway without Rules does not know that it should; for it the first
// welcome is enough, as ever.

// ordered reports whether the gateway follows the rules for order at a line.
func (c *Core) ordered() bool { return c.session.rules >= wire.RulesOrder }

// reoffer takes back, at the first welcome of a session, what was offered before it.
func (c *Core) reoffer() {
	s := &c.session
	if s.offersIn == s.id && s.met {
		return
	}
	s.offersIn, s.metAt = s.id, c.now.Mono
	for _, a := range c.queue {
		a.offered = false
	}
}

// mayBegin reports whether a waiting attempt has been offered in the latest session.
func (c *Core) mayBegin(a *attempt) bool {
	return a.offered || !a.actuates || !c.ordered() || mutant.On(mutant.QueueUnoffered)
}

// holdsPlace reports whether a waiting attempt keeps newer ones from its lines. One
// that is not offered again does so for a while: the gateway is expected to begin
// with the oldest.
func (c *Core) holdsPlace(a *attempt) bool {
	return c.mayBegin(a) || c.now.Mono < c.session.metAt+wire.OrderWait
}

func (c *Core) offerDeadline(at func(time.Duration)) {
	for _, a := range c.queue {
		if until := c.session.metAt + wire.OrderWait; c.session.met && !c.mayBegin(a) && c.now.Mono < until {
			at(until)
			return
		}
	}
}

// changeEpoch ends what another log of the gateway has handed out and what has not
// begun: the gateway of today does not know it, and uses its numbers again.
func (c *Core) changeEpoch(epoch uint64) {
	if !c.ordered() || mutant.On(mutant.EpochIgnored) {
		return
	}
	for i := 0; i < len(c.queue); {
		a := c.queue[i]
		if a.epoch == 0 || a.epoch == epoch {
			i++
			continue
		}
		c.end(a, Result{Code: wire.CodeSuperseded, Detail: "it was handed out by another log of the gateway, which does not count any more"})
	}
}

// told is a code as the gateway of this session can read it.
func (c *Core) told(code wire.Code) wire.Code {
	if c.ordered() {
		return code
	}
	return code.OldCode()
}

// full answers an attempt for which there is no room. A gateway that follows the
// rules sends it again when a heartbeat tells of room, and it costs no attempt.
func (c *Core) full(a *attempt) {
	c.noteOf(LevelDebug, a, "no room for an instruction", "it will be sent again")
	c.send(&wire.Report{States: []wire.State{{Seq: a.seq, Token: a.token, Status: wire.StatusFull}}})
}

// room is what a heartbeat says of it: how many more may wait, plus 1.
func (c *Core) room() uint32 {
	if !c.tellable(0) {
		return 1
	}
	return uint32(max(c.cfg.MaxQueue-len(c.queue), 0)) + 1
}
