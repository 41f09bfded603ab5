package trial

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/apollo-11/apollo11/firmware-sim/torture/rig"
)

const (
	// smallCapacity is that of a gateway whose queue is to be nearly full.
	smallCapacity = 200
	// crowdPulses are pulses for other pins that wait for a worker. Each is so short that
	// what switches on, which is more urgent, finds one in a moment.
	crowdPulses = 400
	crowdWidth  = "700ms"
)

// idle is no trouble, or one that was prepared.
func (t *offTrial) idle(ctx context.Context) error {
	<-ctx.Done()
	return nil
}

// until does something again and again, a while apart and always when an output is on
// whose off comes soon, until ctx ends.
func (t *offTrial) until(ctx context.Context, least, most time.Duration, do func(context.Context) error) error {
	for {
		if err := rig.Pause(ctx, least+time.Duration(t.rnd.Int64N(int64(most-least)))); err != nil {
			return nil // its time is over
		}
		select {
		case <-t.lit: // of before
		default:
		}
		select {
		case <-t.lit:
		case <-ctx.Done():
			return nil
		}
		// What has been begun is brought to its end.
		if err := do(context.WithoutCancel(ctx)); err != nil {
			return err
		}
	}
}

func (t *offTrial) agentKills(ctx context.Context) error {
	return t.until(ctx, time.Second, 4*time.Second, func(ctx context.Context) error {
		from := time.Now()
		t.agent.Kill()
		err := t.startAgent(ctx)
		t.blinded(from)
		return err
	})
}

func (t *offTrial) gatewayKills(ctx context.Context) error {
	return t.until(ctx, time.Second, 4*time.Second, func(ctx context.Context) error {
		from := time.Now()
		t.s.KillGateway()
		if _, err := t.s.StartGateway(ctx); err != nil {
			return err
		}
		err := rig.Await(ctx, rig.Patience, "the agent back", func() (bool, error) {
			n, err := t.s.Node(ctx, orderNode)
			return err == nil && n.State == "online", err
		})
		t.blinded(from)
		return err
	})
}

// cuts holds both paths: nothing is lost, nothing passes.
func (t *offTrial) cuts(ctx context.Context) error {
	return t.until(ctx, time.Second, 4*time.Second, func(ctx context.Context) error {
		from := time.Now()
		for _, p := range []*rig.Proxy{t.main, t.narrow} {
			p.Hold(rig.Up, rig.Down)
		}
		err := rig.Pause(ctx, time.Duration(500+t.rnd.IntN(2500))*time.Millisecond)
		for _, p := range []*rig.Proxy{t.main, t.narrow} {
			p.Mend()
		}
		t.blinded(from)
		return err
	})
}

// darkness holds the primary path; the narrowband lives.
func (t *offTrial) darkness(ctx context.Context) error {
	return t.until(ctx, time.Second, 3*time.Second, func(ctx context.Context) error {
		t.main.Hold(rig.Up, rig.Down)
		err := rig.Pause(ctx, time.Duration(3000+t.rnd.IntN(6000))*time.Millisecond)
		t.main.Mend()
		return err
	})
}

// crowd keeps the workers busy, and the window of the node full.
func (t *offTrial) crowd(ctx context.Context) error {
	c, err := t.s.Client(ctx, "scada-crowd")
	if err != nil {
		return err
	}
	defer c.Close()
	var docs []string
	for k := range crowdPulses {
		docs = append(docs, fmt.Sprintf(`{"task_id":"crowd-%d","intent":"gpio.pulse","node":%q,"args":{"pin":"other-%d","width":%q},"priority":"low"}`,
			k, orderNode, offPins+k%otherPins, crowdWidth))
	}
	_, err = c.Submit(rig.TaskTopic, docs...)
	return err
}

// fill takes the gateway's queue to where it refuses.
func (t *offTrial) fill(ctx context.Context) error {
	for k := range smallCapacity {
		c, err := t.s.Client(ctx, "scada-fill")
		if err != nil {
			return err
		}
		_, err = c.Submit(rig.TaskTopic, fmt.Sprintf(`{"task_id":"fill-%d","intent":"gpio.write","node":"away","args":{"pin":"x","level":1}}`, k))
		c.Close()
		if err != nil {
			return nil // full
		}
	}
	return fmt.Errorf("a gateway with room for %d took %[1]d", smallCapacity)
}

// quiet pauses compensation, with an agent that is killed now and then.
func (t *offTrial) quiet(ctx context.Context) error {
	if err := t.s.Put(ctx, "/v1/quiet", `{"for":"1h","reason":"a trial"}`); err != nil {
		return err
	}
	return t.agentKills(ctx)
}

// drain lets the node come back to a backlog.
func (t *offTrial) drain(ctx context.Context) error {
	from := time.Now()
	t.agent.Kill()
	c, err := t.s.Client(ctx, "scada-drain")
	if err != nil {
		return err
	}
	defer c.Close()
	for k := 0; k < t.drains; k += 100 {
		var docs []string
		for n := k; n < min(k+100, t.drains); n++ {
			docs = append(docs, fmt.Sprintf(`{"task_id":"drain-%d","intent":"gpio.write","node":%q,"args":{"pin":"other-%d","level":%d}}`,
				n, orderNode, offPins+n%otherPins, n/otherPins%2))
		}
		if _, err := c.Submit(rig.TaskTopic, docs...); err != nil {
			return err
		}
	}
	if err := t.startAgent(context.WithoutCancel(ctx)); err != nil {
		return err
	}
	t.blinded(from)
	<-ctx.Done()
	return nil
}

// hang puts the agent's journal onto a card that hangs now and then.
func (t *offTrial) hang(ctx context.Context) (err error) {
	card, err := rig.NewCard(ctx, t.u.Dir)
	if err != nil {
		if os.Getenv("CI") == "true" && os.Geteuid() == 0 {
			return err
		}
		return &noTrouble{err}
	}
	defer func() {
		t.agent.Kill()
		err = errors.Join(err, card.Close())
	}()
	from := time.Now()
	t.agent.Kill()
	journal := filepath.Join(t.u.Dir, "agent-"+orderNode, "agent.journal")
	b, err := os.ReadFile(journal)
	if err != nil {
		return err
	}
	there := filepath.Join(card.Dir(), "agent.journal")
	if err := errors.Join(os.WriteFile(there, b, 0o600), os.Remove(journal), os.Symlink(there, journal)); err != nil {
		return err
	}
	if err := t.startAgent(context.WithoutCancel(ctx)); err != nil {
		return err
	}
	t.blinded(from)
	err = t.until(ctx, time.Second, 3*time.Second, func(ctx context.Context) error {
		if err := card.Freeze(); err != nil {
			return err
		}
		err := rig.Pause(ctx, time.Duration(2000+t.rnd.IntN(6000))*time.Millisecond)
		return errors.Join(err, card.Thaw())
	})
	if err != nil {
		return err
	}
	// What hung is told before the card goes.
	return rig.Pause(context.WithoutCancel(ctx), 2*time.Second)
}
