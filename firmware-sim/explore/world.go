package explore

import (
	"fmt"
	"hash/fnv"
	"io"
	"math/rand/v2"
	"time"

	"github.com/apollo-11/apollo11/wire"
)

// calmLimit bounds the time in which everything must settle once the faults have
// stopped. The slowest way to an end: an unconfirmed attempt is given up after
// some 5 min of resends, and a stopped execution is retried three times.
const calmLimit = 20 * time.Minute

// lookEvery is how often it is looked whether everything has settled.
const lookEvery = 100 * time.Millisecond

// settledFor is how long the site must stay settled: longer than a node may be
// silent, so that what a connection still holds back would be missed.
const settledFor = 16 * time.Second

// stillLimit is how much may happen at one instant: more than the largest site
// has to do, less than for ever.
const stillLimit = 200_000

// identity tells one life of a process or connection from the next. It has a
// size: pointers to empty structs may all be equal.
type identity struct{ _ byte }

// world is one site and its time.
type world struct {
	seed       uint64
	profile    Profile
	now        time.Duration
	queue      queue
	span       time.Duration // of the faulty phase
	calm       bool
	quietSince time.Duration // nothing has had to happen since; 0 for something has
	plan       []step
	story      story        // which memory is lost or doubled, if any
	reloads    bool         // pin maps are reloaded
	startMap   *pinMap      // of every board at the start
	skip       map[int]bool // steps of the plan that are left out

	gateway *gateway
	agents  []*agent
	byNode  map[string]*agent
	byShort map[string]*agent
	clients []*client
	check   *checker

	violation *Violation
	counts    Counts
	hash      uint64
	trace     io.Writer // nil for none
	watch     func(w *world, k int)
}

func newWorld(o Options, p Profile) *world {
	w := &world{seed: o.Seed, profile: p, byNode: map[string]*agent{}, byShort: map[string]*agent{}, skip: map[int]bool{}, trace: o.Trace, watch: o.watch, startMap: newPinMap(), hash: 14695981039346656037}
	for _, n := range o.Skip {
		w.skip[n] = true
	}
	w.check = newChecker(w)
	w.gateway = newGateway(w, o)
	for n := range o.Nodes {
		a := newAgent(w, n, nodeName(n))
		w.agents = append(w.agents, a)
		w.byNode[a.id], w.byShort[wire.Short(a.id)] = a, a
	}
	for n := range clientCount(o.Nodes) {
		w.clients = append(w.clients, newClient(w, n))
	}
	w.span = o.Span
	if w.span == 0 {
		w.span = drawSpan(w.stream("span"))
	}
	w.plan = drawPlan(w, w.span)
	return w
}

// stream is a source of chance of its own, so that leaving out a step changes as
// little as possible elsewhere.
func (w *world) stream(name string) *rand.Rand {
	h := fnv.New64a()
	_, _ = io.WriteString(h, name) // a hash has no errors
	return rand.New(rand.NewPCG(w.seed, h.Sum64()))
}

// run plays both phases.
func (w *world) run() {
	w.gateway.boot()
	for _, a := range w.agents {
		a.boot()
	}
	for k := range w.plan {
		if !w.skip[k] {
			w.queue.push(w.plan[k].at, func() { w.perform(k) })
		}
	}
	w.until(w.span, nil)
	w.heal()
	w.until(w.span+calmLimit, w.settled)
	if w.violation != nil {
		return
	}
	if why := w.unsettled(); why != "" {
		w.fail("settle", "%v after the faults stopped: %s", calmLimit, why)
		return
	}
	w.check.final()
}

// until lets things happen up to a time, or until done says that it is enough.
func (w *world) until(end time.Duration, done func() bool) {
	look, still := w.now, 0
	for w.violation == nil && len(w.queue.list) > 0 && w.queue.list[0].at <= end {
		e := w.queue.pop()
		if still++; w.now != e.at {
			w.now, still = e.at, 0
		}
		if still > stillLimit {
			w.fail("livelock", "%d things have happened and no time has passed", still)
			return
		}
		e.do()
		w.counts.Steps++
		if done == nil || w.now < look {
			continue
		}
		if done() {
			return
		}
		look = w.now + lookEvery
	}
	if w.violation == nil {
		w.now = end
	}
}

// heal ends every fault.
func (w *world) heal() {
	w.calm = true
	w.log("calm", "the faults stop")
	w.gateway.heal()
	for _, a := range w.agents {
		a.heal()
		if a.second != nil {
			a.second.unplug()
		}
	}
}

// settled reports whether nothing has had to happen for settledFor.
func (w *world) settled() bool {
	if w.unsettled() != "" {
		w.quietSince = 0
		return false
	}
	if w.quietSince == 0 {
		w.quietSince = w.now
	}
	return w.now-w.quietSince >= settledFor && w.gateway.idle()
}

// unsettled says what still has to happen.
func (w *world) unsettled() string {
	if why := w.gateway.unsettled(); why != "" {
		return why
	}
	for _, c := range w.clients {
		if why := c.unsettled(); why != "" {
			return why
		}
	}
	for _, a := range w.agents {
		if why := a.unsettled(); why != "" {
			return why
		}
	}
	return ""
}

// after does something d from now.
func (w *world) after(d time.Duration, do func()) { w.queue.push(w.now+max(d, 0), do) }

// fail notes the first broken rule and ends the run.
func (w *world) fail(rule, format string, args ...any) {
	if w.violation == nil {
		w.violation = &Violation{Rule: rule, At: w.now, Text: fmt.Sprintf(format, args...)}
		w.log("violation", "%s: %s", rule, w.violation.Text)
	}
}

// mix takes numbers into the hash that two runs of a seed must share.
func (w *world) mix(what string, nums ...uint64) {
	h := w.hash
	add := func(x uint64) {
		h ^= x
		h *= 1099511628211
		h ^= h >> 29
	}
	add(uint64(w.now))
	for k := range len(what) {
		add(uint64(what[k]))
	}
	for _, n := range nums {
		add(n)
	}
	w.hash = h
}

// mixBytes takes a message into the hash.
func (w *world) mixBytes(what string, b []byte) {
	h := fnv.New64a()
	_, _ = h.Write(b) // a hash has no errors
	w.mix(what, uint64(len(b)), h.Sum64())
}

// log writes a line of the trace, if anybody reads it. Arguments must be cheap.
func (w *world) log(who, format string, args ...any) {
	if w.trace == nil {
		return
	}
	// The trace is for people; that it cannot be written changes no result.
	_, _ = fmt.Fprintf(w.trace, "%10.3f %-9s %s\n", w.now.Seconds(), who, fmt.Sprintf(format, args...))
}

// chance is true with a probability.
func chance(r *rand.Rand, p float64) bool { return p > 0 && r.Float64() < p }

// between is a random time between two numbers of milliseconds.
func between(r *rand.Rand, lo, hi int) time.Duration {
	return time.Duration(lo)*time.Millisecond + time.Duration(r.Int64N(int64(hi-lo)*1000+1))*time.Microsecond
}
