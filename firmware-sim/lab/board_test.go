package lab

import (
	"fmt"
	"testing"

	"github.com/apollo-11/apollo11/firmware-sim/lab/board"
)

// TestBoard is one board with all three agents on it: what commands do at its
// lines, and what becomes of them when the lines, the agents and the cable are not
// as they should be.
func TestBoard(t *testing.T) {
	k := lab(t)
	s := newSite(t, k)
	b := s.switchOn(board.Options{Files: k.files(levels...)})
	for _, l := range levels {
		s.must(b.Run(l.name, "apollo", agentArgs(l.name)...))
	}
	for _, l := range levels {
		t.Run("command/"+l.name, func(t *testing.T) { s.on(t).command(l) })
		t.Run("input/"+l.name, func(t *testing.T) { s.on(t).input(l) })
	}
}

// command: published with a stock client, seen at the line from outside, processed,
// with its timeline (A1, A2, B2, B4, F1).
func (s *site) command(l level) {
	s.online(l.name)
	before := len(s.board.Lines().Edges(l.out))
	for k, high := range []int{1, 0} {
		id := fmt.Sprintf("%s-%d", l.name, k)
		s.publish(write(id, l.name, l.out, high, `,"ttl":"1m"`))
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
		s.publish(doc(id, "gpio.read", l.name, fmt.Sprintf(`{"pin":%q}`, line(l.in))))
		want := 0
		if high {
			want = 1
		}
		if i := s.done(s.t, id); fmt.Sprint(i.Result["level"]) != fmt.Sprint(want) {
			s.t.Errorf("read %v, want %d", i.Result, want)
		}
	}
}
