package explore

import (
	"fmt"
	"slices"
	"time"

	"github.com/apollo-11/apollo11/fieldagent/lines"
	"github.com/apollo-11/apollo11/gateway/engine"
	"github.com/apollo-11/apollo11/wire"
)

// What goes ahead of its record at the gateway, and disks of the gateway that hang.

// commitQueue is how many rounds of the gateway may wait for its disk, as in the real
// loop: some behind the one that is being written.
const commitQueue = 9

// full reports whether the disk takes no more rounds.
func (g *gateway) full() bool { return len(g.jobs) >= commitQueue }

// goAhead lets out what does not wait for its record any longer.
func (g *gateway) goAhead() {
	list, next := g.ahead.Due(g.clock.mono())
	for _, u := range list {
		g.w.check.wentAhead(u)
		b, err := wire.Encode(u.Msg)
		if err != nil {
			g.w.fail("wire", "the gateway's %T cannot be encoded: %v", u.Msg, err)
			return
		}
		g.w.mixBytes("ahead", b)
		g.w.log("gateway", "lets instruction %d for %s go ahead of its record", u.Msg.Seq, u.Node)
		if a := g.w.byNode[u.Node]; a != nil {
			a.atBroker().link.down(b, g.clock.err)
		}
	}
	if next != 0 && next != g.aheadAt {
		g.aheadAt = next
		g.later(g.clock.truly(next), func() {
			if g.aheadAt == next {
				g.aheadAt = 0
				g.goAhead()
			}
		})
	}
}

// safeNow is what an agent does with a message that goes ahead of its instruction: it is
// for the owner, whatever the loop does.
func (a *agent) safeNow(m *wire.SafeNow) {
	if a.pins.core == nil || m.NotAfter != 0 && a.core.Clock().Late(a.now(), m.NotAfter, true) {
		return
	}
	x := &work{frame: max(m.Order, m.Seq), ahead: true}
	if m.Order != 0 {
		x.frame = m.Order
	}
	a.pins.readHand()
	done := false
	for k := range a.pins.m.pins {
		p := &a.pins.m.pins[k]
		if !p.hasSafe || len(m.Lines) > 0 && !slices.Contains(m.Lines, p.line) {
			continue
		}
		a.pins.asked = &asked{x: x, code: wire.CodeOK}
		out := a.pins.step(lines.Want{Line: p.line, Safe: true, Order: x.frame, Unmarked: true, Ahead: true})
		a.pins.asked = nil
		done = done || out.Refused.Reason == lines.NotRefused
	}
	a.w.log(a.tag, "drives %d ahead of its record: %v", m.Seq, done)
	if !done {
		a.w.check.aheadRefused(a, m)
		return
	}
	st := wire.State{Seq: m.Seq, Token: m.Token, Status: wire.StatusDriven}
	a.came(m.Token)
	a.ahead = append(a.ahead, st)
	a.Primary(&wire.Report{States: []wire.State{st}})
}

// came notes that an instruction has come.
func (a *agent) came(t wire.Token) {
	a.ahead = slices.DeleteFunc(a.ahead, func(o wire.State) bool { return o.Token == t })
}

// past brings a message to whoever does not wait for the loop. It reports whether the
// loop gets it as well.
func (a *agent) past(m wire.Message) bool {
	switch m := m.(type) {
	case *wire.Instruction:
		a.came(m.Token)
		a.urgent(m)
	case *wire.SafeNow:
		a.safeNow(m)
		return false
	case *wire.Welcome:
		if m.Refused == "" && len(a.ahead) > 0 {
			a.Primary(&wire.Report{States: slices.Clone(a.ahead)})
		}
	}
	return true
}

// aheads is what the checker knows of what went ahead of its record.
type aheads struct {
	reserved engine.Reserved               // on disk
	out      map[uint64]engine.Instruction // by number, as the engine had it then
	lost     map[wire.Token]uint64         // let out by a process that died before the record was on disk: the process after it
	drove    map[uint64]bool               // numbers under which a line was driven so
	refused  map[wire.Token]bool           // a board could not drive it so, and comes to know it with its record
	unmet    map[string]bool               // nodes that begin anew, and are not welcomed yet
	looked   time.Duration                 // when the engine was looked through last
}

// wentAhead checks what leaves before its record: it is towards safe, and nothing else.
func (c *checker) wentAhead(u engine.Urgent) {
	i, ok := c.inEngine(u.Msg.Seq)
	if !ok { // it has ended since the copy was made
		i, ok = c.onItsWay(u.Msg)
	}
	if !ok || i.Node != u.Node || i.Token != u.Msg.Token {
		c.fail("effect-before-commit", "what goes ahead of its record to %s is no instruction of the engine: %+v", u.Node, u.Msg)
		return
	}
	act, err := wire.ParseAct(i.Intent, i.Args)
	if safe, known := c.w.startMap.safe(first(act.Pins)); err != nil || !act.Safe &&
		(!act.Sets || act.Pulse || !c.w.reloads && (!known || safe != act.Level)) {
		c.fail("effect-before-commit", "instruction %d (%s) leaves before its record, and does not lead to safe", i.Seq, i.Intent)
	}
	c.w.counts.Ahead++
	c.orders.ahead.out[c.orderOf(&i)] = i
}

func first(list []string) string {
	if len(list) == 0 {
		return ""
	}
	return list[0]
}

// inEngine finds an unfinished instruction as the engine has it, written or not.
func (c *checker) inEngine(seq uint64) (engine.Instruction, bool) {
	if c.w.gateway.process == nil {
		return engine.Instruction{}, false
	}
	for _, t := range c.w.gateway.eng.Unfinished() {
		if seq < t.Task.First || seq >= t.Task.First+uint64(t.Task.Count) {
			continue
		}
		for _, i := range t.Instructions {
			if i.Seq == seq {
				return i, true
			}
		}
	}
	return engine.Instruction{}, false
}

// onItsWay finds an instruction in the rounds that wait for the disk.
func (c *checker) onItsWay(m *wire.SafeNow) (engine.Instruction, bool) {
	for k := range c.w.gateway.jobs {
		for _, w := range c.w.gateway.jobs[k].Writes {
			if i := w.Instruction; i.Seq == m.Seq && i.Token == m.Token {
				return i, true
			}
		}
	}
	return engine.Instruction{}, false
}

// aheadRefused notes what a board could not drive ahead of its record: somebody works
// there, or none of the lines that the gateway meant has a safe level in the map of the
// moment (its names it does not carry). It goes ahead once; the next that leaves is the
// instruction, with its record.
func (c *checker) aheadRefused(a *agent, m *wire.SafeNow) {
	guarded := len(m.Lines) == 0
	for _, l := range m.Lines {
		p := a.pins.m.byLine[l]
		guarded = guarded || p != nil && p.hasSafe
	}
	if a.local || !guarded {
		c.orders.ahead.refused[m.Token] = true
	}
}

// reused demands that a number under which something went ahead of its record stands for
// nothing else, whatever became of the record.
func (c *checker) reused(i *engine.Instruction, order uint64) {
	o, ok := c.orders.ahead.out[order]
	if ok && o.Node == i.Node && !c.memory.older && (o.Trace != i.Trace || o.Created != i.Created) {
		c.fail("number-twice", "instruction %d has the number %d, under which instruction %d of %s (%s) went ahead of its record", i.Seq, order, o.Seq, o.Node, o.Intent)
	}
}

// aheadLost notes which records a crash has lost that something had gone ahead of.
func (c *checker) aheadLost() {
	h := &c.orders.ahead
	for _, i := range h.out {
		if _, told := h.lost[i.Token]; !told && c.book.insts[i.Seq].Version == 0 {
			h.lost[i.Token] = c.w.gateway.boots + 1
		}
	}
}

// toldLost demands the alarm about a lost record when its node has told of it.
func (c *checker) toldLost(node string, m *wire.Report) {
	for _, s := range m.States {
		n := c.orders.ahead.lost[s.Token]
		if n == 0 || s.Status != wire.StatusDriven {
			continue
		}
		c.w.counts.AheadLost++
		if what := (alarmOf{"safe_record_lost", node}); n == c.w.gateway.boots && !c.memory.older && !c.memory.stands[what] {
			c.memory.due = append(c.memory.due, due{node, []string{what.kind}, fmt.Sprintf("it has driven instruction %d, whose record is lost", s.Seq)})
		}
	}
}

// falseLost demands that a record was lost where that is told.
func (c *checker) falseLost(a engine.Alarm) {
	for _, i := range c.orders.ahead.out {
		if i.Node == a.Subject && c.orders.ahead.lost[i.Token] > 0 {
			return
		}
	}
	if !c.memory.older {
		c.fail("alarm", "%s of %s, and nothing that went ahead was lost: %s", a.Kind, a.Subject, a.Text)
	}
}

// owedAhead notes what is towards safe and not on disk, while the disk is slow.
func (c *checker) owedAhead() {
	h := &c.orders.ahead
	if c.w.now-h.looked < offEvery {
		return
	}
	h.looked = c.w.now
	for _, t := range c.w.gateway.eng.Unfinished() {
		for k := range t.Instructions {
			i := &t.Instructions[k]
			known := func(o *off) bool { return o.seq == i.Seq && o.trace == i.Trace }
			if c.book.insts[i.Seq].Version == 0 && !i.State.Settled() && !slices.ContainsFunc(c.orders.offs, known) {
				c.owed(i)
			}
		}
	}
}

// asItIs is an instruction that is owed: as it is on disk or, while the disk makes its
// record wait, as the engine has it. may says that it must be on its way: its numbers are
// reserved on disk.
func (c *checker) asItIs(o *off) (i engine.Instruction, may bool) {
	i, may = c.book.insts[o.seq], true
	if len(c.w.gateway.jobs) == 0 && i.Seq != 0 {
		return i, true
	}
	e, ok := c.inEngine(o.seq)
	if !ok || e.Trace != o.trace {
		return i, may
	}
	top := engine.Top{Seq: c.orderOf(&e), Token: e.Token.Seq}
	return e, e.Attempt != 0 && c.orders.ahead.reserved.Below(top)
}
