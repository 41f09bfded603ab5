package trial

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"time"

	"github.com/apollo-11/apollo11/fieldagent/executor"
	"github.com/apollo-11/apollo11/firmware-sim/torture/rig"
)

// Numbers of the kinds of trouble.
const (
	longPulse = "2s"
	// behindLong are pulses that wait behind two long ones, as many as a window holds.
	behindLong = 14
	// crowdPulses are more than the agent's queue takes, and two workers do three a
	// second: it is full to the end. Each is so short that what switches on, which is more
	// urgent, finds a worker in a moment.
	crowdPulses = executor.DefaultMaxQueue + 200
	crowdWidth  = "700ms"
	// awayNode is a node that never comes.
	awayNode = "away"
	// freed are the places that are made when the next on is to be let in.
	freed = 2
	batch = 200
	// refusals in a row are no kill.
	refusals = 3
)

// until does something again and again, a while apart and always when an output is on
// whose off comes soon, until ctx ends.
func (t *offTrial) until(ctx context.Context, rnd *rand.Rand, least, most time.Duration, do func(context.Context) error) error {
	for {
		if err := rig.Pause(ctx, between(rnd, least, most)); err != nil {
			return nil // its time is over
		}
		if !t.awaitLit(ctx) {
			return nil
		}
		// What has been begun is brought to its end.
		if err := do(context.WithoutCancel(ctx)); err != nil {
			return err
		}
	}
}

func between(rnd *rand.Rand, least, most time.Duration) time.Duration {
	return least + time.Duration(rnd.Int64N(int64(most-least)))
}

// awaitLit waits for the next on whose off comes soon, and reports whether there is time.
func (t *offTrial) awaitLit(ctx context.Context) bool {
	t.mu.Lock()
	lit := t.lit
	t.mu.Unlock()
	select {
	case <-lit:
		return true
	case <-ctx.Done():
		return false
	}
}

func (t *offTrial) agentKills(ctx context.Context, rnd *rand.Rand, _ time.Duration) error {
	return t.until(ctx, rnd, time.Second, 4*time.Second, func(ctx context.Context) error {
		t.starts.Lock()
		defer t.starts.Unlock()
		from := time.Now()
		t.agent.Kill()
		err := t.startAgent(ctx)
		t.blinded(from)
		return err
	})
}

func (t *offTrial) gatewayKills(ctx context.Context, rnd *rand.Rand, _ time.Duration) error {
	return t.until(ctx, rnd, time.Second, 4*time.Second, func(ctx context.Context) error {
		from := time.Now()
		t.s.KillGateway()
		if _, err := t.s.StartGateway(ctx); err != nil {
			return err
		}
		t.starts.Lock() // an agent that is not there now is somebody else's
		defer t.starts.Unlock()
		err := rig.Await(ctx, rig.Patience, "the agent back", func() (bool, error) {
			n, err := t.s.Node(ctx, orderNode)
			return err == nil && n.State == "online", err
		})
		t.blinded(from)
		return err
	})
}

// cuts holds both paths: nothing is lost, nothing passes. Of three one is longer than it
// takes until the alarm is due.
func (t *offTrial) cuts(ctx context.Context, rnd *rand.Rand, _ time.Duration) error {
	return t.until(ctx, rnd, time.Second, 4*time.Second, func(ctx context.Context) error {
		d := between(rnd, 500*time.Millisecond, 3*time.Second)
		if rnd.IntN(3) == 0 {
			d = between(rnd, 6*time.Second, 9*time.Second)
		}
		from := time.Now()
		t.hold(t.main, t.narrow)
		err := rig.Pause(ctx, d)
		t.mend(t.main, t.narrow)
		t.blinded(from)
		return err
	})
}

// darkness holds the primary path; the narrowband lives.
func (t *offTrial) darkness(ctx context.Context, rnd *rand.Rand, _ time.Duration) error {
	return t.until(ctx, rnd, time.Second, 3*time.Second, func(ctx context.Context) error {
		t.hold(t.main)
		err := rig.Pause(ctx, between(rnd, 3*time.Second, 9*time.Second))
		t.mend(t.main)
		return err
	})
}

// submitAll submits documents, whatever becomes of the gateway, until it refuses. Each
// has a name of its own, so that what is sent again is not done again.
func (t *offTrial) submitAll(ctx context.Context, docs []string) (taken int, err error) {
	for tries := 0; len(docs) > 0 && tries < refusals && ctx.Err() == nil; tries++ {
		acked := 0
		err := rig.Await(ctx, rig.Patience, "commands acknowledged", func() (bool, error) {
			c, err := t.s.Client(ctx, "scada-trouble")
			if err != nil {
				return false, err // the gateway is away
			}
			defer c.Close()
			// That the connection ends is what a refusal looks like, and a kill.
			acked, _ = c.Submit(rig.TaskTopic, docs[:min(batch, len(docs))]...)
			return true, nil
		})
		if err != nil {
			return taken, err
		}
		if acked > 0 {
			tries = 0
		}
		docs, taken = docs[acked:], taken+acked
	}
	return taken, nil
}

// pulses are documents of as many, for the outputs without a safe level in turn.
func (t *offTrial) pulses(n int, width, priority string, ttl time.Duration) (docs []string) {
	for k := range n {
		docs = append(docs, fmt.Sprintf(`{"task_id":%q,"intent":"gpio.pulse","node":%q,"args":{"pin":"other-%d","width":%q},"priority":%q,"ttl":"%dms"}`,
			t.name("pulse"), orderNode, offPins+k%otherPins, width, priority, ttl.Milliseconds()))
	}
	return docs
}

// longPulses keeps both workers busy right before an off, with a full window behind them.
func (t *offTrial) longPulses(ctx context.Context, rnd *rand.Rand, _ time.Duration) error {
	return t.until(ctx, rnd, 2*time.Second, 4*time.Second, func(ctx context.Context) error {
		docs := append(t.pulses(2, longPulse, "high", 3*time.Second), t.pulses(behindLong, "50ms", "low", 5*time.Second)...)
		_, err := t.submitAll(ctx, docs)
		return err
	})
}

// crowd keeps the workers busy and the queue of the agent full all the time.
func (t *offTrial) crowd(ctx context.Context, _ *rand.Rand, length time.Duration) error {
	_, err := t.submitAll(context.WithoutCancel(ctx), t.pulses(crowdPulses, crowdWidth, "low", length))
	<-ctx.Done()
	return err
}

// fill keeps the gateway's queue where it refuses, and makes room for an on after each
// off.
func (t *offTrial) fill(ctx context.Context, _ *rand.Rand, length time.Duration) error {
	var there []string
	more := func() error {
		for ctx.Err() == nil {
			var ids, docs []string
			for range batch {
				id := t.name("fill")
				ids = append(ids, id)
				docs = append(docs, fmt.Sprintf(`{"task_id":%q,"intent":"gpio.write","node":%q,"args":{"pin":"x","level":1},"ttl":"%dms"}`, id, awayNode, length.Milliseconds()))
			}
			n, err := t.submitAll(context.WithoutCancel(ctx), docs)
			there = append(there, ids[:n]...)
			if err != nil || n < batch {
				return err
			}
		}
		return nil
	}
	for {
		if err := more(); err != nil {
			return err
		}
		if err := rig.Pause(ctx, offEvery/2); err != nil {
			return nil // its time is over
		}
		for k := 0; k < freed && len(there) > 0; k++ {
			// It may have expired, and the gateway may be away.
			_ = t.s.Post(ctx, "/v1/tasks/"+there[len(there)-1]+"/cancel", "")
			there = there[:len(there)-1]
		}
		if !t.awaitLit(ctx) {
			return nil
		}
	}
}

// quiet pauses compensation, with an agent that is killed now and then.
func (t *offTrial) quiet(ctx context.Context, rnd *rand.Rand, length time.Duration) error {
	ask := func(method, doc string) error {
		ctx := context.WithoutCancel(ctx)
		return rig.Await(ctx, rig.Patience, "quiet period", func() (bool, error) {
			_, status, err := t.s.Ask(ctx, method, "/v1/quiet", doc)
			return err == nil && status/100 == 2, err
		})
	}
	if err := ask(http.MethodPut, `{"for":"1h","reason":"a trial"}`); err != nil {
		return err
	}
	return errors.Join(t.agentKills(ctx, rnd, length), ask(http.MethodDelete, ""))
}

// drain lets the node come back to a backlog, unless most of an earlier one is there.
func (t *offTrial) drain(ctx context.Context, _ *rand.Rand, _ time.Duration) error {
	if n, err := t.s.Node(ctx, orderNode); err == nil && int(n.Queued) < t.drains/2 {
		var docs []string
		for k := range t.drains {
			docs = append(docs, fmt.Sprintf(`{"task_id":%q,"intent":"gpio.write","node":%q,"args":{"pin":"other-%d","level":%d}}`,
				t.name("drain"), orderNode, offPins+k%otherPins, k/otherPins%2))
		}
		if err := t.fallBehind(context.WithoutCancel(ctx), docs); err != nil {
			return err
		}
	}
	<-ctx.Done()
	return nil
}

func (t *offTrial) fallBehind(ctx context.Context, docs []string) error {
	t.starts.Lock()
	defer t.starts.Unlock()
	from := time.Now()
	t.agent.Kill()
	_, err := t.submitAll(ctx, docs) // not all fit where the queue is full already
	err = errors.Join(err, t.startAgent(ctx))
	t.blinded(from)
	return err
}

// hang lets the card with the agent's journal hang now and then.
func (t *offTrial) hang(ctx context.Context, rnd *rand.Rand, _ time.Duration) error {
	return t.until(ctx, rnd, time.Second, 3*time.Second, func(ctx context.Context) error {
		if err := t.card.Freeze(); err != nil {
			return err
		}
		err := rig.Pause(ctx, between(rnd, 2*time.Second, 8*time.Second))
		return errors.Join(err, t.card.Thaw())
	})
}
