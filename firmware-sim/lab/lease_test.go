package lab

import (
	"fmt"
	"slices"
	"syscall"
	"time"

	"github.com/apollo-11/apollo11/firmware-sim/torture/rig"
	"github.com/apollo-11/apollo11/gateway/api"
	"github.com/apollo-11/apollo11/gateway/scada"
)

// lease: an output that was switched on for a time is off after it, by itself, and
// that is told (C13).
func (s *site) lease(l level) {
	const limit, slack = 1500 * time.Millisecond, time.Second
	id := l.name + "-lease"
	s.publish(doc(id, "gpio.write", l.name, fmt.Sprintf(`{"pin":"out","level":1,"max_on_ms":%d}`, limit.Milliseconds())))
	s.done(s.t, id)
	s.seen(l.out, false, patience)
	edges := s.board.Lines().Edges(l.out)
	if len(edges) < 2 || edges[len(edges)-1].High {
		s.t.Fatalf("edges %v", edges)
	}
	on := edges[len(edges)-1].At.Sub(edges[len(edges)-2].At)
	s.t.Logf("on for %v, the lease was %v", on.Round(time.Millisecond), limit)
	if on < limit-20*time.Millisecond || on > limit+slack {
		s.t.Errorf("on for %v, the lease was %v", on, limit)
	}
	s.leaseEnd(id, "expired")
}

// leaseEnd waits until it is told how a lease has ended.
func (s *site) leaseEnd(id, how string) {
	s.t.Helper()
	var last *scada.LeaseView
	err := rig.Await(s.t.Context(), patience, "end of the lease of "+id, func() (bool, error) {
		var task scada.TaskView
		if _, err := s.get(s.t.Context(), "/v1/tasks/"+id, &task); err != nil || len(task.Instructions) != 1 {
			return false, err
		}
		last = task.Instructions[0].Lease
		return last != nil && !last.Open, nil
	})
	s.must(err)
	if last.End != how {
		s.t.Errorf("the lease of %s ended by %q, want %q", id, last.End, how)
	}
}

// foreign: what another hand does to an output is told within a heartbeat, left
// alone, and over with the next command (C15, I11).
func (s *site) foreign() {
	const limit = 20 * time.Second // a heartbeat is 5 s; a busy machine
	alarmed := func(l level) func() (bool, error) {
		return func() (bool, error) {
			var n api.NodeDetail
			_, err := s.get(s.t.Context(), "/v1/nodes/"+l.name, &n)
			return slices.ContainsFunc(n.Standing, func(a api.Alarm) bool { return a.Alarm == "pin_foreign" }), err
		}
	}
	for _, l := range levels {
		s.online(l.name)
		s.publish(write(l.name+"-own", l.name, "out", 0))
		s.done(s.t, l.name+"-own")
		s.must(s.board.Lines().Force(l.out, true))
	}
	forced := time.Now()
	for _, l := range levels {
		s.must(rig.Await(s.t.Context(), limit, l.name+": pin_foreign", alarmed(l)))
		s.t.Logf("%s: told after %v", l.name, time.Since(forced).Round(time.Millisecond))
		if high, err := s.board.Lines().High(l.out); err != nil || !high {
			s.t.Errorf("%s fought the hand: %v", l.name, err)
		}
	}
	for _, l := range levels {
		s.publish(write(l.name+"-again", l.name, "out", 0))
		s.done(s.t, l.name+"-again")
		s.seen(l.out, false, patience)
		s.must(rig.Await(s.t.Context(), limit, l.name+": pin_foreign is over", func() (bool, error) {
			on, err := alarmed(l)()
			return !on, err
		}))
	}
}

// leased is how long outputs are on in the tests of agents that die: longer than the
// watchdog takes, so that the two can be told apart.
const leased = 30 * time.Second

// switchedOn sets a level's output with a lease and returns when it was seen high.
func (s *site) switchedOn(l level, id string) time.Time {
	s.t.Helper()
	s.publish(doc(id, "gpio.write", l.name, fmt.Sprintf(`{"pin":"out","level":1,"max_on":"%v"}`, leased)))
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

// killed: the agent is killed in the middle of a leased "on"; the line is safe
// within the lease, and stays so when the agent is back (C13, I1).
func (s *site) killed(l level) { s.dies(l, l.name+"-kill", syscall.SIGKILL) }

// crashed: the same with a crash as Go's runtime makes it, which ends with exit code
// 2: that is a failure like any other, and no reason to stay down.
func (s *site) crashed(l level) { s.dies(l, l.name+"-crash", syscall.SIGQUIT) }

func (s *site) dies(l level, id string, of syscall.Signal) {
	s.online(l.name)
	starts := s.starts(l)
	began := s.switchedOn(l, id)
	killed := time.Now()
	s.must(s.board.Signal(l.name, int(of)))
	down := s.fell(l.out, 2*leased)
	if down.Sub(began) > leased {
		s.t.Errorf("the line was high for %v, the lease is %v", down.Sub(began), leased)
	}
	s.t.Logf("safe %v after %v", down.Sub(killed).Round(time.Millisecond), of)
	edges := len(s.board.Lines().Edges(l.out))
	s.back(l, starts)
	if n := len(s.board.Lines().Edges(l.out)) - edges; n != 0 {
		s.t.Errorf("%d edges while the agent came back", n)
	}
	s.leaseEnd(id, "restart")
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

// hung: agents that hang in the middle of a leased "on" are silent; the watchdog brings
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
		took := s.fell(l.out, 2*leased).Sub(stopped)
		s.t.Logf("%s: safe %v after it hung", l.name, took.Round(time.Millisecond))
		if took > watchdog+slack {
			s.t.Errorf("%s: safe after %v, the watchdog has %v", l.name, took, watchdog)
		}
	}
	for _, l := range levels {
		s.back(l, starts[l.name])
		s.leaseEnd(l.name+"-hang", "restart")
	}
}
