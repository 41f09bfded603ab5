package explore

import (
	"github.com/apollo-11/apollo11/gateway/engine"
	"github.com/apollo-11/apollo11/wire"
)

// nodeLife is a node with one journal.
type nodeLife struct {
	node        string
	incarnation uint64
	copy        int // of the card: after a restore numbers are used again
}

type eventKey struct {
	nodeLife
	number uint64
}

// eventFact is what an event says.
type eventFact struct {
	token wire.Token
	phase wire.Phase
	code  wire.Code
	lease wire.LeaseEnd
}

// arrivals are the events of a nodeLife that the gateway's engine was given.
type arrivals struct {
	through uint64          // all up to this one
	beyond  map[uint64]bool // and these
}

// says checks what an agent tells the gateway, as it leaves the process.
func (c *checker) says(a *agent, m wire.Message) {
	switch m := m.(type) {
	case *wire.Hello:
		a.incarnation = m.Incarnation
		k := c.knows(a)
		k.asked = true
		if _, ok := k.hellos[m.Session]; !ok {
			k.hellos[m.Session] = c.w.now
		}
		c.kept(a, m.First-1, m.Next)
	case *wire.Heartbeat:
		c.kept(a, m.Through, m.Next)
	case *wire.Event:
		c.event(a, m)
	case *wire.Report:
		for _, s := range m.States {
			if s.Status == wire.StatusFull {
				delete(c.boards.arrived, s.Token) // there was no room; it comes again
				c.pace.noRoom[s.Token] = true
			}
		}
	}
}

// kept demands that an agent forgets no event before the gateway has it on disk.
func (c *checker) kept(a *agent, through, next uint64) {
	a.through, a.next = through, next
	most := uint64(0)
	for n := range a.copies + 1 {
		most = max(most, c.most[nodeLife{a.id, a.incarnation, n}])
	}
	if through > most {
		c.fail("event-dropped", "%s has let go of its events up to %d, the gateway has had them on disk up to %d", a.id, through, most)
	}
}

// event checks that a number always means the same, and that a result is true.
func (c *checker) event(a *agent, m *wire.Event) {
	key := eventKey{nodeLife{a.id, a.incarnation, a.copies}, m.Number}
	fact := eventFact{m.Token, m.Phase, m.Code, m.Lease}
	if have, ok := c.events[key]; ok && have != fact {
		c.fail("event-number", "event %d of %s says %+v, and has said %+v", m.Number, a.id, fact, have)
	}
	c.events[key] = fact
	if m.Phase == wire.PhaseLease {
		c.leaseTold(a, m, key)
	}
	if m.Phase != wire.PhaseProcessed {
		return
	}
	if c.retold[m.Token] {
		c.result(a, m.Seq, m.Token, m.Code)
		return
	}
	if _, ok := c.reported[m.Token]; ok && m.Code == wire.CodeUnknown && a.maxKnown() > 0 && c.memory.older {
		delete(c.reported, m.Token)
		return // it has forgotten the token, and a restored log has handed it out once more
	}
	if have, ok := c.reported[m.Token]; ok && have != m.Code && c.saidBy[m.Token] == a {
		c.fail("two-results", "%s reports %v for token %v of instruction %d, and has reported %v", a.id, m.Code, m.Token, m.Seq, have)
	}
	c.reported[m.Token], c.saidBy[m.Token] = m.Code, a
	c.result(a, m.Seq, m.Token, m.Code)
}

// result checks that an agent tells the truth about an attempt.
func (c *checker) result(a *agent, seq uint64, t wire.Token, code wire.Code) {
	r := c.runs[t]
	c.handResult(a, seq, t, code)
	c.refusals(a, seq, t, code)
	c.standsFor(a, seq, t)
	switch {
	case code == wire.CodeOK && !c.succeededAs(seq, t):
		c.fail("false-success", "%s reports success of instruction %d, token %v; it was never executed with success", a.id, seq, t)
	case r != nil && r.acted && !r.towards && code.Class() == wire.ClassRefused && !c.memory.unsure[t]:
		c.fail("false-refusal", "%s reports that it refused token %v of instruction %d (%v), and has executed it", a.id, t, seq, code)
	case r == nil && code == wire.CodeInterrupted && c.keeps.back[t] != nil:
		c.fail("false-interrupted", "%s reports that token %v of instruction %d was interrupted; its start was taken back, and that was written down", a.id, t, seq)
	case r == nil && code == wire.CodeInterrupted && !c.wipes[a.id]:
		// A start may be on disk although the process died before it acted on it.
	}
}

// whispers checks a compact ack.
func (c *checker) whispers(a *agent, ack wire.CompactAck) {
	if ack.Code.Final() {
		c.orders.whispered[attemptKey{a, ack.Seq, ack.Attempt}] = ack.Code
	}
	if ack.Code == wire.CodeOK && !c.succeeded(ack.Seq) && !anyOK(c.memory.gone[ack.Seq]) {
		c.fail("false-success", "%s says in short that instruction %d succeeded; it was never executed with success", a.id, ack.Seq)
	}
}

// arrived notes which journal an uplink comes from.
func (c *checker) arrived(in *engine.Uplink, a *agent, incarnation uint64, copies int) {
	c.lifeOf[in] = nodeLife{a.id, incarnation, copies}
}

// input notes what the engine is given.
func (c *checker) input(in engine.Input) {
	up, ok := in.(*engine.Uplink)
	if !ok {
		return
	}
	life := c.lifeOf[up]
	delete(c.lifeOf, up)
	if h, ok := up.Msg.(*wire.Hello); ok {
		c.greeted(up.Node, h)
		if life.copy > 0 && c.heard[life] == nil { // what its card had, and was heard of
			before := uint64(0)
			for k := range life.copy {
				if o := c.heard[nodeLife{life.node, life.incarnation, k}]; o != nil {
					before = o.through
				}
			}
			c.heard[life] = &arrivals{through: min(before, h.Next-1), beyond: map[uint64]bool{}}
		}
	}
	c.hears(up.Node, up.Msg)
	if r, ok := up.Msg.(*wire.Report); ok {
		c.toldLost(up.Node, r)
	}
	c.spoken(up.Node, life.incarnation, up.Msg)
	e, ok := up.Msg.(*wire.Event)
	if !ok {
		return
	}
	h := c.heard[life]
	if h == nil {
		h = &arrivals{beyond: map[uint64]bool{}}
		c.heard[life] = h
	}
	if e.Number > h.through {
		h.beyond[e.Number] = true
	}
	for h.beyond[h.through+1] {
		h.through++
		delete(h.beyond, h.through)
	}
}

// cursor demands that the gateway claims to have only events that came, without
// a gap.
func (c *checker) cursor(n engine.NodeCursor) {
	through := uint64(0)
	for k := range c.copies[n.Node] + 1 {
		if h := c.heard[nodeLife{n.Node, n.Incarnation, k}]; h != nil {
			through = max(through, h.through)
		}
	}
	if n.Last > through {
		c.fail("event-gap", "the gateway takes the events of %s up to %d for known, what came without a gap ends with %d", n.Node, n.Last, through)
	}
}
