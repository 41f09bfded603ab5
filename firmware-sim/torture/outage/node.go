package outage

import (
	"fmt"
	"time"

	"github.com/apollo-11/apollo11/fieldagent/executor"
	"github.com/apollo-11/apollo11/gateway/engine"
	"github.com/apollo-11/apollo11/wire"
)

// node is an agent: the real executor, with a journal that never fails and pins
// that count.
type node struct {
	s        *site
	name     string
	core     *executor.Core
	narrow   bool
	up       bool // the connection stands
	session  uint64
	lastUp   time.Duration // arrival of the latest message: a connection keeps order
	lastDown time.Duration
	nextBand time.Duration // when the narrowband takes the next frame
	wakeAt   time.Duration
	ran      map[wire.Token]int
}

func newNode(s *site, index int, narrowband bool) *node {
	n := &node{s: s, name: fmt.Sprintf("node-%02d", index+1), narrow: narrowband, ran: map[wire.Token]int{}}
	core, out, err := executor.New(executor.Config{
		Hello:       wire.Hello{Version: "outage", Short: wire.Short(n.name), Intents: []string{wire.IntentGPIOWrite}, Board: "sim"},
		Incarnation: uint64(index) + 1, Check: func(string, wire.RawMap) executor.Verdict { return executor.Verdict{} },
	}, nil, n.now())
	s.check(err)
	n.core = core
	if err == nil {
		n.perform(out)
	}
	if narrowband {
		n.step(executor.NarrowbandUp{})
	}
	return n
}

func (n *node) now() executor.Now {
	return executor.Now{Mono: n.s.now + 1, Wall: start + n.s.now.Milliseconds(), WallOK: true}
}

func (n *node) step(in executor.Input) { n.perform(n.core.Step(n.now(), in)) }

// perform carries out what the core decided. The journal takes no time here.
func (n *node) perform(out executor.Output) {
	for _, w := range append(out.Urgent, out.Start...) {
		n.ran[w.Token]++
		n.s.after(workTime, func() {
			n.step(executor.Finished{Token: w.Token, Result: executor.Result{Code: wire.CodeOK}})
		})
	}
	for _, m := range out.Primary {
		n.say(m)
	}
	for _, a := range out.Narrowband {
		n.whisper(a)
	}
	if at := out.Deadline; at != executor.NoDeadline && at != n.wakeAt {
		n.wakeAt = at
		n.s.after(at-n.now().Mono, func() {
			if n.wakeAt == at {
				n.wakeAt = 0
				n.step(executor.Tick{})
			}
		})
	}
}

// connect makes a new connection. The narrowband is known with the first hello.
func (n *node) connect() {
	n.session++
	n.up = true
	n.step(executor.Connected{Session: n.session})
	if n.narrow {
		n.s.after(mostTrip*2, func() { n.s.put(&engine.NarrowbandUp{Short: wire.Short(n.name), Up: true}) })
	}
}

// drop ends the connection; the last will tells the gateway.
func (n *node) drop() {
	n.up = false
	n.s.put(&engine.Uplink{Node: n.name, Msg: &wire.Goodbye{Session: n.session, Lost: true, Reason: "connection lost"}})
	n.step(executor.Disconnected{})
}

// say sends on the primary path.
func (n *node) say(m wire.Message) {
	d, ok := n.s.trip()
	if !n.up || !ok {
		return
	}
	n.lastUp = max(n.lastUp, n.s.now+d)
	session := n.session
	n.s.after(n.lastUp-n.s.now, func() {
		if n.session == session {
			n.s.put(&engine.Uplink{Node: n.name, Msg: m})
		}
	})
}

func (n *node) receive(m wire.Message) {
	d, ok := n.s.trip()
	if !n.up || !ok {
		return
	}
	n.lastDown = max(n.lastDown, n.s.now+d)
	session := n.session
	n.s.after(n.lastDown-n.s.now, func() {
		if n.session == session && n.up {
			n.step(executor.Received{Message: m})
		}
	})
}

// whisper sends on the narrowband path, which takes ten frames a second.
func (n *node) whisper(a wire.CompactAck) {
	n.nextBand = max(n.nextBand, n.s.now) + narrowGap
	d, ok := n.s.trip()
	if !ok {
		return
	}
	n.s.after(n.nextBand-narrowGap-n.s.now+d, func() {
		n.s.put(&engine.Compact{Short: wire.Short(n.name), Ack: a})
	})
}

func (n *node) receiveCompact(f engine.CompactFrame) {
	if d, ok := n.s.trip(); ok && n.narrow {
		n.s.after(d, func() { n.step(executor.ReceivedCompact{Frame: f}) })
	}
}
