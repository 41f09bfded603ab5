package explore

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/apollo-11/apollo11/fieldagent/executor"
	"github.com/apollo-11/apollo11/fieldagent/journal"
	"github.com/apollo-11/apollo11/fieldagent/journal/journaltest"
	"github.com/apollo-11/apollo11/fieldagent/round"
	"github.com/apollo-11/apollo11/wire"
)

const (
	// agentDir is where the journal lies on the agent's disk.
	agentDir = "/data"
	// agentQueue is how many inputs wait for the agent's loop; more is dropped.
	agentQueue = 1024
	// rewriteAt makes journals small, so that they are rewritten in a short life.
	rewriteAt = 6 << 10
)

// agent is an agent's process around the real executor, rounds and journal: when
// a round begins, how long a sync takes, and when the process dies.
type agent struct {
	w      *world
	id     string
	tag    string // tells it from a second board with the same id
	index  int
	rnd    *rand.Rand
	clock  clock
	disk   *journaltest.Disk
	link   *link
	narrow *narrow
	links  round.Links
	pins   *owner

	life      *identity // nil when the process is down
	boots     uint64
	core      *executor.Core
	journal   *journal.Journal
	performer *round.Performer
	inputs    []waiting
	planned   bool
	busy      bool            // a round waits for its sync
	out       executor.Output // of that round
	wakeAt    time.Duration
	works     map[wire.Token]*work
	untaken   map[wire.Token]bool // towards safe, and the loop has not taken it
	ahead     []wire.State        // driven ahead of an instruction that has not come yet
	hang      time.Duration       // so long the next sync takes

	failNext   bool // the next sync fails
	faulted    bool // the disk has failed in this life
	fullUntil  time.Duration
	tightUntil time.Duration // there is room for an append and none for a copy
	slowUntil  time.Duration
	latency    float64 // mean time of a sync in ms
	written    bool    // the journal is there: another file is a copy of it
	copying    bool    // one is about to be written
	rotten     bool    // a bit of its journal is wrong
	killed     bool    // the process ends without a word
	autonomy   time.Duration
	maxQueue   int
	syncs      time.Duration // time spent waiting for them, in all

	busyUntil time.Duration // the owner of its pins is busy
	sickly    bool          // most of its writes fail
	deaf      bool          // its watches do not end in time
	lastHello *wire.Hello   // as it was said
	rounds    uint64        // of its loop
	hungUntil time.Duration // by its disk

	local     bool // the LOCAL switch is on
	localSeen bool // as the process has last seen it
	// localTaken is the same as far as the loop has come.
	localTaken bool

	incarnation uint64    // of its latest hello
	copied      *cardCopy // an older copy of its card, nil for none
	copies      int       // how often a copy was put in
	copyRuns    bool      // it is copied when the next work starts
	copyWaits   bool      // it is copied when the next one is told to wait
	second      *agent    // the other board under the name, nil for none
	effects     int       // of the round that is carried out
	lying       uint64    // how many numbers it claims in its hellos that nobody gave it
	claimed     uint64    // by the latest of them
	retired     bool      // it will not start again

	through uint64 // what it says that the gateway has
	next    uint64 // what it says that its next event will be
}

func newAgent(w *world, index int, tag string) *agent {
	a := &agent{w: w, id: nodeName(index), tag: tag, index: index, disk: journaltest.New()}
	a.rnd = w.stream("agent " + tag)
	a.clock.w = w
	a.clock.ppm = int64(a.rnd.IntN(101)) - 50
	a.latency = 0.5 + a.rnd.ExpFloat64()*4
	a.link, a.narrow, a.pins = newLink(a), newNarrow(a), newOwner(a)
	a.autonomy = time.Minute
	if chance(a.pins.rnd, 0.5) {
		a.autonomy = between(a.pins.rnd, 6_000, 20_000)
	}
	if chance(a.pins.rnd, 0.2) {
		a.maxQueue = 2 + a.pins.rnd.IntN(8)
	}
	return a
}

// maxKnown is how many attempts it remembers: few, where few may wait, in the profile
// restore alone, since all the others would learn nothing more by it.
func (a *agent) maxKnown() int {
	if a.maxQueue == 0 || a.w.profile.Memory < 1 {
		return 0
	}
	return a.maxQueue + 4
}

// setClock draws what the machine knows of the time when it starts.
func (a *agent) setClock() {
	c := &a.clock
	c.unset, c.err, c.synced = false, between(a.rnd, -40, 40), true
	if !a.w.profile.BadClocks || a.w.calm {
		return
	}
	switch a.rnd.IntN(6) {
	case 0: // no clock chip, no time server yet
		c.unset, c.synced = true, false
		if chance(a.rnd, 0.5) {
			a.later(between(a.rnd, 500, 20_000), func() { c.unset, c.synced = false, true })
		}
	case 1: // off, and knows that it may be
		c.err, c.synced = between(a.rnd, -600_000, 600_000), false
	case 2: // off, and does not know
		c.err = between(a.rnd, -600_000, 600_000)
	case 3: // a little off, and does not know
		c.err = between(a.rnd, -1_900, 1_900)
	}
}

// Now is the time as the executor sees it.
func (a *agent) now() executor.Now {
	mono := a.clock.mono()
	return executor.Now{Mono: mono, Wall: a.clock.wall(), WallOK: a.clock.synced, Local: a.localSeen, Throws: a.pins.throws, Away: a.links.Away(mono)}
}

// boot starts a process on what the disk holds.
func (a *agent) boot() {
	if a.life != nil || a.retired {
		return
	}
	a.boots++
	a.life = new(identity)
	a.clock.started = a.w.now
	a.links = round.Links{}
	a.setClock()
	a.inputs, a.planned, a.busy, a.wakeAt, a.out, a.faulted = nil, false, false, 0, executor.Output{}, false
	a.works, a.untaken, a.ahead = map[wire.Token]*work{}, map[wire.Token]bool{}, nil
	a.written, a.copying = false, false
	a.inject()
	a.pins.start()
	a.w.check.opened(a)
	a.localSeen, a.localTaken = a.local, a.local
	a.w.mix("agent boots", uint64(a.index), a.boots)
	opts := journal.Options{Salt: a.rnd.Uint64}
	j, records, err := journal.Open(a.disk, agentDir, opts)
	if a.rotten && !a.faulted {
		a.rotten = false
		if !errors.Is(err, journal.ErrDamaged) && len(records) > 0 { // one whose only frame is gone is as good as new
			a.w.fail("recovery", "%s opens a journal with a wrong bit in it: %v", a.id, err)
			return
		}
		if err != nil {
			if _, err = journal.SetAside(a.disk, agentDir, opts); err == nil {
				j, records, err = journal.Open(a.disk, agentDir, opts)
			}
		}
	}
	if err != nil {
		if a.faulted {
			a.end("cannot open its journal", false)
			return
		}
		a.w.fail("recovery", "%s cannot open its journal: %v", a.id, err)
		return
	}
	a.journal = j
	core, out, err := executor.New(executor.Config{
		Hello: wire.Hello{Version: "sim", Short: wire.Short(a.id), Labels: map[string]string{"row": fmt.Sprint(a.index % 2)},
			Intents: boardIntents, Board: "sim", Nonce: a.rnd.Uint64() | 1, Pins: a.pins.m.names(), Traits: a.pins.m.traits()},
		Incarnation: a.rnd.Uint64() | 1, Check: a.judge, Autonomy: a.autonomy, Local: a.local, MaxQueue: a.maxQueue, MaxKnown: a.maxKnown(), Safe: a.pins.m.safe,
	}, records, a.now())
	if err != nil {
		a.w.fail("recovery", "%s cannot make sense of its journal: %v", a.id, err)
		return
	}
	a.written = true
	a.core, a.performer = core, round.New(core, j, a, a.now, rewriteAt)
	a.w.log(a.tag, "starts with %d records, clock off by %v, unset %v, synced %v", len(records), a.clock.err, a.clock.unset, a.clock.synced)
	a.pins.seed(core)
	a.perform(out)
	a.link.reach()
	a.narrow.reach()
}

// later does something if the same process still runs.
func (a *agent) later(d time.Duration, do func()) {
	life := a.life
	a.w.after(d, func() {
		if a.life == life && life != nil {
			do()
		}
	})
}

// waiting is an input that the loop has not taken yet.
type waiting struct {
	executor.Input
	message wire.Message  // of the gateway, nil for other inputs
	clock   time.Duration // error of the gateway's clock when it was written
}

// input gives something to the loop.
func (a *agent) input(in executor.Input) { a.take(waiting{Input: in}) }

// take gives something to the loop if there is room.
func (a *agent) take(in waiting) {
	if a.life == nil || len(a.inputs) >= agentQueue {
		return
	}
	a.inputs = append(a.inputs, in)
	a.plan(between(a.rnd, 0, 2))
}

func (a *agent) plan(d time.Duration) {
	if a.planned || a.busy {
		return
	}
	a.planned = true
	a.later(d, func() {
		a.planned = false
		if !a.busy {
			a.round()
		}
	})
}

// round takes in everything that waits, or a tick.
func (a *agent) round() {
	a.rounds++
	next := func() (executor.Input, bool) {
		if len(a.inputs) == 0 {
			return nil, false
		}
		in := a.inputs[0]
		a.inputs = a.inputs[1:]
		a.links.Taken(in.Input)
		if h, ok := in.Input.(executor.Hand); ok {
			a.localTaken = h.Local
		}
		if m, ok := in.message.(*wire.Instruction); ok {
			delete(a.untaken, m.Token)
		}
		if f, ok := in.Input.(executor.ReceivedCompact); ok {
			a.w.check.keepsToldCompact(a, f.Frame)
		}
		if in.message != nil {
			a.w.check.told(a, in.message, in.clock)
		}
		return in.Input, true
	}
	in, ok := next()
	if !ok {
		in = executor.Tick{}
	}
	a.perform(round.Collect(a.core, a.now, in, next))
}

// perform carries an output out when its sync, if it needs one, is over.
func (a *agent) perform(out executor.Output) {
	if out.Contact {
		a.Contact()
	}
	for _, w := range out.Urgent { // as round.Performer does it: before anything is written down
		a.Start(w)
	}
	out.Contact, out.Urgent = false, nil
	if len(out.Records) == 0 {
		a.carry(out)
		return
	}
	a.busy, a.out = true, out
	begun := a.w.now
	mean := a.latency
	if a.w.now < a.slowUntil {
		mean = 600
	}
	takes := time.Duration(a.rnd.ExpFloat64() * mean * float64(time.Millisecond))
	takes, a.hang = max(takes, a.hang), 0
	a.hungUntil = a.w.now + takes
	a.later(takes, func() {
		a.busy = false
		a.syncs += a.w.now - begun
		a.carry(out)
	})
}

func (a *agent) carry(out executor.Output) {
	a.w.mix("perform", uint64(a.index), uint64(len(out.Records)), uint64(len(out.Start)), uint64(len(out.Primary)))
	a.effects = 0
	late, err := a.performer.Perform(out)
	if err != nil && out.Fatal == "" && a.effects > 0 {
		a.w.fail("effect-before-commit", "%s has acted or spoken %d times before its journal was written, which failed", a.id, a.effects)
		return
	}
	if err != nil {
		if a.life == nil {
			return
		}
		if !a.faulted && out.Fatal == "" {
			a.w.fail("journal", "%s cannot write its journal: %v", a.id, err)
			return
		}
		a.end("stops: "+err.Error(), false)
		return
	}
	if out.Stopped {
		a.end("has stopped", false)
		return
	}
	a.w.check.written(a)
	if len(late) > 0 {
		a.w.check.notBegun(a, late)
		a.inputs = append([]waiting{{Input: executor.Unstarted{Tokens: late}}}, a.inputs...)
	}
	if len(a.inputs) > 0 {
		a.plan(0)
	}
	a.wake(out.Deadline)
}

// wake ticks at the core's deadline.
func (a *agent) wake(at time.Duration) {
	if at == executor.NoDeadline || at == a.wakeAt {
		return
	}
	a.wakeAt = at
	a.later(a.clock.truly(at), func() {
		if a.wakeAt == at {
			a.wakeAt = 0
			a.plan(0)
		}
	})
}

// end is the end of the process. With the power the disk loses what was not
// synced, except for what chance saves of it.
func (a *agent) end(why string, power bool) {
	if a.life == nil {
		return
	}
	a.w.log(a.tag, "ends: %s", why)
	a.w.mix("agent ends", uint64(a.index))
	a.w.check.inDoubt(a)
	if a.busy && chance(a.rnd, 0.5) {
		a.halfWritten()
	}
	a.life, a.busy = nil, false
	a.w.check.ended(a)
	a.pins.gone(power, a.killed)
	a.killed = false
	if power {
		a.disk.PowerCut(a.rnd)
	} else {
		a.disk.Kill()
	}
	a.link.gone(power)
	a.narrow.lost()
	a.w.after(between(a.rnd, 100, 6_000), a.boot)
}

// halfWritten lets the round that was waiting for its sync get as far as the
// disk, which does not finish it. Nothing may come of it.
func (a *agent) halfWritten() {
	a.disk.Inject(func(op journaltest.Op) *journaltest.Fault {
		if op.Kind != journaltest.OpSync {
			return nil
		}
		return &journaltest.Fault{Err: errDisk, Written: a.rnd.IntN(op.Bytes + 1)}
	})
	a.effects = 0
	if _, err := a.performer.Perform(a.out); err == nil {
		a.w.fail("journal", "%s takes a write for durable whose sync failed", a.id)
	}
	if a.effects > 0 {
		a.w.fail("effect-before-commit", "%s has acted or spoken %d times before its journal was written", a.id, a.effects)
	}
}

// stop asks the process to end in order.
func (a *agent) stop() { a.input(executor.Stop{Reason: "maintenance"}) }

// wipe is a new card in an old board.
func (a *agent) wipe() {
	if a.life == nil {
		return
	}
	a.end("gets an empty card", true)
	a.disk = journaltest.New()
	a.w.check.wiped(a)
}

// rot is a power cut after which a bit of the journal is another one: not at its end,
// which a cut may have torn.
func (a *agent) rot(p float64) {
	if a.life == nil || a.w.story == storyGateway || a.w.story == storyAgents {
		return
	}
	a.end("has a wrong bit in its journal", true)
	b, ok := a.disk.Content(journalFile)
	if !ok || len(b) < 600 {
		return
	}
	b[64+int(p*float64(len(b)/3))] ^= 1 << a.rnd.IntN(8)
	a.disk.Spoil(journalFile, b)
	a.rotten = true
	a.w.check.wiped(a)
}

// inject installs the disk's faults.
func (a *agent) inject() {
	a.disk.Inject(func(op journaltest.Op) *journaltest.Fault {
		copying := a.copying
		a.copying = copying && op.Kind != journaltest.OpWrite
		switch {
		case a.failNext && op.Kind == journaltest.OpSync:
			a.failNext, a.faulted = false, true
			return &journaltest.Fault{Err: errDisk, Written: a.rnd.IntN(op.Bytes + 1)}
		case op.Kind == journaltest.OpOpen:
			a.copying = op.Name != journalFile && a.written
		case op.Kind == journaltest.OpWrite && copying && a.w.now < a.tightUntil:
			return &journaltest.Fault{Err: errFull, Written: a.rnd.IntN(op.Bytes + 1)}
		case a.w.now < a.fullUntil && op.Kind == journaltest.OpWrite:
			a.faulted = true
			return &journaltest.Fault{Err: errFull, Written: a.rnd.IntN(op.Bytes + 1)}
		}
		return nil
	})
}

func (a *agent) heal() {
	a.failNext, a.fullUntil, a.slowUntil, a.tightUntil, a.hang = false, 0, 0, 0, 0
	a.clock.unset, a.clock.err, a.clock.synced = false, 0, true
	a.setLocal(false)
	a.link.heal()
	a.narrow.heal()
}

func (a *agent) unsettled() string {
	switch {
	case a.life == nil:
		return a.id + " is down"
	case len(a.works) > 0:
		return fmt.Sprintf("%s still runs %d works", a.id, len(a.works))
	case len(a.pins.core.Unsettled()) > 0:
		return fmt.Sprintf("%s still has outputs on for a time: %v", a.id, a.pins.core.Unsettled())
	case a.link.agentEnd == nil || a.link.agentEnd != a.link.brokerEnd:
		return a.id + " is not connected"
	case a.next == 0 || a.through+1 != a.next:
		return fmt.Sprintf("%s holds events up to %d, acknowledged are those up to %d", a.id, a.next-1, a.through)
	}
	return ""
}
