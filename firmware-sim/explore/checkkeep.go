package explore

import (
	"maps"
	"slices"
	"time"

	"github.com/apollo-11/apollo11/wire"
)

// keeps is what the checker knows of lines that a board keeps for the next attempt of an
// instruction, and of what was taken back.
type keeps struct {
	asked  map[wire.Token]bool // the gateway has asked for it
	list   []*kept
	epoch  map[wire.Token]uint64 // of the log that has handed a token out, as its board knew it
	late   map[*agent][]wire.Token
	back   map[wire.Token]*agent // its start was taken back, and that is on disk
	offers map[*agent]epochOf
	safe   map[*identity][]*work // what was begun towards safe, by process
}

// epochOf is the log that a process works for, and since which round of its loop.
type epochOf struct {
	epoch, round uint64
	life         *identity
}

// kept is the line of an instruction that is to be tried again.
type kept struct {
	a     *agent
	life  *identity
	x     *work
	until time.Duration
	path  pathway // since it was of no use any more, zero before
	reach time.Duration
	lost  bool // the word may have been lost with the connection
	over  bool // something newer towards safe has begun there, whatever came of it
	came  bool // the word has come, and waits for the loop
}

func newKeeps() keeps {
	return keeps{asked: map[wire.Token]bool{}, epoch: map[wire.Token]uint64{}, late: map[*agent][]wire.Token{}, back: map[wire.Token]*agent{}, offers: map[*agent]epochOf{}, safe: map[*identity][]*work{}}
}

// keepsTold takes in what a loop is told.
func (c *checker) keepsTold(a *agent, m wire.Message) {
	switch m := m.(type) {
	case *wire.Instruction:
		c.keeps.asked[m.Token] = m.Keep
		if e := c.keeps.offers[a]; e.life == a.life {
			c.keeps.epoch[m.Token] = e.epoch
		}
		c.unkept(a, m.Seq)
	case *wire.Cancel:
		c.unkept(a, m.Seq)
	case *wire.Release:
		c.unkept(a, m.Seq)
	case *wire.Welcome:
		if e := c.keeps.offers[a]; m.Refused == "" && a.link.agentEnd != nil && m.Session == a.link.agentEnd.session && (e.life != a.life || e.epoch != m.Epoch) {
			c.keeps.offers[a] = epochOf{m.Epoch, a.rounds, a.life}
			c.unkept(a, 0)
		}
	}
}

func (c *checker) keepsToldCompact(a *agent, frame any) {
	if f, ok := frame.(wire.CompactCancel); ok {
		c.unkept(a, f.Seq)
	}
}

// releaseCame notes that the word has come to a board.
func (c *checker) releaseCame(a *agent, seq uint64) {
	for _, k := range c.keeps.list {
		k.came = k.came || k.a == a && k.x.Seq == seq
	}
}

// unkept notes that a line need not be kept any more; 0 is for no instruction.
func (c *checker) unkept(a *agent, seq uint64) {
	c.keeps.list = slices.DeleteFunc(c.keeps.list, func(k *kept) bool { return k.a == a && (seq == 0 || k.x.Seq == seq) })
}

// keepsFor notes that an attempt has failed for which another one is promised.
func (c *checker) keepsFor(a *agent, x *work, code wire.Code) {
	if code.Class() != wire.ClassRetryable || !c.keeps.asked[x.Token] || x.Towards || x.Order == 0 || !holds(x) || a.second != nil || c.w.now-x.begun > x.Timeout || c.w.reloads || x.passed {
		return
	}
	k := &kept{a: a, life: a.life, x: x, until: c.w.now + wire.OrderWait - stepSlack}
	k.over = slices.ContainsFunc(c.keeps.safe[a.life], func(s *work) bool { return x.Order < s.Order && k.shares(s) }) // while it ran
	c.keeps.list = append(c.keeps.list, k)
	c.ticks()
}

func (k *kept) shares(x *work) bool { return k.x.shares(x) }

func (x *work) shares(y *work) bool {
	return x.act.Holds == wire.HoldsBoard || y.act.Holds == wire.HoldsBoard || slices.ContainsFunc(x.Lines, func(l wire.LineKey) bool { return slices.Contains(y.Lines, l) })
}

// void reports whether something newer has moved the line since, or its process is gone.
func (c *checker) void(k *kept) bool {
	if k.over || k.a.life != k.life || c.w.now >= k.until {
		return true
	}
	for key, f := range c.pins.facts {
		if key.board == k.a && f.mark > k.x.Order && (k.x.act.Holds == wire.HoldsBoard || slices.Contains(k.x.Lines, key.line)) {
			return true
		}
	}
	return false
}

// keptFrom demands that nothing newer begins on a line that is kept, nor what another
// log of the gateway has handed out.
func (c *checker) keptFrom(a *agent, x *work) {
	if x.Towards {
		c.keeps.safe[a.life] = append(c.keeps.safe[a.life], x)
		for _, k := range c.keeps.list {
			k.over = k.over || k.a == a && k.x.Order < x.Order && k.shares(x)
		}
		for _, o := range a.works {
			o.passed = o.passed || holds(o) && o.Order < x.Order && o.shares(x)
		}
	}
	if x.Towards || !actuating(x.Intent) {
		return
	}
	for _, k := range c.keeps.list {
		if k.a == a && k.x.Seq != x.Seq && k.x.Order < x.Order && k.shares(x) && !c.void(k) {
			c.fail("kept", "%s starts instruction %d (number %d), and keeps the line for another attempt of instruction %d (number %d), which has failed", a.id, x.Seq, x.Order, k.x.Seq, k.x.Order)
		}
	}
	if e := c.keeps.offers[a]; e.life == a.life && e.round < a.rounds && c.keeps.epoch[x.Token] != 0 && c.keeps.epoch[x.Token] != e.epoch {
		c.fail("old-log", "%s starts instruction %d, which another log of the gateway has handed out", a.id, x.Seq)
	}
	delete(c.keeps.back, x.Token)
}

// letGo demands that a board is told in time when a line need not be kept any more. It
// reports whether that is still to come.
func (c *checker) letGo(k *kept) bool {
	i := c.book.insts[k.x.Seq]
	if c.void(k) || k.lost || c.memory.older {
		return false
	}
	if k.came || !i.State.Settled() || i.Code.Class() != wire.ClassRetryable || k.a.link.drop > 0 {
		return true
	}
	p, open := c.pathOf(k.a)
	if k.path == (pathway{}) {
		k.path, k.lost = p, !open // see docs/simulation.md, what is open
	}
	if k.lost = k.lost || k.path != p; k.lost {
		return false
	}
	if !open {
		k.reach = 0
		return true
	}
	if k.reach += offEvery; k.reach > offBound {
		c.fail("kept-late", "instruction %d is %v, and for %v of an open path nobody has told %s that it need not keep its line", k.x.Seq, i.State, k.reach, k.a.tag)
	}
	return true
}

// inDoubt notes that a process ends. What it was writing may be on disk, another start too.
func (c *checker) inDoubt(a *agent) {
	delete(c.keeps.late, a)
	if !a.busy {
		return
	}
	maps.DeleteFunc(c.keeps.back, func(_ wire.Token, by *agent) bool { return by == a })
}

// notBegun and written follow a start that was taken back until that is on disk.
func (c *checker) notBegun(a *agent, late []wire.Token) {
	c.keeps.late[a] = late
	for _, t := range late {
		delete(c.keeps.back, t) // it was written down as begun once more
	}
}

func (c *checker) written(a *agent) {
	for _, t := range c.keeps.late[a] {
		c.keeps.back[t] = a
	}
	delete(c.keeps.late, a)
}
