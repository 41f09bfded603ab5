package lab

import (
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/apollo-11/apollo11/firmware-sim/lab/board"
	"github.com/apollo-11/apollo11/firmware-sim/torture/rig"
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
	}{{"command", (*site).command}, {"input", (*site).input}, {"held", (*site).held}, {"killed", (*site).killed}} {
		for _, l := range levels {
			t.Run(part.name+"/"+l.name, func(t *testing.T) { part.run(s.on(t), l) })
		}
	}
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

// switchedOn sets a level's output and returns when it was seen high.
func (s *site) switchedOn(l level, id string) time.Time {
	s.t.Helper()
	s.publish(write(id, l.name, "out", 1))
	s.done(s.t, id)
	s.seen(l.out, true, patience)
	edges := s.board.Lines().Edges(l.out)
	return edges[len(edges)-1].At
}

// fell waits until the line is low and returns when that was.
func (s *site) fell(n int, limit time.Duration) time.Time {
	s.t.Helper()
	s.seen(n, false, limit)
	edges := s.board.Lines().Edges(n)
	return edges[len(edges)-1].At
}

// killed: the agent is killed in the middle of an "on" with a limit; the line is
// safe before the limit, and stays so when the agent is back (C13, I1).
func (s *site) killed(l level) {
	s.online(l.name)
	starts := s.starts(l)
	began := s.switchedOn(l, l.name+"-kill")
	killed := time.Now()
	s.must(s.board.Signal(l.name, int(syscall.SIGKILL)))
	down := s.fell(l.out, maxOn)
	if down.Sub(began) > maxOn {
		s.t.Errorf("the line was high for %v, its limit is %v", down.Sub(began), maxOn)
	}
	s.t.Logf("safe %v after the kill", down.Sub(killed).Round(time.Millisecond))
	edges := len(s.board.Lines().Edges(l.out))
	s.back(l, starts)
	if n := len(s.board.Lines().Edges(l.out)) - edges; n != 0 {
		s.t.Errorf("%d edges while the agent came back", n)
	}
}

// back waits until a unit was started again and its agent works.
func (s *site) back(l level, starts int) {
	s.t.Helper()
	err := rig.Await(s.t.Context(), patience, l.name+" started again", func() (bool, error) {
		r, state, err := s.board.Unit(l.name)
		return err == nil && r.Starts > starts && state == "ready", err
	})
	s.must(err)
	s.online(l.name)
	id := fmt.Sprintf("%s-back-%d", l.name, time.Now().UnixNano())
	s.publish(doc(id, "gpio.read", l.name, `{"pin":"in"}`))
	s.done(s.t, id)
}

// hung: agents that hang in the middle of an "on" are silent; the watchdog brings
// their lines to safe (C13, I1).
func (s *site) hung() {
	const slack = 10 * time.Second // a busy machine, and the start of apollo-agent safe
	starts := map[string]int{}
	for _, l := range levels {
		starts[l.name] = s.starts(l)
		s.switchedOn(l, l.name+"-hang")
	}
	stopped := time.Now()
	for _, l := range levels {
		s.must(s.board.Signal(l.name, int(syscall.SIGSTOP)))
	}
	for _, l := range levels {
		took := s.fell(l.out, maxOn).Sub(stopped)
		s.t.Logf("%s: safe %v after it hung", l.name, took.Round(time.Millisecond))
		if took > watchdog+slack {
			s.t.Errorf("%s: safe after %v, the watchdog has %v", l.name, took, watchdog)
		}
	}
	for _, l := range levels {
		s.back(l, starts[l.name])
	}
}

// cablePull is how long the cable is out: long enough for both ends to notice, who
// wait 20 s and 30 s.
const cablePull = 35 * time.Second

// cable: commands before, during and after a pulled cable run once each.
func (s *site) cable() {
	const each = 3
	before := map[string]int{}
	count := map[string]int{}
	client, err := s.Client(s.t.Context(), "scada-cable")
	s.must(err)
	defer client.Close()
	submit := func(when string) {
		s.t.Helper()
		var docs []string
		for _, l := range levels {
			for range each {
				id := fmt.Sprintf("%s-cable-%d", l.name, count[l.name])
				count[l.name]++
				docs = append(docs, doc(id, "gpio.pulse", l.name, `{"pin":"out","width_ms":60}`, `,"ttl":"10m","retry_policy":{"max_retries":0}`))
			}
		}
		if _, err := client.Submit(rig.TaskTopic, docs...); err != nil {
			s.t.Fatalf("%s: %v", when, err)
		}
	}
	for _, l := range levels {
		s.online(l.name)
		before[l.name] = s.board.Lines().Rises(l.out)
	}
	submit("before")
	s.must(rig.Pause(s.t.Context(), 100*time.Millisecond)) // some have begun
	s.must(s.board.Cable(false))
	submit("during")
	s.must(rig.Pause(s.t.Context(), pull(s.t)))
	for _, l := range levels {
		if n := s.board.Lines().Rises(l.out) - before[l.name]; n > each {
			s.t.Errorf("%s: %d pulses without a cable, %d were sent before", l.name, n, each)
		}
	}
	s.must(s.board.Cable(true))
	plugged := time.Now()
	for _, l := range levels {
		s.online(l.name)
		s.t.Logf("%s: online %v after the cable", l.name, time.Since(plugged).Round(time.Millisecond))
	}
	submit("after")
	for _, l := range levels {
		for k := range count[l.name] {
			s.done(s.t, fmt.Sprintf("%s-cable-%d", l.name, k))
		}
		if n := s.board.Lines().Rises(l.out) - before[l.name]; n != count[l.name] {
			s.t.Errorf("%s: %d pulses seen, %d commanded", l.name, n, count[l.name])
		}
	}
}

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
	reloads := func() (n int) {
		for text := range strings.Lines(s.board.Console()) {
			if strings.HasPrefix(text, "["+l.name+"] ") && strings.Contains(text, `msg="pin map reloaded"`) {
				n++
			}
		}
		return n
	}
	before := reloads()
	s.must(s.board.WriteFile(configPath(l), "", config(l, more...), 0o644))
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
