package explore

import (
	"context"
	"time"

	"github.com/apollo-11/apollo11/gateway/engine"
	"github.com/apollo-11/apollo11/wire"
)

// throw is one throw of a LOCAL switch: which one of a process of the agent it was.
type throw struct{ process, number uint64 }

// throws is what the gateway has heard of throws of LOCAL switches.
type throws struct {
	processes map[uint64]uint64 // by session
	// heard is the highest instruction that was on disk when the gateway first heard of a
	// throw: what has that number or a lower one was submitted before.
	heard map[throw]uint64
	nodes map[string]bool          // of which one was heard
	since map[throw]bool           // that were heard since the gateway was started
	news  map[string]time.Duration // by node: when one was last heard that was not before
	taken map[uint64]time.Duration // when instructions were submitted
}

func newThrows() throws {
	return throws{processes: map[uint64]uint64{}, heard: map[throw]uint64{}, nodes: map[string]bool{}, since: map[throw]bool{}, news: map[string]time.Duration{}, taken: map[uint64]time.Duration{}}
}

// hears notes what the gateway is told of throws.
func (c *checker) hears(node string, m wire.Message) {
	t, k, on := &c.boards.throws, throw{}, false
	switch m := m.(type) {
	case *wire.Hello:
		t.processes[m.Session] = m.Nonce
		k, on = throw{m.Nonce, m.Throws}, m.Local
	case *wire.Heartbeat:
		k, on = throw{t.processes[m.Session], m.Throws}, m.Local
	default:
		return
	}
	if _, ok := t.heard[k]; !ok {
		t.heard[k] = c.book.top
	}
	if on || k.number > 1 {
		t.nodes[node] = true
		if !t.since[k] {
			t.since[k], t.news[node] = true, c.w.now
		}
	}
}

// mayBeThrown reports whether a board may refuse an instruction because of a throw before
// it came: it was submitted before the gateway heard of that.
func (c *checker) mayBeThrown(a *agent, seq uint64) bool {
	t := &c.boards.throws
	list := c.boards.local[a]
	if len(list) == 0 {
		return false
	}
	news, heard := t.news[a.id]
	return !heard || list[len(list)-1].from > news || t.taken[seq] <= news+stepSlack
}

// endedByThrow reports whether an instruction is CANCELLED because the LOCAL switch of its
// node was thrown after it had been submitted.
func (c *checker) endedByThrow(i *engine.Instruction) bool {
	return i.Reason == engine.ReasonSuperseded && i.Code.Class() != wire.ClassUnknown && c.boards.throws.nodes[i.Node]
}

// thrownSince demands of what begins, and moves something away from its safe level, that
// it was submitted after the gateway had heard of the last throw of the LOCAL switch
// (docs/safety.md 8). What an operator had tried again was asked for anew.
func (c *checker) thrownSince(a *agent, x *work) {
	if x.Towards || a.pins.throws == 0 || a.lastHello == nil || c.byHand[x.Seq].retried || c.memory.older {
		return
	}
	top, ok := c.boards.throws.heard[throw{a.lastHello.Nonce, a.pins.throws + 1}]
	switch {
	case !ok:
		c.fail("local", "%s starts instruction %d (%s on %s), and the gateway has not heard that its LOCAL switch was thrown (%d times)", a.tag, x.Seq, x.Intent, x.pin, a.pins.throws)
	case x.Seq <= top:
		c.fail("local", "%s starts instruction %d (%s on %s), which was submitted before the gateway heard that the LOCAL switch was thrown; %d was the highest then", a.tag, x.Seq, x.Intent, x.pin, top)
	}
}

// trail is the checker's copy of the audit trail.
type trail struct {
	last    engine.Audit    // applied
	durable engine.Audit    // on disk
	acts    map[string]bool // what is on disk, by action and subject
}

func act(a engine.Action, subject string) string { return string(a) + " " + subject }

// audited checks that an entry continues the trail.
func (c *checker) audited(a *engine.Audit) {
	t := &c.book.trail
	if a.Number != t.last.Number+1 || a.Prev != t.last.Hash {
		c.fail("audit", "audit entry %d (%s) does not continue entry %d", a.Number, a.Action, t.last.Number)
	}
	if sum, err := a.Seal(); err != nil || sum != a.Hash {
		c.fail("audit", "audit entry %d does not carry its own hash: %v", a.Number, err)
	}
	t.last = *a
}

// done checks that what an operator is told has happened is in the trail on disk.
func (c *checker) done(r engine.Reply) {
	if r.Done != nil && !c.book.trail.acts[act(r.Done.Action, r.Done.Subject)] {
		c.fail("audit", "an operator is told that %s of %q was done, and the audit trail on disk does not say so", r.Done.Action, r.Done.Subject)
	}
}

// finalHands reads the operator queue and the audit trail back.
func (c *checker) finalHands(ctx context.Context) {
	read := c.w.gateway.ledger.Reader()
	queued := map[uint64]bool{}
	for after := uint64(0); ; {
		list, next, err := read.Queue(ctx, after, 1000)
		if err != nil {
			c.fail("log", "the operator queue cannot be read: %v", err)
			return
		}
		for k := range list {
			queued[list[k].Seq] = true
		}
		if after = next; next == 0 {
			break
		}
	}
	for _, seq := range c.book.seqs() {
		if i := c.book.insts[seq]; i.Operator != queued[seq] {
			c.fail("dropped", "instruction %d is %v and waits for an operator: %v; the operator queue lists it: %v", seq, i.State, i.Operator, queued[seq])
		}
	}
	number := uint64(0)
	for {
		list, err := read.Audit(ctx, number, 1000)
		if err != nil {
			c.fail("log", "the audit trail cannot be read: %v", err)
			return
		}
		if len(list) == 0 {
			break
		}
		for k := range list {
			if number++; list[k].Number != number {
				c.fail("audit", "audit entry %d is missing, found is %d", number, list[k].Number)
				return
			}
		}
	}
	if number != c.book.trail.durable.Number {
		c.fail("audit", "the audit trail ends with entry %d, written were %d", number, c.book.trail.durable.Number)
	}
}
