package apitest

import (
	"cmp"
	"context"
	"slices"

	"github.com/apollo-11/apollo11/gateway/api"
	"github.com/apollo-11/apollo11/gateway/engine"
)

// Submit implements api.Backend.
func (g *Gateway) Submit(ctx context.Context, spec engine.Spec, src engine.Source) (engine.Reply, error) {
	return g.ask(ctx, &engine.Submit{Spec: spec, Source: src, Path: engine.PathHTTP, Reply: g})
}

// Cancel implements api.Backend.
func (g *Gateway) Cancel(ctx context.Context, c engine.Cancel) (engine.Reply, error) {
	c.Reply = g
	return g.ask(ctx, &c)
}

// Nodes implements api.Backend.
func (g *Gateway) Nodes(ctx context.Context) ([]engine.NodeState, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.eng.Nodes(), cmp.Or(g.err, ctx.Err())
}

// Owed implements api.Backend.
func (g *Gateway) Owed(ctx context.Context) ([]engine.Owed, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.eng.Owed(), cmp.Or(g.err, ctx.Err())
}

// Waits implements api.Backend.
func (g *Gateway) Waits(ctx context.Context, seqs []uint64) (map[uint64]string, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	list := map[uint64]string{}
	for _, seq := range seqs {
		if w, ok := g.eng.Waits(g.now, seq); ok {
			list[seq] = w.Why
		}
	}
	return list, cmp.Or(g.err, ctx.Err())
}

// Health implements api.Backend.
func (g *Gateway) Health() api.Health {
	g.mu.Lock()
	defer g.mu.Unlock()
	h := g.health
	h.Open = g.eng.Open()
	return h
}

// Task implements api.Reader.
func (g *Gateway) Task(ctx context.Context, id string) (engine.TaskState, bool, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	t, ok := g.tasks[id]
	return g.state(t), ok, cmp.Or(g.err, ctx.Err())
}

// Tasks implements api.Reader.
func (g *Gateway) Tasks(ctx context.Context, before uint64, limit int) (list []engine.TaskState, next uint64, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, id := range slices.Backward(g.order) {
		t := g.tasks[id]
		if before != 0 && t.First >= before {
			continue
		}
		if len(list) == limit {
			next = list[limit-1].Task.First
			break
		}
		list = append(list, g.state(t))
	}
	return list, next, cmp.Or(g.err, ctx.Err())
}

// Timeline implements api.Reader.
func (g *Gateway) Timeline(ctx context.Context, seq uint64) (engine.Instruction, []engine.Entry, bool, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	in, ok := g.insts[seq]
	return in, slices.Clone(g.entries[seq]), ok, cmp.Or(g.err, ctx.Err())
}

// DeadLetters implements api.Reader.
func (g *Gateway) DeadLetters(ctx context.Context, after uint64, limit int) ([]engine.DeadLetter, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	var list []engine.DeadLetter
	for _, d := range g.dead {
		if d.Number > after && len(list) < limit {
			list = append(list, d)
		}
	}
	return list, cmp.Or(g.err, ctx.Err())
}

// letter returns a dead letter; nil when there is none.
func (g *Gateway) letter(number uint64) *engine.DeadLetter {
	for _, d := range g.dead {
		if d.Number == number {
			return &d
		}
	}
	return nil
}

// DeadLetter implements api.Reader.
func (g *Gateway) DeadLetter(ctx context.Context, number uint64) (*engine.DeadLetter, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.letter(number), cmp.Or(g.err, ctx.Err())
}

// Operate implements api.Backend.
func (g *Gateway) Operate(ctx context.Context, o engine.Operate) (engine.Reply, error) {
	o.Reply = g
	return g.ask(ctx, &o)
}

// Quiet implements api.Backend.
func (g *Gateway) Quiet(ctx context.Context) (engine.Quiet, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.eng.Quiet(), cmp.Or(g.err, ctx.Err())
}

// Alarms implements api.Backend.
func (g *Gateway) Alarms(ctx context.Context) (standing, recent []engine.Alarm, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	standing, recent = g.eng.Alarms()
	return standing, recent, cmp.Or(g.err, ctx.Err())
}

// Queue implements api.Reader.
func (g *Gateway) Queue(ctx context.Context, after uint64, limit int) (list []engine.Instruction, next uint64, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for seq := after + 1; seq <= uint64(len(g.insts)); seq++ {
		if !g.insts[seq].Operator {
			continue
		}
		if len(list) == limit {
			next = list[limit-1].Seq
			break
		}
		list = append(list, g.insts[seq])
	}
	return list, next, cmp.Or(g.err, ctx.Err())
}

// Audit implements api.Reader.
func (g *Gateway) Audit(ctx context.Context, after uint64, limit int) ([]engine.Audit, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	var list []engine.Audit
	for _, a := range g.audits {
		if a.Number > after && len(list) < limit {
			list = append(list, a)
		}
	}
	return list, cmp.Or(g.err, ctx.Err())
}
