package explore

import (
	"math/rand/v2"
	"time"

	"github.com/apollo-11/apollo11/fieldagent/executor"
	"github.com/apollo-11/apollo11/fieldagent/round"
	"github.com/apollo-11/apollo11/gateway/engine"
	"github.com/apollo-11/apollo11/wire"
)

// Numbers of the network.
const (
	// brokerQueue is how many messages the broker holds for one client before it
	// drops them without a word.
	brokerQueue = 256
	// slowEvery is how often a slow consumer takes a message.
	slowEvery = 300 * time.Millisecond
	// soundLinks is the share of the links that lose nothing by themselves.
	soundLinks = 0.5
	// Keepalives: who hears nothing for so long gives the connection up.
	agentPatience  = 30 * time.Second
	brokerPatience = 30 * time.Second
)

// conn is one TCP connection between an agent and the broker. Either end may
// think that it stands while the other knows better. Within a connection the
// order is kept.
type conn struct {
	session uint64 // of the hello, and of the last will
	up      pipe   // agent to broker
	down    pipe   // broker to agent
	torn    bool   // something was lost in it: it is about to end
}

// pipe is one direction.
type pipe struct {
	last    time.Duration // arrival of the latest message
	waiting int           // messages under way
}

// link is an agent's primary path.
type link struct {
	a   *agent
	w   *world
	rnd *rand.Rand
	// The same connection as its two ends see it; nil for none.
	agentEnd, brokerEnd *conn

	drop, repeat float64
	frail        float64       // the share that is lost of what waits while nothing passes
	holdUntil    time.Duration // until then everything waits
	holeUntil    time.Duration // until then everything is lost, and no connection comes about
	halfUp       time.Duration // until then what the agent says is lost
	halfDown     time.Duration // until then what it is told is lost
	slowUntil    time.Duration // until then it reads slowly
}

func newLink(a *agent) *link {
	l := &link{a: a, w: a.w, rnd: a.w.stream("link " + a.tag)}
	p := a.w.profile
	if l.drop = p.LeastLoss + l.rnd.Float64()*(p.Loss-p.LeastLoss); p.LeastLoss == 0 && chance(l.rnd, soundLinks) {
		l.drop = 0 // then there are bounds for what arrives when
	}
	l.repeat = l.rnd.Float64() * p.Repeat
	return l
}

// reach tries to connect until there is a connection.
func (l *link) reach() {
	if l.agentEnd != nil {
		return
	}
	if l.w.gateway.process == nil || l.w.now < max(l.holeUntil, l.holdUntil, l.halfUp, l.halfDown) {
		l.a.later(between(l.rnd, 200, 2_000), l.reach)
		return
	}
	if l.brokerEnd != nil { // takeover: the broker closes the old one and publishes its will
		l.will(l.brokerEnd, between(l.rnd, 0, 800))
	}
	if o := l.a.second; o != nil && o.link.brokerEnd != nil { // the same between two boards
		o.link.will(o.link.brokerEnd, between(l.rnd, 0, 800))
		o.link.brokerEnd = nil
		o.link.lostByAgent(between(l.rnd, 0, 500))
	}
	c := &conn{session: l.rnd.Uint64() | 1}
	l.agentEnd, l.brokerEnd = c, c
	l.w.log(l.a.tag, "connected, session %x", c.session)
	l.a.links.Up(round.Primary)
	l.a.input(executor.Connected{Session: c.session})
}

// will publishes the last will of a connection; sometimes it gets lost.
func (l *link) will(c *conn, d time.Duration) {
	if chance(l.rnd, 0.15) {
		return
	}
	m := &wire.Goodbye{Session: c.session, Lost: true, Reason: "connection lost"}
	l.w.gateway.later(d, func() { l.w.gateway.put(&engine.Uplink{Node: l.a.id, Msg: m}) })
}

// broken ends the connection at both ends. told says that the broker is there to
// publish the will.
func (l *link) broken(told bool) {
	if l.brokerEnd != nil && told {
		l.will(l.brokerEnd, between(l.rnd, 0, 3_000))
	}
	l.brokerEnd = nil
	l.lostByAgent(between(l.rnd, 0, 1_500))
}

// lostByAgent lets the agent notice in a while that its connection is gone.
func (l *link) lostByAgent(d time.Duration) {
	c := l.agentEnd
	if c == nil {
		return
	}
	l.a.later(d, func() {
		if l.agentEnd == c {
			l.agentEnd = nil
			l.w.check.contacts(l.a)
			l.a.links.Down(round.Primary, l.a.clock.mono())
			l.a.input(executor.Disconnected{})
			l.a.later(between(l.rnd, 10, 1_500), l.reach)
		}
	})
}

// lostByBroker lets the broker notice in a while.
func (l *link) lostByBroker(d time.Duration) {
	c := l.brokerEnd
	if c == nil {
		return
	}
	l.w.gateway.later(d, func() {
		if l.brokerEnd == c {
			l.brokerEnd = nil
			l.will(c, 0)
		}
	})
}

// gone is the end of the agent's process: its kernel closes the connection, or
// with the power gone nobody does.
func (l *link) gone(power bool) {
	l.agentEnd = nil
	if !power {
		l.lostByBroker(between(l.rnd, 0, 200))
		return
	}
	l.lostByBroker(between(l.rnd, 1_000, int(brokerPatience.Milliseconds())))
}

// lostIfHeld ends a connection over which nothing has passed for too long.
func (l *link) lostIfHeld() {
	if l.holdUntil-l.w.now > min(agentPatience, brokerPatience) {
		l.lostByAgent(agentPatience)
		l.lostByBroker(brokerPatience)
	}
}

// dead breaks a connection over which something was lost: TCP cannot skip bytes,
// so that both ends give up sooner or later.
func (l *link) dead(until time.Duration) {
	rest := until - l.w.now
	for _, c := range []*conn{l.agentEnd, l.brokerEnd} {
		if c != nil {
			c.torn = true
		}
	}
	l.lostByAgent(min(rest+between(l.rnd, 0, 2_000), agentPatience))
	l.lostByBroker(min(rest+between(l.rnd, 0, 2_000), brokerPatience))
}

// trip is when a message arrives that is sent now; false if it is lost.
func (l *link) trip(p *pipe, half time.Duration) (time.Duration, bool) {
	if l.w.now < max(l.holeUntil, half) {
		return 0, false
	}
	if !l.w.calm && chance(l.rnd, l.drop) {
		return 0, false // by a full queue at either end
	}
	at := l.w.now + between(l.rnd, 1, 40)
	if l.w.now < l.holdUntil {
		if chance(l.rnd, l.frail) {
			return 0, false
		}
		at = l.holdUntil + between(l.rnd, 1, 40)
	}
	p.last = max(p.last, at)
	return p.last, true
}

func (l *link) copies() int {
	if !l.w.calm && chance(l.rnd, l.repeat) {
		return 2
	}
	return 1
}

// up sends a message of the agent.
func (l *link) up(b []byte) {
	c := l.agentEnd
	if c == nil {
		return
	}
	incarnation, copies := l.a.incarnation, l.a.copies
	for range l.copies() {
		at, ok := l.trip(&c.up, l.halfUp)
		if !ok {
			return
		}
		l.w.gateway.later(at-l.w.now, func() {
			if l.brokerEnd != c {
				return
			}
			m, err := wire.DecodeUplink(b)
			if err != nil {
				l.w.fail("wire", "the gateway cannot read a message of %s: %v", l.a.id, err)
				return
			}
			in := &engine.Uplink{Node: l.a.id, Msg: m}
			l.w.check.arrived(in, l.a, incarnation, copies)
			l.w.gateway.put(in)
		})
	}
}

// down sends a message of the gateway. clock is the error of its clock when it
// was written.
func (l *link) down(b []byte, clock time.Duration) {
	c := l.brokerEnd
	if c == nil {
		return
	}
	for range l.copies() {
		if c.down.waiting >= brokerQueue {
			return
		}
		at, ok := l.trip(&c.down, l.halfDown)
		if !ok {
			return
		}
		if l.w.now < l.slowUntil {
			at += slowEvery
			c.down.last = at
		}
		c.down.waiting++
		life := l.a.life
		l.w.after(at-l.w.now, func() {
			c.down.waiting--
			if l.agentEnd != c || l.a.life != life {
				return
			}
			m, err := wire.DecodeDownlink(b)
			if err != nil {
				l.w.fail("wire", "%s cannot read a message of the gateway: %v", l.a.id, err)
				return
			}
			switch m := m.(type) {
			case *wire.Cancel:
				l.w.check.stopTold(l.a, m.Seq)
			case *wire.Release:
				l.w.check.releaseCame(l.a, m.Seq)
			}
			if l.a.past(m) {
				l.a.take(waiting{executor.Received{Message: m}, m, clock})
			}
		})
	}
}

func (l *link) heal() {
	l.holdUntil, l.holeUntil, l.halfUp, l.halfDown, l.slowUntil = 0, 0, 0, 0, 0
}
