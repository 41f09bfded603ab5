package engine

import (
	"container/heap"
	"time"
)

// A timer belongs to an instruction or to a node. Timers are not removed when
// they change: one whose time no longer matches its owner's is ignored when it
// comes up.
type timer struct {
	at time.Duration
	no uint64 // order of creation: equal times fire in a fixed order
	i  *inst
	n  *node
}

type timerHeap struct {
	list []timer
	no   uint64
}

func (h *timerHeap) Len() int { return len(h.list) }
func (h *timerHeap) Less(a, b int) bool {
	if h.list[a].at != h.list[b].at {
		return h.list[a].at < h.list[b].at
	}
	return h.list[a].no < h.list[b].no
}
func (h *timerHeap) Swap(a, b int) { h.list[a], h.list[b] = h.list[b], h.list[a] }
func (h *timerHeap) Push(x any)    { h.list = append(h.list, x.(timer)) }
func (h *timerHeap) Pop() any {
	last := len(h.list) - 1
	t := h.list[last]
	h.list[last] = timer{}
	h.list = h.list[:last]
	return t
}

func (h *timerHeap) add(t timer) {
	h.no++
	t.no = h.no
	heap.Push(h, t)
}

func (t timer) stale() bool {
	if t.i != nil {
		return t.i.due != t.at
	}
	return t.n.due != t.at
}

// next is when the earliest live timer fires, 0 for none.
func (h *timerHeap) next() time.Duration {
	for len(h.list) > 0 && h.list[0].stale() {
		heap.Pop(h)
	}
	if len(h.list) == 0 {
		return 0
	}
	return h.list[0].at
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
		first(i.cancelAt)
		if i.NotAfter != 0 && i.StartedAt == 0 {
			first(now.Mono + until(now, i.NotAfter+e.expiryGrace(i).Milliseconds()) + 1)
		}
	}
	if at == i.due {
		return
	}
	i.due = at
	if at != 0 {
		e.timers.add(timer{at: at, i: i})
	}
}

// expiryGrace is how long after not_after the engine waits before it gives up: a
// never sent instruction cannot be running, one that was sent may have been
// started in time.
func (e *Engine) expiryGrace(i *inst) time.Duration {
	if i.Attempt == 0 || i.State == StateRetrying && i.RetryAt != 0 {
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
		t := heap.Pop(&e.timers).(timer)
		if t.n != nil {
			t.n.due = 0
			e.checkNode(now, t.n)
			continue
		}
		t.i.due = 0
		e.instDue(now, t.i)
		e.arm(now, t.i)
	}
}

func (e *Engine) instDue(now Now, i *inst) {
	if e.expire(now, i) {
		return
	}
	past := func(d time.Duration) bool { return d != 0 && d <= now.Mono }
	if past(i.waitAt) {
		i.waitAt = 0
		e.enqueue(i)
	}
	if past(i.sendAt) {
		i.sendAt = 0
		e.unconfirmed(now, i)
	}
	if past(i.execAt) {
		i.execAt = 0
		e.overdue(now, i)
	}
	if past(i.cancelAt) {
		i.cancelAt = 0
		e.askCancel(now, i)
	}
}

// expire ends an instruction whose not_after has passed and which is not known
// to have started (A9).
func (e *Engine) expire(now Now, i *inst) bool {
	if i.NotAfter == 0 || i.StartedAt != 0 || i.State == StateRunning || i.State.Settled() {
		return false
	}
	if now.Wall < i.NotAfter+e.expiryGrace(i).Milliseconds() {
		return false
	}
	reason, detail := ReasonExpired, "its time limit passed before it could be sent; it was not executed"
	if e.expiryGrace(i) != 0 {
		reason = ReasonUnconfirmed
		detail = "its time limit passed and the node has not said whether it ran in time"
	}
	e.giveUp(now, i, reason, detail)
	return true
}
