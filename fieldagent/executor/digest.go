package executor

import (
	"fmt"
	"time"

	"github.com/apollo-11/apollo11/wire"
)

// digest sums up what the agent holds, for the gateway to compare (B9): always in
// the same few bytes.
func (c *Core) digest() {
	s := &c.session
	s.digestAt = c.now.Mono + DigestEvery
	hash, count := wire.DigestOf(c.held())
	c.send(&wire.Digest{Session: s.id, Hash: hash, Count: count, Next: c.next})
}

// held are the attempts that have not ended and that the gateway has acknowledged
// to know of. What is on its way to it is not a difference.
func (c *Core) held() []wire.Ref {
	var refs []wire.Ref
	for _, list := range [][]*attempt{c.queue, c.running} {
		for _, a := range list {
			if a.first > 0 && a.first <= c.through {
				refs = append(refs, wire.Ref{Seq: a.seq, Token: a.token})
			}
		}
	}
	return refs
}

// digestDue is when the next digest is sent. It waits a little for events under
// way: the two sides can only agree on what both know.
func (c *Core) digestDue() time.Duration {
	if c.through+1 < c.next {
		return c.session.digestAt + DigestWait
	}
	return c.session.digestAt
}

// lookAtClock notices that the agent's clock was set. The gateway is told with
// another hello, which measures its time again as well.
func (c *Core) lookAtClock() {
	s := &c.session
	if d := c.clock.stepped(c.now); d != 0 {
		c.note(LevelInfo, "the clock was set", fmt.Sprintf("by %v", d))
		s.clockNews = true
	}
	s.clockNews = s.clockNews || c.now.WallOK != s.clockSet
}

// sessionDeadlines is when a digest is due, or a hello that has news of the clock.
func (c *Core) sessionDeadlines(at func(time.Duration)) {
	at(c.digestDue())
	if c.session.clockNews {
		at(c.session.helloAt + AskTimeAgain)
	}
	if c.inDoubt() {
		at(c.doubtAt())
	}
}
