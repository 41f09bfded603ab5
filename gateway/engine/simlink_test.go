package engine_test

import (
	"time"

	"github.com/apollo-11/apollo11/gateway/engine"
	"github.com/apollo-11/apollo11/wire"
)

// simLink is an agent's two paths to the gateway. The primary path is one
// connection at a time: what is on its way when it ends is lost.
type simLink struct {
	conn           *identity // the agent's connection, nil for none
	broker         *identity // the connection that the gateway holds for it
	brokerSession  uint64    // of its hello, for the last will
	session        uint64
	welcomed       bool
	quiet          time.Duration // until then nothing gets through
	narrowbandDown bool
	narrowTold     *identity     // the gateway's process that was told of the narrowband connection
	lastUp         time.Duration // arrival of the latest message, when order is kept
	lastDown       time.Duration
}

// connect tries to reach the gateway until it can.
func (a *simAgent) connect() {
	if a.conn != nil {
		return
	}
	w := a.w
	if w.gateway.process == nil || w.now < a.quiet {
		a.later(w.span(200, 2000), a.connect)
		return
	}
	if a.broker != nil {
		a.lost(a.brokerSession, w.span(0, 800)) // takeover: the old will is published
	}
	a.conn = new(identity)
	a.broker = a.conn
	a.session, a.welcomed = w.rnd.Uint64()|1, false
	a.brokerSession = a.session
	a.lastUp, a.lastDown = w.now, w.now
	a.greet()
	a.beat()
}

// greet says hello until it is answered.
func (a *simAgent) greet() {
	first := a.journal.next
	if len(a.journal.events) > 0 {
		first = a.journal.events[0].Number
	}
	h := &wire.Hello{Session: a.session, Incarnation: a.journal.incarnation, Short: wire.Short(a.id),
		Labels: map[string]string{"role": "worker"}, First: first, Next: a.journal.next,
		TopSeq: a.journal.topSeq, TopToken: a.journal.topToken}
	a.tellLines(h)
	a.say(h)
	s := a.session
	a.later(2*time.Second, func() {
		if a.conn != nil && a.session == s && !a.welcomed {
			a.greet()
		}
	})
}

// beat sends heartbeats, and again what was not acknowledged, while the
// connection stands.
func (a *simAgent) beat() {
	s := a.session
	a.later(5*time.Second, func() {
		if a.conn == nil || a.session != s {
			return
		}
		a.say(&wire.Heartbeat{Session: s, Room: a.room()})
		if a.welcomed {
			a.sendEvents()
			a.digest()
		}
		a.beat()
	})
}

// cut ends the connection. The agent notices at once or after a while, the
// gateway when its broker does: then or never.
func (a *simAgent) cut() {
	if a.conn == nil {
		return
	}
	w := a.w
	w.trace(a.id + " is cut off")
	conn := a.conn
	a.quiet = max(a.quiet, w.now+w.span(10, 3000))
	if w.chance(0.7) {
		a.lost(a.session, w.span(0, 10_000))
		a.broker = nil
	}
	a.later(w.span(0, 6000), func() {
		if a.conn == conn {
			a.conn, a.welcomed = nil, false
			a.connect()
		}
	})
}

// lost publishes the last will of a session, or tells of its end.
func (a *simAgent) lost(session uint64, d time.Duration) {
	g := a.w.gateway
	p := g.process
	will := a.w.chance(0.8)
	a.w.after(d, func() {
		if g.process != p {
			return
		}
		if will {
			g.put(&engine.Uplink{Node: a.id, Msg: &wire.Goodbye{Session: session, Lost: true}})
			return
		}
		g.put(&engine.NodeGone{Node: a.id, Session: session, Reason: "connection closed"})
	})
}

// dropped is the end of the connection because one of its ends is gone.
func (a *simAgent) dropped() {
	if a.conn != nil && a.w.gateway.process != nil {
		a.lost(a.session, a.w.span(0, 3000))
	}
	a.conn, a.broker, a.welcomed = nil, nil, false
	if a.up {
		a.later(a.w.span(10, 1500), a.connect)
	}
}

// partition lets nothing through for a while; both ends believe in the
// connection.
func (a *simAgent) partition(d time.Duration) {
	a.w.trace(a.id + " is partitioned")
	a.quiet = a.w.now + d
}

// trip is how long a message takes, or false when it is lost. What goes to the
// agent keeps its order, as on a connection; the agent's messages need not, for
// the engine must not depend on it.
func (a *simAgent) trip(last *time.Duration, ordered bool) (time.Duration, bool) {
	w := a.w
	d := w.span(1, 40)
	if !w.calm && (w.now < a.quiet || w.chance(w.drop)) {
		return 0, false
	}
	if ordered {
		*last = max(*last, w.now+d)
		d = *last - w.now
	}
	return d, true
}

// copies is how often a message arrives.
func (a *simAgent) copies() int {
	if !a.w.calm && a.w.chance(a.w.repeat) {
		return 2
	}
	return 1
}

// say sends a message to the gateway on the primary path.
func (a *simAgent) say(m wire.Message) {
	conn, g := a.conn, a.w.gateway
	if conn == nil {
		return
	}
	for range a.copies() {
		d, ok := a.trip(&a.lastUp, a.w.ordered)
		if !ok {
			return
		}
		a.w.after(d, func() {
			if a.broker == conn {
				g.put(&engine.Uplink{Node: a.id, Msg: m})
			}
		})
	}
}

// down sends a message of the gateway to the agent.
func (a *simAgent) down(m wire.Message) {
	conn := a.broker
	if conn == nil {
		return
	}
	life := a.life
	for range a.copies() {
		d, ok := a.trip(&a.lastDown, true)
		if !ok {
			return
		}
		a.w.after(d, func() {
			if a.conn == conn && a.life == life && a.up {
				a.receive(m)
			}
		})
	}
}

// secondBoard lets another board with the same name connect: it takes over the
// connection at the broker, says hello and is silent.
func (a *simAgent) secondBoard() {
	w := a.w
	w.trace("a second " + a.id)
	a.cut()
	h := &wire.Hello{Session: w.rnd.Uint64() | 1, Incarnation: w.rnd.Uint64() | 1, Short: wire.Short(a.id),
		Labels: map[string]string{"role": "worker"}, First: 1, Next: 1}
	for range 1 + w.rnd.IntN(3) {
		w.after(w.span(1, 8000), func() { w.gateway.put(&engine.Uplink{Node: a.id, Msg: h}) })
	}
}

// tellNarrow tells the gateway how the narrowband connection stands.
func (a *simAgent) tellNarrow() {
	g := a.w.gateway
	up := a.up && !a.narrowbandDown && g.process != nil
	if told := a.narrowTold != nil && a.narrowTold == g.process; told == up {
		return
	}
	a.narrowTold = nil
	if up {
		a.narrowTold = g.process
	}
	g.put(&engine.NarrowbandUp{Short: wire.Short(a.id), Up: up})
}

// asked brings a frame of the gateway to the agent on the narrowband path.
func (a *simAgent) asked(f engine.CompactFrame) {
	w := a.w
	if s, ok := f.(wire.CompactSafe); ok && (w.calm || !a.narrowbandDown && !w.chance(0.2)) {
		a.later(w.span(50, 2000), func() { a.whisper(wire.CompactAck{Seq: s.Seq, Attempt: 1, Code: wire.CodeDriven}) })
		return
	}
	q, ok := f.(wire.CompactQuery)
	if !ok || !w.calm && (a.narrowbandDown || w.chance(0.2)) {
		return
	}
	a.later(w.span(50, 2000), func() { a.whisper(wire.CompactAck{Seq: q.Seq, Attempt: q.Attempt, Code: a.becameOf(q)}) })
}

// whisper sends a compact ack on the narrowband path: slow, lossy, unordered.
func (a *simAgent) whisper(ack wire.CompactAck) {
	w := a.w
	for range a.copies() {
		if !w.calm && (a.narrowbandDown || w.chance(0.2)) {
			return
		}
		w.after(w.span(50, 2000), func() {
			w.gateway.put(&engine.Compact{Short: wire.Short(a.id), Ack: ack})
		})
	}
}
