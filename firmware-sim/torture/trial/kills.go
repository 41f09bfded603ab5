package trial

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/apollo-11/apollo11/firmware-sim/torture/rig"
	"github.com/apollo-11/apollo11/gateway/scada"
)

// Setup is what every trial needs.
type Setup struct {
	Bin  rig.Programs
	Dir  string // an empty directory of its own
	Seed uint64 // decides when something happens; the machine decides the rest
	// Progress is told how far the trial is. Required.
	Progress func(format string, args ...any)
}

func (u Setup) rnd() *rand.Rand { return rand.New(rand.NewPCG(u.Seed, 11)) }

// KillsResult is what a trial with kills found.
type KillsResult struct {
	Tally
	// Restart is how long the killed program took until it served again.
	Restart Spread `json:"restart"`
}

// nodeNames are the names of n nodes.
func nodeNames(n int) []string {
	list := make([]string, n)
	for k := range list {
		list[k] = fmt.Sprintf("pump-%d", k+1)
	}
	return list
}

// safeNodes are those of the nodes whose outputs have a safe level: every second.
func safeNodes(nodes []string) map[string]bool {
	safe := map[string]bool{}
	for k, n := range nodes {
		safe[n] = k%2 == 1
	}
	return safe
}

// startAgent starts the agent of a node, with a pin map if its outputs have a safe
// level. The names are those of a board without one.
func startAgent(s *rig.Site, nodes []string, node string) (*rig.Process, error) {
	if !safeNodes(nodes)[node] {
		return s.StartAgent(node, s.Door())
	}
	text := "pins:\n"
	for _, k := range []int{4, 5, 6, 7, 8, 9, 10, 11, 17} {
		text += fmt.Sprintf("  - {name: GPIO%d, line: GPIO%[1]d, direction: out, safe: 0}\n", k)
	}
	config := filepath.Join(s.Dir(), "agent.yaml")
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		return nil, err
	}
	return s.StartAgent(node, s.Door(), "--config", config)
}

// startAgents starts an agent for each node and waits until all are online.
func startAgents(ctx context.Context, s *rig.Site, nodes []string) (map[string]*rig.Process, error) {
	agents := map[string]*rig.Process{}
	for _, n := range nodes {
		p, err := startAgent(s, nodes, n)
		if err != nil {
			return nil, err
		}
		agents[n] = p
	}
	for _, n := range nodes {
		if _, err := s.AwaitNode(ctx, n, scada.PresenceOnline); err != nil {
			return nil, fmt.Errorf("%w\n%s", err, agents[n].Output())
		}
	}
	return agents, nil
}

// GatewayKills kills the gateway and starts it again, under load from two clients
// to four agents (A2, A3, C5).
func GatewayKills(ctx context.Context, u Setup, rounds int) (r KillsResult, err error) {
	r.Name, r.Rounds = "gateway killed", rounds
	began := time.Now()
	rnd := u.rnd()
	s, err := rig.NewSite(ctx, u.Bin, u.Dir, rig.Options{})
	if err != nil {
		return r, err
	}
	defer s.Close()
	nodes := nodeNames(4)
	if _, err := startAgents(ctx, s, nodes); err != nil {
		return r, err
	}
	b := newBook()
	l := startLoad(ctx, s, b, nodes, 2, 40*time.Millisecond, rnd)
	defer l.end()
	var took []time.Duration
	for k := range rounds {
		if err := rig.Pause(ctx, time.Duration(50+rnd.IntN(400))*time.Millisecond); err != nil {
			return r, err
		}
		s.KillGateway()
		d, err := s.StartGateway(ctx)
		if err != nil {
			return r, err
		}
		took = append(took, d)
		u.Progress("gateway killed %d of %d times, %d commands", k+1, rounds, b.count())
	}
	l.end()
	r.Restart = NewSpread(took)
	err = r.settle(ctx, s, b, nodes)
	r.Took = time.Since(began)
	return r, err
}

// AgentKills kills agents at random moments under mixed commands and starts them
// again (C6, C7, C14).
func AgentKills(ctx context.Context, u Setup, rounds int) (r KillsResult, err error) {
	r.Name, r.Rounds = "agent killed", rounds
	began := time.Now()
	rnd := u.rnd()
	s, err := rig.NewSite(ctx, u.Bin, u.Dir, rig.Options{})
	if err != nil {
		return r, err
	}
	defer s.Close()
	nodes := nodeNames(4)
	agents, err := startAgents(ctx, s, nodes)
	if err != nil {
		return r, err
	}
	b := newBook()
	l := startLoad(ctx, s, b, nodes, 2, 40*time.Millisecond, rnd)
	defer l.end()
	var took []time.Duration
	for k := range rounds {
		if err := rig.Pause(ctx, time.Duration(50+rnd.IntN(250))*time.Millisecond); err != nil {
			return r, err
		}
		n := nodes[rnd.IntN(len(nodes))]
		agents[n].Kill()
		if agents[n], err = startAgent(s, nodes, n); err != nil {
			return r, err
		}
		// Now and then the agent is killed again before it is back.
		if rnd.IntN(4) > 0 {
			if err := back(ctx, s, agents[n], n); err != nil {
				return r, err
			}
			took = append(took, time.Since(agents[n].Began()))
		}
		u.Progress("agents killed %d of %d times, %d commands", k+1, rounds, b.count())
	}
	l.end()
	r.Restart = NewSpread(took)
	err = r.settle(ctx, s, b, nodes)
	r.Took = time.Since(began)
	return r, err
}

// back waits until the gateway has welcomed an agent that was started again.
func back(ctx context.Context, s *rig.Site, p *rig.Process, node string) error {
	return rig.Await(ctx, rig.Patience, node+" back", func() (bool, error) {
		if p.Ended() {
			return false, fmt.Errorf("the agent has ended:\n%s", p.Output())
		}
		n, err := s.Node(ctx, node)
		if err != nil || n.State != string(scada.PresenceOnline) {
			return false, err
		}
		since, err := time.Parse(time.RFC3339, n.Since)
		// The API's times are whole milliseconds.
		return err == nil && !since.Before(p.Began().Truncate(time.Millisecond)), err
	})
}

// Spread is how a measured time is distributed.
type Spread struct {
	Count  int           `json:"count"`
	Median time.Duration `json:"median_ns"`
	P99    time.Duration `json:"p99_ns"`
	Least  time.Duration `json:"least_ns"`
	Most   time.Duration `json:"most_ns"`
}

// NewSpread sorts measured times; the zero Spread for none.
func NewSpread(d []time.Duration) Spread {
	if len(d) == 0 {
		return Spread{}
	}
	s := slices.Sorted(slices.Values(d))
	at := func(q float64) time.Duration { return s[min(len(s)-1, int(q*float64(len(s))))] }
	return Spread{len(s), at(0.5), at(0.99), s[0], s[len(s)-1]}
}
