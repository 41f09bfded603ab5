package executor

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/apollo-11/apollo11/wire"
)

// replay takes one record of the journal.
func (c *Core) replay(i int, b []byte) error {
	var head struct {
		Kind recordKind `cbor:"0,keyasint"`
	}
	if err := wire.DecodeRecord(b, &head); err != nil {
		return err
	}
	if (i == 0) != (head.Kind == kindHead) {
		return fmt.Errorf("kind %d in the wrong place", head.Kind)
	}
	switch head.Kind {
	case kindHead:
		return replayAs(b, c.replayHead)
	case kindQueued:
		return replayAs(b, c.replayQueued)
	case kindStarted, kindEnded:
		return replayAs(b, c.replayAttempt)
	case kindEvent:
		return replayAs(b, c.replayEvent)
	case kindThrough:
		return replayAs(b, func(r throughRecord) error { c.forgetEvents(r.Through); return nil })
	case kindMark:
		return replayAs(b, func(r markRecord) error {
			c.table.marks[r.Shard] = mark{r.Seq, r.Made}
			c.table.see(0, r.Seq)
			return nil
		})
	case kindDropped:
		return replayAs(b, func(r droppedRecord) error {
			if a := c.table.known[r.Token]; a != nil && a.state == queued {
				c.leaveQueue(a)
				c.table.forget(a)
			}
			return nil
		})
	case kindMet:
		c.unmet = c.next
		return nil
	case kindMarks:
		return replayAs(b, func(r marksRecord) error {
			for _, m := range r.Marks {
				c.mark([]wire.LineKey{m.Line}, false, m.Order)
			}
			return nil
		})
	case kindHold:
		return replayAs(b, c.replayHold)
	case kindKeep:
		return replayAs(b, func(r keepRecord) error { c.replayKeep(r); return nil })
	case kindReborn:
		return replayAs(b, func(r rebornRecord) error { c.renumber(r); return nil })
	case kindLease:
		return replayAs(b, c.replayLease)
	case kindAhead:
		return replayAs(b, func(r aheadRecord) error { c.addAhead(cancelAhead{r.Seq, r.Attempt, c.now.Mono}); return nil })
	}
	return fmt.Errorf("unknown kind %d: %w", head.Kind, ErrNewer)
}

func replayAs[T any](b []byte, apply func(T) error) error {
	var r T
	if err := wire.DecodeRecord(b, &r); err != nil {
		return err
	}
	return apply(r)
}

func (c *Core) replayHead(r headRecord) error {
	if r.Version != recordVersion {
		return fmt.Errorf("version %d of the records, this agent reads %d: %w", r.Version, recordVersion, ErrNewer)
	}
	if r.Incarnation == 0 || r.Next == 0 || r.Through+1 != r.Next {
		return fmt.Errorf("impossible head %+v", r)
	}
	c.incarnation, c.next, c.through, c.unmet = r.Incarnation, r.Next, r.Through, r.Next
	c.table.see(r.TopSeq, r.TopToken)
	return nil
}

func (c *Core) replayQueued(r queuedRecord) error {
	if err := r.Instruction.Validate(); err != nil {
		return err
	}
	a := c.table.known[r.Instruction.Token]
	switch {
	case a == nil:
		a = c.newAttempt(&r.Instruction)
		c.table.add(a)
	case a.state == running: // it was recorded as started, not begun, and put back
		c.leaveRunning(a)
		again := c.newAttempt(&r.Instruction)
		a.state, a.work, a.boot, a.pulse, a.startedAt = queued, again.work, 0, nil, 0
		a.order, a.keeps, a.timeout, a.came = again.order, again.keeps, again.timeout, again.came
	default:
		return fmt.Errorf("token %s queued twice", r.Instruction.Token)
	}
	a.receivedAt, a.stored, a.first, a.epoch = r.ReceivedAt, true, r.First, r.Epoch
	c.queue = append(c.queue, a)
	return nil
}

func (c *Core) replayAttempt(r attemptRecord) error {
	a := c.table.known[r.Token]
	if a == nil {
		a = &attempt{seq: r.Seq, token: r.Token, attempt: r.Attempt, made: r.Made, trace: r.Trace, intent: r.Intent}
		c.table.add(a)
	} else if a.state != queued || r.Kind != kindStarted {
		return fmt.Errorf("attempt %s of instruction %d is recorded twice", r.Token, r.Seq)
	} else {
		c.leaveQueue(a)
	}
	a.receivedAt, a.startedAt, a.finishedAt = r.ReceivedAt, r.StartedAt, r.FinishedAt
	if r.Kind == kindStarted {
		a.state, a.last, a.boot = running, max(a.last, r.Last), r.Boot
		c.mark(r.Lines, r.Board, r.Order)
		if r.Hold { // whatever becomes of it, see end
			a.holdsSafe, a.lines, a.order = true, r.Lines, r.Order
		}
		if r.PulsePin != "" {
			a.pulse = &Pulse{Token: r.Token, Pin: r.PulsePin, Line: r.PulseLine, Off: r.PulseOff}
		}
		c.running = append(c.running, a)
		return nil
	}
	a.code, a.detail, a.last, a.state = r.Code, r.Detail, r.Last, ended
	a.endedMono = c.now.Mono
	c.table.ends = append(c.table.ends, a)
	return nil
}

func (c *Core) replayEvent(r eventRecord) error {
	ev := r.Event
	if err := ev.Validate(); err != nil {
		return err
	}
	if ev.Number != c.next {
		return fmt.Errorf("event %d where %d is due", ev.Number, c.next)
	}
	c.next++
	if !r.Unmet {
		c.unmet = c.next
	}
	c.addEvent(&ev)
	if ev.Phase == wire.PhaseLease {
		c.replayLeaseEnd(&ev)
		return nil
	}
	a := c.table.known[ev.Token]
	if a == nil && ev.Phase != wire.PhaseProcessed {
		return nil // the attempt was given back unstarted
	}
	if a == nil {
		a = &attempt{seq: ev.Seq, token: ev.Token, attempt: ev.Attempt, made: r.Made, trace: r.Trace, intent: r.Intent, receivedAt: ev.ReceivedAt, state: running}
		c.table.add(a)
	}
	a.last = ev.Number
	if a.first == 0 || ev.Phase == wire.PhaseReceived {
		a.first = ev.Number
	}
	if a.state == ended && ev.Phase == wire.PhaseProcessed && a.detail == "" {
		a.detail = ev.Detail // a snapshot has it here only
	}
	if ev.Phase != wire.PhaseProcessed || a.state == ended {
		return nil
	}
	c.leaveQueue(a)
	c.leaveRunning(a)
	a.state, a.code, a.detail = ended, ev.Code, ev.Detail
	a.startedAt, a.finishedAt, a.endedMono = ev.StartedAt, ev.FinishedAt, c.now.Mono
	a.work = nil
	c.table.ends = append(c.table.ends, a)
	return nil
}

// hearAgain numbers the received events anew that were cut off the journal with
// its end, behind the instructions that they tell of.
func (c *Core) hearAgain() {
	for _, a := range c.queue {
		if a.first >= c.next {
			a.first = 0
			c.emit(a, &wire.Event{Phase: wire.PhaseReceived})
		}
	}
}

// sortEnds puts ended attempts in the order of their last events, which is the
// order in which they may be forgotten.
func (t *table) sortEnds() {
	slices.SortStableFunc(t.ends, func(a, b *attempt) int { return cmp.Compare(a.last, b.last) })
}
