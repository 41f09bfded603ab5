package trial

import (
	"context"
	"fmt"
	"syscall"
	"time"

	"github.com/apollo-11/apollo11/firmware-sim/torture/rig"
	"github.com/apollo-11/apollo11/gateway/scada"
)

// Limits of what Leave measures (C1).
const (
	StopLimit  = time.Second // a graceful stop gives back what has not started
	CrashLimit = time.Second // the socket dies: the last will tells
	// HangLimit: a node is offline 15 s after its last sign of life. What is
	// measured begins at the hang, up to a heartbeat of 5 s after that sign, and
	// ends when the API shows it.
	HangLimit = 16 * time.Second
	HangLeast = 9 * time.Second
)

// LeaveResult is how soon the gateway knows that an agent is gone, and how soon
// its work is free again.
type LeaveResult struct {
	Stop  Spread        `json:"stop"`  // SIGTERM to the re-queueing of what waited inside
	Crash Spread        `json:"crash"` // SIGKILL to offline
	Hang  Spread        `json:"hang"`  // SIGSTOP to offline
	Took  time.Duration `json:"took_ns"`
}

// OK reports whether all limits hold.
func (r LeaveResult) OK() bool {
	return r.Stop.Most < StopLimit && r.Crash.Most < CrashLimit &&
		(r.Hang.Count == 0 || r.Hang.Most < HangLimit && r.Hang.Least > HangLeast)
}

// Leave stops, kills and halts agents that have work. Hangs take 15 s each, all
// hanging agents hang at the same time.
func Leave(ctx context.Context, u Setup, rounds, hangs int) (r LeaveResult, err error) {
	began := time.Now()
	s, err := rig.NewSite(ctx, u.Bin, u.Dir, rig.Options{})
	if err != nil {
		return r, err
	}
	defer s.Close()
	client, err := s.Client(ctx, "scada-1")
	if err != nil {
		return r, err
	}
	defer client.Close()
	hang := make(chan error, 1)
	hung := []time.Duration{}
	go func() {
		var err error
		hung, err = halts(ctx, s, hangs)
		hang <- err
	}()
	err = func() error {
		var stops, crashes []time.Duration
		for k := range rounds {
			stop, err := stopWithWork(ctx, s, client, fmt.Sprintf("stops-%d", k))
			if err != nil {
				return err
			}
			crash, err := crash(ctx, s, fmt.Sprintf("crashes-%d", k))
			if err != nil {
				return err
			}
			stops, crashes = append(stops, stop), append(crashes, crash)
			u.Progress("agents stopped and crashed %d of %d times", k+1, rounds)
		}
		r.Stop, r.Crash = NewSpread(stops), NewSpread(crashes)
		return nil
	}()
	if herr := <-hang; err == nil {
		err = herr
	}
	r.Hang = NewSpread(hung)
	r.Took = time.Since(began)
	return r, err
}

// stopWithWork asks an agent with one worker to end while a long pulse runs and a
// write waits behind it, and measures until the write is queued again.
func stopWithWork(ctx context.Context, s *rig.Site, client *rig.Client, node string) (time.Duration, error) {
	p, err := s.StartAgent(node, s.Door(), "--workers", "1")
	if err != nil {
		return 0, err
	}
	if _, err := s.AwaitNode(ctx, node, scada.PresenceOnline); err != nil {
		return 0, err
	}
	_, err = client.Submit(rig.TaskTopic,
		fmt.Sprintf(`{"task_id":"%[1]s-long","intent":"gpio.pulse","node":%[1]q,"args":{"pin":"GPIO17","width":"50s"}}`, node),
		fmt.Sprintf(`{"task_id":"%[1]s-waits","intent":"gpio.write","node":%[1]q,"args":{"pin":"GPIO17","level":1}}`, node))
	if err != nil {
		return 0, err
	}
	var seq uint64
	err = rig.Await(ctx, rig.Patience, node+" has its work", func() (bool, error) {
		t, _, err := s.Task(ctx, node+"-waits")
		if err != nil || len(t.Instructions) != 1 {
			return false, err
		}
		seq = t.Instructions[0].Seq
		return t.Instructions[0].Received != "", nil
	})
	if err != nil {
		return 0, err
	}
	asked := time.Now()
	p.Signal(syscall.SIGTERM)
	at, err := entryTime(ctx, s, seq, "requeued")
	if err != nil {
		return 0, err
	}
	if code, err := p.Wait(rig.Patience); err != nil || code != 0 {
		return 0, fmt.Errorf("%s ended with %d: %w\n%s", node, code, err, p.Output())
	}
	return at.Sub(asked), nil
}

// entryTime waits for an entry of a timeline and returns the gateway's time of it.
func entryTime(ctx context.Context, s *rig.Site, seq uint64, what string) (at time.Time, err error) {
	err = rig.Await(ctx, rig.Patience, what, func() (bool, error) {
		entries, err := s.Timeline(ctx, seq)
		if err != nil {
			return false, err
		}
		for _, e := range entries {
			if e.What == what {
				at, err = time.Parse(time.RFC3339, e.Time)
				return true, err
			}
		}
		return false, nil
	})
	return at, err
}

// crash kills an agent; its socket dies with it.
func crash(ctx context.Context, s *rig.Site, node string) (time.Duration, error) {
	p, err := s.StartAgent(node, s.Door())
	if err != nil {
		return 0, err
	}
	if _, err := s.AwaitNode(ctx, node, scada.PresenceOnline); err != nil {
		return 0, err
	}
	killed := time.Now()
	p.Kill()
	return offline(ctx, s, node, killed)
}

// offline waits for a node to be offline and returns how long that was after
// something, by the gateway's time.
func offline(ctx context.Context, s *rig.Site, node string, from time.Time) (time.Duration, error) {
	n, err := s.AwaitNode(ctx, node, scada.PresenceOffline)
	if err != nil {
		return 0, err
	}
	since, err := time.Parse(time.RFC3339, n.Since)
	return since.Sub(from), err
}

// halts stops agents without ending them: their connections stand and are silent.
func halts(ctx context.Context, s *rig.Site, n int) (took []time.Duration, err error) {
	at := map[string]time.Time{}
	var nodes []string
	for k := range n {
		node := fmt.Sprintf("hangs-%d", k)
		p, err := s.StartAgent(node, s.Door())
		if err != nil {
			return nil, err
		}
		if _, err := s.AwaitNode(ctx, node, scada.PresenceOnline); err != nil {
			return nil, err
		}
		at[node] = time.Now()
		p.Signal(syscall.SIGSTOP)
		nodes = append(nodes, node)
	}
	for _, node := range nodes {
		d, err := offline(ctx, s, node, at[node])
		if err != nil {
			return nil, err
		}
		took = append(took, d)
	}
	return took, nil
}
