package engine_test

import (
	"math/rand/v2"
	"slices"
	"time"

	"github.com/apollo-11/apollo11/gateway/engine"
	"github.com/apollo-11/apollo11/wire"
)

// simGateway is the gateway's loop around an engine: rounds, batches that become
// durable later and in order, effects after that; and power cuts in between.
type simGateway struct {
	w       *world
	eng     *engine.Engine
	process *identity // identity of the running process, nil when it is down
	started time.Duration
	wallOff int64
	jumped  time.Duration            // when the clock last jumped
	first   map[uint64]time.Duration // when an instruction was first written
	inputs  []engine.Input
	planned bool // a round is about to run
	wakeAt  time.Duration
	log     *modelLog // as applied: what the engine may read
	durable *modelLog
	pending []simBatch
	syncing bool
	boots   uint64
	rate    int // of the drain
	burst   int
	bound   *backlogs
	copy    *modelLog // an older copy of the log, nil before it is made
}

type simBatch struct {
	records engine.Records
	effects engine.Effects
}

func newSimGateway(w *world) *simGateway {
	return &simGateway{w: w, durable: newModelLog(), first: map[uint64]time.Duration{}, rate: 2 + w.rnd.IntN(30), burst: 1 + w.rnd.IntN(10)}
}

func (g *simGateway) config() engine.Config {
	c := engine.Config{Window: 3, Capacity: 1000, Retry: engine.Retry{Max: 2, InitialMs: 300, MaxMs: 2000},
		DrainRate: g.rate, DrainBurst: g.burst, LowWater: 2, HighWater: 6}
	if g.w.plant == plantBucket {
		c.DrainRate, c.DrainBurst = 1000, 1000
	}
	return c
}

func (g *simGateway) now() engine.Now {
	return engine.Now{Mono: g.w.now - g.started, Wall: g.w.wall() + g.wallOff}
}

// boot starts a process on what is durable.
func (g *simGateway) boot() {
	g.boots++
	g.process = new(identity)
	g.started, g.log = g.w.now, g.durable.clone()
	g.inputs, g.pending, g.planned, g.syncing, g.wakeAt = nil, nil, false, false, 0
	g.eng = engine.New(g.config(), g.log.counters, rand.New(rand.NewPCG(g.w.rnd.Uint64(), g.boots)))
	g.log.recover(g.eng, g.now())
	g.bound = newBacklogs(g)
	g.w.trace("gateway starts")
	g.round()
	for _, a := range g.w.agents {
		g.w.after(g.w.span(10, 3000), a.tellNarrow)
	}
	for _, c := range g.w.clients {
		c.reconnected()
	}
}

// crash cuts the power: of the batches that were on their way some have reached
// the disk, in order; no effect of any has left.
func (g *simGateway) crash() {
	if g.process == nil {
		return
	}
	kept := g.w.rnd.IntN(len(g.pending) + 1)
	for _, b := range g.pending[:kept] {
		g.persist(&b.records)
	}
	g.process = nil
	g.w.trace("gateway loses power")
	for _, a := range g.w.agents {
		a.dropped()
	}
	g.w.after(g.w.span(10, 4000), g.boot)
}

// restore puts an older copy of the log in the place of the log. What was
// acknowledged since is lost; nothing may be executed twice for that.
func (g *simGateway) restore() {
	if g.copy == nil {
		g.copy = g.durable.clone()
		return
	}
	g.crash()
	g.w.trace("an older copy of the log is restored")
	g.w.oracle.restored(g.durable, g.copy)
	g.durable, g.first = g.copy.clone(), map[uint64]time.Duration{}
	for _, c := range g.w.clients {
		c.known = slices.DeleteFunc(c.known, func(p *publish) bool { return g.durable.ids[p.taskID] == 0 })
	}
}

// jump sets the gateway's clock to another time.
func (g *simGateway) jump(off int64) { g.wallOff, g.jumped = off, g.w.now }

// put hands an input to the loop.
func (g *simGateway) put(in engine.Input) {
	if g.process == nil {
		return
	}
	g.inputs = append(g.inputs, g.w.plant.input(g, in))
	g.plan(g.w.span(0, 3))
}

// plan runs a round soon, if none is planned.
func (g *simGateway) plan(d time.Duration) {
	if g.planned {
		return
	}
	g.planned = true
	p := g.process
	g.w.after(d, func() {
		if g.process == p {
			g.planned = false
			g.round()
		}
	})
}

// wake runs a round at the engine's deadline.
func (g *simGateway) wake(at time.Duration) {
	if at == 0 || at == g.wakeAt || g.w.plant == plantSleep {
		return
	}
	g.wakeAt = at
	p := g.process
	g.w.after(max(0, at-g.now().Mono), func() {
		if g.process == p && g.wakeAt == at {
			g.wakeAt = 0
			g.plan(0)
		}
	})
}

// round is one round of the loop: everything that waits, then one Ready.
func (g *simGateway) round() {
	now := g.now()
	for _, in := range g.inputs {
		g.log.step(g.eng, now, in)
	}
	g.inputs = nil
	quiet := g.log.quiet.On
	r := g.eng.Ready(now)
	g.w.plant.ready(g, &r)
	g.bound.ready(&r, now, quiet && g.eng.Quiet().On)
	g.w.rounds++
	g.check(&r, now)
	if g.w.err != nil {
		return
	}
	g.wake(r.Deadline)
	if r.Records.Empty() && r.Effects.Empty() {
		return
	}
	if g.w.plant == plantEarly {
		g.deliver(&r.Effects)
		r.Effects = engine.Effects{}
	}
	g.pending = append(g.pending, simBatch{r.Records, r.Effects})
	g.sync()
}

// check holds a Ready against the rules that do not need the disk.
func (g *simGateway) check(r *engine.Ready, now engine.Now) {
	out := writer{base: simStart}
	out.ready(r, now)
	g.w.trace(out.String())
	if err := g.log.apply(&r.Records); err != nil {
		g.w.fail("the log refuses a batch: %v", err)
		return
	}
	if err := g.eng.Check(); err != nil {
		g.w.fail("the engine's own bookkeeping: %v", err)
	}
	if r.Deadline != 0 && r.Deadline <= now.Mono {
		g.w.fail("the engine wants to be woken in the past")
	}
	for _, x := range r.Records.Instructions {
		g.w.oracle.recorded(&x.Instruction)
		g.inTime(&x, now)
	}
	for _, s := range r.Effects.Sends {
		if m, ok := s.Msg.(*wire.Instruction); ok && m.Resend == 0 && m.NotAfter != 0 && now.Wall >= m.NotAfter {
			g.w.fail("instruction %d is handed out %d ms after its limit", m.Seq, now.Wall-m.NotAfter)
		}
	}
}

// inTime demands that what expires is ended soon after its limit: that the engine
// asked to be woken for it. After a jump of the clock that is not demanded of
// what was there before.
func (g *simGateway) inTime(x *engine.Write, now engine.Now) {
	i := &x.Instruction
	const soon = 500 * time.Millisecond
	late := time.Duration(now.Wall-i.NotAfter) * time.Millisecond
	if i.Version == 1 {
		g.first[i.Seq] = g.w.now
	}
	since := max(g.first[i.Seq], g.started)
	timeout := slices.ContainsFunc(x.Entries, func(e engine.Entry) bool { return e.What == engine.WhatTimeout })
	if timeout && i.Reason == engine.ReasonExpired && i.Attempt == 0 && late > soon && since >= g.jumped && g.w.now-since > late {
		g.w.fail("instruction %d expired %v ago, and only now the engine says so", i.Seq, late)
	}
}

// sync makes what is pending durable, one fsync for all of it.
func (g *simGateway) sync() {
	if g.syncing {
		return
	}
	g.syncing = true
	p, n := g.process, len(g.pending)
	g.w.after(time.Duration(g.w.rnd.ExpFloat64()*g.w.fsync*float64(time.Millisecond)), func() {
		if g.process != p {
			return
		}
		g.syncing = false
		batches := g.pending[:n]
		g.pending = g.pending[n:]
		for _, b := range batches {
			g.persist(&b.records)
			g.deliver(&b.effects)
		}
		if len(g.pending) > 0 {
			g.sync()
		}
	})
}

func (g *simGateway) persist(r *engine.Records) {
	if err := g.durable.apply(r); err != nil {
		g.w.fail("the durable log refuses a batch: %v", err)
	}
}

// deliver lets the effects of a batch out.
func (g *simGateway) deliver(f *engine.Effects) {
	g.w.oracle.delivered(f)
	for _, r := range f.Replies {
		r.To.(func(engine.Reply))(r)
	}
	for _, s := range f.Sends {
		for _, a := range g.w.agents {
			if a.id == s.Node {
				a.down(s.Msg)
			}
		}
	}
	for _, c := range f.Compacts {
		for _, a := range g.w.agents {
			if wire.Short(a.id) == c.Short {
				a.asked(c.Frame)
			}
		}
	}
}

func welcome(m wire.Message) (*wire.Welcome, bool) { w, ok := m.(*wire.Welcome); return w, ok }

func instruction(m wire.Message) (*wire.Instruction, bool) {
	i, ok := m.(*wire.Instruction)
	return i, ok
}
