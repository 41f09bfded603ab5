package engine_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/apollo-11/apollo11/gateway/engine"
	"github.com/apollo-11/apollo11/wire"
)

// TestA6_TheIntervalFollowsTheSuccessOfAcks loses every second of forty commands:
// the wait for the next ones doubles, and is back to five seconds when ten minutes
// have passed.
func TestA6_TheIntervalFollowsTheSuccessOfAcks(t *testing.T) {
	for _, c := range []struct {
		lost     int
		from, to time.Duration // when the next command is sent again
	}{
		{0, 4500 * time.Millisecond, 5500 * time.Millisecond},
		{20, 9 * time.Second, 11 * time.Second},
		{38, 18 * time.Second, 22 * time.Second}, // no more than four times
	} {
		t.Run(fmt.Sprintf("%d of 40 lost", c.lost), func(t *testing.T) {
			h := newHarness(t)
			h.block("config window=64\nhello a\nhello b\nsubmit node=a count=40")
			for seq := c.lost + 1; seq <= 40; seq++ {
				h.block(fmt.Sprintf("event a seq=%d processed ok", seq))
			}
			h.block("goodbye a lost")
			again := func(seq int) time.Duration {
				h.block("submit node=b")
				sent := h.now.Mono
				for h.log.insts[uint64(seq)].Sends < 2 {
					if h.now.Mono-sent > time.Minute {
						t.Fatal("never sent again")
					}
					h.block("advance 100ms\nheartbeat b")
				}
				return h.now.Mono - sent
			}
			if d := again(41); d < c.from || d > c.to+100*time.Millisecond {
				t.Errorf("sent again after %v, want %v to %v", d, c.from, c.to)
			}
			h.block("event b seq=41 processed ok\nadvance 11m b")
			if d := again(42); d > 5600*time.Millisecond {
				t.Errorf("eleven minutes later: sent again after %v", d)
			}
		})
	}
}

// slowAcks lets a node confirm n commands six seconds after they were last sent.
func slowAcks(h *harness, first, n int) {
	h.block(fmt.Sprintf("submit node=a count=%d\nadvance 11500ms a", n))
	for seq := first; seq < first+n; seq++ {
		h.block(fmt.Sprintf("event a seq=%d processed ok", seq))
	}
}

// TestA6_SlowAcksPauseCompensation: resends and retries wait while acks are slow,
// new commands do not; without acks to judge by it goes on.
func TestA6_SlowAcksPauseCompensation(t *testing.T) {
	h := newHarness(t)
	h.block("config window=64\nhello a")
	slowAcks(h, 1, 25)
	if out := h.block("advance 10s a"); !strings.Contains(out, "alarm raised compensation_paused gateway") {
		t.Fatalf("no pause:\n%s", out)
	}
	if out := h.block("submit node=a"); !strings.Contains(out, "send a instruction 26") {
		t.Fatalf("a new command is not sent in a pause:\n%s", out)
	}
	h.block("submit node=a retry=3,1s,1s")
	h.block("event a seq=27 processed busy")
	if out := h.block("advance 60s a"); strings.Contains(out, "-> send") {
		t.Fatalf("compensation in a pause:\n%s", out)
	}
	out := h.block("advance 70s a")
	for _, want := range []string{"alarm cleared compensation_paused", "send a instruction 26 a1 #26 gpio.write resend=1", "send a instruction 27 a2"} {
		if !strings.Contains(out, want) {
			t.Errorf("after the pause: no %q in\n%s", want, out)
		}
	}
}

// TestA6_AFewSlowAcksAreNoJam: one in twenty may be late.
func TestA6_AFewSlowAcksAreNoJam(t *testing.T) {
	h := newHarness(t)
	h.block("config window=64\nhello a")
	slowAcks(h, 1, 5)
	for seq := 6; seq <= 105; seq++ {
		h.block(fmt.Sprintf("submit node=a\nadvance 10ms\nevent a seq=%d processed ok", seq))
	}
	if out := h.block("advance 6s a\nalarms"); strings.Contains(out, "compensation_paused") {
		t.Errorf("5 of 105 acks were slow:\n%s", out)
	}
}

// TestA6_APauseIsNoEnd: on a link that is slow for good, what was lost is still sent
// again, in the rests between two pauses, and the alarm stands all the time.
func TestA6_APauseIsNoEnd(t *testing.T) {
	h := newHarness(t)
	h.block("config window=64\nhello a\nhello b")
	slowAcks(h, 1, 25)
	h.block("advance 10s a b")
	next := 26
	h.block("submit node=b") // 26 is lost
	next++
	raised, sent := 0, 1
	for range 30 { // ten minutes of acks that all take 20 s
		h.block("submit node=a count=12")
		out := h.block("advance 20s a b")
		for range 12 {
			out += h.block(fmt.Sprintf("event a seq=%d processed ok", next))
			next++
		}
		raised += strings.Count(out, "alarm raised compensation_paused") + strings.Count(out, "alarm cleared compensation_paused")
		sent += strings.Count(out, "send b instruction 26")
	}
	if raised != 0 {
		t.Errorf("the alarm changed %d times", raised)
	}
	if sent < 4 || sent > 10 {
		t.Errorf("in ten minutes of slow acks the lost command was sent %d times, want one to three every 2.5 min", sent)
	}
	if out := h.block("alarms"); !strings.Contains(out, "compensation_paused") {
		t.Error("the alarm does not stand")
	}
}

// drainSite is a site whose nodes confirm everything at once.
type drainSite struct {
	*harness
	sent []drained
	next map[string]uint64 // event numbers
}

type drained struct {
	at   time.Duration
	node string
	seq  uint64
	prio wire.Priority
}

func newDrainSite(t *testing.T) *drainSite {
	return &drainSite{harness: newHarness(t), next: map[string]uint64{}}
}

// step is one round; the answers of the nodes are the inputs of further ones.
func (s *drainSite) step(inputs ...engine.Input) {
	s.t.Helper()
	for {
		for _, in := range inputs {
			s.log.step(s.eng, s.now, in)
		}
		r := s.eng.Ready(s.now)
		s.apply(&r)
		if err := s.eng.Check(); err != nil {
			s.t.Fatal(err)
		}
		s.wake = r.Deadline
		inputs = inputs[:0]
		for _, x := range r.Effects.Sends {
			m, ok := x.Msg.(*wire.Instruction)
			if !ok {
				continue
			}
			s.sent = append(s.sent, drained{s.now.Mono, x.Node, m.Seq, m.Priority})
			s.next[x.Node]++
			inputs = append(inputs, &engine.Uplink{Node: x.Node, Msg: &wire.Event{Number: s.next[x.Node], Seq: m.Seq, Token: m.Token,
				Attempt: m.Attempt, Phase: wire.PhaseProcessed, Code: wire.CodeOK}})
		}
		if len(inputs) == 0 {
			return
		}
	}
}

func (s *drainSite) hello(node string) engine.Input {
	return s.input(parseCommand(s.t, fmt.Sprintf("hello %s first=%d next=%d", node, s.next[node]+1, s.next[node]+1)))
}

func (s *drainSite) do(line string) engine.Input { return s.input(parseCommand(s.t, line)) }

// run lets time pass with heartbeats, in small steps.
func (s *drainSite) run(d time.Duration, nodes ...string) {
	for end := s.now.Mono + d; s.now.Mono < end; {
		s.pass(20 * time.Millisecond)
		var beats []engine.Input
		if s.now.Mono%(5*time.Second) == 0 {
			for _, n := range nodes {
				beats = append(beats, s.do("heartbeat "+n))
			}
		}
		s.step(beats...)
	}
}

// TestA6_AnHourOfBacklogDoesNotEndInABurst brings 20 nodes back at once, with 40
// commands waiting for each: a burst of 100, then 50 a second, the urgent ones of
// all nodes first, at each node in order.
func TestA6_AnHourOfBacklogDoesNotEndInABurst(t *testing.T) {
	s := newDrainSite(t)
	var nodes []string
	for n := range 20 {
		nodes = append(nodes, fmt.Sprintf("node-%02d", n))
		s.step(s.hello(nodes[n]), s.do("goodbye "+nodes[n]))
	}
	for k := range 40 {
		for _, n := range nodes {
			s.step(s.do("submit node=" + n + " prio=" + []string{"normal", "low", "high", "normal"}[k%4]))
		}
	}
	s.pass(time.Hour)
	var all []engine.Input
	for _, n := range nodes {
		all = append(all, s.hello(n))
	}
	begin := s.now.Mono
	s.step(all...)
	if len(s.sent) != 100 {
		t.Errorf("the burst is %d commands, want 100", len(s.sent))
	}
	s.run(20*time.Second, nodes...)
	if len(s.sent) != 800 {
		t.Fatalf("%d of 800 were sent after 20 s", len(s.sent))
	}
	if d := s.sent[799].at - begin; d < 14*time.Second-20*time.Millisecond || d > 14*time.Second+40*time.Millisecond {
		t.Errorf("the last one was sent after %v, want 700/50 s", d)
	}
	checkDrained(t, s.sent, 50, 100)
	for k := 1; k < len(s.sent); k++ { // over all nodes
		if a, b := s.sent[k-1], s.sent[k]; a.prio > b.prio {
			t.Fatalf("%+v is sent before %+v", a, b)
		}
	}
}

// checkDrained holds what was sent against the bucket and the order of each node.
func checkDrained(t *testing.T, sent []drained, rate, burst int) {
	t.Helper()
	for a := range sent {
		for b := a; b < len(sent); b += 37 {
			if most := float64(burst) + (sent[b].at-sent[a].at).Seconds()*float64(rate) + 1; float64(b-a+1) > most {
				t.Fatalf("%d commands within %v", b-a+1, sent[b].at-sent[a].at)
			}
		}
	}
	last := map[string]drained{}
	for _, d := range sent {
		if l, ok := last[d.node]; ok && (l.prio > d.prio || l.prio == d.prio && l.seq > d.seq) {
			t.Fatalf("%s is sent %d (%v) after %d (%v)", d.node, d.seq, d.prio, l.seq, l.prio)
		}
		last[d.node] = d
	}
}

// TestA6_A19_NewCommandsStayBehindTheBacklog: while a node's backlog drains, what
// comes new for it keeps its place behind; another node does not wait at all; and a
// node that leaves in the middle finds its rest in order when it is back.
func TestA6_A19_NewCommandsStayBehindTheBacklog(t *testing.T) {
	s := newDrainSite(t)
	s.step(s.hello("a"), s.hello("other"), s.do("goodbye a"))
	s.step(s.do("submit node=a count=300"))
	s.step(s.hello("a"))
	s.run(time.Second, "a", "other")
	s.step(s.do("submit node=other"))
	if last := s.sent[len(s.sent)-1]; last.node != "other" || last.at != s.now.Mono {
		t.Errorf("a node without a backlog waits for another one's: %+v", last)
	}
	s.step(s.do("submit node=a count=10"))
	s.step(s.do("goodbye a lost"))
	s.run(time.Minute, "other")
	before := len(s.sent)
	s.step(s.hello("a"))
	if n := len(s.sent) - before; n != 100 {
		t.Errorf("back after a minute, with the bucket full: %d are sent at once", n)
	}
	s.run(5*time.Second, "a", "other")
	if len(s.sent) != 311 {
		t.Errorf("%d were sent, want 311", len(s.sent))
	}
	checkDrained(t, s.sent, 50, 100)
	if open := s.eng.Open(); open != 0 {
		t.Errorf("%d are open", open)
	}
}

// TestA7_TheQueueIsAlarmedAt80Percent, refused at 90, and the alarm stands until it
// has fallen to 70.
func TestA7_TheQueueIsAlarmedAt80Percent(t *testing.T) {
	h := newHarness(t)
	h.block("config capacity=100\nhello a\ngoodbye a")
	if out := h.block("submit node=a count=79"); strings.Contains(out, "alarm") {
		t.Errorf("at 79: %s", out)
	}
	if out := h.block("submit node=a"); !strings.Contains(out, "alarm raised queue_filling") {
		t.Errorf("at 80: %s", out)
	}
	if out := h.block("submit node=a count=11"); strings.Count(out, "refused (3)") != 1 {
		t.Errorf("at 90 of 100 the next one is refused: %s", out)
	}
	for seq := 1; seq <= 21; seq++ {
		out := h.block(fmt.Sprintf("cancel seq=%d", seq))
		if got := strings.Contains(out, "alarm cleared queue_filling"); got != (seq == 21) {
			t.Errorf("with %d open: cleared %v", 90-seq, got)
		}
	}
}
