package executor

import (
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
// the board can't do it, or somebody works at the board by hand. What runs may end.
// A refusal says that nothing was executed, so nothing is refused before the first
// welcome, in which nothing starts either: only the gateway can tell an old copy of
// the journal, in which what waits may have run long ago.
func (c *Core) refuseWaiting() {
	if !c.session.met {
		return
	}
	for i := 0; i < len(c.queue); {
		r := c.refusal(c.queue[i])
		if r == nil {
			i++
			continue
		}
		c.end(c.queue[i], *r)
	}
}

// refusal returns why a waiting attempt must not start any more, nil if it may.
func (c *Core) refusal(a *attempt) *Result {
	if late, by := c.late(a); late {
		r := expired(by, "while it waited to start")
		return &r
	}
	if a.unfit != nil {
		return a.unfit
	}
	if c.local && a.actuates && !mutant.On(mutant.LocalOnArrival) {
		r := c.byHand()
		return &r
	}
	return nil
}

// recheckQueue judges anew, after a restart, what the journal says is waiting:
// the board may have become another one.
func (c *Core) recheckQueue() {
	for _, a := range c.queue {
		v := c.cfg.Check(a.intent, a.work.Args)
		if v.Code != wire.CodeNone {
			a.unfit = &Result{Code: v.Code, Detail: v.Detail}
		}
		a.take(v)
	}
}

// startReady starts waiting attempts while there are workers, and none before the
// first welcome: see refuseWaiting.
func (c *Core) startReady() {
	met := c.session.met || mutant.On(mutant.QueueUnmet)
	for met && !c.stop.stopping && !c.alone && c.session.refused == "" {
		a := c.pick(c.busy() < c.cfg.Workers)
		if a == nil {
			return
		}
		if by := c.ender(a); by != nil {
			c.end(a, Result{Code: wire.CodeCancelled, Detail: fmt.Sprintf("ended by instruction %d before it started", by.seq)})
			continue
		}
		if o := a.succeeded(); o != nil {
			c.end(a, c.resultOf(a, o))
			continue
		}
		c.start(a)
	}
}

// pick chooses the attempt to start next, or nil. An attempt is ready when
// nothing that runs or arrived before it holds one of its lines. Of the ready
// ones the lowest rank goes first: its priority, or that of whoever waits for one
// of its lines, less one for every AgeRank of waiting, so that low ones never
// starve; then the order of arrival. Without a free worker only watches start.
func (c *Core) pick(worker bool) *attempt {
	if len(c.queue) == 0 || !worker && !slices.ContainsFunc(c.queue, (*attempt).waits) {
		return nil
	}
	held := map[wire.LineKey]bool{}
	for _, list := range [][]*attempt{c.running, c.lingering} {
		for _, a := range list {
			a.hold(held)
		}
	}
	urgent := map[wire.LineKey]time.Duration{}
	for _, a := range c.queue {
		for _, l := range a.lines {
			if r, ok := urgent[l]; !ok || c.rank(a) < r {
				urgent[l] = c.rank(a)
			}
		}
	}
	var best *attempt
	var bestRank time.Duration
	for _, a := range c.queue {
		free := a.hold(held)
		if !free || !worker && !a.watch || !c.timely(a) || c.olderRuns(a) {
			continue
		}
		r := c.rank(a)
		for _, l := range a.lines {
			r = min(r, urgent[l])
		}
		if best == nil || r < bestRank {
			best, bestRank = a, r
		}
	}
	return best
}

// waits reports whether the attempt needs no worker.
func (a *attempt) waits() bool { return a.watch }

// busy is how many workers are taken.
func (c *Core) busy() int {
	n := 0
	for _, a := range c.running {
		if !a.watch || mutant.On(mutant.WatchTakesWorker) {
			n++
		}
	}
	return n
}

// watches is how many watches run or wait.
func (c *Core) watches() int {
	n := len(c.running) - c.busy()
	for _, a := range c.queue {
		if a.watch {
			n++
		}
	}
	return n
}

// hold marks the attempt's lines as held and reports whether all were free.
func (a *attempt) hold(held map[wire.LineKey]bool) (free bool) {
	free = true
	for _, l := range a.lines {
		free = free && (!held[l] || mutant.On(mutant.LinesIgnored))
		held[l] = true
	}
	return free
}

// ender returns a waiting attempt that ends this one and could start by itself; nil
// if there is none. Those behind a on a line came after it.
func (c *Core) ender(a *attempt) *attempt {
	if len(a.lines) == 0 || c.session.refused != "" || c.alone {
		return nil
	}
	for _, by := range c.queue {
		if by != a && by.towards && (a.state == running || by.arrivedMono >= a.arrivedMono) && slices.ContainsFunc(a.lines, func(l wire.LineKey) bool { return slices.Contains(by.lines, l) }) && c.timely(by) && !c.olderRuns(by) && by.succeeded() == nil {
			return by
		}
	}
	return nil
}

// makeWay asks running work to stop that an attempt behind it ends: an off level
// does not wait for the end of a pulse, nor for a worker. The order on the line
// stays that of arrival.
func (c *Core) makeWay() {
	for _, a := range c.running {
		if a.aborted {
			continue
		}
		if by := c.ender(a); by != nil {
			a.cutBy = by.seq
			c.abort(a)
		}
	}
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
		if o.state == running || slices.Contains(c.lingering, o) {
			return true
		}
	}
	return false
}

// start records that the attempt runs, and then asks for it.
func (c *Core) start(a *attempt) {
	c.leaveQueue(a)
	a.state, a.startedMono, a.startedAt = running, c.now.Mono, max(c.clock.stamp(c.now), a.receivedAt)
	in := a.work
	a.work, a.notAfter = nil, in.NotAfter
	c.running = append(c.running, a)
	c.noteBoot(a)
	if !mutant.On(mutant.DedupeAfterRun) {
		c.record(a.record(kindStarted))
	}
	c.out.Start = append(c.out.Start, Work{
		Token: a.token, Seq: a.seq, Attempt: a.attempt, Key: in.Key, Trace: a.trace,
		Intent: a.intent, Args: in.Args, At: a.startedAt, Timeout: a.timeout,
		Order: max(in.Order, in.Seq), Lines: a.lines, NotAfter: in.NotAfter,
	})
	c.noteOf(LevelDebug, a, "started", "")
}

// TooLate reports whether work whose start is recorded must not begin any more: a
// slow disk may have taken longer over the record than the instruction was good
// for, or long enough for somebody to throw the LOCAL switch. Whoever carries out
// an Output asks it for each of Output.Start, when the records are durable (A9,
// C15).
func (c *Core) TooLate(now Now, t wire.Token) bool {
	a := c.table.known[t]
	if a == nil || a.state != running {
		return false
	}
	return c.outlived(a, now) || a.actuates && now.Local && !mutant.On(mutant.LocalOnArrival)
}

// outlived reports whether the time limit of recorded work has passed.
func (c *Core) outlived(a *attempt, now Now) bool {
	if a.notAfter == 0 {
		return false
	}
	ms, ok := c.clock.latest(now)
	return !ok || ms > a.notAfter
}

// unstarted ends what was recorded as started and then came too late.
func (c *Core) unstarted(in Unstarted) {
	for _, t := range in.Tokens {
		a := c.table.known[t]
		if a == nil || a.state != running {
			continue
		}
		a.startedAt = 0 // it was not
		r := c.byHand()
		if c.outlived(a, c.now) {
			r = Result{Code: wire.CodeExpired, Detail: "not_after passed while its start was written down; it was not begun"}
		}
		c.end(a, r)
	}
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
	ms, ok := c.clock.latest(c.now)
	for _, a := range c.queue {
		if !a.stored {
			at(a.arrivedMono + ShortWork)
		}
		if ok && c.session.met && a.work.NotAfter > 0 {
			at(c.now.Mono + time.Duration(a.work.NotAfter-ms+1)*time.Millisecond)
		}
	}
}

// abort asks running work to stop, once.
func (c *Core) abort(a *attempt) {
	if a.aborted {
		return
	}
	a.aborted = true
	c.out.Abort = append(c.out.Abort, a.token)
}

// finished takes the result of work.
func (c *Core) finished(in Finished) {
	a := c.table.known[in.Token]
	if a == nil {
		c.note(LevelWarn, "result of work that is not known", in.Token.String())
		return
	}
	if slices.Contains(c.lingering, a) {
		c.lingering = without(c.lingering, a)
		a.lines = nil
		if in.Result.Lease != nil {
			c.open(a, *in.Result.Lease)
		}
		c.noteOf(LevelWarn, a, "work that had been given up has ended", in.Result.Code.String()+": "+in.Result.Detail)
		return
	}
	if a.state != running {
		c.noteOf(LevelWarn, a, "second result ignored", in.Result.Code.String())
		return
	}
	r := in.Result
	if !r.Code.Final() {
		r = Result{Code: wire.CodeInternal, Detail: fmt.Sprintf("the intent ended with the code %v, which is not an end", r.Code)}
	}
	if _, err := wire.DecodeMap(r.Payload); err != nil || len(r.Payload) > wire.MaxPayloadBytes {
		r.Payload = nil
		r.Detail += " (its payload could not be sent)"
	}
	if a.byStop && r.Code == wire.CodeCancelled {
		r.Code = wire.CodeInterrupted
		r.Detail = "the agent was stopped while this ran; " + r.Detail
	}
	if a.cutBy != 0 && r.Code == wire.CodeCancelled {
		why := fmt.Sprintf("ended early by instruction %d", a.cutBy)
		if r.Detail != "" {
			why += ": " + r.Detail
		}
		r.Detail = why
	}
	c.end(a, r)
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
	if !a.startTold || a.percent == a.percentTold || c.now.Mono-since < ProgressEvery || !c.session.welcomed || !c.tellable() {
		return
	}
	a.progressAt, a.percentTold = c.now.Mono, a.percent
	c.emit(a, &wire.Event{Phase: wire.PhaseProgress, Percent: a.percent})
}

// seen tells at once what running work has seen. It is dropped when the journal
// has no room: its maker counts on.
func (c *Core) seen(a *attempt, payload wire.RawMap) {
	if _, err := wire.DecodeMap(payload); err != nil || len(payload) > wire.MaxPayloadBytes || !c.tellable() {
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
// is free again; the lines stay held until the work ends.
func (c *Core) giveUpOverdue() {
	for i := 0; i < len(c.running); {
		a := c.running[i]
		if c.now.Mono-a.startedMono < a.timeout+OverdueAfter {
			i++
			continue
		}
		lines := a.lines
		c.abort(a)
		c.end(a, Result{Code: wire.CodeUnknown,
			Detail: fmt.Sprintf("it did not stop %v after its time limit of %v and may still act; what it holds stays held", OverdueAfter, a.timeout)})
		a.lines = lines
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
	a.state, a.code, a.detail, a.work = ended, r.Code, clip(r.Detail, wire.MaxDetailBytes), nil
	a.boot = 0
	a.take(Verdict{})
	if r.Lease != nil {
		c.open(a, *r.Lease)
	}
	a.finishedAt, a.endedMono = max(c.clock.stamp(c.now), a.receivedAt, a.startedAt), c.now.Mono
	c.emit(a, &wire.Event{Phase: wire.PhaseProcessed, Code: a.code, Detail: a.detail, Payload: r.Payload})
	c.table.ends = append(c.table.ends, a)
	c.noteOf(LevelInfo, a, "ended", a.detail)
	early := a.early
	a.early = nil
	for _, e := range early {
		c.leaseEnded(LeaseEnded{Token: a.token, Why: e.why, Ago: time.Duration(c.clock.stamp(c.now)-e.at) * time.Millisecond})
	}
}
