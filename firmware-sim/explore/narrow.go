package explore

import (
	"math/rand/v2"
	"time"

	"github.com/apollo-11/apollo11/fieldagent/executor"
	"github.com/apollo-11/apollo11/gateway/engine"
	"github.com/apollo-11/apollo11/wire"
)

// Numbers of the narrowband path.
const (
	// narrowGap is the broker's rate: ten frames a second.
	narrowGap = 100 * time.Millisecond
	// narrowQueue bounds what waits for its turn; more is dropped.
	narrowQueue = 64
)

// narrow is an agent's narrowband path: slow, lossy, without order.
type narrow struct {
	a    *agent
	w    *world
	rnd  *rand.Rand
	down bool
	next time.Duration // when the broker takes the next frame
}

func newNarrow(a *agent) *narrow {
	return &narrow{a: a, w: a.w, rnd: a.w.stream("narrow " + a.id)}
}

// flip takes the path down or brings it back.
func (n *narrow) flip() { n.set(!n.down) }

func (n *narrow) set(down bool) {
	if n.down == down {
		return
	}
	n.down = down
	n.tell()
}

// tell lets the agent know how the path stands.
func (n *narrow) tell() {
	if n.down {
		n.a.input(executor.NarrowbandDown{})
		return
	}
	n.a.input(executor.NarrowbandUp{})
}

// up sends a frame of the agent.
func (n *narrow) up(ack wire.CompactAck) {
	b, err := ack.Encode()
	if err != nil {
		n.w.fail("wire", "a compact ack of %s cannot be encoded: %v", n.a.id, err)
		return
	}
	n.w.mixBytes("narrow", b)
	copies := 1
	if !n.w.calm && chance(n.rnd, n.w.profile.Repeat) {
		copies = 2
	}
	for range copies {
		if n.down || !n.w.calm && chance(n.rnd, n.w.profile.NarrowLoss) {
			continue
		}
		n.next = max(n.next, n.w.now) + narrowGap
		if n.next-n.w.now > narrowQueue*narrowGap {
			n.next -= narrowGap
			continue
		}
		n.w.gateway.later(n.next-n.w.now+between(n.rnd, 20, 2_000), func() { n.arrive(b) })
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
