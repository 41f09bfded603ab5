package engine

import (
	"container/heap"
	"fmt"
	"math"
	"time"

	"github.com/apollo-11/apollo11/wire/mutant"
)

// A timer belongs to an instruction, to a node or to the engine and is part of it. It stands in
// the heap at most once, so that the heap never outgrows what it serves and keeps
// nothing alive that is finished.
type timer struct {
	at    time.Duration
	no    uint64 // order of setting: equal times fire in a fixed order
	place int    // in the heap, from 1; 0 when it is not set
	i     *inst
	n     *node
}

func (t *timer) set() bool { return t.place != 0 }

type timerHeap struct {
	list []*timer
	no   uint64
}

func (h *timerHeap) Len() int { return len(h.list) }
func (h *timerHeap) Less(a, b int) bool {
	if h.list[a].at != h.list[b].at {
		return h.list[a].at < h.list[b].at
	}
	return h.list[a].no < h.list[b].no
}
func (h *timerHeap) Swap(a, b int) {
	h.list[a], h.list[b] = h.list[b], h.list[a]
	h.list[a].place, h.list[b].place = a+1, b+1
}
func (h *timerHeap) Push(x any) {
	t := x.(*timer)
	h.list = append(h.list, t)
	t.place = len(h.list)
}
func (h *timerHeap) Pop() any {
	last := len(h.list) - 1
	t := h.list[last]
	h.list[last] = nil
	h.list = h.list[:last]
	t.place = 0
	return t
}

// put sets the timer to a time, or clears it for 0.
func (h *timerHeap) put(t *timer, at time.Duration) {
	switch {
	case at == 0 && t.set():
		heap.Remove(h, t.place-1)
	case at == 0 || t.set() && t.at == at:
	default:
		h.no++
		t.at, t.no = at, h.no
		if t.set() {
			heap.Fix(h, t.place-1)
		} else {
			heap.Push(h, t)
		}
	}
}

// next is when the earliest timer fires, 0 for none.
func (h *timerHeap) next() time.Duration {
	if len(h.list) == 0 {
		return 0
	}
	return h.list[0].at
}

// in is the time after d. Mono may be 0, which as the time of a timer would mean
// none.
func (n Now) in(d time.Duration) time.Duration { return max(n.Mono+d, 1) }

// farOff is the longest time that is waited for at once: a wall clock time may be
// further away than a Duration can say. Whoever wakes too early looks at the clock and
// waits again.
const farOff = 100 * 365 * 24 * time.Hour

// until is the time from now to a wall clock time, not negative and at most farOff.
func until(now Now, wall int64) time.Duration { return between(now.Wall, wall) }

// between is the time between two wall clock times, not negative and at most farOff.
func between(from, to int64) time.Duration {
	if to <= from {
		return 0
	}
	return time.Duration(min(uint64(to)-uint64(from), uint64(farOff/time.Millisecond))) * time.Millisecond
}

// after is the wall clock time that long after another one, which may be the last that
// there is.
func after(wall, ms int64) int64 {
	if ms > 0 && wall > math.MaxInt64-ms {
		return math.MaxInt64
	}
	return wall + ms
}

// arm sets the instruction's timer to the earliest of what it waits for.
func (e *Engine) arm(now Now, i *inst) {
	var at time.Duration
	first := func(d time.Duration) {
		if d != 0 && (at == 0 || d < at) {
			at = d
		}
	}
	if !i.State.Settled() {
		first(i.sendAt)
		first(i.waitAt)
		first(i.execAt)
		first(i.offers.at)
		first(i.cancelAt)
		first(i.askAt)
		first(i.stopAt)
		first(i.blockAt)
		first(i.lateAt)
		first(i.whisperAt)
		if at := i.forgetAt(); at != 0 {
			first(now.in(until(now, at)))
		}
		if i.mayExpire() {
			grace := e.expiryGrace(i)
			end := now.in(until(now, after(i.NotAfter, grace.Milliseconds())) + 1)
			if i.safe { // the later of both
				end = max(end, i.goodTill+grace)
			}
			first(end)
		}
	}
	e.timers.put(&i.timer, at)
}

// mayExpire reports whether not_after can still end the instruction: its current
// attempt is not known to have started, or the next one is still to be made.
func (i *inst) mayExpire() bool {
	if i.NotAfter == 0 || i.State.Settled() {
		return false
	}
	return i.waiting() || i.StartedAt == 0 && i.State != StateRunning
}

// expiryGrace is how long after not_after the engine waits before it gives up: a
// never sent instruction cannot be running, one that was sent may have been
// started in time.
func (e *Engine) expiryGrace(i *inst) time.Duration {
	if e.unsent(i) {
		return 0
	}
	return e.cfg.ExpiryGrace
}

// fire runs every timer that is due.
func (e *Engine) fire(now Now) {
	for {
		at := e.timers.next()
		if at == 0 || at > now.Mono {
			return
		}
		t := heap.Pop(&e.timers).(*timer)
		switch {
		case t.n != nil:
			e.checkNode(now, t.n)
			continue
		case t.i == nil:
			continue // the engine's own: Ready does what is due
		}
		e.instDue(now, t.i)
		e.arm(now, t.i)
	}
}

func (e *Engine) instDue(now Now, i *inst) {
	if e.expire(now, i) {
		return
	}
	if at := i.forgetAt(); at != 0 && now.Wall >= at {
		e.forget(now, i)
		return
	}
	past := func(d time.Duration) bool { return d != 0 && d <= now.Mono }
	if past(i.waitAt) {
		if i.waitAt = 0; e.heldBack() && !i.byHand && !i.safe && !e.pressed(i) {
			i.waitAt = now.in(e.jitter(pauseCheck))
		} else {
			e.enqueue(i)
		}
	}
	if past(i.sendAt) {
		i.sendAt = 0
		e.unconfirmed(now, i)
	}
	if past(i.execAt) {
		i.execAt = 0
		e.overdue(now, i)
	}
	if past(i.offers.at) {
		i.offers.at = 0
		e.offerAgain(now, i)
	}
	if past(i.cancelAt) {
		i.cancelAt = 0
		e.askCancel(now, i)
	}
	if past(i.askAt) {
		i.askAt = 0
		e.ask(now, i)
	}
	if past(i.stopAt) {
		i.stopAt = 0
		e.stopCompact(now, i)
	}
	if past(i.lateAt) {
		i.lateAt = 0
		e.lateSafe(now, i)
	}
	if past(i.whisperAt) {
		i.whisperAt = 0
		e.safeCompact(now, i)
	}
	if past(i.blockAt) {
		i.blockAt, i.blocked = 0, 0
		e.outWaited(now, i)
	}
}

// expire ends an instruction whose not_after has passed and which is not known
// to have started (A9).
func (e *Engine) expire(now Now, i *inst) bool {
	grace := e.expiryGrace(i)
	if mutant.On(mutant.ExpiryIgnored) || !i.mayExpire() || now.Wall < after(i.NotAfter, grace.Milliseconds()) || i.safe && now.in(0) < i.goodTill+grace {
		return false
	}
	switch {
	case i.Driven:
		e.giveUp(now, i, ReasonUnconfirmed, "its time limit passed; the node has driven its lines to their safe levels, and has not said that it entered that")
	case (i.Attempt == 0 || i.waiting()) && i.whispers > 0:
		e.giveUp(now, i, ReasonUnconfirmed, "its time limit passed before it could be sent by the primary path; whether the node has driven it by a safe frame is not known")
	case i.Attempt == 0 && !i.Doubted:
		e.giveUp(now, i, ReasonExpired, "its time limit passed before it could be sent; it was not executed")
	case i.waiting() && !i.MayHaveRun():
		e.giveUp(now, i, ReasonExpired, fmt.Sprintf("its time limit passed before another attempt could be sent; the last one ended with %s", i.Code))
	case i.waiting():
		e.giveUp(now, i, ReasonUnconfirmed, "its time limit passed before another attempt could be sent; what the last one did is not known")
	default:
		e.giveUp(now, i, ReasonUnconfirmed, "its time limit passed and the node has not said whether it ran in time")
	}
	return true
}
