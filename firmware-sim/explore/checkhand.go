package explore

import (
	"context"

	"github.com/apollo-11/apollo11/gateway/engine"
)

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
