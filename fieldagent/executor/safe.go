package executor

import (
	"fmt"
	"maps"
	"slices"

	"github.com/apollo-11/apollo11/wire"
	"github.com/apollo-11/apollo11/wire/mutant"
)

// safeReserve is how many attempts, and events, towards safe find room for when
// there is none for anything else. What is beyond is driven and not remembered.
const safeReserve = 256

// maxHolds bounds the lines that are held at their safe levels.
const maxHolds = 4 * wire.MaxLines

// withdraw ends what waits on the lines of something towards safe and is older: it
// stands for them now, whatever becomes of itself (docs/safety.md 5).
func (c *Core) withdraw(by *attempt) {
	for i := 0; i < len(c.queue); {
		o := c.queue[i]
		if o == by || !o.actuates || o.order >= by.order || !o.shares(by) {
			i++
			continue
		}
		r := Result{Code: wire.CodeSuperseded,
			Detail: fmt.Sprintf("instruction %d, which brings its line to the safe level, stands for it", by.seq)}
		if !c.session.met { // the journal may be an old copy of itself, as reincarnate says
			r.Code, r.Detail = wire.CodeUnknown, r.Detail+"; nobody has said yet whether the agent's journal is the newest: it may have run before"
		}
		c.end(o, r)
	}
}

// clearWay lets nothing older go on where something towards safe is about to be
// driven. What holds the whole board may go on elsewhere: the owner of the pins
// refuses its older number here.
func (c *Core) clearWay(a *attempt) {
	c.withdraw(a)
	for _, r := range c.running {
		older := r.actuates && !r.towards && r.order <= a.order
		if older && slices.ContainsFunc(r.lines, func(l wire.LineKey) bool { return slices.Contains(a.lines, l) }) && !r.aborted {
			r.cutBy = a.seq
			c.abort(r)
		}
	}
}

// startSafe begins something towards safe. It is driven before it is written down.
func (c *Core) startSafe(a *attempt) {
	a.lines = c.passable(a.lines, a.order)
	c.clearWay(a)
	w := c.begin(a)
	if mutant.On(mutant.OffWaitsForJournal) {
		c.out.Start = append(c.out.Start, w)
		return
	}
	c.out.Urgent = append(c.out.Urgent, w)
}

// startWaitingSafes begins what is towards safe and waits all the same: it was in the
// journal, and may begin now.
func (c *Core) startWaitingSafes() {
	if !c.session.met || c.session.refused != "" || c.stop.done || mutant.On(mutant.OffWaitsForWorker) {
		return
	}
	for i := 0; i < len(c.queue); {
		if a := c.queue[i]; a.towards && c.mayBegin(a) {
			c.startSafe(a)
			i = 0 // older ones have left as well
			continue
		}
		i++
	}
}

// driveOnly drives something towards safe that gets no attempt of its own, and reports
// whether it did. Its mark is kept all the same.
func (c *Core) driveOnly(a *attempt) bool {
	c.withdraw(a)
	if a.lines = c.passable(a.lines, a.order); len(a.lines) == 0 || c.local || c.late(a) || c.stop.done {
		return false
	}
	c.clearWay(a)
	if slices.ContainsFunc(a.lines, func(l wire.LineKey) bool { return c.marks[l] < a.order }) {
		c.mark(a.lines, false, a.order)
		c.record(marksRecord{Kind: kindMarks, Marks: c.marksOf(a.lines)})
	}
	w := a.begun(c.clock.stamp(c.now))
	w.Again = true
	c.out.Urgent = append(c.out.Urgent, w)
	return true
}

// driveAndTell drives something towards safe that gets no attempt of its own. When it
// was driven the gateway is told so, and that nothing is settled.
func (c *Core) driveAndTell(a *attempt) {
	if c.driveOnly(a) && c.ordered() && len(c.unsaid) < safeReserve {
		c.unsaid[a.token] = a.seq
	}
}

// drivenAgain tells of that. A drive that failed is not told: the gateway repeats what
// nobody has answered.
func (c *Core) drivenAgain(in Finished) {
	seq, ok := c.unsaid[in.Token]
	delete(c.unsaid, in.Token)
	switch {
	case in.Result.Code.Class() != wire.ClassSuccess:
		c.note(LevelWarn, "what is towards safe was not driven", fmt.Sprintf("token %v: %v: %s", in.Token, in.Result.Code, in.Result.Detail))
	case ok:
		c.send(&wire.Report{States: []wire.State{{Seq: seq, Token: in.Token, Status: wire.StatusDriven}}})
	}
}

// driveUnwelcome drives what a gateway sends that does not take this agent for the board
// of its name: two boards have one name, and nobody knows which of them turns the valve
// (B28). It gets no attempt, since the events of this agent do not count, and holds
// nothing, since no release would reach it. What is not towards safe is not for it.
func (c *Core) driveUnwelcome(in *wire.Instruction) {
	a := c.newAttempt(in)
	if c.judge(a); !a.towards {
		c.noteOf(LevelDebug, a, "instruction ignored", "the gateway has not welcomed this agent")
		return
	}
	a.holdsSafe = false
	if known := c.table.known[in.Token]; known != nil && known.state == ended && !repeatable(known.code) {
		return
	}
	c.driveAndTell(a)
}

// repeatable reports whether something towards safe that has ended so may be driven once
// more. What was refused was not driven, and is not done later by itself.
func repeatable(code wire.Code) bool {
	switch code.Class() {
	case wire.ClassSuccess, wire.ClassUnknown, wire.ClassRetryable:
		return true
	}
	return false
}

// driveAgain takes a copy of an instruction whose end is stored. If it is towards safe
// it stands for what is older, whatever its end was: its cancel may have been faster
// than itself. And it is driven once more, unless something newer has begun there: a
// gateway that repeats it does not know what became of it.
func (c *Core) driveAgain(known *attempt, in *wire.Instruction) {
	a := c.newAttempt(in)
	if c.judge(a); !a.towards {
		return
	}
	a.holdsSafe = false // somebody may have released it since
	if repeatable(known.code) {
		c.driveOnly(a)
		return
	}
	c.withdraw(a)
}

// Holds returns the lines that are held at their safe levels until somebody releases
// them, by whose number, 0 for the gateway's word: the owner of the pins starts with them.
func (c *Core) Holds() map[wire.LineKey]uint64 { return maps.Clone(c.holds) }

// hold holds lines at their safe levels, by the number of an instruction or, with 0,
// by the gateway's word; not those that were released since. It returns those that were
// not held.
func (c *Core) hold(lines []wire.LineKey, order uint64) (news []wire.LineKey) {
	var noted []wire.LineKey
	for _, l := range lines {
		was, held := c.holds[l]
		if held && was >= order || !held && len(c.holds) >= maxHolds || order > 0 && c.releasedSince(l, order) {
			continue
		}
		c.holds[l] = order
		noted = append(noted, l)
		if !held {
			news = append(news, l)
		}
	}
	if len(noted) > 0 && !mutant.On(mutant.HoldForgotten) {
		c.record(holdRecord{Kind: kindHold, Lines: noted, Order: order})
	}
	return news
}

func (c *Core) replayHold(r holdRecord) error {
	for _, l := range r.Lines {
		if r.Off {
			delete(c.holds, l)
			continue
		}
		c.holds[l] = r.Order
	}
	if r.Off {
		c.noteReleased(r)
	}
	return nil
}

// releasable are the held ones of lines, or of all if none is named, whose hold is
// not newer than the release.
func (c *Core) releasable(lines []wire.LineKey, order uint64) []wire.LineKey {
	if len(lines) == 0 {
		lines = slices.Sorted(maps.Keys(c.holds))
	}
	var list []wire.LineKey
	for _, l := range lines {
		if by, held := c.holds[l]; held && by <= order {
			list = append(list, l)
		}
	}
	return list
}

// heldSafe reports whether a hold keeps the attempt from beginning. What holds the whole
// board is left to the owner of the pins, who asks for each of them.
func (c *Core) heldSafe(a *attempt) bool {
	return a.actuates && !a.towards && slices.ContainsFunc(a.lines, func(l wire.LineKey) bool { _, held := c.holds[l]; return held })
}

// holding reports whether something runs that will hold lines when it ends well: a
// release that came after it waits for that.
func (c *Core) holding() bool {
	return slices.ContainsFunc(c.running, func(a *attempt) bool { return a.holdsSafe })
}
