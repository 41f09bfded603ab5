package explore

import (
	"hash/fnv"
	"time"

	"github.com/apollo-11/apollo11/fieldagent/executor"
	"github.com/apollo-11/apollo11/wire"
)

// maxListed is how many edges one report of a watch lists; the others are counted.
const maxListed = 32

// signal is what happens at an input: an edge in each period, at a moment that only
// the seed and its number decide. So whoever looks at it sees the same.
type signal struct {
	seed   uint64
	period time.Duration
}

func signalOf(w *world, node, pin string) signal {
	h := fnv.New64a()
	_, _ = h.Write([]byte(node + " " + pin)) // a hash has no errors
	s := signal{seed: scramble(w.seed ^ h.Sum64())}
	s.period = 300*time.Millisecond + time.Duration(s.seed%4000)*time.Millisecond
	return s
}

// scramble is the finisher of splitmix64.
func scramble(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// edge is when edge k comes, and whether the kernel loses it.
func (s signal) edge(k int64) (at time.Duration, missed bool) {
	h := scramble(s.seed + uint64(k))
	return time.Duration(k)*s.period + time.Duration(h%uint64(s.period)), h>>32%40 == 0
}

// after is the number of the first edge after a moment.
func (s signal) after(t time.Duration) int64 {
	k := int64(t / s.period)
	if at, _ := s.edge(k); at > t {
		return k
	}
	return k + 1
}

// watching is a watch that runs.
type watching struct {
	a     *agent
	x     *work
	q     wire.GPIOWatch
	input signal
	next  int64         // the first edge that it has not seen
	least time.Duration // when the next report may go

	edges                   []any
	fresh, planned          bool
	total, unlisted, missed uint64
}

// watch begins a watch. It waits for its time to pass, and for its abort.
func (a *agent) watch(x *work) {
	q := watchOf(x.Args)
	w := &watching{a: a, x: x, q: q, input: signalOf(a.w, a.id, x.pin), next: 0}
	w.next = w.input.after(a.w.now)
	x.watching = w
	span := q.For
	if x.fate.deaf = a.deaf; a.deaf {
		span += deafFor
	}
	a.later(span, func() { a.finish(x, executor.Result{Code: wire.CodeOK}) })
	w.plan()
}

// watchOf reads the arguments of a watch, which judge has checked.
func watchOf(args wire.RawMap) wire.GPIOWatch {
	m, err := wire.DecodeMap(args)
	if err != nil {
		panic("bug: arguments of a watch: " + err.Error())
	}
	q, err := wire.ParseArgs(wire.IntentGPIOWatch, m)
	if err != nil {
		panic("bug: arguments of a watch: " + err.Error())
	}
	return q.(wire.GPIOWatch)
}

// plan waits for the next edge, or for the time of the next report.
func (w *watching) plan() {
	if w.planned {
		return
	}
	w.planned = true
	at, _ := w.input.edge(w.next)
	w.a.later(max(at, w.least)-w.a.w.now, func() {
		w.planned = false
		if !w.x.done {
			w.look()
			w.tell()
			w.plan()
		}
	})
}

// look takes what has come.
func (w *watching) look() {
	for ; ; w.next++ {
		at, missed := w.input.edge(w.next)
		if at > w.a.w.now {
			return
		}
		w.fresh = true
		switch {
		case missed:
			w.missed++
			continue
		case len(w.edges) == maxListed:
			w.unlisted++
		default:
			w.edges = append(w.edges, []any{uint64(w.next) & 1, uint64(at), uint64(start + at.Milliseconds())})
		}
		w.total++
	}
}

// tell reports what has come, if there is room for it.
func (w *watching) tell() {
	w.least = w.a.w.now + w.q.Every
	if !w.fresh || !w.a.core.Roomy() || len(w.a.inputs) >= agentQueue {
		return
	}
	w.a.input(executor.Progressed{Token: w.x.Token, Payload: w.payload()})
	w.edges, w.fresh = nil, false
}

func (w *watching) payload() wire.RawMap {
	edges := w.edges
	if edges == nil {
		edges = []any{}
	}
	b, err := wire.EncodeMap(map[string]any{"pin": w.x.pin, "edges": edges, "total": w.total, "unlisted": w.unlisted, "missed": w.missed}, wire.MaxPayloadBytes)
	if err != nil {
		panic("bug: a report of the simulation: " + err.Error())
	}
	return b
}

// turn throws the LOCAL switch of a board for a while. The agent looks at it four
// times a second.
func (a *agent) turn(d time.Duration) {
	if a.local || a.retired {
		return
	}
	a.setLocal(true)
	a.w.after(d, func() { a.setLocal(false) })
}

// handEvery is how often an agent looks at its switch, in ms.
const handEvery = 250

func (a *agent) setLocal(on bool) {
	if a.local == on {
		return
	}
	a.local = on
	a.w.log(a.tag, "the LOCAL switch is on: %v", on)
	a.w.check.switched(a, on)
	a.later(between(a.pins.rnd, 0, handEvery), func() {
		a.pins.readHand()
		if a.localSeen != a.local {
			a.localSeen = a.local
			a.input(executor.Hand{Local: a.local})
		}
	})
}
