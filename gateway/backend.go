package gateway

import (
	"context"
	"errors"
	"time"

	"github.com/apollo-11/apollo11/gateway/api"
	"github.com/apollo-11/apollo11/gateway/engine"
)

// errInterrupted leaves open whether an input was taken.
var errInterrupted = errors.New("the gateway stopped before it could answer: look at the task after its restart, or send it again with the same task_id")

// Submit asks for a task and returns the engine's answer once it is durable.
func (g *Gateway) Submit(ctx context.Context, spec engine.Spec, src engine.Source) (engine.Reply, error) {
	return g.request(ctx, func(reply any) engine.Input {
		return &engine.Submit{Spec: spec, Source: src, Path: engine.PathHTTP, Reply: reply}
	})
}

// Cancel asks for a cancellation and returns how it stands once that is durable.
func (g *Gateway) Cancel(ctx context.Context, c engine.Cancel) (engine.Reply, error) {
	return g.request(ctx, func(reply any) engine.Input {
		c.Reply = reply
		return &c
	})
}

func (g *Gateway) request(ctx context.Context, input func(reply any) engine.Input) (engine.Reply, error) {
	answer := make(chan engine.Reply, 1)
	in := input(func(r engine.Reply) { answer <- r })
	select {
	case <-g.stopped:
		return engine.Reply{}, api.ErrStopping
	default:
	}
	if err := g.loop.put(ctx, in); err != nil {
		return engine.Reply{}, err
	}
	select {
	case r := <-answer:
		return r, nil
	case <-ctx.Done():
		return engine.Reply{}, ctx.Err()
	case <-g.stopped:
		// It may have been taken: only the log knows, after the restart.
		return engine.Reply{}, errInterrupted
	}
}

// Nodes returns the state of every node that has ever connected.
func (g *Gateway) Nodes(ctx context.Context) (list []engine.NodeState, err error) {
	err = g.loop.ask(ctx, func(e *engine.Engine) { list = e.Nodes() })
	return list, err
}

// Owed returns the ways to safe that nobody has confirmed yet.
func (g *Gateway) Owed(ctx context.Context) (list []engine.Owed, err error) {
	err = g.loop.ask(ctx, func(e *engine.Engine) { list = e.Owed() })
	return list, err
}

// Waits says of unfinished instructions, by sequence, what they wait for; those that wait
// for no other are left out.
func (g *Gateway) Waits(ctx context.Context, seqs []uint64) (map[uint64]string, error) {
	list := map[uint64]string{}
	err := g.loop.ask(ctx, func(e *engine.Engine) {
		now := g.loop.now()
		for _, seq := range seqs {
			if w, ok := e.Waits(now, seq); ok {
				list[seq] = w.Why
			}
		}
	})
	return list, err
}

// Health says how the gateway is doing. It does not block.
func (g *Gateway) Health() api.Health {
	h := api.Health{Ready: true, Version: g.cfg.Version, Uptime: time.Since(g.start), Epoch: g.epoch, Open: int(g.open.Load())}
	select {
	case <-g.ready:
	default:
		h.Ready = false
	}
	for _, door := range doorNames {
		if a := g.Addr(door); a != nil {
			h.Listeners = append(h.Listeners, api.Listener{Name: door, Addr: a.String()})
		}
	}
	if s := g.store.Stats(); s.Dead {
		h.Ready = false
		h.Degraded = append(h.Degraded, "the log could not be written")
	} else if s.Stalled {
		h.Degraded = append(h.Degraded, "the log holds back writes: the disk is full or far too slow")
	}
	return h
}

// Operate carries out an operator's action and returns once that is durable.
func (g *Gateway) Operate(ctx context.Context, o engine.Operate) (engine.Reply, error) {
	return g.request(ctx, func(reply any) engine.Input {
		o.Reply = reply
		return &o
	})
}

// Alarms returns the conditions that stand and the latest incidents.
func (g *Gateway) Alarms(ctx context.Context) (standing, recent []engine.Alarm, err error) {
	err = g.loop.ask(ctx, func(e *engine.Engine) { standing, recent = e.Alarms() })
	return standing, recent, err
}

// Quiet returns the quiet period as it stands.
func (g *Gateway) Quiet(ctx context.Context) (q engine.Quiet, err error) {
	err = g.loop.ask(ctx, func(e *engine.Engine) { q = e.Quiet() })
	return q, err
}
