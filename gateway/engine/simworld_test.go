package engine_test

import (
	"container/heap"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"time"
)

// A simulated site: one gateway (the engine, its loop and a log that loses what
// was not synced), a few agents with journals, links that drop, repeat, delay and
// die, and clients that submit and cancel. One seed decides everything. A faulty
// phase is followed by a calm one, in which all must settle.

// Lengths of the phases in virtual time.
const (
	faultyPhase = 40 * time.Second
	// calmLimit covers the slowest way to an end: an unconfirmed attempt is given
	// up after some 5 min of resends, and a stopped execution is retried 3 times.
	calmLimit = 20 * time.Minute
)

// simStart is the Unix time at the start of a simulation, in ms.
const simStart = int64(1_700_000_000_000)

// identity tells one life of a process or connection from the next. It has a
// size: pointers to empty structs may all be equal.
type identity struct{ _ byte }

type world struct {
	rnd     *rand.Rand
	now     time.Duration
	events  eventHeap
	count   uint64
	calm    bool
	err     error // the first broken rule
	plant   plant
	gateway *simGateway
	agents  []*simAgent
	clients []*simClient
	hands   *simOperator
	oracle  *oracle
	hash    uint64
	tail    []string // the latest lines of the trace
	rounds  int
	// Chances, drawn from the seed.
	drop, repeat, fsync float64
	ordered             bool // agents' messages keep their order
	// restores is a site of which an older copy of the log is restored once, with
	// no other loss of memory beside it: the gateway has nothing but what its agents
	// remember.
	restores bool
	// rules is a site whose agents follow the rules for order at a line.
	rules bool
}

// newWorld builds a site from a seed, with a planted fault or none.
func newWorld(seed uint64, p plant) *world {
	w := &world{rnd: rand.New(rand.NewPCG(seed, 11)), plant: p}
	w.oracle = newOracle(w)
	w.drop = w.rnd.Float64() * 0.3
	w.repeat = w.rnd.Float64() * 0.1
	w.fsync = 1 + w.rnd.Float64()*30
	w.ordered = w.chance(0.7)
	w.gateway = newSimGateway(w)
	w.rules = w.chance(0.6)
	for n := range 2 + w.rnd.IntN(2) {
		w.agents = append(w.agents, newSimAgent(w, fmt.Sprintf("node-%d", n+1)))
	}
	for n := range 2 {
		w.clients = append(w.clients, newSimClient(w, fmt.Sprintf("hmi-%d", n+1)))
	}
	w.hands = newSimOperator(w)
	w.restores = w.chance(0.2)
	return w
}

// run plays both phases. It returns the first broken rule.
func (w *world) run() error {
	w.gateway.boot()
	for _, a := range w.agents {
		a.boot()
	}
	for _, c := range w.clients {
		c.next()
	}
	w.hands.next()
	w.chaos()
	w.until(faultyPhase, nil)
	w.calm = true
	w.gateway.jump(0)
	for _, a := range w.agents {
		a.heal()
	}
	w.until(faultyPhase+calmLimit, w.settled)
	if w.err == nil && !w.settled() {
		w.fail("%v after the faults stopped: %s", calmLimit, w.unsettled())
	}
	if w.err == nil {
		w.oracle.final()
	}
	return w.err
}

func (w *world) until(end time.Duration, done func() bool) {
	for w.err == nil && len(w.events) > 0 && w.events[0].at <= end {
		e := heap.Pop(&w.events).(event)
		w.now = e.at
		e.do()
		if done != nil && done() {
			return
		}
	}
	if w.err == nil {
		w.now = end
	}
}

func (w *world) settled() bool { return w.unsettled() == "" }

// unsettled says what still has to happen.
func (w *world) unsettled() string {
	g := w.gateway
	if g.process == nil || len(g.pending) > 0 || len(g.inputs) > 0 {
		return "the gateway is not idle"
	}
	for _, c := range w.clients {
		if c.left > 0 || len(c.flight) > 0 {
			return fmt.Sprintf("client %s has %d tasks to submit and %d without an answer", c.id, c.left, len(c.flight))
		}
	}
	if n := g.eng.Open(); n > 0 {
		for _, s := range g.eng.Unfinished() {
			for _, i := range s.Instructions {
				if !i.State.Settled() {
					return fmt.Sprintf("%d instructions are open, the first: %+v", n, i)
				}
			}
		}
	}
	for _, a := range w.agents {
		if !a.up || !a.welcomed || len(a.journal.events) > 0 {
			return fmt.Sprintf("agent %s: up %v, welcomed %v, %d events to be acknowledged", a.id, a.up, a.welcomed, len(a.journal.events))
		}
	}
	return ""
}

// chaos lets something happen to the site, again and again, until the calm.
func (w *world) chaos() {
	w.after(w.span(50, 3000), func() {
		if w.calm {
			return
		}
		a := w.agents[w.rnd.IntN(len(w.agents))]
		switch w.rnd.IntN(14) {
		case 0:
			if !w.oracle.older {
				w.gateway.crash()
			}
		case 1:
			w.gateway.jump(int64(w.rnd.IntN(40_000) - 20_000))
		case 2, 3:
			a.crash(w.plant == plantHasty && !w.restores) // that one shows with lost cards only
		case 4:
			a.crash(!w.restores && w.chance(0.5))
		case 5:
			a.stop()
		case 6, 7, 8:
			a.cut()
		case 9, 10:
			a.partition(w.span(500, 20_000))
		case 11:
			a.narrowbandDown = !a.narrowbandDown
			a.tellNarrow()
		case 12:
			if !w.restores {
				a.secondBoard()
			}
		case 13:
			if w.restores && !w.oracle.older {
				w.gateway.restore()
			}
		}
		w.chaos()
	})
}

func (w *world) fail(format string, args ...any) {
	if w.err == nil {
		w.err = fmt.Errorf("at %.3fs: %s", w.now.Seconds(), fmt.Sprintf(format, args...))
	}
}

func (w *world) chance(p float64) bool { return w.rnd.Float64() < p }

// span is a random time between two numbers of milliseconds.
func (w *world) span(lo, hi int) time.Duration {
	return time.Duration(lo*1000+w.rnd.IntN((hi-lo)*1000+1)) * time.Microsecond
}

func (w *world) wall() int64 { return simStart + w.now.Milliseconds() }

// traceLines is how much of a trace is kept for a failure.
const traceLines = 60

// trace takes a line into the hash that two runs of a seed must share.
func (w *world) trace(text string) {
	h := fnv.New64a()
	fmt.Fprintf(h, "%d %d %s", w.hash, w.now, text)
	w.hash = h.Sum64()
	if len(w.tail) == traceLines {
		w.tail = w.tail[1:]
	}
	w.tail = append(w.tail, fmt.Sprintf("%.3f %s", w.now.Seconds(), text))
}

// event is something that happens at a time; equal times keep their order.
type event struct {
	at time.Duration
	no uint64
	do func()
}

type eventHeap []event

func (h eventHeap) Len() int { return len(h) }
func (h eventHeap) Less(a, b int) bool {
	return h[a].at < h[b].at || h[a].at == h[b].at && h[a].no < h[b].no
}
func (h eventHeap) Swap(a, b int) { h[a], h[b] = h[b], h[a] }
func (h *eventHeap) Push(x any)   { *h = append(*h, x.(event)) }
func (h *eventHeap) Pop() any {
	last := len(*h) - 1
	e := (*h)[last]
	(*h)[last] = event{}
	*h = (*h)[:last]
	return e
}

func (w *world) after(d time.Duration, do func()) {
	w.count++
	heap.Push(&w.events, event{w.now + d, w.count, do})
}
