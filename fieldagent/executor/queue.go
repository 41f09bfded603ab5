package executor

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/apollo-11/apollo11/wire"
	"github.com/apollo-11/apollo11/wire/mutant"
)

func (c *Core) leaveQueue(a *attempt)   { c.queue = without(c.queue, a) }
func (c *Core) leaveRunning(a *attempt) { c.running = without(c.running, a) }

func without(list []*attempt, a *attempt) []*attempt {
	if i := slices.Index(list, a); i >= 0 {
		return slices.Delete(list, i, i+1)
	}
	return list
}

// refuseWaiting ends what waits and must not start any more: its time has run out,
// the board can't do it, something newer has begun on its line, or somebody works at
// the board by hand. What runs may end. A refusal says that nothing was executed, so
// nothing is refused before the first welcome, in which nothing starts either: only
// the gateway can tell an old copy of the journal, in which what waits may have run
// long ago.
func (c *Core) refuseWaiting() {
	if !c.session.met {
		return
	}
	for i := 0; i < len(c.queue); {
		a := c.queue[i]
		r := c.refusal(a)
		if r == nil {
			i++
			continue
		}
		if a.towards && !mutant.On(mutant.RefusalSpares) {
			c.withdraw(a)
			i = 0 // others have left before it
		}
		c.end(a, *r)
	}
}

// refusal returns why a waiting attempt must not start any more, nil if it may.
func (c *Core) refusal(a *attempt) *Result {
	var r Result
	switch by := c.overtaken(a); {
	case c.late(a):
		r = c.expired(a, "while it waited to start")
	case a.unfit != nil:
		return a.unfit
	case by != 0:
		r = superseded(by)
	case c.heldSafe(a):
		r = Result{Code: wire.CodeSuperseded, Detail: "its line is held at the safe level since, until somebody releases it"}
	case (c.local && a.actuates || c.disturbed(c.now, a)) && !mutant.On(mutant.LocalOnArrival):
		r = c.wasByHand()
	default:
		return nil
	}
	return &r
}

// recheckQueue judges anew what waits, after a restart or with another pin map: the
// board may have become another one.
func (c *Core) recheckQueue() {
	for i, a := range c.queue {
		a.unfit = nil
		if v := c.judge(a); v.Code != wire.CodeNone {
			a.unfit = &Result{Code: v.Code, Detail: v.Detail}
		}
		a.seat(c.queue[:i])
	}
}

// startReady starts waiting attempts while there are workers, and none before the
// first welcome: see refuseWaiting.
func (c *Core) startReady() {
	met := c.session.met || mutant.On(mutant.QueueUnmet)
	for met && !c.stop.stopping && (!c.alone || mutant.On(mutant.WindowIgnored)) && c.session.refused == "" {
		a := c.pick(c.busy() < c.cfg.Workers)
		if a == nil {
			return
		}
		if o := a.succeeded(); o != nil {
			c.end(a, c.resultOf(a, o))
			continue
		}
		c.out.Start = append(c.out.Start, c.begin(a))
	}
}

// pick chooses the attempt to start next, or nil. An attempt is ready when nothing
// holds one of its lines: nothing that runs, and nothing that waits and stands before
// it there (see seat). Of the ready ones the lowest rank goes first: its priority, or
// that of whoever waits for one of its lines, less one for every AgeRank of waiting,
// so that low ones never starve; then the order of arrival. Without a free worker
// only watches start.
func (c *Core) pick(worker bool) *attempt {
	if len(c.queue) == 0 || !worker && !slices.ContainsFunc(c.queue, (*attempt).waits) {
		return nil
	}
	taken := occupied{lines: map[wire.LineKey]bool{}}
	for _, list := range [][]*attempt{c.running, c.lingering} {
		for _, a := range list {
			taken.add(a)
		}
	}
	holding := c.holding()
	lift := c.lifts()
	standing := slices.Clone(c.queue)
	slices.SortStableFunc(standing, func(a, b *attempt) int { return cmp.Compare(a.place, b.place) })
	var best *attempt
	var bestRank time.Duration
	for _, a := range standing {
		free := taken.free(a)
		if c.holdsPlace(a) {
			taken.add(a)
		}
		switch {
		case !free, !worker && !a.watch, !c.timely(a), c.olderRuns(a), !c.mayBegin(a), c.keptFrom(a), a.releases && holding:
			continue
		}
		if r := lift.rank(a, c.rank(a)); best == nil || r < bestRank || r == bestRank && a.came < best.came {
			best, bestRank = a, r
		}
	}
	return best
}

// lifted are the best ranks of what waits for a line, for the board, and for anything:
// whoever stands before it goes at that rank.
type lifted struct {
	lines      map[wire.LineKey]time.Duration
	board, any time.Duration
}

func (c *Core) lifts() lifted {
	f := lifted{lines: map[wire.LineKey]time.Duration{}, board: NoDeadline, any: NoDeadline}
	for _, a := range c.queue {
		r := c.rank(a)
		for _, l := range a.lines {
			if before, ok := f.lines[l]; !ok || r < before {
				f.lines[l] = r
			}
		}
		if a.board {
			f.board = min(f.board, r)
		}
		if a.holdsAny() {
			f.any = min(f.any, r)
		}
	}
	return f
}

func (f *lifted) rank(a *attempt, own time.Duration) time.Duration {
	switch {
	case a.board:
		return min(own, f.any)
	case len(a.lines) > 0:
		own = min(own, f.board)
	}
	for _, l := range a.lines {
		own = min(own, f.lines[l])
	}
	return own
}

// waits reports whether the attempt needs no worker.
func (a *attempt) waits() bool { return a.watch }

// busy is how many workers are taken. What is towards safe has one of its own.
func (c *Core) busy() int {
	n := 0
	for _, a := range c.running {
		if (!a.watch || mutant.On(mutant.WatchTakesWorker)) && (!a.towards || mutant.On(mutant.OffWaitsForWorker)) {
			n++
		}
	}
	return n
}

// watches is how many watches run or wait.
func (c *Core) watches() int {
	n := 0
	for _, list := range [][]*attempt{c.running, c.queue} {
		for _, a := range list {
			if a.watch {
				n++
			}
		}
	}
	return n
}

func (c *Core) rank(a *attempt) time.Duration {
	p := a.work.Priority
	if p == 0 {
		p = wire.PriorityNormal
	}
	return time.Duration(p)*AgeRank - (c.now.Mono - a.arrivedMono)
}

// olderRuns reports whether an earlier attempt of the same instruction has not
// ended: two never run at once.
func (c *Core) olderRuns(a *attempt) bool {
	for o := a.older; o != nil; o = o.older {
		if (o.state == running || slices.Contains(c.lingering, o)) && !mutant.On(mutant.AttemptsOverlap) {
			return true
		}
	}
	return false
}

// tellSlowWork gives an event of its own to what takes longer than ShortWork:
// waiting, and running.
func (c *Core) tellSlowWork() {
	for _, a := range c.queue {
		if c.now.Mono-a.arrivedMono >= ShortWork {
			c.hear(a)
		}
	}
	for _, a := range c.running {
		if !a.startTold && c.now.Mono-a.startedMono >= ShortWork {
			c.emit(a, &wire.Event{Phase: wire.PhaseStarted})
			a.startTold = true
		}
	}
}

func (c *Core) queueDeadlines(at func(time.Duration)) {
	ms, ok := c.clock.earliest(c.now)
	for _, a := range c.queue {
		if !a.stored {
			at(a.arrivedMono + ShortWork)
		}
		if ok && c.session.met && a.work.NotAfter > 0 {
			at(c.now.Mono + span(a.work.NotAfter, ms) + time.Millisecond)
		}
	}
}

// progressed notes how far work has come. The heartbeats carry it; while the
// gateway listens it becomes an event now and then.
func (c *Core) progressed(in Progressed) {
	a := c.table.known[in.Token]
	if a == nil || a.state != running {
		return
	}
	if in.Payload != nil {
		c.seen(a, in.Payload)
		return
	}
	a.percent = min(in.Percent, 100)
	since := max(a.progressAt, a.startedMono)
	if !a.startTold || a.percent == a.percentTold || c.now.Mono-since < ProgressEvery || !c.session.welcomed || !c.tellable(0) {
		return
	}
	a.progressAt, a.percentTold = c.now.Mono, a.percent
	c.emit(a, &wire.Event{Phase: wire.PhaseProgress, Percent: a.percent})
}

// seen tells at once what running work has seen. It is dropped when the journal
// has no room: its maker counts on.
func (c *Core) seen(a *attempt, payload wire.RawMap) {
	if _, err := wire.DecodeMap(payload); err != nil || len(payload) > wire.MaxPayloadBytes || !c.tellable(0) {
		return
	}
	if !a.startTold {
		c.emit(a, &wire.Event{Phase: wire.PhaseStarted})
		a.startTold = true
	}
	c.emit(a, &wire.Event{Phase: wire.PhaseProgress, Percent: a.percent, Payload: payload})
}

// Roomy reports whether there is room for another Progressed with a payload. While
// the gateway is away it ends some day.
func (c *Core) Roomy() bool { return len(c.events) < maxProgress && c.eventBytes < maxProgressBytes }

// giveUpOverdue ends attempts whose work does not heed its time limit. The worker
// is free again; the lines stay held until the work ends. It is done when nothing else
// waits for a loop that may have hung: the end of the work may be among that.
func (c *Core) giveUpOverdue() {
	for i := 0; i < len(c.running); {
		a := c.running[i]
		if c.now.Mono-a.startedMono < a.timeout+OverdueAfter {
			i++
			continue
		}
		lines, board := a.lines, a.board
		c.abort(a)
		c.end(a, Result{Code: wire.CodeUnknown,
			Detail: fmt.Sprintf("it did not stop %v after its time limit of %v and may still act; what it holds stays held", OverdueAfter, a.timeout)})
		if !mutant.On(mutant.LineUnlocked) {
			a.lines, a.board = lines, board
		}
		c.lingering = append(c.lingering, a)
	}
	if len(c.lingering) >= MaxLingering {
		c.out.Fatal = fmt.Sprintf("%d works do not stop after their time limits: the agent must be restarted", len(c.lingering))
	}
}

// end gives an attempt its result.
func (c *Core) end(a *attempt, r Result) {
	c.leaveQueue(a)
	c.leaveRunning(a)
	c.keepLines(a, r)
	done := a.state == running && r.Code == wire.CodeOK
	if a.state == running && a.holdsSafe && (done || r.Code.Class() == wire.ClassUnknown || r.Code.Class() == wire.ClassRetryable) {
		// The owner of the pins holds from the try on, whatever comes of that. Its next
		// attempt may be for another line, if a reload comes between.
		c.hold(a.lines, a.order) // before its end: the journal may be cut between the two
	}
	releases, released := done && a.releases, a.lines
	a.state, a.code, a.detail, a.work = ended, r.Code, clip(r.Detail, wire.MaxDetailBytes), nil
	a.boot = 0
	line := a.lineOf()
	a.take(Verdict{})
	if r.Lease != nil {
		c.open(a, *r.Lease, line)
	}
	a.finishedAt, a.endedMono = max(c.clock.stamp(c.now), a.receivedAt, a.startedAt), c.now.Mono
	c.emit(a, &wire.Event{Phase: wire.PhaseProcessed, Code: a.code, Detail: a.detail, Payload: r.Payload})
	c.tellPulse(a, r)
	if releases {
		c.release(released, a.order) // behind it, for the same reason
	}
	c.table.ends = append(c.table.ends, a)
	c.noteOf(LevelInfo, a, "ended", a.detail)
	early := a.early
	a.early = nil
	for _, e := range early {
		c.leaseEnded(LeaseEnded{Token: a.token, Why: e.why, Ago: span(c.clock.stamp(c.now), e.at), Level: e.level})
	}
}
