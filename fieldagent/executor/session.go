package executor

import (
	"fmt"
	"slices"
	"time"

	"github.com/apollo-11/apollo11/wire"
	"github.com/apollo-11/apollo11/wire/mutant"
)

// session is the standing with the gateway on the primary path.
type session struct {
	started  time.Duration // when the core was made
	up       bool
	id       uint64
	welcomed bool
	answered bool   // there was a welcome in this connection, refused or not
	met      bool   // welcomed at least once under this incarnation by this process
	refused  string // the gateway's reason
	epoch    uint64
	offersIn uint64        // the latest session that was welcomed
	metAt    time.Duration // when that was, for the first time in it
	phases   wire.Phase    // the highest that the gateway knows
	rules    wire.Rules    // that it follows
	beat     time.Duration
	// nextAt is when the next heartbeat is due, or the next hello while there is
	// no welcome.
	nextAt  time.Duration
	helloAt time.Duration // when the last hello was sent
	asked   bool          // no welcome has come since a hello
	// asks is when the hellos of this connection were sent that no welcome has answered,
	// lastAsk when the one that the latest welcome answers was, and lastNow its time.
	asks    []time.Duration
	lastAsk time.Duration
	lastNow int64
	// digestAt is when the next digest is due.
	digestAt time.Duration
	// clockSet is what the last hello said of the agent's clock; clockNews says
	// that the clock was set since, so that another one is due.
	clockSet, clockNews bool
	// throws is what the gateway was last told of the LOCAL switch.
	throws uint64
}

// stopping is how far the agent's end has come.
type stopping struct {
	stopping  bool
	reason    string
	unstarted []wire.Ref
	abortAt   time.Duration
	limitAt   time.Duration
	aborted   bool
	fallen    bool          // the outputs were to be set to their safe levels
	fallLimit time.Duration // so long their leases are waited for
	done      bool
	said      bool
}

func (c *Core) connected(id uint64) {
	s := &c.session
	s.up, s.id, s.welcomed, s.answered, s.asked = true, id, false, false, false // refused stays until a welcome takes it back
	s.asks, s.lastNow, s.lastAsk = nil, 0, 0
	c.sent = c.through
	c.hello()
}

func (c *Core) hello() {
	for _, a := range c.queue {
		c.hear(a) // what the hello counts as seen must stay so
	}
	h := c.cfg.Hello
	h.Session, h.Incarnation = c.session.id, c.incarnation
	h.First, h.Next = c.through+1, c.next
	h.Clock, h.ClockSet = max(c.now.Wall, 0), c.now.WallOK
	h.Workers = uint16(c.cfg.Workers)
	h.TopSeq, h.TopToken = c.table.topSeq, c.table.topToken
	h.Rules, h.Local, h.Throws, h.Traits = wire.NewestRules, c.local, c.now.Throws+1, c.traits()
	c.send(&h)
	s := &c.session
	s.helloAt, s.clockSet, s.clockNews = c.now.Mono, h.ClockSet, false
	s.throws = c.now.Throws
	s.asked = true
	if len(s.asks) < mostAsks {
		s.asks = append(s.asks, c.now.Mono)
	}
	if !s.welcomed {
		s.nextAt = c.now.Mono + HelloAgain
	}
}

// askTime has the gateway's time measured again, at most once an AskTimeAgain.
func (c *Core) askTime() {
	if s := &c.session; s.welcomed && c.now.Mono-s.helloAt >= AskTimeAgain {
		s.asked = false
		c.hello()
	}
}

// mindDoubt asks for the gateway's time at once while something waits for it: in
// doubt, and between the bounds, nothing with a limit begins and nothing is refused.
func (c *Core) mindDoubt() {
	s := &c.session
	if !s.welcomed || !c.inDoubt() || c.now.Mono < c.doubtAt() {
		return
	}
	c.hello()
}

// inDoubt reports whether a better measure of the time is wanted.
func (c *Core) inDoubt() bool {
	return c.clock.doubt || c.session.met && slices.ContainsFunc(c.queue, func(a *attempt) bool { return !c.late(a) && !c.timely(a) })
}

// doubtAt is when it may be asked for again.
func (c *Core) doubtAt() time.Duration {
	if c.session.asked {
		return c.session.helloAt + HelloAgain
	}
	return c.session.helloAt + AskDoubtAgain
}

// helloSoon introduces the agent again, unless that was done just now.
func (c *Core) helloSoon() {
	if c.session.up && c.now.Mono-c.session.helloAt >= HelloAgain {
		c.session.welcomed = false
		c.hello()
	}
}

// mostAsks bounds the hellos whose sending is remembered until they are answered.
const mostAsks = 16

// answers says when the hello was sent that a welcome answers, at the earliest: they are
// answered in their order, and one that names the same time as the last one may be its
// copy. A gateway whose disk hangs answers late, and what has been asked since must not
// be taken for what it answers: its time would seem younger than it is.
func (s *session) answers(now int64) time.Duration {
	if (now != s.lastNow || s.lastNow == 0) && len(s.asks) > 0 {
		s.lastAsk = s.asks[0]
		s.asks = s.asks[1:]
	}
	s.lastNow = now
	return s.lastAsk
}

func (c *Core) welcome(m *wire.Welcome) {
	s := &c.session
	if !s.up || m.Session != s.id {
		c.note(LevelDebug, "welcome ignored", "it is for another session")
		return
	}
	s.answered, s.rules = true, m.Rules
	sent := s.answers(m.Now)
	if !s.asked {
		c.clock.heard(c.now, m.Now)
		return // a second answer
	}
	s.asked = false
	if ahead := c.clock.welcomed(c.now, m.Now, c.now.Mono-sent); ahead.Abs() > ClockLimit && !s.welcomed {
		c.note(LevelWarn, "clocks differ", fmt.Sprintf("the agent's is %v ahead of the gateway's; trusted: %v", ahead, c.now.WallOK))
	}
	if m.Refused != "" {
		if s.refused != m.Refused {
			c.note(LevelWarn, "the gateway refuses this node", m.Refused)
		}
		s.refused, s.welcomed = m.Refused, false
		s.nextAt = c.now.Mono + RefusedAgain
		return
	}
	if m.Through >= c.next || !s.met && m.Through >= c.unmet && !mutant.On(mutant.CopyBelieved) {
		c.reincarnate(m.Through)
		return
	}
	c.meet()
	c.acknowledged(m.Through, false)
	if !s.welcomed {
		c.note(LevelInfo, "welcomed by the gateway", "")
	}
	if s.epoch != 0 && s.epoch != m.Epoch {
		// Another log may use the same sequences for other instructions.
		c.ahead = nil
		for len(c.kept) > 0 {
			c.unkeep(c.kept[0].seq)
		}
	}
	c.changeEpoch(m.Epoch)
	c.out.Hold = append(c.out.Hold, c.hold(m.Holds, 0)...)
	s.welcomed, s.refused, s.epoch = true, "", m.Epoch
	s.phases = m.Phases
	s.beat = DefaultHeartbeat
	if m.HeartbeatMs > 0 {
		s.beat = min(max(time.Duration(m.HeartbeatMs)*time.Millisecond, minHeartbeat), maxHeartbeat)
	}
	s.nextAt = c.now.Mono + s.beat
	if c.local || len(c.foreign) > 0 {
		s.nextAt = c.now.Mono // what a heartbeat says of people at the board is news
	}
	c.sent, c.resendIn = c.through, ResendAfter
	c.digest()
}

// meet notes the first welcome of this process: what it has told itself of the
// crash before is sent from here on.
func (c *Core) meet() {
	c.reoffer()
	if c.session.met {
		return
	}
	c.session.met = true
	if c.unmet < c.next {
		c.unmet = c.next
		c.record(metRecord{kindMet})
	}
}

// reincarnate begins a new life: the gateway has events of this agent that its
// journal does not know, so the journal is an old copy (a card that was written
// back). Numbers would be used twice and what ran since then is not known. The
// new incarnation tells the gateway so; events start again at 1. What waits may
// have run long ago and is given up.
func (c *Core) reincarnate(through uint64) {
	if c.incarnation == c.cfg.Incarnation {
		if c.now.Mono-c.session.helloAt < HelloAgain {
			return // it answers a hello of before
		}
		c.out.Fatal = fmt.Sprintf("the gateway has event %d of this agent, whose journal ends with %d: start it again", through, c.next-1)
		return
	}
	c.note(LevelWarn, "the journal is an old copy: a new incarnation begins",
		fmt.Sprintf("the gateway has event %d, the journal ends with %d", through, c.unmet-1))
	// The new life is the last thing that is written down. The records may be more
	// than one append takes, and a journal of the new life would be believed: with any
	// part of them before it, it is still an old copy.
	c.session.welcomed, c.session.met = false, false
	for len(c.queue) > 0 {
		c.end(c.queue[0], Result{Code: wire.CodeUnknown,
			Detail: "the agent's journal is an old copy of itself: this may have run before, so it is not run now; retry the instruction if it must run"})
	}
	for _, a := range c.running {
		if a.startTold && a.first <= c.through {
			a.first = 0
			c.emit(a, &wire.Event{Phase: wire.PhaseStarted})
		}
	}
	if c.through > c.journalled { // the events that are numbered anew begin behind it
		c.record(throughRecord{kindThrough, c.through})
	}
	r := rebornRecord{kindReborn, c.cfg.Incarnation}
	c.record(r)
	c.renumber(r)
	c.hello()
}

// renumber applies a rebornRecord.
func (c *Core) renumber(r rebornRecord) {
	for i, ev := range c.events {
		renumbered := *ev // the old one may be on its way to the network
		renumbered.Number = firstEvent + uint64(i)
		c.events[i] = &renumbered
	}
	for _, a := range c.table.known {
		a.last -= min(a.last, c.through)
		a.first -= min(a.first, c.through)
	}
	c.incarnation, c.through, c.sent, c.journalled = r.Incarnation, 0, 0, 0
	c.next, c.unmet = firstEvent+uint64(len(c.events)), firstEvent
}

// keepSession sends what is due on an idle connection: a heartbeat, or another
// hello as long as nobody has answered.
func (c *Core) keepSession() {
	s := &c.session
	if !s.up || c.stop.done {
		return
	}
	if s.welcomed && c.now.Mono >= c.digestDue() {
		c.digest()
	}
	if s.clockNews {
		c.askTime()
	}
	thrown := s.welcomed && s.throws != c.now.Throws // and perhaps off again: the gateway hears of it at once
	if c.now.Mono < s.nextAt && !thrown {
		return
	}
	if !s.welcomed {
		c.hello()
		return
	}
	s.nextAt, s.throws = c.now.Mono+s.beat, c.now.Throws
	h := &wire.Heartbeat{
		Session: s.id, Clock: c.clock.told(c.now), UptimeMs: (c.now.Mono - s.started).Milliseconds(),
		Queued: uint32(len(c.queue)), Through: c.through, Next: c.next,
		Foreign: c.foreign, Local: c.local, Levels: c.levels, Room: c.room(), Throws: c.now.Throws + 1,
	}
	for _, a := range c.running {
		if len(h.Running) < wire.MaxRefs {
			h.Running = append(h.Running, wire.Running{Seq: a.seq, Token: a.token, Percent: a.percent})
		}
	}
	c.send(h)
}

// stopNow gives back what waits and lets what runs end. The goodbye has room for
// MaxRefs attempts; the gateway learns of more when it asks after them.
func (c *Core) stopNow(reason string) {
	st := &c.stop
	if st.stopping {
		return
	}
	*st = stopping{stopping: true, reason: clip(reason, wire.MaxDetailBytes), abortAt: c.now.Mono + StopGrace, limitAt: c.now.Mono + StopLimit}
	for _, a := range c.queue {
		if a.stored {
			c.record(droppedRecord{kindDropped, a.token})
		}
		c.table.forget(a)
		if len(st.unstarted) < wire.MaxRefs {
			st.unstarted = append(st.unstarted, wire.Ref{Seq: a.seq, Token: a.token})
		}
	}
	c.queue = nil
}

// goOnStopping ends the agent when nothing runs any more, or too long.
func (c *Core) goOnStopping() {
	st := &c.stop
	if !st.stopping || st.done {
		return
	}
	if !st.aborted && c.now.Mono >= st.abortAt {
		st.aborted = true
		for _, a := range c.running {
			if a.boot != 0 || a.towards {
				continue // the stop is its doing, and its end is told after the boot; or the stop wants the same
			}
			a.byStop = a.byStop || !a.aborted
			c.abort(a)
		}
	}
	if c.worksOn() && c.now.Mono < st.limitAt {
		return
	}
	if !st.fallen && len(c.leases) > 0 {
		// So that the gateway hears that the outputs are off before the goodbye, and
		// not at the next start.
		st.fallen, st.fallLimit = true, c.now.Mono+StopFallLimit
		c.out.Fall = FallStop
	}
	if len(c.leases) > 0 && c.now.Mono < st.fallLimit {
		return
	}
	st.done = true
}

// sayGoodbye is the last thing on the primary path, after the last events.
func (c *Core) sayGoodbye() {
	if c.stop.done && !c.stop.said {
		c.stop.said = true
		c.send(&wire.Goodbye{Session: c.session.id, Reason: c.stop.reason, Unstarted: c.stop.unstarted})
	}
	c.out.Stopped = c.stop.done
}

func (c *Core) stopDeadlines(at func(time.Duration)) {
	st := &c.stop
	if !st.stopping || st.done {
		return
	}
	if !st.aborted {
		at(st.abortAt)
	}
	if st.fallen {
		at(st.fallLimit) // the work is over, or its limit has passed
		return
	}
	at(st.limitAt)
}
