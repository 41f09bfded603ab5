package executor

import (
	"slices"
	"time"

	"github.com/apollo-11/apollo11/wire"
	"github.com/apollo-11/apollo11/wire/mutant"
)

// keep is the place on its lines of an instruction that will be tried again: what is
// newer waits for that, but not what is towards safe (docs/safety.md 4). It ends with
// the next attempt, with the gateway's word, or after wire.OrderWait.
type keep struct {
	seq   uint64
	stand attempt // its order, lines and board
	until time.Duration
}

// keepLines keeps the lines of an attempt that ends with r, if it is to be tried
// again. An unknown outcome never holds a line.
func (c *Core) keepLines(a *attempt, r Result) {
	if !a.keeps || r.Code.Class() != wire.ClassRetryable || !a.actuates || a.towards || !a.holdsAny() || mutant.On(mutant.KeepIgnored) {
		return
	}
	rec := keepRecord{Kind: kindKeep, Seq: a.seq, Order: a.order, Lines: a.lines, Board: a.board}
	c.record(rec)
	c.replayKeep(rec)
}

func (c *Core) replayKeep(r keepRecord) {
	c.kept = slices.DeleteFunc(c.kept, func(k keep) bool { return k.seq == r.Seq })
	if !r.Off {
		c.kept = append(c.kept, keep{seq: r.Seq, stand: attempt{order: r.Order, lines: r.Lines, board: r.Board}, until: c.now.Mono + wire.OrderWait})
	}
}

// keepsFor reports whether lines are kept for an instruction. Its next attempt has a
// place then, however many wait: they may all be waiting for it.
func (c *Core) keepsFor(seq uint64) bool {
	return slices.ContainsFunc(c.kept, func(k keep) bool { return k.seq == seq })
}

// unkeep ends the keeping for an instruction.
func (c *Core) unkeep(seq uint64) {
	if c.keepsFor(seq) {
		r := keepRecord{Kind: kindKeep, Seq: seq, Off: true}
		c.record(r)
		c.replayKeep(r)
	}
}

// lapseKeeps ends the keeping that has lasted too long, or that something newer has
// made void.
func (c *Core) lapseKeeps() {
	for _, k := range slices.Clone(c.kept) {
		a := k.stand
		a.actuates = true
		if c.now.Mono >= k.until || c.overtaken(&a) != 0 {
			c.unkeep(k.seq)
		}
	}
}

// keptFrom reports whether the lines of the attempt are kept for an older one.
func (c *Core) keptFrom(a *attempt) bool {
	return a.actuates && slices.ContainsFunc(c.kept, func(k keep) bool { return k.stand.order < a.order && k.stand.shares(a) })
}

func (c *Core) keepDeadlines(at func(time.Duration)) {
	for _, k := range c.kept {
		at(k.until)
	}
}
