package e2e

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/apollo-11/apollo11/fieldagent/gpio"
	"github.com/apollo-11/apollo11/gateway/scada"
)

// seeded returns randomness whose seed is printed.
func seeded(t *testing.T) *rand.Rand {
	t.Helper()
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	return rand.New(rand.NewPCG(seed, 11))
}

// often is a policy that outlasts many kills.
const often = `,"retry_policy":{"max_retries":20,"initial_interval":"50ms","max_interval":"500ms"}`

// mixed is one command of each intent for a node. Only the pulse is not
// idempotent.
func mixed(node string, round int, rnd *rand.Rand) (ids, payloads []string) {
	add := func(intent, args, more string) {
		id := fmt.Sprintf("%s-%d-%s", node, round, strings.ReplaceAll(intent, ".", "-"))
		ids = append(ids, id)
		payloads = append(payloads, taskJSON(id, intent, node, args, more))
	}
	add("gpio.write", fmt.Sprintf(`{"pin":"GPIO17","level":%d}`, round%2), often)
	add("gpio.pulse", fmt.Sprintf(`{"pin":"GPIO%d","width":"%dms"}`, 4+round%8, 5+rnd.IntN(60)), "")
	add("gpio.read", `{"pin":"GPIO22"}`, often)
	add("collect_metrics", `{}`, often)
	return ids, payloads
}

// audit is what a run left behind: every instruction with its end, and every
// actuation with the token that caused it.
type audit struct {
	s     *site
	ends  map[string]scada.InstructionView // by task id
	owner map[string]string                // token -> task id
	lines map[string]int                   // token -> actuations
}

// examine waits for the end of every task and reads the pin traces. It fails for
// an actuation that no instruction in the log accounts for (A3).
func (s *site) examine(ids, nodes []string) *audit {
	s.t.Helper()
	a := &audit{s, map[string]scada.InstructionView{}, map[string]string{}, map[string]int{}}
	for _, id := range ids {
		i := s.settled(id).one(s.t)
		a.ends[id] = i
		for _, e := range s.timeline(i.Seq) {
			if e.Token != "" && e.What != "refused" {
				a.owner[e.Token] = id
			}
		}
	}
	for _, n := range nodes {
		for _, act := range s.actuations(n) {
			if act.Cause == gpio.CauseStart && act.Level == gpio.Low {
				continue // the end of a pulse that a kill has cut
			}
			a.lines[act.Cause]++
			id := a.owner[act.Cause]
			if id == "" {
				s.t.Errorf("%s was moved by %s, which is no token of the log", n, act.Cause)
				continue
			}
			if got := a.ends[id].Node; got != n {
				s.t.Errorf("%s was moved by %s, which is for %s", n, act.Cause, got)
			}
		}
	}
	return a
}

// once wants that no token acted twice, and that every success acted.
func (a *audit) once() {
	a.s.t.Helper()
	for token, n := range a.lines {
		id := a.owner[token]
		most := 1
		if a.ends[id].Intent == "gpio.pulse" {
			most = 2 // on and off
		}
		if id != "" && n > most {
			a.s.t.Errorf("token %s of %s acted %d times\n%s", token, id, n, a.story(id))
		}
	}
	for id, i := range a.ends {
		want := map[string]int{"gpio.write": 1, "gpio.pulse": 2}[i.Intent]
		if i.State == succeeded && a.lines[i.Token] != want && !a.earlier(i) {
			a.s.t.Errorf("%s succeeded by %s with %d actuations, want %d\n%s", id, i.Token, a.lines[i.Token], want, a.story(id))
		}
	}
}

// earlier reports whether the success is that of an earlier attempt, which the
// agent knew to be done.
func (a *audit) earlier(i scada.InstructionView) bool {
	return strings.Contains(i.Detail, "has done it already")
}

func (a *audit) story(id string) string {
	var b strings.Builder
	for _, e := range a.s.timeline(a.ends[id].Seq) {
		fmt.Fprintf(&b, "  %s %s %s->%s %s %s %s\n", e.Time, e.What, e.From, e.To, e.Token, e.Code, e.Detail)
	}
	return b.String()
}

// TestKill_AgentAtRandomMoments: 200 SIGKILLs of agents under mixed commands.
// Every command ends, no token acts twice, what was acknowledged is not lost, and
// a pulse whose outcome is not known is left to an operator (C6, C7, C14).
func TestKill_AgentAtRandomMoments(t *testing.T) {
	t.Parallel()
	rnd := seeded(t)
	s := newSite(t)
	nodes := []string{"pump-1", "pump-2", "pump-3", "pump-4", "pump-5", "pump-6", "pump-7", "pump-8"}
	agents := map[string]*process{}
	for _, n := range nodes {
		agents[n] = s.agent(n)
	}
	for _, n := range nodes {
		s.online(n)
	}
	client, err := dial(s.mqtt, "scada-1")
	if err != nil {
		t.Fatal(err)
	}
	defer client.close()
	var all []string
	kills := 0
	for round := range rounds(t, 25) {
		for _, n := range rnd.Perm(len(nodes)) {
			ids, payloads := mixed(nodes[n], round, rnd)
			if _, err := client.publish(payloads...); err != nil {
				t.Fatal(err)
			}
			all = append(all, ids...)
		}
		for _, n := range rnd.Perm(len(nodes)) {
			// The pause is chance, not patience: it decides where the kill hits.
			time.Sleep(time.Duration(rnd.IntN(60)) * time.Millisecond)
			agents[nodes[n]].mute = true
			agents[nodes[n]].kill()
			agents[nodes[n]] = s.agent(nodes[n])
			kills++
		}
	}
	a := s.examine(all, nodes)
	a.once()
	count := map[string]int{}
	for id, i := range a.ends {
		count[i.Intent+" "+i.State+" "+i.Reason]++
		if i.Attempt > 1 {
			count[i.Intent+" retried"]++
		}
		switch {
		case i.State == succeeded:
		case i.Intent == "gpio.pulse" && i.State == timedOut && i.Reason == "interrupted" && i.Operator:
		default:
			t.Errorf("%s ended as %s %s (operator %v): %s\n%s", id, i.State, i.Reason, i.Operator, i.Detail, a.story(id))
		}
	}
	t.Logf("%d kills, %d commands, %d tokens that acted: %v", kills, len(all), len(a.lines), count)
	if count["gpio.pulse TIMEOUT interrupted"] == 0 && kills >= 100 {
		t.Error("no kill hit a pulse: the moments are badly chosen")
	}
}

// publisher sends batches of writes until it is stopped, whatever becomes of its
// connection.
type publisher struct {
	name    string
	nodes   []string
	sent    []string // ids of every command that may have left
	acked   []string
	batches int
}

func (p *publisher) run(s *site, stop *atomic.Bool) {
	var c *rawClient
	defer func() {
		if c != nil {
			c.close()
		}
	}()
	for !stop.Load() {
		time.Sleep(20 * time.Millisecond) // the load, not the speed, is wanted
		if c == nil {
			var err error
			if c, err = dial(s.mqtt, p.name); err != nil {
				c = nil
				continue
			}
		}
		var ids, payloads []string
		for k := range 4 {
			id := fmt.Sprintf("%s-%d-%d", p.name, p.batches, k)
			ids = append(ids, id)
			payloads = append(payloads, write(id, p.nodes[k%len(p.nodes)], "GPIO17", p.batches%2))
		}
		p.batches++
		p.sent = append(p.sent, ids...)
		n, err := c.publish(payloads...)
		p.acked = append(p.acked, ids[:n]...)
		if err != nil {
			c.close()
			c = nil
		}
	}
}

// TestKill_GatewayUnderLoad: 30 SIGKILLs of the gateway while two publishers and
// four agents work. Whatever was acknowledged runs exactly once, and nothing ran
// that is not in the log (A2, A3, C5).
func TestKill_GatewayUnderLoad(t *testing.T) {
	t.Parallel()
	rnd := seeded(t)
	s := newSite(t)
	nodes := []string{"pump-1", "pump-2", "pump-3", "pump-4"}
	for _, n := range nodes {
		s.agent(n)
		s.online(n)
	}
	var stop atomic.Bool
	var all sync.WaitGroup
	pubs := []*publisher{{name: "scada-1", nodes: nodes}, {name: "scada-2", nodes: nodes}}
	for _, p := range pubs {
		all.Go(func() { p.run(s, &stop) })
	}
	t.Cleanup(func() { stop.Store(true); all.Wait() }) // when the test fails half way
	kills := rounds(t, 30)
	for range kills {
		time.Sleep(time.Duration(50+rnd.IntN(400)) * time.Millisecond) // chance again
		s.restart()
	}
	stop.Store(true)
	all.Wait()
	var acked, known []string
	lost := 0
	for _, p := range pubs {
		acked = append(acked, p.acked...)
		for _, id := range p.sent {
			var v taskView
			switch {
			case s.get("/v1/tasks/"+id, &v):
				known = append(known, id)
			case slices.Contains(p.acked, id):
				t.Errorf("%s was acknowledged and is lost", id)
			default:
				lost++
			}
		}
	}
	a := s.examine(known, nodes)
	a.once()
	count := map[string]int{}
	for id, i := range a.ends {
		count[i.State]++
		if i.State != succeeded {
			t.Errorf("%s ended as %s %s: %s\n%s", id, i.State, i.Reason, i.Detail, a.story(id))
		}
	}
	t.Logf("%d kills; %d commands acknowledged, %d more taken without an answer, %d never taken: %v; %d actuations",
		kills, len(acked), len(known)-len(acked), lost, count, len(a.lines))
	if len(acked) < kills {
		t.Errorf("only %d commands: hardly any load", len(acked))
	}
}
