package gateway

import (
	"context"

	"github.com/apollo-11/apollo11/gateway/engine"
)

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

func (g *Gateway) request(ctx context.Context, make_ func(reply any) engine.Input) (engine.Reply, error) {
	answer := make(chan engine.Reply, 1)
	in := make_(func(r engine.Reply) { answer <- r })
	if err := g.loop.put(ctx, in); err != nil {
		return engine.Reply{}, err
	}
	select {
	case r := <-answer:
		return r, nil
	case <-ctx.Done():
		return engine.Reply{}, ctx.Err()
	case <-g.stopped:
		return engine.Reply{}, ErrStopping
	}
}

// Nodes returns the state of every node that has ever connected.
func (g *Gateway) Nodes(ctx context.Context) (list []engine.NodeState, err error) {
	err = g.loop.ask(ctx, func(e *engine.Engine) { list = e.Nodes() })
	return list, err
}
