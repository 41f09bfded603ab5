package engine_test

import (
	"container/heap"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/apollo-11/apollo11/gateway/engine"
	"github.com/apollo-11/apollo11/wire"
)

// lossySite is a gateway whose nodes do what they are told at once, at the other end
// of a link that loses messages or takes long.
type lossySite struct {
	*harness
	link   *rand.Rand
	loss   float64       // share of messages lost, each way
	trip   time.Duration // one way
	nodes  []*lossyNode
	events eventHeap
	order  uint64
	wakeAt time.Duration
	// paused is how long the alarm has stood.
	paused, since time.Duration
	standing      bool
	settled       int
}

// lossyNode tells its events as an agent does: numbered, in a row, all that is not
// acknowledged once more after five seconds and half as long again each time, or at
// once when the gateway misses one.
type lossyNode struct {
	id      string
	known   map[wire.Token]bool
	events  []*wire.Event // not acknowledged
	next    uint64
	again   time.Duration // when they are told again
	wait    time.Duration
	session uint64
}

const lossyRepeat = 5 * time.Second

func newLossySite(t *testing.T, nodes int) *lossySite {
	s := &lossySite{harness: newHarness(t), link: rand.New(rand.NewPCG(7, 7))}
	for k := range nodes {
		n := &lossyNode{id: fmt.Sprintf("node-%02d", k), known: map[wire.Token]bool{}, next: 1, session: 1, wait: lossyRepeat}
		s.nodes = append(s.nodes, n)
		s.round(&engine.Uplink{Node: n.id, Msg: &wire.Hello{Session: 1, Incarnation: 1, Short: wire.Short(n.id), First: 1, Next: 1}})
		s.after(time.Duration(k)*lossyRepeat/time.Duration(nodes), func() { s.beat(n) })
	}
	return s
}

func (s *lossySite) after(d time.Duration, do func()) {
	s.order++
	heap.Push(&s.events, event{s.now.Mono + d, s.order, do})
}

// run lets time pass, with one command a second for the nodes in turn.
func (s *lossySite) run(d time.Duration) {
	for k := range int(d / time.Second) {
		s.after(time.Duration(k)*time.Second, func() {
			n := s.nodes[k%len(s.nodes)]
			s.round(s.input(parseCommand(s.t, "submit node="+n.id)))
		})
	}
	for end := s.now.Mono + d; len(s.events) > 0 && s.events[0].at <= end; {
		e := heap.Pop(&s.events).(event)
		s.pass(e.at - s.now.Mono)
		e.do()
	}
}

// pausedFor is how long the pause has stood by now.
func (s *lossySite) pausedFor() time.Duration {
	if s.standing {
		return s.paused + s.now.Mono - s.since
	}
	return s.paused
}

// round is one round of the gateway's loop.
func (s *lossySite) round(inputs ...engine.Input) {
	s.t.Helper()
	for _, in := range inputs {
		s.log.step(s.eng, s.now, in)
	}
	r := s.eng.Ready(s.now)
	s.apply(&r)
	if err := s.eng.Check(); err != nil {
		s.t.Fatal(err)
	}
	for _, w := range r.Records.Instructions {
		if w.Instruction.State == engine.StateSucceeded {
			s.settled++
		}
	}
	for _, a := range r.Effects.Alarms {
		if a.Kind == "compensation_paused" && a.Raised != s.standing {
			s.paused, s.standing, s.since = s.pausedFor(), a.Raised, s.now.Mono
		}
	}
	for _, m := range r.Effects.Sends {
		n := s.nodes[slices.IndexFunc(s.nodes, func(n *lossyNode) bool { return n.id == m.Node })]
		s.carry(func() { s.receive(n, m.Msg) })
	}
	if at := r.Deadline; at != 0 && at != s.wakeAt {
		s.wakeAt = at
		s.after(max(0, at-s.now.Mono), func() {
			if s.wakeAt == at {
				s.wakeAt = 0
				s.round()
			}
		})
	}
}

// carry does something at the other end of the link, unless it is lost on the way.
func (s *lossySite) carry(do func()) {
	if s.link.Float64() >= s.loss {
		s.after(s.trip, do)
	}
}

func (s *lossySite) say(n *lossyNode, m wire.Message) {
	s.carry(func() { s.round(&engine.Uplink{Node: n.id, Msg: m}) })
}

func (s *lossySite) beat(n *lossyNode) {
	s.say(n, &wire.Heartbeat{Session: n.session, Clock: s.now.Wall, Next: n.next})
	s.after(5*time.Second, func() { s.beat(n) })
}

func (s *lossySite) receive(n *lossyNode, m wire.Message) {
	switch m := m.(type) {
	case *wire.Instruction:
		s.acked(n, m.Through, false)
		if n.known[m.Token] {
			s.tell(n)
			return
		}
		n.known[m.Token] = true
		ev := &wire.Event{Number: n.next, Seq: m.Seq, Token: m.Token, Attempt: m.Attempt, Phase: wire.PhaseProcessed, Code: wire.CodeOK}
		n.next++
		if n.events = append(n.events, ev); len(n.events) == 1 {
			s.plan(n)
		}
		s.say(n, ev)
	case *wire.EventAck:
		s.acked(n, m.Through, m.Gap)
	}
}

func (s *lossySite) acked(n *lossyNode, through uint64, gap bool) {
	for len(n.events) > 0 && n.events[0].Number <= through {
		n.events = n.events[1:]
		n.wait = lossyRepeat
		s.plan(n)
	}
	if gap {
		s.tell(n)
	}
}

// tell tells once more what is not acknowledged.
func (s *lossySite) tell(n *lossyNode) {
	for _, ev := range n.events {
		s.say(n, ev)
	}
	s.plan(n)
}

func (s *lossySite) plan(n *lossyNode) {
	at := s.now.Mono + n.wait
	n.again = at
	s.after(n.wait, func() {
		if n.again == at && len(n.events) > 0 {
			n.wait = min(n.wait*3/2, time.Minute)
			s.tell(n)
		}
	})
}

// TestA6_LossIsNoJam: an ack that came because something was sent again says how
// long the other side waits before it does so, and nothing about the link.
func TestA6_LossIsNoJam(t *testing.T) {
	for _, nodes := range []int{1, 3, 20} {
		for _, loss := range []float64{0.05, 0.3, 0.5} {
			if loss > 0.3 && nodes < 20 {
				continue // a command a second for one node is more than such a link carries: its acks are late
			}
			t.Run(fmt.Sprintf("%d nodes, %.0f %%", nodes, 100*loss), func(t *testing.T) {
				s := newLossySite(t, nodes)
				s.loss, s.trip = loss, 50*time.Millisecond
				s.run(20 * time.Minute)
				if d := s.pausedFor(); d != 0 {
					t.Errorf("compensation was paused for %v of 20 minutes; a message takes %v", d, s.trip)
				}
				if s.settled < 1000 {
					t.Errorf("only %d of 1200 settled", s.settled)
				}
			})
		}
	}
}

// TestA6_AJamIsSeen although nothing is lost and every command is sent again before
// its ack has come.
func TestA6_AJamIsSeen(t *testing.T) {
	for _, late := range []time.Duration{6 * time.Second, 8 * time.Second, 12 * time.Second, 22 * time.Second, 40 * time.Second} {
		for _, nodes := range []int{1, 20} {
			if late > 30*time.Second && nodes == 1 {
				continue // with its window of 16 one node gives too few acks to judge by
			}
			t.Run(fmt.Sprintf("%d nodes, %v", nodes, late), func(t *testing.T) {
				s := newLossySite(t, nodes)
				s.trip = 50 * time.Millisecond
				s.run(5 * time.Minute)
				if s.pausedFor() != 0 {
					t.Fatal("paused before the jam")
				}
				s.trip = late / 2
				s.run(4 * time.Minute)
				if !s.standing {
					t.Fatal("every ack took too long for four minutes and compensation goes on")
				}
				before := s.pausedFor()
				s.run(6 * time.Minute)
				if d := s.pausedFor() - before; d < 5*time.Minute {
					t.Errorf("of six more minutes the pause stood for %v", d)
				}
				s.trip = 50 * time.Millisecond
				s.run(5 * time.Minute)
				if s.standing {
					t.Error("five minutes after the jam the pause still stands")
				}
			})
		}
	}
}

// TestA6_AJamWithLossIsSeen: what is late is late, whatever else is lost.
func TestA6_AJamWithLossIsSeen(t *testing.T) {
	s := newLossySite(t, 5)
	s.loss, s.trip = 0.2, 4*time.Second
	s.run(5 * time.Minute)
	if !s.standing {
		t.Error("no pause")
	}
}
