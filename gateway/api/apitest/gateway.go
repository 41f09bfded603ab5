// Package apitest is a gateway in memory for tests of the HTTP API and of its
// clients. It behaves: the real engine decides, agents answer as they are told
// to, and only disk, broker and clock are missing. Time moves a fixed step with
// everything that happens, so that answers are the same on every run.
package apitest

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/apollo-11/apollo11/gateway/api"
	"github.com/apollo-11/apollo11/gateway/engine"
	"github.com/apollo-11/apollo11/wire"
)

// Step is how far time moves with every input of the engine.
const Step = 5 * time.Millisecond

// Start is the wall clock at the beginning.
func Start() time.Time { return time.Date(2025, 3, 1, 9, 30, 0, 0, time.UTC) }

// Gateway implements api.Backend and api.Reader. It is safe for concurrent use.
type Gateway struct {
	mu      sync.Mutex
	eng     *engine.Engine
	now     engine.Now
	tasks   map[string]engine.Task
	order   []string // of the tasks, oldest first
	insts   map[uint64]engine.Instruction
	entries map[uint64][]engine.Entry
	dead    []engine.DeadLetter
	audits  []engine.Audit
	agents  map[string]*agent
	health  api.Health
	err     error
}

// Gateway is what the API needs.
var (
	_ api.Backend = (*Gateway)(nil)
	_ api.Reader  = (*Gateway)(nil)
)

// New returns an empty gateway of the site "default". Zero fields of cfg are
// defaults.
func New(cfg engine.Config) *Gateway {
	const shard, epoch = 1, 0x1122334455667788
	return &Gateway{
		eng:     engine.New(cfg, engine.Counters{Shard: shard, Epoch: epoch}, rand.New(rand.NewPCG(11, 69))),
		now:     engine.Now{Wall: Start().UnixMilli()},
		tasks:   map[string]engine.Task{},
		insts:   map[uint64]engine.Instruction{},
		entries: map[uint64][]engine.Entry{},
		agents:  map[string]*agent{},
		health: api.Health{Ready: true, Version: "v1.2.3", Uptime: 90 * time.Second, Epoch: epoch,
			Listeners: []api.Listener{{Name: "mqtt", Addr: "127.0.0.1:1883"}}},
	}
}

// Fail makes every following call return err, until Fail(nil).
func (g *Gateway) Fail(err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.err = err
}

// SetHealth changes what Health returns, except for the open instructions.
func (g *Gateway) SetHealth(h api.Health) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.health = h
}

// Advance lets time pass.
func (g *Gateway) Advance(d time.Duration) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.pass(d)
	g.settle(nil)
}

// Now is the gateway's wall clock.
func (g *Gateway) Now() time.Time {
	g.mu.Lock()
	defer g.mu.Unlock()
	return time.UnixMilli(g.now.Wall)
}

func (g *Gateway) pass(d time.Duration) {
	g.now.Mono += d
	g.now.Wall += d.Milliseconds()
}

// Input puts one input through, with everything that follows from it.
func (g *Gateway) Input(in engine.Input) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.settle(in)
}

// settle runs the engine until nothing more happens by itself.
func (g *Gateway) settle(in engine.Input) []engine.Reply {
	var replies []engine.Reply
	var inputs []engine.Input
	if in != nil {
		inputs = append(inputs, in)
	}
	for first := true; first || len(inputs) > 0; first = false {
		if len(inputs) > 0 {
			in, inputs = inputs[0], inputs[1:]
			g.pass(Step)
			w := g.eng.Wants(in)
			g.adopt(w)
			if o, ok := in.(*engine.Operate); ok {
				o.Found = g.letter(w.Dead)
			}
			g.eng.Step(g.now, in)
		}
		r := g.eng.Ready(g.now)
		g.keep(&r.Records)
		replies = append(replies, r.Effects.Replies...)
		for _, s := range r.Effects.Sends {
			if a := g.agents[s.Node]; a != nil {
				inputs = append(inputs, a.hear(g.now.Wall, s.Msg)...)
			}
		}
	}
	return replies
}

func (g *Gateway) adopt(w engine.Want) {
	id := w.TaskID
	if w.Seq != 0 {
		id = g.insts[w.Seq].Task
	}
	if t, ok := g.tasks[id]; ok {
		s := g.state(t)
		open := slices.ContainsFunc(s.Instructions, func(i engine.Instruction) bool { return !i.State.Settled() })
		g.eng.Adopt(g.now, t, s.Instructions, open)
	}
}

func (g *Gateway) keep(r *engine.Records) {
	for _, t := range r.Tasks {
		g.tasks[t.ID] = t
		g.order = append(g.order, t.ID)
	}
	for _, w := range r.Instructions {
		g.insts[w.Instruction.Seq] = w.Instruction
		g.entries[w.Instruction.Seq] = append(g.entries[w.Instruction.Seq], w.Entries...)
	}
	g.dead = append(g.dead, r.DeadLetters...)
	g.dead = slices.DeleteFunc(g.dead, func(d engine.DeadLetter) bool { return slices.Contains(r.Dropped, d.Number) })
	g.audits = append(g.audits, r.Audits...)
}

func (g *Gateway) state(t engine.Task) engine.TaskState {
	s := engine.TaskState{Task: t}
	for k := range uint64(t.Count) {
		s.Instructions = append(s.Instructions, g.insts[t.First+k])
	}
	return s
}

// ask puts a change through and returns its reply.
func (g *Gateway) ask(ctx context.Context, in engine.Input) (engine.Reply, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if err := cmp.Or(g.err, ctx.Err()); err != nil {
		return engine.Reply{}, err
	}
	for _, r := range g.settle(in) {
		if r.To == any(g) {
			return r, nil
		}
	}
	return engine.Reply{}, fmt.Errorf("the engine did not answer %T", in)
}

// Garbage leaves a dead letter.
func (g *Gateway) Garbage(kind, from, reason string, raw []byte) {
	g.Input(&engine.Garbage{Kind: kind, From: from, Reason: reason, Raw: raw})
}

// wireMap encodes a payload; a test's own mistake panics.
func wireMap(m map[string]any) wire.RawMap {
	b, err := wire.EncodeMap(m, wire.MaxPayloadBytes)
	if err != nil {
		panic(fmt.Sprintf("bug: payload of a test: %v", err))
	}
	return b
}
