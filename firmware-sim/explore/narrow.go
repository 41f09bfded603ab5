package explore

import (
	"math/rand/v2"
	"time"

	"github.com/apollo-11/apollo11/fieldagent/executor"
	"github.com/apollo-11/apollo11/fieldagent/round"
	"github.com/apollo-11/apollo11/gateway/engine"
	"github.com/apollo-11/apollo11/wire"
)

// Numbers of the narrowband path.
const (
	// narrowGap is the broker's rate in either direction: ten frames a second.
	narrowGap = 100 * time.Millisecond
	// narrowQueue bounds what waits for its turn; more is dropped.
	narrowQueue = 64
)

// narrow is an agent's narrowband path: slow, lossy, without order.
type narrow struct {
	a      *agent
	w      *world
	rnd    *rand.Rand
	off    bool      // nothing passes
	conn   *identity // the connection, nil for none
	nextUp time.Duration
	nextDn time.Duration
}

func newNarrow(a *agent) *narrow {
	return &narrow{a: a, w: a.w, rnd: a.w.stream("narrow " + a.tag)}
}

// flip takes the path down or brings it back.
func (n *narrow) flip() {
	if n.off = !n.off; n.off {
		n.lost()
	}
}

func (n *narrow) heal() { n.off = false }

// reach connects as soon as that is possible.
func (n *narrow) reach() {
	if n.conn != nil {
		return
	}
	if n.off || n.w.gateway.process == nil {
		n.a.later(between(n.rnd, 300, 3_000), n.reach)
		return
	}
	if o := n.a.second; o != nil {
		o.narrow.lost() // takeover
	}
	n.conn = new(identity)
	n.w.gateway.put(&engine.NarrowbandUp{Short: wire.Short(n.a.id), Up: true})
	n.a.links.Up(round.Narrowband)
	n.a.input(executor.NarrowbandUp{})
	n.w.check.contacts(n.a)
	n.w.check.opened(n.a)
}

// lost ends the connection; both ends notice.
func (n *narrow) lost() {
	if n.conn == nil {
		return
	}
	n.conn = nil
	n.w.gateway.later(between(n.rnd, 0, 2_000), func() {
		if n.conn == nil {
			n.w.gateway.put(&engine.NarrowbandUp{Short: wire.Short(n.a.id)})
		}
	})
	n.w.check.contacts(n.a)
	n.a.links.Down(round.Narrowband, n.a.clock.mono())
	n.a.input(executor.NarrowbandDown{})
	n.a.later(between(n.rnd, 100, 2_000), n.reach)
}

// trip is how long a frame takes that is handed over now; false if it is lost.
func (n *narrow) trip(next *time.Duration) (time.Duration, bool) {
	if n.conn == nil || !n.w.calm && chance(n.rnd, n.w.profile.NarrowLoss) {
		return 0, false
	}
	if *next-n.w.now > narrowQueue*narrowGap {
		return 0, false
	}
	*next = max(*next+narrowGap, n.w.now)
	return *next - n.w.now + between(n.rnd, 20, n.w.profile.NarrowTrip), true
}

func (n *narrow) copies() int {
	if !n.w.calm && chance(n.rnd, n.w.profile.Repeat) {
		return 2
	}
	return 1
}

// up sends a frame of the agent.
func (n *narrow) up(ack wire.CompactAck) {
	b, err := ack.Encode()
	if err != nil {
		n.w.fail("wire", "a compact ack of %s cannot be encoded: %v", n.a.id, err)
		return
	}
	n.w.mixBytes("narrow up", b)
	for range n.copies() {
		if d, ok := n.trip(&n.nextUp); ok {
			n.w.gateway.later(d, func() { n.arrive(b) })
		}
	}
}

func (n *narrow) arrive(b []byte) {
	f, err := wire.DecodeCompact(b)
	if err != nil {
		n.w.fail("wire", "the gateway cannot read a frame of %s: %v", n.a.id, err)
		return
	}
	if ack, ok := f.(wire.CompactAck); ok {
		n.w.gateway.put(&engine.Compact{Short: wire.Short(n.a.id), Ack: ack})
	}
}

// down sends a frame of the gateway.
func (n *narrow) down(frame engine.CompactFrame) {
	b, err := frame.Encode()
	if err != nil {
		n.w.fail("wire", "a frame for %s cannot be encoded: %v", n.a.id, err)
		return
	}
	n.w.mixBytes("narrow down", b)
	for range n.copies() {
		if d, ok := n.trip(&n.nextDn); ok {
			n.a.later(d, func() {
				f, err := wire.DecodeCompact(b)
				if err != nil {
					n.w.fail("wire", "%s cannot read a frame of the gateway: %v", n.a.id, err)
					return
				}
				switch f := f.(type) {
				case wire.CompactSafe:
					n.a.safeFrame(f)
				case wire.CompactCancel:
					n.w.check.stopTold(n.a, f.Seq)
				}
				n.a.input(executor.ReceivedCompact{Frame: f})
			})
		}
	}
}
