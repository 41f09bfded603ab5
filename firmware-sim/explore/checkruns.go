package explore

import (
	"time"

	"github.com/apollo-11/apollo11/gateway/engine"
	"github.com/apollo-11/apollo11/wire"
)

// run is one execution at the pins.
type run struct {
	token   wire.Token
	seq     uint64
	life    *identity
	by      *agent
	at      time.Duration
	over    time.Duration // when it ended
	code    wire.Code     // CodeNone while it runs, and for ever if its process died
	wiped   bool          // its journal is gone
	aborted bool
	towards bool
	cut     bool // a pulse that did not have its time
	doubt   bool // it may have moved a line or not
	acted   bool // it came as far as moving something
}

// Tolerance of the rule that nothing starts late; see lateBy.
const (
	// clockSlack is what a clock that calls itself synchronised may be off: the
	// executor believes such a clock when it is that near to the gateway's time.
	clockSlack = 2 * time.Second
	// stepSlack is a round of the agent's loop, and drift.
	stepSlack = 50 * time.Millisecond
)

// knowledge is what an agent's process can know of the gateway's time.
type knowledge struct {
	life    *identity
	heard   bool
	doubt   bool          // it was told something older since it measured the time
	refused bool          // by the latest welcome
	in      uint64        // session that the gateway has welcomed
	err     time.Duration // error of the gateway's clock when it wrote the latest welcome
	most    int64         // the same, and never measured anew
	least   int64         // the gateway's time, Unix ms, was at least this when mono was 0
	trip    time.Duration // of the slowest message that carried the time
	hellos  map[uint64]time.Duration
	asked   bool // it has said hello, and no welcome has answered since
}

func (c *checker) knows(a *agent) *knowledge {
	k := c.clocks[a]
	if k == nil || k.life != a.life {
		k = &knowledge{life: a.life, hellos: map[uint64]time.Duration{}}
		c.clocks[a] = k
	}
	return k
}

// told notes what a message tells an agent of the gateway's time. err is how far
// the gateway's clock was off when it was sent.
func (c *checker) told(a *agent, m wire.Message, err time.Duration) {
	k := c.knows(a)
	c.offers(a, m)
	c.keepsTold(a, m)
	var at int64
	measures := false
	switch m := m.(type) {
	case *wire.Instruction:
		if a.link.agentEnd == nil || k.in != a.link.agentEnd.session {
			// It is meant for somebody else, or the loop has slept over the end of its
			// connection: then it takes the time for doubtful.
			k.doubt = k.doubt || k.heard && k.least-(m.SentAt-a.clock.mono().Milliseconds()) > clockSlack.Milliseconds()
			if _, ok := c.boards.arrived[m.Token]; !ok {
				c.boards.arrived[m.Token] = arrival{first: c.w.now, local: a.localTaken}
			}
			return
		}
		at = m.SentAt
		c.arrives(a, m)
	case *wire.Welcome:
		if a.link.agentEnd == nil || m.Session != a.link.agentEnd.session {
			k.doubt = true // a loop that has slept over the end of the session measures by it
			return
		}
		at = m.Now
		measures, k.asked = k.asked, false // of several answers the first one counts
		k.refused = m.Refused != ""
		if m.Refused == "" {
			k.in = m.Session
			c.opened(a)
		}
		c.contacts(a)
		if since, ok := k.hellos[m.Session]; ok {
			k.trip = max(k.trip, c.w.now-since)
		}
	default:
		return
	}
	proven := at - a.clock.mono().Milliseconds()
	_, welcome := m.(*wire.Welcome)
	k.doubt = !measures && (k.doubt || k.heard && k.least-proven > clockSlack.Milliseconds())
	k.least, k.most = max(k.least, proven), max(k.most, proven)
	if welcome || !k.heard { // time is measured anew
		k.err, k.least = err, proven
	}
	if !k.heard {
		k.most = proven
	}
	k.heard = true
	behind := time.Duration(start+(c.w.now+err).Milliseconds()-at) * time.Millisecond
	k.trip = max(k.trip, behind)
}

// lateBy is by how much the gateway's time has passed a limit, beyond what is
// forgiven. The gateway's time is what its clock says, or would say if it had not
// been set forward since it wrote its latest welcome: an agent cannot tell a jump
// from a message that took long. What a message proves counts in any case.
// Forgiven is clockSlack, and what an agent's own clock is behind if it calls
// itself synchronised, at most the slowest trip: within that the agent cannot tell
// the two clocks apart. An agent that has not heard the gateway is blind.
func (c *checker) lateBy(a *agent, limit int64) (late time.Duration, blind bool) {
	k := c.knows(a)
	if !k.heard {
		return 0, true
	}
	gateway := min(c.w.gateway.clock.err, k.err)
	forgiven := clockSlack + stepSlack
	if own := gateway - a.clock.err; own > 0 && a.clock.synced {
		forgiven += min(own, k.trip)
	}
	now := start + (c.w.now + gateway).Milliseconds()
	late = time.Duration(now-limit)*time.Millisecond - forgiven
	now = k.least + a.clock.mono().Milliseconds()
	return max(late, time.Duration(now-limit)*time.Millisecond-stepSlack), false
}

// surelyLate is by how much a limit has passed for certain, by what the gateway has told:
// for what is towards safe a time in doubt counts as not passed.
func (c *checker) surelyLate(a *agent, limit int64) time.Duration {
	k := c.knows(a)
	if !k.heard || k.doubt {
		return 0
	}
	return time.Duration(k.least+a.clock.mono().Milliseconds()-limit)*time.Millisecond - stepSlack
}

// insistent reports whether an intent must not be executed again when the
// outcome of an attempt is not known.
func insistent(intent string) bool {
	return !wire.TraitsOf(intent).Repeatable
}

// insists is the same for an execution: "on for ten seconds" would begin anew.
func insists(x *work) bool {
	return insistent(x.Intent) || x.act.MaxOn > 0
}

// started holds an execution against everything before it.
func (c *checker) started(a *agent, x *work) {
	c.w.counts.Executed++
	i, ok := c.book.insts[x.Seq]
	had := c.book.tokens[x.Token]
	_, lost := c.memory.lost[x.Token]
	if lost { // it was on disk once, in a log of which an older copy was restored
		i, ok, had = c.memory.orders[x.Seq], true, c.memory.lost[x.Token]
	}
	if c.runs[x.Token] != nil && c.memory.unsure[x.Token] {
		c.w.counts.Unnoticed++
	}
	switch {
	case c.runs[x.Token] != nil && !c.memory.unsure[x.Token] && !x.Towards:
		c.w.counts.Duplicates++
		c.fail("twice", "token %v of instruction %d is executed twice by %s", x.Token, x.Seq, a.id)
	case !ok || had.seq != x.Seq:
		c.fail("invented", "%s executes instruction %d with token %v, which the gateway has not on disk", a.id, x.Seq, x.Token)
		return
	case i.Node != a.id:
		c.fail("invented", "instruction %d of %s is executed by %s", i.Seq, i.Node, a.id)
	}
	if i.NotAfter != 0 {
		late, blind := c.lateBy(a, i.NotAfter)
		if late > 0 && !x.Towards { // what is towards safe is looked at when it is driven
			c.fail("late", "instruction %d is started %v too late by %s (clock off by %v, the gateway's by %v)", i.Seq, late, a.id, a.clock.err, c.w.gateway.clock.err)
		}
		if blind && !x.Towards {
			c.fail("late", "instruction %d has a limit and is started by %s, which cannot know the time", i.Seq, a.id)
		}
	}
	if x.act.Watch {
		c.begunWatch(a, x)
	} else if actuating(x.Intent) {
		c.actuates(a, x, i.NotAfter != 0)
		c.thrownSince(a, x)
	}
	if x.Again {
		return
	}
	if c.orders.offered[x.Token] != (offer{a.life, c.knows(a).in}) && actuating(x.Intent) {
		c.fail("unoffered", "%s starts instruction %d, which the gateway has not handed out or asked after in the latest session", a.id, x.Seq)
	}
	if code, ok := c.orders.whispered[attemptKey{a, x.Seq, x.Attempt}]; ok && c.copies[a.id] == 0 && !c.wipes[a.id] {
		c.fail("forgot", "%s starts attempt %d of instruction %d, and has said over narrowband that it has ended as %v", a.id, x.Attempt, x.Seq, code)
	}
	c.overlaps(a, x)
	c.keptFrom(a, x)
	c.order(x.Trace)
	runs, retried := c.runsOf(x.Seq, lost), c.byHand[x.Seq].retried
	if lost && c.memory.none[x.Seq] {
		retried = c.memory.redone[x.Seq]
	}
	for _, r := range runs {
		if c.memory.unsure[r.token] || c.memory.older && retried || x.Towards {
			continue
		}
		if p := a.pins.m.byName[x.pin]; x.owned() && p != nil && p.away(x.act.Level) && c.reported[r.token].Class() == wire.ClassUnknown && !retried && !c.w.reloads {
			c.fail("owner-act", "instruction %d is tried again (%v) by itself after attempt %v, whose outcome is not known (%v): %s may have been taken to its safe level since", x.Seq, x.Token, r.token, c.reported[r.token], x.pin)
		}
		if r.by == a && c.reported[r.token] == wire.CodeOK || insists(x) && !retried && r.code.Class() != wire.ClassRetryable {
			c.fail("twice", "%s of instruction %d is executed again (%v) after attempt %v, which ended with %v (card gone: %v)",
				x.Intent, x.Seq, x.Token, r.token, r.code, r.wiped)
		}
	}
	r := &run{token: x.Token, seq: x.Seq, life: a.life, by: a, at: c.w.now, acted: !x.owned() && !x.Towards, towards: x.Towards}
	c.runs[r.token] = r
	if lost && c.memory.none[x.Seq] {
		c.memory.gone[x.Seq] = append(runs, r)
	} else {
		c.bySeq[x.Seq] = append(runs, r)
	}
}

// runsOf are the executions of an instruction. One that was lost may have given its
// number to another.
func (c *checker) runsOf(seq uint64, lost bool) []*run {
	if lost && c.memory.none[seq] {
		return c.memory.gone[seq]
	}
	return c.bySeq[seq]
}

// succeededAs reports whether any attempt of the instruction that a token was
// given out for was executed well.
func (c *checker) succeededAs(seq uint64, t wire.Token) bool {
	_, lost := c.memory.lost[t]
	return anyOK(c.runsOf(seq, lost))
}

func anyOK(list []*run) bool {
	for _, r := range list {
		if r.code == wire.CodeOK {
			return true
		}
	}
	return false
}

// finished notes how a work ended.
func (c *checker) finished(a *agent, x *work, code wire.Code) {
	c.finishedWork(a, x)
	if code.Class() == wire.ClassRetryable {
		c.boards.keeps[a] = c.w.now + wire.OrderWait + stepSlack
	}
	c.keepsFor(a, x, code)
	if r := c.runs[x.Token]; r != nil {
		r.code, r.over = code, c.w.now
	}
}

// ended notes the end of an agent's process.
func (c *checker) ended(a *agent) {
	if k := c.clocks[a]; k != nil && k.heard {
		c.orders.toldTo[a] = max(c.orders.toldTo[a], k.most+a.clock.mono().Milliseconds())
	}
	delete(c.clocks, a)
	c.linesLeft(a)
}

// wiped notes that an agent's journal is gone: what it had to report it may never
// report now.
func (c *checker) wiped(a *agent) {
	c.wipes[a.id] = true
	c.unmarked(a)
	c.forgiveLeases(a)
	for t, o := range c.book.tokens {
		if c.book.insts[o.seq].Node != a.id {
			continue
		}
		if by := c.saidBy[t]; by == a {
			delete(c.reported, t)
		}
		if r := c.runs[t]; r != nil && r.by == a {
			r.wiped = true
		}
	}
}

// succeeded reports whether any attempt of an instruction was executed well.
func (c *checker) succeeded(seq uint64) bool {
	return anyOK(c.bySeq[seq])
}

// endedByNewer reports whether something newer towards safe has ended a work early whose
// line the gateway may know by another name: after a reload the board knows alone that
// the two are for one line.
func (c *checker) endedByNewer(r *run) bool {
	if !c.w.reloads || !r.aborted {
		return false
	}
	for _, o := range c.runs {
		if o.by == r.by && o.towards && o.seq > r.seq && o.at >= r.at {
			return true
		}
	}
	return false
}

// recorded holds what the gateway believes, and has on disk, against what
// happened.
func (c *checker) recorded(i *engine.Instruction) {
	r := c.runs[i.Token]
	class := i.Code.Class()
	switch i.State {
	case engine.StateSucceeded:
		if i.Code != wire.CodeOK || !c.succeeded(i.Seq) {
			c.fail("false-success", "instruction %d is SUCCEEDED with %v, and no attempt was executed with success", i.Seq, i.Code)
		}
	case engine.StateFailed:
		if class != wire.ClassRetryable && class != wire.ClassPermanent && class != wire.ClassRefused {
			c.fail("false-failure", "instruction %d is FAILED with %v", i.Seq, i.Code)
		}
		if r != nil && r.code != i.Code && !r.towards { // its record may have been lost after it was driven
			c.fail("false-failure", "instruction %d is FAILED with %v, its attempt %v ended with %v", i.Seq, i.Code, i.Token, r.code)
		}
	case engine.StateCancelled:
		if !c.asks[i.Task] && !c.asks[seqName(i.Seq)] && i.By == 0 && i.Code != wire.CodeSuperseded && !c.endedByThrow(i) && (r == nil || !r.cut && !c.endedByNewer(r)) && !c.memory.older { // a log that is lost may have asked
			c.fail("false-cancel", "instruction %d is CANCELLED, and nobody asked", i.Seq)
		}
		c.stoodFor(i)
		if r != nil && r.acted && (class == wire.ClassProgress || class == wire.ClassUnknown) {
			c.fail("false-cancel", "instruction %d is CANCELLED with %v: its attempt %v was executed, and nobody knows with what effect", i.Seq, i.Code, i.Token)
		}
	}
	if class == wire.ClassRefused && r != nil && r.acted && !r.towards && !c.memory.unsure[i.Token] {
		c.fail("false-refusal", "instruction %d is recorded as not executed (%v), and its attempt %v was", i.Seq, i.Code, i.Token)
	}
	if class == wire.ClassSuccess && !c.succeeded(i.Seq) {
		c.fail("false-success", "instruction %d is recorded with %v, and no attempt was executed with success", i.Seq, i.Code)
	}
}
