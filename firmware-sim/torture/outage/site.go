package outage

import (
	"container/heap"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/apollo-11/apollo11/firmware-sim/explore/memstore"
	"github.com/apollo-11/apollo11/gateway/engine"
	"github.com/apollo-11/apollo11/gateway/ledger"
	"github.com/apollo-11/apollo11/gateway/round"
	"github.com/apollo-11/apollo11/wire"
)

// Numbers of the simulated site.
const (
	start     = 1_750_000_000_000      // Unix ms when virtual time is 0
	leastTrip = 5 * time.Millisecond   // one way between gateway and node
	mostTrip  = 45 * time.Millisecond  //
	diskTime  = 2 * time.Millisecond   // one sync
	workTime  = 20 * time.Millisecond  // one execution
	narrowGap = 100 * time.Millisecond // ten frames a second from one node
	capacity  = 1_000_000
)

// event is something that will happen.
type event struct {
	at    time.Duration
	order uint64 // of those at the same time the first made comes first
	do    func()
}

type events []event

func (q events) Len() int { return len(q) }
func (q events) Less(a, b int) bool {
	return q[a].at < q[b].at || q[a].at == q[b].at && q[a].order < q[b].order
}
func (q events) Swap(a, b int) { q[a], q[b] = q[b], q[a] }
func (q *events) Push(x any)   { *q = append(*q, x.(event)) }
func (q *events) Pop() any {
	last := len(*q) - 1
	e := (*q)[last]
	(*q)[last] = event{}
	*q = (*q)[:last]
	return e
}

// site is a gateway, its nodes, the network between them, and time.
type site struct {
	now    time.Duration
	queue  events
	made   uint64
	rnd    *rand.Rand
	even   bool    // all trips take the same
	loss   float64 // share of messages lost, on both paths and in both directions
	lines  int     // of each node
	nodes  []*node
	byName map[string]*node

	eng     *engine.Engine
	log     round.Log
	inputs  []engine.Input
	planned bool
	wakeAt  time.Duration
	// wrote is told what each round writes.
	wrote  func(engine.Write)
	pauses pauses
	err    error // the first thing that must not happen
}

func newSite(seed uint64, nodes int, narrowband bool) *site {
	s := &site{rnd: rand.New(rand.NewPCG(seed, 11)), byName: map[string]*node{}, lines: manyLines, wrote: func(engine.Write) {}}
	store := memstore.New()
	store.SetAuto(true) // power does not fail here
	l := ledger.Over(store)
	s.log = round.OnDisk(l)
	var err error
	s.eng, err = l.Recover(s.engineNow(), engine.Config{Capacity: capacity}, rand.New(rand.NewPCG(seed, 12)))
	s.check(err)
	for k := range nodes {
		n := newNode(s, k, narrowband)
		s.nodes = append(s.nodes, n)
		s.byName[n.name] = n
	}
	return s
}

// check keeps the first error; then nothing more happens.
func (s *site) check(err error) {
	if s.err == nil && err != nil {
		s.err = fmt.Errorf("at %v: %w", s.now, err)
	}
}

func (s *site) engineNow() engine.Now {
	return engine.Now{Mono: s.now + 1, Wall: start + s.now.Milliseconds()}
}

// after does something d from now.
func (s *site) after(d time.Duration, do func()) {
	s.made++
	heap.Push(&s.queue, event{s.now + max(d, 0), s.made, do})
}

// until lets time pass up to end, or until done says that it is enough.
func (s *site) until(end time.Duration, done func() bool) {
	for s.err == nil && len(s.queue) > 0 && s.queue[0].at <= end {
		if done != nil && done() {
			return
		}
		e := heap.Pop(&s.queue).(event)
		s.now = e.at
		e.do()
	}
	if done == nil {
		s.now = end
	}
}

func (s *site) put(in engine.Input) {
	s.inputs = append(s.inputs, in)
	s.plan(time.Millisecond)
}

func (s *site) plan(d time.Duration) {
	if s.planned {
		return
	}
	s.planned = true
	s.after(d, func() {
		s.planned = false
		s.round()
	})
}

// round takes in everything that waits, and lets the effects out after a sync.
func (s *site) round() {
	now := s.engineNow()
	inputs := s.inputs
	s.inputs = nil
	for _, in := range inputs {
		s.check(round.Step(s.eng, s.log, now, in))
	}
	j, deadline, err := round.Flush(s.eng, s.log, now)
	s.check(err)
	for _, w := range j.Writes {
		s.wrote(w)
	}
	s.wake(deadline)
	if !j.Empty() {
		s.after(diskTime, func() { s.check(j.Settle(s.deliver)) })
	}
}

func (s *site) wake(at time.Duration) {
	if at == 0 || at == s.wakeAt {
		return
	}
	s.wakeAt = at
	s.after(at-s.engineNow().Mono, func() {
		if s.wakeAt == at {
			s.wakeAt = 0
			s.plan(0)
		}
	})
}

func (s *site) deliver(j *round.Job) {
	for _, m := range j.Effects.Sends {
		if n := s.byName[m.Node]; n != nil {
			n.receive(m.Msg)
		}
	}
	for _, a := range j.Effects.Alarms {
		if a.Kind == "compensation_paused" {
			s.pauses.turn(s.now, a.Raised)
		}
	}
	for _, c := range j.Effects.Compacts {
		for _, n := range s.nodes {
			if wire.Short(n.name) == c.Short {
				n.receiveCompact(c.Frame)
			}
		}
	}
}

// pauses is how long compensation stood still because acks were slow.
type pauses struct {
	since time.Duration
	on    bool
	sum   time.Duration
}

func (p *pauses) turn(now time.Duration, on bool) {
	if p.on {
		p.sum += now - p.since
	}
	p.since, p.on = now, on
}

// manyLines is how many lines a node has, unless an option says otherwise.
const manyLines = 250

// trip is how long a message takes, or false when it is lost.
func (s *site) trip() (time.Duration, bool) {
	d := leastTrip + time.Duration(s.rnd.Int64N(int64(mostTrip-leastTrip)))
	if s.even {
		d = mostTrip
	}
	return d, s.rnd.Float64() >= s.loss
}

// submit submits a command for one of the lines, which are many as a rule: at one line
// the order of submission counts before priority, and one that is lost holds up the next.
func (s *site) submit(node string, p wire.Priority, line int) {
	args, err := wire.EncodeMap(wire.GPIOWrite{Pin: fmt.Sprintf("line-%d", line%s.lines), Level: true}.Map(), wire.MaxArgsBytes)
	s.check(err)
	s.put(&engine.Submit{Spec: engine.Spec{Intent: wire.IntentGPIOWrite, Args: args, Nodes: []string{node}, Priority: p},
		Source: engine.Source{Via: "http", Actor: "outage"}, Path: engine.PathHTTP})
}
