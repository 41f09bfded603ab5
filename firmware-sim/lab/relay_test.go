package lab

import (
	"fmt"
	"strings"

	"github.com/apollo-11/apollo11/firmware-sim/torture/rig"
)

// polarity is a control: a map that forgets that the relay is on when its line is
// low switches it on when it takes the line, and that is seen.
func (s *site) polarity(l level) {
	s.online(l.name)
	s.reload(l, fmt.Sprintf("  - {name: relay, line: %q, direction: out, safe: 0}\n", line(relayLine)))
	s.seen(relayLine, false, patience)
	if edges := s.board.Lines().Edges(relayLine); len(edges) != 1 || edges[0].High {
		s.t.Errorf("edges %v, want one fall", edges)
	}
	s.reload(l)
	s.must(s.board.Lines().Force(relayLine, true))
}

// reload gives an agent a new pin map and returns when it is in force.
func (s *site) reload(l level, more ...string) {
	s.t.Helper()
	s.reloadWith(l, config(l, more...))
}

func (s *site) reloadWith(l level, text string) {
	s.t.Helper()
	reloads := func() (n int) {
		for text := range strings.Lines(s.board.Console()) {
			if strings.HasPrefix(text, "["+l.name+"] ") && strings.Contains(text, `msg="pin map reloaded"`) {
				n++
			}
		}
		return n
	}
	before := reloads()
	s.must(s.board.WriteFile(configPath(l), "", text, 0o644))
	s.must(s.board.ReloadUnit(l.name))
	s.must(rig.Await(s.t.Context(), patience, "pin map reloaded", func() (bool, error) { return reloads() > before, nil }))
}

// clicks: a relay that is on when its line is low does not click while nobody wants
// it to: not when the agent takes the line, starts, reloads, or is started again
// (I7, I8).
func (s *site) clicks(l level) {
	edges := func() int { return len(s.board.Lines().Edges(relayLine)) }
	quiet := func(what string, do func()) {
		s.t.Helper()
		n := edges()
		do()
		if n = edges() - n; n != 0 {
			s.t.Errorf("%s: %d edges: %v", what, n, s.board.Lines().Edges(relayLine))
		}
	}
	set := func(id string, on int) {
		s.t.Helper()
		s.publish(write(l.name+"-relay-"+id, l.name, "relay", on, `,"retry_policy":{"max_retries":3,"initial_interval":1}`))
		s.done(s.t, l.name+"-relay-"+id)
		s.seen(relayLine, on == 0, patience)
	}
	s.online(l.name)
	quiet("line taken by a reload", func() { s.reload(l, relay("")) })
	if d, err := s.board.Lines().Directions(); err != nil || d>>relayLine&1 != 1 {
		s.t.Errorf("directions %08b, %v: the relay's line is no output", d, err)
	}
	quiet("agent restarted", func() { s.restart(l) })
	for _, n := range []int{1, 0} {
		before := edges()
		set(fmt.Sprintf("set-%d", n), n)
		if got := edges() - before; got != 1 {
			s.t.Errorf("%d edges for one command", got)
		}
	}
	before := edges()
	s.must(s.board.Lines().Force(relayLine, false)) // as short as a click can be
	s.must(s.board.Lines().Force(relayLine, true))
	if got := edges() - before; got != 2 {
		s.t.Errorf("a click was counted as %d edges", got)
	}
	set("on", 1)
	quiet("reloads while the relay is on", func() {
		for n := range 3 {
			s.reload(l, relay(fmt.Sprintf(", max_on: %dm", 10+n)))
			s.publish(doc(fmt.Sprintf("%s-reloaded-%d", l.name, n), "gpio.read", l.name, `{"pin":"relay"}`))
			s.done(s.t, fmt.Sprintf("%s-reloaded-%d", l.name, n))
		}
	})
	before = edges()
	s.restart(l)
	if got := edges() - before; got != 1 {
		s.t.Errorf("%d edges when an agent with a relay that was on is started again, want one, off: %v", got, s.board.Lines().Edges(relayLine))
	}
	s.seen(relayLine, true, patience)
	quiet("line given back by a reload", func() { s.reload(l) })
}

// restart stops a unit and starts it, as systemctl restart does.
func (s *site) restart(l level) {
	s.t.Helper()
	s.must(s.board.StopUnit(l.name))
	s.must(s.board.StartUnit(l.name, unitText(s.t, l)))
	s.back(l, 0)
}
