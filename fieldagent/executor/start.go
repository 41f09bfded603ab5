package executor

import (
	"fmt"
	"slices"

	"github.com/apollo-11/apollo11/wire"
	"github.com/apollo-11/apollo11/wire/mutant"
)

// begin records that the attempt runs, and returns what is asked for.
func (c *Core) begin(a *attempt) Work {
	c.leaveQueue(a)
	a.state, a.startedMono, a.startedAt = running, c.now.Mono, max(c.clock.stamp(c.now), a.receivedAt)
	c.running = append(c.running, a)
	c.noteBoot(a)
	if a.actuates {
		c.mark(a.lines, a.board, a.order)
	}
	if !mutant.On(mutant.DedupeAfterRun) {
		c.record(a.startedRecord())
	}
	c.noteOf(LevelDebug, a, "started", "")
	w := a.begun(a.startedAt)
	w.Hold = c.stillHolds(a)
	return w
}

// begun is the attempt as work.
func (a *attempt) begun(at int64) Work {
	w := Work{
		Token: a.token, Seq: a.seq, Attempt: a.attempt, Key: a.work.Key, Trace: a.trace,
		Intent: a.intent, Args: a.work.Args, Parsed: a.parsed, At: at, Timeout: a.timeout,
		Lines: slices.Clone(a.lines), Towards: a.towards, Hold: a.holdsSafe, NotAfter: a.work.NotAfter, EndsBy: a.work.EndsBy, Throws: a.throws,
	}
	if a.actuates || a.releases {
		w.Order = a.order
	}
	return w
}

// TooLate reports whether work whose start is recorded must not begin any more: a
// slow disk may have taken longer over the record than the instruction was good
// for, or long enough for somebody to throw the LOCAL switch, for the autonomy window
// to end, or for something newer to begin on the line. Whoever carries out an Output
// asks it for each of Output.Start, when the records are durable (A9, C15). What is not
// too late begins now, and its time limit counts from here.
func (c *Core) TooLate(now Now, t wire.Token) bool {
	a := c.table.known[t]
	if a == nil || a.state != running {
		return false
	}
	a.startedMono = max(a.startedMono, now.Mono)
	return !c.clock.ahead(now, a.work.NotAfter) || c.deserted(now) && !mutant.On(mutant.WindowIgnored) || c.overtaken(a) != 0 || c.heldSafe(a) ||
		(a.actuates && now.Local || c.disturbed(now, a)) && !mutant.On(mutant.LocalOnArrival)
}

// unstarted takes back what was recorded as started and then came too late: it ends,
// or waits again if only the gateway or the time was missing.
func (c *Core) unstarted(in Unstarted) {
	for _, t := range in.Tokens {
		a := c.table.known[t]
		if a == nil || a.state != running {
			continue
		}
		a.startedAt = 0 // it was not
		switch by := c.overtaken(a); {
		case c.late(a):
			c.end(a, Result{Code: wire.CodeExpired, Detail: "not_after passed while its start was written down; it was not begun"})
		case by != 0:
			c.end(a, superseded(by))
		case a.aborted && !a.byStop:
			c.end(a, Result{Code: wire.CodeCancelled, Detail: "cancelled while its start was written down; it was not begun"})
		case c.heldSafe(a):
			c.end(a, Result{Code: wire.CodeSuperseded, Detail: "its line is held at the safe level since, until somebody releases it"})
		case a.actuates && (c.local || c.now.Local), c.disturbed(c.now, a):
			c.end(a, c.wasByHand())
		default:
			c.putBack(a)
		}
	}
}

// putBack lets recorded work that was not begun wait again, where it stood.
func (c *Core) putBack(a *attempt) {
	c.leaveRunning(a)
	a.state, a.stored, a.startedMono, a.boot, a.aborted, a.cutBy = queued, true, 0, 0, false, 0
	i := 0
	for i < len(c.queue) && c.queue[i].came < a.came {
		i++
	}
	c.queue = slices.Insert(c.queue, i, a)
	if !mutant.On(mutant.UnstartedUnwritten) {
		c.record(a.queuedRecord())
	}
}

// abort asks running work to stop, once.
func (c *Core) abort(a *attempt) {
	if a.aborted {
		return
	}
	a.aborted = true
	c.out.Abort = append(c.out.Abort, a.token)
}

// finished takes the result of work.
func (c *Core) finished(in Finished) {
	a := c.table.known[in.Token]
	if a == nil {
		c.note(LevelWarn, "result of work that is not known", in.Token.String())
		return
	}
	if slices.Contains(c.lingering, a) {
		c.lingering = without(c.lingering, a)
		if in.Result.Lease != nil {
			c.open(a, *in.Result.Lease, a.lineOf())
		}
		a.lines, a.board = nil, false
		c.noteOf(LevelWarn, a, "work that had been given up has ended", in.Result.Code.String()+": "+in.Result.Detail)
		return
	}
	if a.state != running {
		c.noteOf(LevelWarn, a, "second result ignored", in.Result.Code.String())
		return
	}
	r := in.Result
	if !r.Code.Final() {
		r = Result{Code: wire.CodeInternal, Detail: fmt.Sprintf("the intent ended with the code %v, which is not an end", r.Code)}
	}
	if _, err := wire.DecodeMap(r.Payload); err != nil || len(r.Payload) > wire.MaxPayloadBytes {
		r.Payload = nil
		r.Detail += " (its payload could not be sent)"
	}
	if a.byStop && r.Code == wire.CodeCancelled {
		r.Code = wire.CodeInterrupted
		r.Detail = "the agent was stopped while this ran; " + r.Detail
		if r.Ended != nil && r.Ended.Why == wire.LeaseCancelled {
			stopped := *r.Ended
			stopped.Why = wire.LeaseStopped
			r.Ended = &stopped
		}
	}
	if a.cutBy != 0 && r.Code == wire.CodeCancelled {
		why := fmt.Sprintf("ended early by instruction %d", a.cutBy)
		if r.Detail != "" {
			why += ": " + r.Detail
		}
		r.Detail = why
	}
	c.end(a, r)
}
