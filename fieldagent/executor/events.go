package executor

import (
	"fmt"
	"time"

	"github.com/apollo-11/apollo11/wire"
	"github.com/apollo-11/apollo11/wire/mutant"
)

// emit numbers and records an event of an attempt. It is sent when the record is
// durable, and the narrowband path stands by for it.
func (c *Core) emit(a *attempt, ev *wire.Event) {
	ev.Seq, ev.Token, ev.Attempt = a.seq, a.token, a.attempt
	ev.ReceivedAt = a.receivedAt
	if ev.Phase >= wire.PhaseStarted {
		ev.StartedAt = a.startedAt
	}
	if ev.Phase == wire.PhaseProcessed {
		ev.FinishedAt = a.finishedAt
	}
	c.number(ev)
	a.last = ev.Number
	if a.first == 0 {
		a.first = ev.Number
	}
	unwritten := mutant.On(mutant.ResultUnwritten) || mutant.On(mutant.WithdrawalUnwritten) && ev.Code == wire.CodeSuperseded
	if !unwritten {
		c.record(c.eventRecord(ev))
	}
	if ev.Payload == nil || ev.Phase != wire.PhaseProgress {
		c.arm(a)
	}
}

// number gives an event the next number. It must be recorded before anything else.
func (c *Core) number(ev *wire.Event) {
	ev.Number = c.next
	if err := ev.Validate(); err != nil {
		panic("bug: " + err.Error())
	}
	c.next++
	if c.session.met {
		c.unmet = c.next
	}
	c.addEvent(ev)
}

func (c *Core) addEvent(ev *wire.Event) {
	c.events = append(c.events, ev)
	c.eventBytes += weight(ev)
}

func weight(ev *wire.Event) int { return eventOverhead + len(ev.Payload) + len(ev.Detail) }

// tellable reports whether there is room for what a new instruction may lead to.
// more is how many events there may be beyond the limit.
func (c *Core) tellable(more int) bool {
	return len(c.events) < maxUnacknowledged+more && c.eventBytes < maxUnackedBytes+more*eventOverhead
}

// acknowledged takes the gateway's word that it has the events up to through, and
// its complaint that the next one is missing.
func (c *Core) acknowledged(through uint64, gap bool) {
	if through >= c.next {
		c.note(LevelWarn, "acknowledgement ignored", fmt.Sprintf("of event %d, the newest is %d", through, c.next-1))
		return
	}
	if mutant.On(mutant.CursorOff) && through+1 < c.next {
		through++
	}
	if through > c.through {
		c.forgetEvents(through)
		c.resendIn, c.roundAt, c.again = ResendAfter, c.now.Mono, false
	}
	if !gap {
		return
	}
	if through < c.through {
		// The gateway has lost events that are gone here too: introduce the agent
		// again, the hello says where its events begin.
		c.helloSoon()
		return
	}
	if c.gapSeen && c.gapThrough == through && c.now.Mono-c.gapAt < GapAgain {
		return
	}
	c.gapSeen, c.gapThrough, c.gapAt = true, through, c.now.Mono
	c.sent = c.through
}

// forgetEvents drops the events up to through.
func (c *Core) forgetEvents(through uint64) {
	if through <= c.through || through >= c.next {
		return
	}
	n := through - c.through
	for _, ev := range c.events[:n] {
		c.eventBytes -= weight(ev)
	}
	clear(c.events[:n])
	c.events = c.events[n:]
	c.through = through
	c.unmet = max(c.unmet, through+1)
	c.sent = max(c.sent, through)
}

// goBackSoon sends what is under way again, unless that was done just now.
func (c *Core) goBackSoon() { c.again = true }

// resendAt is when what is under way is sent again.
func (c *Core) resendAt() time.Duration {
	if c.again {
		return c.roundAt + GapAgain
	}
	return c.roundAt + c.resendIn
}

// sendEvents sends events that have not been sent, and all that is under way if
// no acknowledgement came in time.
func (c *Core) sendEvents() {
	if !c.session.welcomed {
		return
	}
	if c.sent > c.through && c.now.Mono >= c.resendAt() {
		c.sent = c.through
		c.resendIn = min(c.resendIn*resendNum/resendDen, ResendMost)
	}
	if c.sent == c.through {
		c.roundAt, c.again = c.now.Mono, false
	}
	for c.sent+1 < c.next && c.sent < c.through+Window {
		c.send(c.readable(c.events[c.sent-c.through]))
		c.sent++
	}
	if mutant.On(mutant.ForgetsOnSend) {
		c.acknowledged(c.sent, false)
	}
}

func (c *Core) send(m wire.Message) {
	if c.session.up {
		c.out.Primary = append(c.out.Primary, m)
	}
}
