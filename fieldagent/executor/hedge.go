package executor

import (
	"cmp"
	"time"

	"github.com/apollo-11/apollo11/wire"
)

// hedge is the standing of an attempt with the narrowband path.
type hedge struct {
	armed bool
	code  wire.Code     // what is to be told
	at    time.Duration // when it is told next
	again time.Duration // and how much later once more
}

// arm prepares the narrowband path for an attempt that has a new event.
func (c *Core) arm(a *attempt) {
	if a.seq > wire.MaxCompactSeq {
		return // no frame can carry it; the primary path has it
	}
	if !a.hedge.armed {
		c.hedged = append(c.hedged, a)
	}
	code := a.progress()
	if a.hedge.armed && a.hedge.code == code {
		return
	}
	a.hedge = hedge{armed: true, code: code, at: c.now.Mono + HedgeAfter, again: HedgeAgain}
}

// resumeHedges arms the attempts whose events survived a restart.
func (c *Core) resumeHedges() {
	for _, ev := range c.events {
		if a := c.table.known[ev.Token]; a != nil && !a.hedge.armed && ev.Phase != wire.PhaseLease {
			c.arm(a)
		}
	}
}

// sendHedges tells on the narrowband path what the primary path has not settled
// in time, at most narrowbandBurst frames at once and one a NarrowbandGap.
func (c *Core) sendHedges() {
	kept := c.hedged[:0]
	for _, a := range c.hedged {
		if a.last <= c.through {
			a.hedge = hedge{}
			continue
		}
		kept = append(kept, a)
	}
	clear(c.hedged[len(kept):])
	c.hedged = kept
	for c.narrowband && c.mayCompact() {
		a := c.nextHedge()
		if a == nil {
			return
		}
		c.compact(a.seq, a.attempt, a.progress())
		a.hedge.at = c.now.Mono + a.hedge.again
		a.hedge.again = min(a.hedge.again*resendNum/resendDen, HedgeMost)
	}
}

// nextHedge returns what is to be told next, nil if nothing is due: what has been
// told least often, and of that the one that is due longest. Nobody acknowledges
// anything on this path: were it the oldest first, the repetitions of a long row
// would take all frames and its end would never be told.
func (c *Core) nextHedge() *attempt {
	var best *attempt
	for _, a := range c.hedged {
		if c.now.Mono < a.hedge.at {
			continue
		}
		if best == nil || cmp.Or(cmp.Compare(a.hedge.again, best.hedge.again), cmp.Compare(a.hedge.at, best.hedge.at)) < 0 {
			best = a
		}
	}
	return best
}

func (c *Core) mayCompact() bool {
	return c.narrowbandAt-c.now.Mono <= (narrowbandBurst-1)*NarrowbandGap
}

// answerCompact answers a question there, before any hedge. Answers are bounded as
// well: what is beyond is not said, and will be asked for again.
func (c *Core) answerCompact(seq uint64, attempt uint8, code wire.Code) {
	if c.narrowband && c.narrowbandAt-c.now.Mono <= (narrowbandBurst+answerBurst-1)*NarrowbandGap {
		c.compact(seq, attempt, code)
	}
}

// compact tells where an attempt stands on the narrowband path. Before the first welcome
// nobody knows which codes the gateway can read: what an old one must be told in another
// word ("cancelled", although nobody asked) is left to the primary path.
func (c *Core) compact(seq uint64, attempt uint8, code wire.Code) {
	if !c.session.met && code != code.OldCode() {
		return
	}
	c.narrowbandAt = max(c.narrowbandAt, c.now.Mono) + NarrowbandGap
	c.out.Narrowband = append(c.out.Narrowband, wire.CompactAck{Seq: seq, Attempt: attempt, Code: c.told(code)})
}

func (c *Core) hedgeDeadlines(at func(time.Duration)) {
	for _, a := range c.hedged {
		at(max(a.hedge.at, c.narrowbandAt-(narrowbandBurst-1)*NarrowbandGap))
	}
}
