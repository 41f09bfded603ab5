package trial

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/apollo-11/apollo11/firmware-sim/torture/rig"
	"github.com/apollo-11/apollo11/gateway/scada"
)

// WindowLimit is what the 99th percentile of the status-unknown window must stay
// under (B3).
const WindowLimit = time.Second

// Case is when a command meets the dead primary path.
type Case string

// The two cases.
const (
	// Before: it arrives and runs, and then the path is dead, so that only the
	// narrowband can tell.
	Before Case = "sent before"
	// Into: it is sent into the dead path, and the narrowband tells that it has not
	// arrived.
	Into Case = "sent into"
)

// WindowResult is how long the state of an attempt was unknown.
type WindowResult struct {
	Case Case `json:"case"`
	// Burst is how many commands a node was sent at once. The narrowband carries a
	// question every 200 ms to each node, so that all but the first few of a burst
	// are known later than WindowLimit: the limit is demanded of single commands.
	Burst  int    `json:"burst"`
	Window Spread `json:"window"` // by the timelines
	// P99Bucket is the upper bound of the bucket of the gateway's own histogram
	// that holds the 99th percentile, in seconds.
	P99Bucket float64 `json:"p99_bucket_seconds"`
	// Twice and Failed must be 0: commands that moved a pin more than once, and
	// those that did not succeed in the end.
	Twice  int           `json:"twice"`
	Failed int           `json:"failed"`
	Took   time.Duration `json:"took_ns"`
}

// OK reports whether the limit holds and every command ran exactly once.
func (r WindowResult) OK() bool {
	inTime := r.Window.P99 < WindowLimit && r.P99Bucket <= WindowLimit.Seconds()
	return r.Twice+r.Failed == 0 && (inTime || r.Burst > 1)
}

// lane is a node whose primary path can be made dead.
type lane struct {
	node  string
	proxy *rig.Proxy
	last  []string // the ids of its latest commands
	acted int      // how often its pins should have moved by now
}

// Window makes the primary path of agents a black hole: the connections stand,
// nothing passes. The narrowband lives. Each round sends burst commands to each of
// lanes nodes, and ends the black hole when all states are known.
func Window(ctx context.Context, u Setup, c Case, rounds, lanes, burst int) (r WindowResult, err error) {
	r.Case, r.Burst = c, burst
	began := time.Now()
	s, err := rig.NewSite(ctx, u.Bin, u.Dir, rig.Options{})
	if err != nil {
		return r, err
	}
	defer s.Close()
	list, closeAll, err := startLanes(ctx, s, lanes)
	defer closeAll()
	if err != nil {
		return r, err
	}
	client, err := s.Client(ctx, "scada-1")
	if err != nil {
		return r, err
	}
	defer client.Close()
	var windows []time.Duration
	for k := range rounds {
		for _, n := range list {
			list, err := n.round(ctx, s, client, c, k, burst)
			if err != nil {
				return r, fmt.Errorf("%s, round %d: %w", n.node, k+1, err)
			}
			windows = append(windows, list...)
		}
		for _, n := range list {
			n.proxy.Mend()
		}
		for _, n := range list {
			if err := n.settled(ctx, s, &r); err != nil {
				return r, err
			}
			if err := n.healed(ctx, s, client); err != nil {
				return r, err
			}
		}
		u.Progress("black hole %d of %d, command %s", k+1, rounds, c)
	}
	r.Window = NewSpread(windows)
	r.P99Bucket, err = bucket99(ctx, s)
	r.Took = time.Since(began)
	return r, err
}

// startLanes starts agents behind proxies.
func startLanes(ctx context.Context, s *rig.Site, n int) (list []*lane, closeAll func(), err error) {
	closeAll = func() {
		for _, l := range list {
			l.proxy.Close()
		}
	}
	for _, node := range nodeNames(n) {
		p, err := rig.NewProxy(s.Door().MQTT)
		if err != nil {
			return list, closeAll, err
		}
		list = append(list, &lane{node: node, proxy: p})
		if _, err := s.StartAgent(node, rig.Door{MQTT: p.Addr(), Narrowband: s.Door().Narrowband}); err != nil {
			return list, closeAll, err
		}
	}
	for _, l := range list {
		if _, err := s.AwaitNode(ctx, l.node, scada.PresenceOnline); err != nil {
			return list, closeAll, err
		}
	}
	err = rig.Await(ctx, rig.Patience, "narrowband connections", func() (bool, error) {
		have, err := s.NarrowbandConnections(ctx)
		return have == n, err
	})
	return list, closeAll, err
}

// round makes the black hole with commands at its edge, and returns how long the
// state of each was unknown. It goes on to the next node while the black hole of
// this one still stands.
func (n *lane) round(ctx context.Context, s *rig.Site, client *rig.Client, c Case, k, burst int) ([]time.Duration, error) {
	if c == Into {
		n.proxy.Hold(rig.Up, rig.Down)
	} else {
		n.proxy.Hold(rig.Up)
	}
	var payloads []string // each for a line of its own: at one, a newer one waits for word of the older
	n.last, n.acted = nil, n.acted+burst
	for b := range burst {
		id := fmt.Sprintf("%s-%d-%d", n.node, k, b)
		n.last = append(n.last, id)
		payloads = append(payloads, fmt.Sprintf(`{"task_id":%q,"intent":"gpio.write","node":%q,"args":{"pin":"GPIO%d","level":%d}}`, id, n.node, 17+b, k%2))
	}
	if _, err := client.Submit(rig.TaskTopic, payloads...); err != nil {
		return nil, err
	}
	if c == Before {
		err := rig.Await(ctx, rig.Patience, "the pin moved", func() (bool, error) {
			acts, err := s.Actuations(n.node)
			return len(acts) >= n.acted, err
		})
		if err != nil {
			return nil, err
		}
		n.proxy.Hold(rig.Down)
	}
	var list []time.Duration
	for _, id := range n.last {
		d, err := known(ctx, s, id)
		if err != nil {
			return nil, err
		}
		list = append(list, d)
	}
	return list, nil
}

// known waits until the state of a command is known and returns how long it was
// not.
func known(ctx context.Context, s *rig.Site, id string) (d time.Duration, err error) {
	err = rig.Await(ctx, rig.Patience, "state of "+id+" known", func() (bool, error) {
		task, found, err := s.Task(ctx, id)
		if err != nil || !found || len(task.Instructions) != 1 {
			return false, err
		}
		entries, err := s.Timeline(ctx, task.Instructions[0].Seq)
		if err != nil {
			return false, err
		}
		var ok bool
		d, ok, err = unknownFor(entries)
		return ok, err
	})
	return d, err
}

// unknownFor is the time from the first dispatch to the first sign of it over
// narrowband.
func unknownFor(entries []scada.EntryView) (d time.Duration, known bool, err error) {
	var sent string
	for _, e := range entries {
		switch {
		case e.What == "dispatched" && sent == "":
			sent = e.Time
		case sent == "", e.What == "queried", e.What == "resent":
		case e.Path == "narrowband", e.What == "requeued" && strings.Contains(e.Detail, "narrowband"):
			from, err := time.Parse(time.RFC3339, sent)
			if err != nil {
				return 0, false, err
			}
			to, err := time.Parse(time.RFC3339, e.Time)
			return to.Sub(from), true, err
		default:
			return 0, false, fmt.Errorf("the first sign was %s over %s: the black hole leaks", e.What, e.Path)
		}
	}
	return 0, false, nil
}

// settled waits for the end of the round's commands and counts what its pin did.
func (n *lane) settled(ctx context.Context, s *rig.Site, r *WindowResult) error {
	for _, id := range n.last {
		var task rig.Task
		err := rig.Await(ctx, settleLimit, "command "+id+" settled", func() (bool, error) {
			var err error
			task, _, err = s.Task(ctx, id)
			return err == nil && task.Settled, err
		})
		if err != nil {
			return err
		}
		if task.State != succeeded {
			r.Failed++
		}
	}
	acts, err := s.Actuations(n.node)
	if len(acts) != n.acted {
		r.Twice++
	}
	return err
}

// healed waits until the gateway trusts the mended line again: one more command was
// sent and has ended. Until then the gateway sends
// nothing, so that there would be nothing unknown to measure.
func (n *lane) healed(ctx context.Context, s *rig.Site, client *rig.Client) error {
	id := n.last[0] + "-healed"
	n.acted++
	payload := fmt.Sprintf(`{"task_id":%q,"intent":"gpio.write","node":%q,"args":{"pin":"GPIO4","level":1}}`, id, n.node)
	if _, err := client.Submit(rig.TaskTopic, payload); err != nil {
		return err
	}
	return rig.Await(ctx, settleLimit, n.node+" healed", func() (bool, error) {
		task, _, err := s.Task(ctx, id)
		return err == nil && task.Settled, err
	})
}

// bucket99 is the bound of the bucket with the 99th percentile of the windows
// that narrowband signs have ended.
func bucket99(ctx context.Context, s *rig.Site) (float64, error) {
	list, err := s.UnknownWindows(ctx, "narrowband")
	if err != nil {
		return 0, err
	}
	if len(list) == 0 {
		return 0, errors.New("the gateway has measured no window that narrowband ended")
	}
	all := list[len(list)-1].Count
	for _, b := range list {
		if b.Count*100 >= all*99 {
			return b.Most, nil
		}
	}
	return 0, errors.New("bug: a histogram whose last bucket does not hold everything")
}
