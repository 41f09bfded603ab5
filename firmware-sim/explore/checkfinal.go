package explore

import (
	"context"

	"github.com/apollo-11/apollo11/gateway/engine"
	"github.com/apollo-11/apollo11/wire"
)

// final reads the whole log back when everything has settled.
func (c *checker) final() {
	g := c.w.gateway
	if n := len(g.eng.Unfinished()); n != 0 || g.eng.Open() != 0 {
		c.fail("memory", "%d tasks and %d instructions are left in memory", n, g.eng.Open())
	}
	ctx := context.Background()
	read := g.ledger.Reader()
	count := map[int]int{}
	for before := uint64(0); ; {
		list, next, err := read.Tasks(ctx, before, 1000)
		if err != nil {
			c.fail("log", "the log cannot be read: %v", err)
			return
		}
		for k := range list {
			t := &list[k]
			if p := c.order(t.Task.Trace); p != nil {
				count[p.number]++
			}
			for n := range t.Instructions {
				c.finally(ctx, &t.Instructions[n])
			}
		}
		if before = next; next == 0 {
			break
		}
	}
	c.finalHands(ctx)
	c.finalLevels()
	c.finalAlarms()
	for n := range c.subs {
		p := c.subs[n]
		if p == nil {
			continue
		}
		id, acked := c.acked[p.number]
		switch have := count[p.number]; {
		case have > 1:
			c.fail("one-task", "%v became %d tasks", p, have)
		case acked && have != 1 && c.orders.shared[p.number] != id:
			c.fail("lost", "%v was acknowledged as task %s, and the log does not have it", p, id)
		}
	}
}

// finally checks the last state of one instruction and its whole timeline.
func (c *checker) finally(ctx context.Context, i *engine.Instruction) {
	c.w.counts.Instructions++
	if have := c.book.insts[i.Seq]; have.Version != i.Version || have.State != i.State {
		c.fail("lost", "instruction %d was written as version %d %v, the log has version %d %v", i.Seq, have.Version, have.State, i.Version, i.State)
	}
	if !i.State.Settled() {
		c.fail("settle", "instruction %d ended as %v", i.Seq, i.State)
	}
	if i.Code.Final() {
		c.w.counts.Confirmed++
	}
	untold := c.memory.older && i.State == engine.StateTimeout && i.Code == wire.CodeNone // see restored
	if code, ok := c.reported[i.Token]; ok && i.Attempt != 0 && code != i.Code && !untold && (code.Class() != wire.ClassCancelled || i.Code.Class() != wire.ClassCancelled) {
		c.fail("lost-report", "instruction %d ended as %v with %v, its agent has reported %v", i.Seq, i.State, i.Code, code)
	}
	_, entries, ok, err := c.w.gateway.ledger.Reader().Timeline(ctx, i.Seq)
	if err != nil || !ok {
		c.fail("timeline", "the timeline of instruction %d cannot be read: %v", i.Seq, err)
		return
	}
	state := engine.StateNone
	for k := range entries {
		e := &entries[k]
		if e.From != state || e.From != e.To && !legal(e.From, e.To) {
			c.fail("timeline", "the timeline of instruction %d goes from %v to %v, it stood at %v", i.Seq, e.From, e.To, state)
		}
		state = e.To
	}
	c.finalLeases(i, entries)
	c.finalWatch(i, entries)
	if i.Code == wire.CodeLocal {
		c.w.counts.ByHand++
	}
	if state != i.State {
		c.fail("timeline", "instruction %d is %v, its timeline ends with %v", i.Seq, i.State, state)
	}
}
