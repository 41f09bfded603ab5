package explore

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/apollo-11/apollo11/gateway/engine"
	"github.com/apollo-11/apollo11/gateway/ledger"
	"github.com/apollo-11/apollo11/gateway/round"
	"github.com/apollo-11/apollo11/wire"
)

// gateway is the gateway's process around the real engine, rounds and ledger:
// when a round begins, how long a sync takes, and when the process dies. The
// broker lives in the same process.
type gateway struct {
	w       *world
	rnd     *rand.Rand
	clock   clock
	disk    disk
	ledger  *ledger.Ledger
	log     round.Log
	eng     *engine.Engine
	process *identity // nil when it is down
	boots   uint64

	inputs  []engine.Input
	planned bool // a round is about to run
	wakeAt  time.Duration
	jobs    []job // not settled, oldest first
	syncing bool

	ahead   round.Ahead
	aheadAt time.Duration
	held    int    // inputs since the last flush that led to something
	settled uint64 // jobs of this process that are out

	failNext  bool          // the next sync fails
	fullUntil time.Duration // until then nothing can be written
	slowUntil time.Duration // until then syncs take long
	hangUntil time.Duration // until then none ends
	latency   float64       // mean time of a sync in ms
	tight     bool          // its capacity is small
	// Its numbers, 0 for the defaults.
	window, drainRate, drainBurst int

	// blind are the nodes that know numbers which a restored log has not given out,
	// and have not told it. Only they can tell it that it is an older copy, so that
	// nothing else befalls it before.
	blind map[string]bool
}

// job is a round that is not settled.
type job struct {
	round.Job
	clock time.Duration // error of the clock when its messages were written
}

func newGateway(w *world, o Options) *gateway {
	g := &gateway{w: w, rnd: w.stream("gateway")}
	g.clock.w = w
	if w.profile.BadClocks && chance(g.rnd, 0.3) {
		g.clock.err = between(g.rnd, -60_000, 60_000)
	}
	g.latency = 0.5 + g.rnd.ExpFloat64()*6
	g.disk = newMemDisk()
	if o.pebble() {
		g.disk = newPebbleDisk()
	}
	return g
}

// config draws the engine's numbers: mostly the defaults, sometimes tight ones.
func (g *gateway) config() engine.Config {
	r := g.w.stream("config")
	c := engine.Config{Site: "sim", Retry: engine.Retry{Max: 2, InitialMs: 300, MaxMs: 2_000}}
	if chance(r, 0.5) {
		c.Window = 1 + r.IntN(16)
	}
	if chance(r, 0.3) {
		c.ConfirmTimeout = between(r, 500, 5_000)
	}
	if g.w.profile.Scenes > 0 && !g.w.profile.rare {
		c.Window, c.DrainRate, c.DrainBurst = 1+r.IntN(3), 2+r.IntN(4), 1+r.IntN(3)
	}
	g.window, g.drainRate, g.drainBurst = c.Window, c.DrainRate, c.DrainBurst
	if g.tight = chance(r, tightSites); g.tight {
		c.Capacity = 15 + r.IntN(25)
	}
	return c
}

// Now is the time as the engine sees it.
func (g *gateway) now() engine.Now { return engine.Now{Mono: g.clock.mono(), Wall: g.clock.wall()} }

// boot starts a process on what is durable.
func (g *gateway) boot() {
	if g.process != nil {
		return
	}
	if g.w.now < g.fullUntil { // it refuses to start on a full disk
		g.w.after(g.fullUntil-g.w.now, g.boot)
		return
	}
	g.boots++
	g.process = new(identity)
	g.clock.started = g.w.now
	g.inputs, g.jobs, g.planned, g.syncing, g.wakeAt, g.failNext = nil, nil, false, false, 0, false
	g.ahead, g.aheadAt, g.held, g.settled = round.Ahead{}, 0, 0, 0
	store, err := g.disk.open()
	if err != nil {
		g.w.fail("recovery", "the gateway cannot open its store: %v", err)
		return
	}
	g.ledger = ledger.Over(store)
	g.log = g.w.check.watch(round.OnDisk(g.ledger), g.disk)
	g.eng, err = g.ledger.Recover(g.now(), g.config(), rand.New(rand.NewPCG(g.rnd.Uint64(), g.boots)))
	if err != nil {
		g.w.fail("recovery", "the gateway cannot recover: %v", err)
		return
	}
	g.disk.recovered()
	g.w.mix("gateway boots", g.boots)
	g.w.log("gateway", "starts, %d unfinished", g.eng.Open())
	g.plan(0)
	for _, c := range g.w.clients {
		c.reconnect()
	}
}

// die ends the process. share of what was not synced reaches the disk all the
// same; none of its effects leaves.
func (g *gateway) die(why string, share float64) {
	if g.process == nil {
		return
	}
	g.w.mix("gateway dies")
	g.w.log("gateway", "dies: %s", why)
	g.settle() // the committer was waiting; nothing more may leave
	g.process = nil
	kept, err := g.disk.crash(share)
	if err != nil {
		g.w.fail("recovery", "the gateway's disk: %v", err)
		return
	}
	g.w.check.crashed(kept)
	g.jobs, g.inputs = nil, nil
	for _, a := range g.w.boards() {
		a.link.broken(false)
		a.narrow.lost()
	}
}

// later does something if the same process still runs.
func (g *gateway) later(d time.Duration, do func()) {
	p := g.process
	g.w.after(d, func() {
		if g.process == p {
			do()
		}
	})
}

func (g *gateway) restart(d time.Duration) { g.w.after(d, g.boot) }

// put hands an input to the loop.
func (g *gateway) put(in engine.Input) {
	if g.process == nil {
		return
	}
	g.inputs = append(g.inputs, in)
	g.plan(between(g.rnd, 0, 3))
}

// plan runs a round soon, if none is planned.
func (g *gateway) plan(d time.Duration) {
	if g.planned {
		return
	}
	g.planned = true
	g.later(d, func() {
		g.planned = false
		g.round()
	})
}

// round is one round of the loop: everything that waits, then one flush.
func (g *gateway) round() {
	now := g.now()
	waiting := g.inputs
	g.inputs = nil
	for k, in := range waiting {
		if g.full() && g.held >= round.Held {
			g.inputs = waiting[k:]
			break
		}
		before := g.eng.Collected()
		g.w.check.input(in)
		if err := round.Step(g.eng, g.log, now, in); err != nil {
			g.w.fail("log", "the gateway cannot read its log: %v", err)
			return
		}
		if g.eng.Collected() > before {
			g.held++
		}
	}
	if g.full() {
		g.w.check.pace.collects(g.w.now)
		g.ahead.Take(now.Mono, g.eng.Urgent(now))
		g.w.check.owedAhead()
		g.goAhead()
		return
	}
	g.held = 0
	if g.w.now < g.fullUntil {
		g.die("the disk is full", g.rnd.Float64())
		g.restart(between(g.rnd, 500, 3_000))
		return
	}
	j, deadline, err := round.Flush(g.eng, g.log, now)
	if err != nil {
		g.w.fail("log", "the gateway cannot write its log: %v", err)
		return
	}
	g.w.mix("round", uint64(len(j.Writes)), uint64(len(j.Effects.Sends)), uint64(deadline))
	g.w.check.flushed(&j)
	g.wake(deadline)
	if !j.Empty() {
		g.ahead.Flushed(now.Mono, &j)
		g.jobs = append(g.jobs, job{j, g.clock.err})
		if len(g.jobs) == 1 && !j.Written() {
			g.settle()
			return
		}
		g.w.check.owedAhead()
		g.goAhead()
		g.commit()
	}
}

// wake runs a round at the engine's deadline.
func (g *gateway) wake(at time.Duration) {
	if at == 0 || at == g.wakeAt {
		return
	}
	g.wakeAt = at
	g.later(g.clock.truly(at), func() {
		if g.wakeAt == at {
			g.wakeAt = 0
			g.plan(0)
		}
	})
}

// commit syncs what is applied, one sync at a time, and lets out what is behind
// it.
func (g *gateway) commit() {
	if g.syncing {
		return
	}
	g.syncing = true
	mean := g.latency
	if g.w.now < g.slowUntil {
		mean = 800
	}
	g.later(time.Duration(g.rnd.ExpFloat64()*mean*float64(time.Millisecond)), g.synced)
}

// synced is the end of a sync.
func (g *gateway) synced() {
	if g.w.now < g.hangUntil {
		g.later(min(g.hangUntil-g.w.now, time.Second), g.synced)
		return
	}
	g.syncing = false
	var fail error
	if g.failNext {
		fail = errDisk
	}
	if err := g.disk.sync(fail); err != nil {
		if fail == nil {
			g.w.fail("log", "the gateway cannot sync its log: %v", err)
			return
		}
		g.die("a sync failed", g.rnd.Float64())
		g.restart(between(g.rnd, 100, 5_000))
		return
	}
	g.w.check.durable(g.disk.applied())
	g.settle()
}

// settle lets out the jobs that are on disk, in order.
func (g *gateway) settle() {
	for len(g.jobs) > 0 {
		j := &g.jobs[0]
		if err := j.Settle(func(r *round.Job) { g.deliver(r, j.clock) }); err != nil {
			return
		}
		g.jobs = g.jobs[1:]
		g.settled++
	}
	g.ahead.Settled(g.settled)
	g.goAhead()
	if len(g.inputs) > 0 || g.eng.Collected() > 0 {
		g.plan(0) // it was full
	}
}

// deliver lets the effects of a round out. clock is the error of the clock when
// they were written.
func (g *gateway) deliver(j *round.Job, clock time.Duration) {
	e := &j.Effects
	g.w.check.delivered(e)
	for _, r := range e.Replies {
		r.To.(func(engine.Reply))(r)
	}
	for _, s := range e.Sends {
		b, err := wire.Encode(s.Msg)
		if err != nil {
			g.w.fail("wire", "the gateway's %T cannot be encoded: %v", s.Msg, err)
			return
		}
		g.w.mixBytes("down", b)
		if w, ok := s.Msg.(*wire.Welcome); ok && w.Refused == "" {
			delete(g.blind, s.Node)
		}
		if a := g.w.byNode[s.Node]; a != nil {
			a.atBroker().link.down(b, clock)
		}
	}
	for _, s := range e.Compacts {
		if a := g.w.byShort[s.Short]; a != nil {
			a.atNarrow().narrow.down(s.Frame)
		}
	}
	for _, a := range e.Alarms {
		g.w.check.alarm(a)
		g.w.log("alarm", "%s %s raised %v: %s", a.Kind, a.Subject, a.Raised, a.Text)
	}
}

func (g *gateway) heal() {
	g.fullUntil, g.slowUntil, g.hangUntil, g.failNext = 0, 0, 0, false
	g.clock.err = 0
}

// idle reports whether nothing waits for the loop or for the disk.
func (g *gateway) idle() bool { return len(g.inputs) == 0 && len(g.jobs) == 0 && !g.syncing }

func (g *gateway) unsettled() string {
	if g.process == nil {
		return "the gateway is down"
	}
	if n := g.eng.Open(); n > 0 {
		for _, s := range g.eng.Unfinished() {
			for _, i := range s.Instructions {
				if !i.State.Settled() {
					return fmt.Sprintf("%d instructions are open, the first: %+v", n, i)
				}
			}
		}
	}
	for _, n := range g.eng.Nodes() {
		if !n.Online {
			return fmt.Sprintf("%s is offline: %s", n.Node.ID, n.Reason)
		}
	}
	return ""
}
