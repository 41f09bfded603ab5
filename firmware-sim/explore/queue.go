package explore

import "time"

// event is something that happens at a time; equal times keep their order.
type event struct {
	at time.Duration
	no uint64
	do func()
}

// queue is a heap of events.
type queue struct {
	list []event
	no   uint64
}

func (q *queue) less(a, b int) bool {
	x, y := &q.list[a], &q.list[b]
	return x.at < y.at || x.at == y.at && x.no < y.no
}

// push adds an event.
func (q *queue) push(at time.Duration, do func()) {
	q.no++
	q.list = append(q.list, event{at, q.no, do})
	for k := len(q.list) - 1; k > 0; {
		up := (k - 1) / 2
		if !q.less(k, up) {
			break
		}
		q.list[k], q.list[up] = q.list[up], q.list[k]
		k = up
	}
}

// pop takes out the earliest event; there must be one.
func (q *queue) pop() event {
	e := q.list[0]
	last := len(q.list) - 1
	q.list[0] = q.list[last]
	q.list[last] = event{}
	q.list = q.list[:last]
	for k := 0; ; {
		least := k
		for _, down := range [2]int{2*k + 1, 2*k + 2} {
			if down < last && q.less(down, least) {
				least = down
			}
		}
		if least == k {
			return e
		}
		q.list[k], q.list[least] = q.list[least], q.list[k]
		k = least
	}
}
