package lab

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/apollo-11/apollo11/firmware-sim/lab/board"
	"github.com/apollo-11/apollo11/firmware-sim/torture/rig"
	"github.com/apollo-11/apollo11/gateway/api"
	"github.com/apollo-11/apollo11/wire"
)

// long is a pulse that does not end while a test looks.
const long = 30 * time.Second

// TestOrderOnRealLines is what docs/safety.md promises, seen at the lines: one agent
// after the other has the board for itself, then all three lose the gateway at once.
func TestOrderOnRealLines(t *testing.T) {
	k := lab(t)
	s := newSite(t, k)
	s.switchOn(board.Options{Files: k.files(levels...)})
	for _, l := range levels {
		for _, part := range []struct {
			name string
			run  func(*site, level)
		}{{"taken", (*site).taken}, {"off", (*site).off}, {"exchanged", (*site).exchanged}, {"local", (*site).local}, {"faulty", (*site).faulty}} {
			t.Run(part.name+"/"+l.name, func(t *testing.T) { part.run(s.on(t), l) })
		}
	}
	t.Run("lost", func(t *testing.T) { s.on(t).lost() })
}

// boardMap is an agent.yaml with the pins of these tests: the outputs out and pump, an
// active-low relay, and in, which is the LOCAL switch. exchanged gives the names of out
// and pump to each other's lines.
func boardMap(l level, exchanged bool) string {
	out, pump := l.out, heldLine
	if exchanged {
		out, pump = pump, out
	}
	return configOf(l, output("out", out), output("pump", pump), relay(""), input("in", l.in), "local_switch: in\nworkers: 2\n")
}

// edgesOf counts what an output has done since the board was switched on.
func (s *site) edgesOf(n int) int { return len(s.board.Lines().Edges(n)) }

// pulse begins a pulse and returns when it is seen.
func (s *site) pulse(id string, l level, pin string, n int, width time.Duration) time.Time {
	s.t.Helper()
	s.publish(doc(id, "gpio.pulse", l.name, fmt.Sprintf(`{"pin":%q,"width":"%v"}`, pin, width)))
	return s.rose(n, patience)
}

// taken: an output that another program holds keeps nobody down. Commands for it name
// the owner, the other outputs work, and when it is given back it is taken at its safe
// level.
func (s *site) taken(l level) {
	const owner = "pump-control"
	s.must(s.board.Hold(owner, chipFile, heldLine))
	s.startWith(l, boardMap(l, false))
	s.back(l, 0)
	if n := s.starts(l); n != 1 {
		s.t.Errorf("%d starts with one line that somebody else has", n)
	}
	before := s.edgesOf(heldLine)
	id := l.name + "-taken"
	s.publish(write(id, l.name, "pump", 1, `,"retry_policy":{"max_retries":0}`))
	if i := s.settled(s.t, id); i.State == "SUCCEEDED" || i.Code != "busy" || !strings.Contains(i.Detail, owner) {
		s.t.Errorf("%s (%s): %q does not name %s", i.State, i.Code, i.Detail, owner)
	}
	s.set(l, "beside", "out", l.out, 1)
	s.set(l, "beside", "out", l.out, 0)
	s.must(s.board.Free(owner))
	freed := time.Now()
	s.must(rig.Await(s.t.Context(), patience, "the line is taken", func() (bool, error) {
		d, err := s.board.Lines().Directions()
		return err == nil && d>>heldLine&1 == 1, err
	}))
	s.t.Logf("taken %v after it was given back", time.Since(freed).Round(time.Millisecond))
	if n := s.edgesOf(heldLine) - before; n != 0 {
		s.t.Errorf("%d edges before anybody had commanded one: %v", n, s.board.Lines().Edges(heldLine))
	}
	s.set(l, "taken", "pump", heldLine, 1)
	s.set(l, "taken", "pump", heldLine, 0)
}

// set commands a level and sees it.
func (s *site) set(l level, why, pin string, n, level int) {
	s.t.Helper()
	id := fmt.Sprintf("%s-%s-%s-%d", l.name, why, pin, level)
	s.publish(write(id, l.name, pin, level))
	s.done(s.t, id)
	s.seen(n, level == 1, patience)
}

// off: an "off" while two pulses keep both workers of the agent busy is at its pin at
// once and moves nothing else; so is apollo safe, which holds until a person releases it.
func (s *site) off(l level) {
	client, err := s.Client(s.t.Context(), "scada-off-"+l.name)
	s.must(err)
	defer client.Close()
	one, two := l.name+"-pulse-out", l.name+"-pulse-pump"
	s.pulse(one, l, "out", l.out, long)
	s.pulse(two, l, "pump", heldLine, long)
	pump, clicks := s.edgesOf(heldLine), s.edgesOf(relayLine)

	sent := time.Now()
	if _, err := client.Submit(rig.TaskTopic, write(l.name+"-off", l.name, "out", 0)); err != nil {
		s.t.Fatal(err)
	}
	s.inTime("off", s.fell(l.out, patience).Sub(sent))
	s.done(s.t, l.name+"-off")
	s.cut(one, "superseded", "cut short")
	if n := s.edgesOf(heldLine); n != pump {
		s.t.Errorf("the off of out has moved the pump: %v", s.board.Lines().Edges(heldLine))
	}

	sent = time.Now()
	s.must(s.Post(s.t.Context(), "/v1/safe/"+l.name, ""))
	s.inTime("apollo safe", s.fell(heldLine, patience).Sub(sent))
	s.cut(two, "superseded", "cut short")
	s.await(l, "held_safe", true)
	on := s.edgesOf(l.out)
	body, status, err := s.Ask(s.t.Context(), http.MethodPost, "/v1/tasks", write(l.name+"-held", l.name, "out", 1))
	if err != nil || status != http.StatusConflict || !strings.Contains(string(body), "held at its safe level") || s.edgesOf(l.out) != on {
		s.t.Errorf("a write to a held output: status %d, %v: %s", status, err, body)
	}
	s.must(s.Post(s.t.Context(), "/v1/release/"+l.name, ""))
	s.await(l, "held_safe", false)
	for _, n := range []int{1, 0} {
		s.set(l, "released", "out", l.out, n)
	}
	if n := s.edgesOf(relayLine); n != clicks {
		s.t.Errorf("the relay was at its safe level, and has moved: %v", s.board.Lines().Edges(relayLine))
	}
}

// inTime holds a way to safe to what the rule promises: a second beyond the path's round
// trip. The board here is emulated on a busy machine, so the limit is where the
// gateway's alarm is, and the figure is printed.
func (s *site) inTime(what string, took time.Duration) {
	s.t.Helper()
	s.t.Logf("%s: at the line %v after it was sent", what, took.Round(time.Millisecond))
	if took > wire.SafeLate {
		s.t.Errorf("%s took %v", what, took)
	}
}

// cut waits for the end of a pulse that did not have its time. Whether the board hears
// of what is newer or of the gateway's cancel first is chance; the reason says it.
func (s *site) cut(id, reason, why string) {
	s.t.Helper()
	if i := s.settled(s.t, id); i.State != "CANCELLED" || i.Reason != reason || !strings.Contains(i.Detail, why) {
		s.t.Errorf("%s ended as %s (%s, %s): %q, want CANCELLED (%s) and %q", id, i.State, i.Reason, i.Code, i.Detail, reason, why)
	}
}

// refused commands a level of out that must be refused, and move nothing.
func (s *site) refused(l level, id string, level int, code string) {
	s.t.Helper()
	before := s.edgesOf(l.out)
	s.publish(write(id, l.name, "out", level))
	if i := s.settled(s.t, id); i.State == "SUCCEEDED" || i.Code != code {
		s.t.Errorf("%s ended as %s (%s): %q, want it refused as %s", id, i.State, i.Code, i.Detail, code)
	}
	if n := s.edgesOf(l.out); n != before {
		s.t.Errorf("%s was refused, and has moved the line: %v", id, s.board.Lines().Edges(l.out))
	}
}

// await waits until an alarm of a node stands, or no more.
func (s *site) await(l level, name string, stands bool) {
	s.t.Helper()
	s.must(rig.Await(s.t.Context(), patience, fmt.Sprintf("%s: %s stands %v", l.name, name, stands), func() (bool, error) {
		var n api.NodeDetail
		_, err := s.get(s.t.Context(), "/v1/nodes/"+l.name, &n)
		return err == nil && slices.ContainsFunc(n.Standing, func(a api.Alarm) bool { return a.Alarm == name }) == stands, err
	}))
}

// exchanged: two names exchange their lines while a pulse runs. The pulse ends at its
// own line and at its own time, and what is commanded by name goes where the name is now.
func (s *site) exchanged(l level) {
	const width, slack = 4 * time.Second, time.Second
	id := l.name + "-exchanged"
	other := s.edgesOf(heldLine)
	began := s.pulse(id, l, "out", l.out, width)
	s.reloadWith(l, boardMap(l, true))
	if reloaded := time.Since(began); reloaded > width {
		s.t.Logf("the reload came after the pulse, %v", reloaded) // a busy machine: nothing is shown
	}
	took := s.fell(l.out, patience).Sub(began)
	s.t.Logf("the pulse of %v was seen for %v", width, took.Round(time.Millisecond))
	if took < width-20*time.Millisecond || took > width+slack {
		s.t.Errorf("the pulse of %v was seen for %v", width, took)
	}
	s.done(s.t, id)
	if n := s.edgesOf(heldLine); n != other {
		s.t.Errorf("the other line of the exchange has moved: %v", s.board.Lines().Edges(heldLine))
	}

	// Back again in the middle of the next one, which an "off" ends by its new name.
	s.pulse(id+"-back", l, "out", heldLine, long)
	mine := s.edgesOf(l.out)
	s.reloadWith(l, boardMap(l, false))
	s.publish(write(id+"-off", l.name, "pump", 0))
	s.fell(heldLine, long/2)
	s.done(s.t, id+"-off")
	// If the gateway has not heard of the exchange yet, it does not know that they share a
	// line: the board does.
	if i := s.settled(s.t, id+"-back"); i.State != "CANCELLED" || !strings.Contains(i.Detail, "cut short") {
		s.t.Errorf("%s-back ended as %s (%s, %s): %q", id, i.State, i.Reason, i.Code, i.Detail)
	}
	if n := s.edgesOf(l.out); n != mine {
		s.t.Errorf("the other line of the exchange has moved: %v", s.board.Lines().Edges(l.out))
	}
}

// local: the LOCAL switch in the middle of a pulse drives it safe once; then commands are
// refused, "off" included, and an output that a hand has moved is left to the hand.
func (s *site) local(l level) {
	const limit = 3 * time.Second // it is looked at every 250 ms
	id := l.name + "-local"
	s.publish(doc(id+"-lease", "gpio.write", l.name, fmt.Sprintf(`{"pin":"pump","level":1,"max_on":"%v"}`, long)))
	s.done(s.t, id+"-lease")
	s.seen(heldLine, true, patience)
	s.pulse(id, l, "out", l.out, long)
	s.must(s.board.Lines().Force(heldLine, false)) // by hand
	hand := s.edgesOf(heldLine)

	s.must(s.board.Lines().Drive(l.in, true))
	thrown := time.Now()
	took := s.fell(l.out, patience).Sub(thrown)
	s.t.Logf("safe %v after the switch", took.Round(time.Millisecond))
	if took > limit {
		s.t.Errorf("safe %v after the switch", took)
	}
	s.cut(id, "cancelled", "LOCAL")
	s.leaseEnd(id+"-lease", "hand")
	s.refused(l, id+"-on", 1, "local")
	s.must(s.board.Lines().Force(l.out, true)) // somebody works there
	s.refused(l, id+"-off", 0, "local")
	if high, err := s.board.Lines().High(l.out); err != nil || !high {
		s.t.Errorf("the hand at the output was fought: %v", err)
	}
	s.must(s.board.Lines().Force(l.out, false))
	s.must(s.board.Lines().Drive(l.in, false))
	s.must(rig.Await(s.t.Context(), patience, l.name+" is not LOCAL any more", func() (bool, error) {
		n, err := s.Node(s.t.Context(), l.name)
		return err == nil && !n.Local, err
	}))
	for _, n := range []int{1, 0} {
		s.set(l, "over", "out", l.out, n)
	}
	if n := s.edgesOf(heldLine); n != hand {
		s.t.Errorf("what the hand has moved was driven: %v", s.board.Lines().Edges(heldLine))
	}
}

// faulty: an agent is killed with an output on while somebody edits its agent.yaml. The
// output goes to its safe level all the same; and a person who runs the command is told
// to look.
func (s *site) faulty(l level) {
	starts := s.starts(l)
	s.set(l, "faulty", "out", l.out, 1)
	before := s.edgesOf(l.out)
	broken := strings.Replace(boardMap(l, false), "direction: out", "direction: [out", 1) // no YAML
	s.must(s.board.WriteFile(configPath(l), "", broken, 0o644))
	s.must(s.board.Signal(l.name, int(syscall.SIGKILL)))
	killed := time.Now()
	took := s.fell(l.out, patience).Sub(killed)
	s.t.Logf("safe %v after the kill, with a faulty file", took.Round(time.Millisecond))
	if took > 10*time.Second {
		s.t.Errorf("safe only %v after the kill", took)
	}
	s.must(s.board.WriteFile(configPath(l), "", boardMap(l, false), 0o644))
	s.back(l, starts)
	if n := s.edgesOf(l.out) - before; n != 1 {
		s.t.Errorf("%d edges until it works again, want one: %v", n, s.board.Lines().Edges(l.out))
	}

	s.must(s.board.StopUnit(l.name))
	s.must(s.board.WriteFile(configPath(l), "", broken, 0o644))
	s.must(s.board.Lines().Force(l.out, true)) // as a program that dies leaves it
	text, exit := s.saidBy(l.name, l.name+"-safe", "safe", "--config", configPath(l))
	if exit != 3 || !strings.Contains(text, "3 of 3 outputs") {
		s.t.Errorf("exit code %d:\n%s", exit, text)
	}
	s.seen(l.out, false, patience)
}

// lost: the cable is pulled in the middle of a write. Outputs with on_loss go to their
// safe levels when the gateway has been unheard for the autonomy window, and what was
// commanded meanwhile moves them when it is back, not before.
func (s *site) lost() {
	// A pulled cable says nothing: it is noticed when each of the two connections has been
	// silent for silence, and the window begins then.
	const autonomy, silence, slack = 30 * time.Second, 30 * time.Second, 8 * time.Second
	for _, l := range levels {
		s.startWith(l, configOf(l, output("out", l.out, "on_loss: safe"), input("in", l.in), fmt.Sprintf("autonomy: %v\n", autonomy)))
	}
	var docs, later []string
	before := map[string]int{}
	for _, l := range levels {
		s.online(l.name)
		before[l.name] = s.edgesOf(l.out)
		docs = append(docs, write(l.name+"-cut", l.name, "out", 1, `,"ttl":"10m"`))
		later = append(later, write(l.name+"-later", l.name, "out", 1, `,"ttl":"10m"`))
	}
	client, err := s.Client(s.t.Context(), "scada-lost")
	s.must(err)
	defer client.Close()
	if _, err := client.Submit(rig.TaskTopic, docs...); err != nil {
		s.t.Fatal(err)
	}
	s.must(rig.Await(s.t.Context(), patience, "all three on", func() (bool, error) {
		return !slices.ContainsFunc(levels, func(l level) bool { return s.edgesOf(l.out) == before[l.name] }), nil
	}))
	s.must(s.board.Cable(false))
	pulled := time.Now()
	if _, err := client.Submit(rig.TaskTopic, later...); err != nil {
		s.t.Fatal(err)
	}
	for _, l := range levels {
		took := s.fell(l.out, patience).Sub(pulled)
		s.t.Logf("%s: safe %v after the cable", l.name, took.Round(time.Millisecond))
		if took < autonomy-slack || took > autonomy+silence+slack {
			s.t.Errorf("%s: safe %v after the cable, the window is %v after %v of silence", l.name, took, autonomy, silence)
		}
	}
	s.must(rig.Pause(s.t.Context(), 2*time.Second))
	for _, l := range levels {
		if n := s.edgesOf(l.out) - before[l.name]; n != 2 {
			s.t.Errorf("%s: %d edges without a gateway, want on and off: %v", l.name, n, s.board.Lines().Edges(l.out))
		}
	}
	s.must(s.board.Cable(true))
	for _, l := range levels {
		s.done(s.t, l.name+"-cut")
		s.leaseEnd(l.name+"-cut", "loss")
		s.done(s.t, l.name+"-later")
		s.seen(l.out, true, patience)
		if n := s.edgesOf(l.out) - before[l.name]; n != 3 {
			s.t.Errorf("%s: %d edges, want on, off, on: %v", l.name, n, s.board.Lines().Edges(l.out))
		}
	}
	for _, l := range levels {
		s.must(s.board.StopUnit(l.name))
		s.seen(l.out, false, patience)
	}
}
