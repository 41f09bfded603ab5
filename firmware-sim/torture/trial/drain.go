package trial

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/apollo-11/apollo11/firmware-sim/torture/rig"
)

const (
	// DrainRatio is how fast a backlog must be drained with a kill in the middle,
	// compared with one that nothing disturbs.
	DrainRatio = 0.8
	// ratioFrom is how many commands there are at least before that is demanded: of fewer
	// the restart of the agent, which is the same for all, has too great a share.
	ratioFrom = 5_000
	// drainDelay is how long each way to the slow board takes.
	drainDelay = 10 * time.Millisecond
	// drainReaders read the ends.
	drainReaders = 4
	drainNode    = orderNode
)

// DrainResult is what became of a backlog, and how fast.
type DrainResult struct {
	Commands int `json:"commands"`
	Lines    int `json:"lines"`
	// Undisturbed and Killed are commands a second, from the start of the agent to the
	// last end; Ratio is the second to the first.
	Undisturbed float64 `json:"undisturbed_per_s"`
	Killed      float64 `json:"killed_per_s"`
	Ratio       float64 `json:"ratio"`
	// Gap is the longest time without a move of a pin, with the kill.
	Gap        time.Duration `json:"gap_ns"`
	Superseded int           `json:"superseded"` // cut by the kill, with something newer on its line
	Unknown    int           `json:"unknown"`    // the same, the last of its line
	// NoRoom failed for want of room; Wrong ended otherwise than they may; Overtaken
	// moved a pin after a newer one had; Twice did so more than once by one attempt. They
	// must be 0.
	NoRoom    int           `json:"no_room"`
	Wrong     int           `json:"wrong"`
	Overtaken int           `json:"overtaken"`
	Twice     int           `json:"twice"`
	Took      time.Duration `json:"took_ns"`
	Faults    []string      `json:"faults,omitempty"`
}

// OK reports whether everything ran in order, and fast enough.
func (r *DrainResult) OK() bool {
	return r.NoRoom+r.Wrong+r.Overtaken+r.Twice == 0 && (r.Ratio >= DrainRatio || r.Commands < ratioFrom)
}

func (r *DrainResult) fault(count *int, format string, args ...any) {
	*count++
	if len(r.Faults) < maxFaults {
		r.Faults = append(r.Faults, fmt.Sprintf(format, args...))
	}
}

// Drain lets commands for twenty lines of one node wait until it comes: a slow board,
// with one worker, behind a line with a delay. It does so twice, and the second time
// the agent is killed in the middle (B26).
func Drain(ctx context.Context, u Setup, commands int) (r DrainResult, err error) {
	r.Commands, r.Lines = commands, otherPins
	began := time.Now()
	for k, rate := range []*float64{&r.Undisturbed, &r.Killed} {
		v := u
		v.Dir = filepath.Join(u.Dir, fmt.Sprint("drain-", k))
		if err := os.Mkdir(v.Dir, 0o700); err != nil {
			return r, err
		}
		if *rate, err = drainOnce(ctx, v, &r, k > 0); err != nil {
			return r, err
		}
	}
	r.Ratio = r.Killed / r.Undisturbed
	r.Took = time.Since(began)
	return r, nil
}

// drainOnce returns how many a second were drained.
func drainOnce(ctx context.Context, u Setup, r *DrainResult, kill bool) (rate float64, err error) {
	pins := "pins:\n"
	for k := range otherPins {
		pins += fmt.Sprintf("  - {name: other-%d, line: GPIO%d, direction: out}\n", k, k)
	}
	// The bucket is for many nodes that come back at once. Here the board is to be what
	// is slow.
	gateway, agent := filepath.Join(u.Dir, "gateway.yaml"), filepath.Join(u.Dir, "agent.yaml")
	if err := errors.Join(os.WriteFile(gateway, []byte("delivery:\n  drain_rate: 100000\n  drain_burst: 100000\n"), 0o600),
		os.WriteFile(agent, []byte(pins), 0o600)); err != nil {
		return 0, err
	}
	s, err := rig.NewSite(ctx, u.Bin, u.Dir, rig.Options{Args: []string{"--config", gateway}})
	if err != nil {
		return 0, err
	}
	defer s.Close()
	proxy, err := rig.NewSlowProxy(s.Door().MQTT, drainDelay)
	if err != nil {
		return 0, err
	}
	defer proxy.Close()
	if err := waiting(ctx, s, r.Commands); err != nil {
		return 0, err
	}
	start := func() (*rig.Process, error) {
		return s.StartAgent(drainNode, rig.Door{MQTT: proxy.Addr(), Narrowband: s.Door().Narrowband}, "--config", agent, "--workers", "1")
	}
	began := time.Now()
	p, err := start()
	if err != nil {
		return 0, err
	}
	limit := settleLimit + time.Duration(r.Commands)*100*time.Millisecond
	if kill {
		// It is looked at as in the time after it: else the first half would be slower.
		if err := rig.Await(ctx, limit, "half of the backlog", func() (bool, error) {
			n, err := s.Node(ctx, drainNode)
			return err == nil && n.LastHello != "" && int(n.Queued) <= r.Commands/2, errors.Join(err, rig.Pause(ctx, 100*time.Millisecond))
		}); err != nil {
			return 0, err
		}
		p.Kill()
		if p, err = start(); err != nil {
			return 0, err
		}
	}
	err = rig.Await(ctx, limit, "backlog drained", func() (bool, error) {
		n, err := s.Node(ctx, drainNode)
		u.Progress("backlog, killed %t: %d wait", kill, n.Queued)
		// More looking would make the machine slower than the board.
		return err == nil && n.LastHello != "" && n.Queued == 0 && n.Running == 0, errors.Join(err, rig.Pause(ctx, 100*time.Millisecond))
	})
	if err != nil {
		return 0, fmt.Errorf("%w\n%s", err, p.Output())
	}
	rate = float64(r.Commands) / time.Since(began).Seconds()
	return rate, r.judge(ctx, s, kill)
}

func backlogID(n int) string { return fmt.Sprintf("backlog-%d", n) }

// waiting lets commands wait for a node that has never been there.
func waiting(ctx context.Context, s *rig.Site, commands int) error {
	c, err := s.Client(ctx, "scada-backlog")
	if err != nil {
		return err
	}
	defer c.Close()
	const batch = 200
	for k := 0; k < commands; k += batch {
		var docs []string
		for n := k; n < min(k+batch, commands); n++ {
			docs = append(docs, fmt.Sprintf(`{"task_id":%q,"intent":"gpio.write","node":%q,"args":{"pin":"other-%d","level":%d}%s}`,
				backlogID(n), drainNode, n%otherPins, n/otherPins%2, often))
		}
		if _, err := c.Submit(rig.TaskTopic, docs...); err != nil {
			return err
		}
	}
	return nil
}

// judge holds every command, and every move of the pins, against the order of
// submission.
func (r *DrainResult) judge(ctx context.Context, s *rig.Site, killed bool) error {
	all := make([]*Account, r.Commands)
	errs := make([]error, drainReaders)
	var readers sync.WaitGroup
	for k := range drainReaders {
		readers.Go(func() {
			for n := k; n < len(all); n += drainReaders {
				all[n] = &Account{ID: backlogID(n), acted: map[string]int{}}
				if errs[k] = all[n].read(ctx, s); errs[k] != nil {
					return
				}
			}
		})
	}
	readers.Wait()
	if err := errors.Join(errs...); err != nil {
		return err
	}
	acts, err := s.Actuations(drainNode)
	if err != nil {
		return err
	}
	of := map[string]int{}
	for n, a := range all {
		for _, token := range a.Tokens {
			of[token] = n
		}
	}
	newest := map[string]int{}
	for k, act := range acts {
		if k > 0 && killed {
			r.Gap = max(r.Gap, time.Duration(act.At-acts[k-1].At))
		}
		n, ok := of[act.Cause]
		if line := fmt.Sprintf("GPIO%d", n%otherPins); !ok || act.Pin != line {
			r.fault(&r.Wrong, "%s was moved by %s, which is for another line or of no command", act.Pin, act.Cause)
			continue
		}
		if n < newest[act.Pin] {
			r.fault(&r.Overtaken, "command %d moved %s after command %d", n, act.Pin, newest[act.Pin])
		}
		newest[act.Pin] = max(newest[act.Pin], n)
		if all[n].acted[act.Cause]++; all[n].acted[act.Cause] > 1 {
			r.fault(&r.Twice, "command %d was done %d times by one attempt", n, all[n].acted[act.Cause])
		}
	}
	cut := 0 // one worker: the kill cuts one
	for n, a := range all {
		i := &a.End
		newer := slices.ContainsFunc(all[n+1:], func(b *Account) bool { return b.line() == a.line() && b.moved() > 0 })
		switch {
		case strings.Contains(i.Code+i.Reason, "resources"), strings.Contains(i.Code+i.Reason, "busy"):
			r.fault(&r.NoRoom, "command %d is %s for want of room: %s %s", n, i.State, i.Code, i.Detail)
		case i.State == succeeded && a.moved() > 0:
		case killed && i.OutcomeUnknown && i.Operator != newer && cut == 0:
			if cut++; newer {
				r.Superseded++
			} else {
				r.Unknown++
			}
		default:
			r.fault(&r.Wrong, "command %d is %s %s (%s) and has moved its pin %d times", n, i.State, i.Reason, i.Detail, a.moved())
		}
	}
	return nil
}
