package lab

import (
	"fmt"
	"strings"
	"syscall"
	"testing"

	"github.com/apollo-11/apollo11/firmware-sim/lab/board"
)

// TestBoard is one board with the agents of all levels on it, each supervised as
// the shipped unit says: what commands do at its lines, and what becomes of the
// lines when agents, cable and configuration are not as they should be.
func TestBoard(t *testing.T) {
	k := lab(t)
	s := newSite(t, k)
	s.switchOn(board.Options{Files: k.files(levels...)})
	for _, l := range levels {
		s.startUnit(l)
	}
	for _, part := range []struct {
		name string
		run  func(*site, level)
	}{{"command", (*site).command}, {"input", (*site).input}, {"edges", (*site).edges}, {"held", (*site).held},
		{"lease", (*site).lease}, {"killed", (*site).killed}, {"crashed", (*site).crashed}} {
		for _, l := range levels {
			t.Run(part.name+"/"+l.name, func(t *testing.T) { part.run(s.on(t), l) })
		}
	}
	t.Run("foreign", func(t *testing.T) { s.on(t).foreign() })
	t.Run("hung", func(t *testing.T) { s.on(t).hung() })
	t.Run("cable", func(t *testing.T) { s.on(t).cable() })
	t.Run("polarity", func(t *testing.T) { s.on(t).polarity(levels[0]) })
	for _, l := range levels {
		t.Run("relay/"+l.name, func(t *testing.T) { s.on(t).clicks(l) })
	}
}

// command: published with a stock client, seen at the line from outside, processed,
// with its timeline (A1, A2, B2, B4, F1).
func (s *site) command(l level) {
	s.online(l.name)
	before := len(s.board.Lines().Edges(l.out))
	for _, high := range []int{1, 0} {
		id := fmt.Sprintf("%s-%d", l.name, high)
		s.publish(write(id, l.name, "out", high, `,"ttl":"1m"`))
		s.seen(l.out, high == 1, patience)
		i := s.done(s.t, id)
		if i.Code != "ok" || fmt.Sprint(i.Result["level"]) != fmt.Sprint(high) || i.Attempt != 1 {
			s.t.Errorf("%+v", i)
		}
		if got := s.timeline(s.t, i); got != "submitted dispatched received started processed" {
			s.t.Errorf("timeline: %s", got)
		}
		directions, err := s.board.Lines().Directions()
		s.must(err)
		if directions>>l.out&1 != 1 {
			s.t.Errorf("line %d is not an output: directions %08b", l.out, directions)
		}
	}
	if n := len(s.board.Lines().Edges(l.out)) - before; n != 2 {
		s.t.Errorf("%d edges for two commands: %v", n, s.board.Lines().Edges(l.out))
	}
}

// input: what the world gives to a line is what gpio.read says.
func (s *site) input(l level) {
	for k, high := range []bool{true, false, true} {
		s.must(s.board.Lines().Drive(l.in, high))
		id := fmt.Sprintf("%s-read-%d", l.name, k)
		s.publish(doc(id, "gpio.read", l.name, `{"pin":"in"}`))
		want := 0
		if high {
			want = 1
		}
		if i := s.done(s.t, id); fmt.Sprint(i.Result["level"]) != fmt.Sprint(want) {
			s.t.Errorf("read %v, want %d", i.Result, want)
		}
	}
}

// held: a command for a line that belongs to another program is refused with the
// owner's name, moves nothing, and works when the line was given back. The agent is
// one without a pin map: with one it does not start without its lines (I6).
func (s *site) held(l level) {
	const owner = "pump-control"
	node := l.name + "-free"
	s.must(s.board.Run(node, "apollo", agentArgs(l.name, "--node", node, "--data", "/data/"+node)...))
	s.online(node)
	s.must(s.board.Hold(owner, chipFile, heldLine))
	before := len(s.board.Lines().Edges(heldLine))
	for what, n := range map[string]int{owner: heldLine, "apollo": l.out} { // the other one is the supervised agent's
		id := fmt.Sprintf("%s-%d", node, n)
		s.publish(write(id, node, line(n), 1, `,"retry_policy":{"max_retries":0}`))
		i := s.settled(s.t, id)
		if i.State == "SUCCEEDED" || i.Code != "busy" || !strings.Contains(i.Detail, what) {
			s.t.Errorf("%s (%s): %q does not name %s", i.State, i.Code, i.Detail, what)
		} else {
			s.t.Logf("%s: %s", i.Code, i.Detail)
		}
	}
	if n := len(s.board.Lines().Edges(heldLine)) - before; n != 0 {
		s.t.Errorf("%d edges on a line of another program", n)
	}
	s.must(s.board.Free(owner))
	for _, high := range []int{1, 0} {
		id := fmt.Sprintf("%s-freed-%d", node, high)
		s.publish(write(id, node, line(heldLine), high))
		s.done(s.t, id)
		s.seen(heldLine, high == 1, patience)
	}
	s.must(s.board.Signal(node, int(syscall.SIGTERM)))
	r, err := s.board.Wait(node, patience)
	if err != nil || r.Exit != 0 {
		s.t.Errorf("exit code %d, %v", r.Exit, err)
	}
}
