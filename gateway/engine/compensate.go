package engine

import (
	"fmt"
	"slices"
	"time"

	"github.com/apollo-11/apollo11/wire"
	"github.com/apollo-11/apollo11/wire/mutant"
)

// Alarms of compensation; their subject is the gateway.
const (
	alarmPaused    = "compensation_paused"
	alarmHighWater = "high_water"
	alarmFilling   = "queue_filling"

	subjectGateway = "gateway"
)

const (
	// ackMinutes is over how much of the past the ack success rate is taken (A6).
	ackMinutes = 10
	// ackSamples is how many sends or acks a rate or a percentile needs to mean
	// anything.
	ackSamples = 20
	// leastRate bounds how far a bad success rate stretches the interval: four
	// times.
	leastRate = 0.25
	// pauseCheck is how often a pause, and what it holds back, is looked at.
	pauseCheck = 5 * time.Second
	// pauseLimit is the longest pause at a time, and pauseRest the least time until
	// the next one. A link that is always slow would otherwise never see again what
	// it lost: a pause may put a resend off, not away.
	pauseLimit = 2 * time.Minute
	pauseRest  = 30 * time.Second
	// repeatAfter is less than the time after which an agent tells an event once more,
	// by a second for its journal and for what comes between a command and its first
	// event.
	repeatAfter = wire.ResendAfter - time.Second
)

// acks counts sends and confirmations of the last ten minutes, by minute.
type acks struct {
	minute       int64 // number of the current one
	sent         [ackMinutes]int
	confirmed    [ackMinutes]int
	took, before latency // of the current minute, and of the one before it
}

// latency counts confirmations by the primary path: those that measure it, of these
// the ones that took longer than the limit, and longer than half of it, and those
// that do not, because something was sent again.
type latency struct{ all, over, half, unsure int }

// add takes in a confirmation. An ack that came after the instruction was sent more
// than once may be for either copy, and one that was told more than once may have
// been lost before: both measure how long the two sides wait until they send again
// (Karn's rule). fresh says that the ack was told for the first time. What is quick
// is quick all the same, and what took longer than the limit since the last copy was
// sent is late whichever copy it is for.
func (l *latency) add(took time.Duration, sends uint8, fresh bool, limit time.Duration) {
	switch {
	case sends == 1 && (fresh || took <= limit/2):
	case sends > 1 && fresh && took > limit:
	default:
		l.unsure++
		return
	}
	l.all++
	if took > limit {
		l.over++
	}
	if took > limit/2 {
		l.half++
	}
}

func (a *acks) turn(now Now) {
	m := int64(now.Mono / time.Minute)
	if m-a.minute > 1 {
		a.took = latency{} // the minute before was empty
	}
	for ; a.minute < m; a.minute++ {
		if m-a.minute > ackMinutes {
			a.minute = m - ackMinutes
		}
		k := (a.minute + 1) % ackMinutes
		a.sent[k], a.confirmed[k] = 0, 0
		a.before, a.took = a.took, latency{}
	}
}

func (a *acks) send(now Now) {
	a.turn(now)
	a.sent[a.minute%ackMinutes]++
}

func (a *acks) confirm(now Now) {
	a.turn(now)
	a.confirmed[a.minute%ackMinutes]++
}

// rate is the share of sends that were confirmed, 1 when too few are known.
// flying are those whose time is still running.
func (a *acks) rate(flying int) float64 {
	sent, confirmed := -flying, 0
	for k := range a.sent {
		sent += a.sent[k]
		confirmed += a.confirmed[k]
	}
	if sent < ackSamples || confirmed >= sent {
		return 1
	}
	return float64(confirmed) / float64(sent)
}

// jam reports whether the 95th percentile of the last one to two minutes' ack
// latency is over the limit, and whether it is under half of it again or not known:
// in between a pause goes on and none begins.
//
// Loss alone lets many acks come quickly. When hardly any does, one in twenty, then
// those that come after something was sent again are late and not lost: a jam longer
// than the interval would never be seen otherwise.
func (a *acks) jam() (over, easy bool) {
	all, late, half := a.took.all+a.before.all, a.took.over+a.before.over, a.took.half+a.before.half
	unsure := a.took.unsure + a.before.unsure
	if quick := all - half; quick*20 < all+unsure {
		all, late, half = all+unsure, late+unsure, half+unsure
	}
	if all < ackSamples {
		return false, true
	}
	return late*20 > all, half*20 <= all
}

// tells notes the number of the event that an agent says comes next.
func (n *node) tells(now Now, next uint64) {
	if next != 0 {
		n.told, n.toldAt = max(n.told, next-1), now.in(0)
	}
}

// untold reports whether an event is known to be told for the first time. A node's
// messages keep their order: then nothing before it has spoken of it, and the latest
// word that would have is so young that the event cannot have been repeated since.
func (n *node) untold(now Now, number uint64) bool {
	return number > n.told && n.toldAt != 0 && now.Mono-n.toldAt < repeatAfter
}

// heldBack reports whether automatic repetition has to wait: an operator works by
// hand, or the acks show that more messages would only add to a jam.
func (e *Engine) heldBack() bool { return e.quiet.On && !mutant.On(mutant.QuietIgnored) || e.paused }

// pace looks at the latency of acks once every pauseCheck, and pauses or resumes
// compensation (A6).
func (e *Engine) pace(now Now) {
	e.endQuiet(now)
	if now.Mono < e.paceAt {
		return
	}
	e.paceAt = now.in(pauseCheck)
	e.acks.turn(now)
	over, easy := e.acks.jam()
	switch {
	case easy:
		e.clear(now, alarmPaused, subjectGateway)
		e.resumeAt = 0
	case over && !e.paused && now.Mono >= e.resumeAt:
		e.paused, e.pausedAt = true, now.Mono
		e.reconsider()
		e.condition(now, alarmPaused, subjectGateway, fmt.Sprintf(
			"more than 5 %% of acks take longer than %v: resends, retries and backlogs wait, %v at a time, until they take half",
			e.cfg.LatencyLimit, pauseLimit))
	}
	if e.paused && (easy || now.Mono-e.pausedAt >= pauseLimit) {
		e.paused = false
		if !easy {
			e.resumeAt = now.in(pauseRest)
		}
		e.unpause()
	}
}

// unpause lets what was held back go on. Instructions look again by themselves, in
// up to pauseCheck, so that they do not all come at once; backlogs need a push.
func (e *Engine) unpause() {
	if e.heldBack() {
		return
	}
	e.reconsider()
	for _, n := range e.draining {
		e.wantPump(n)
	}
}

// levels raises and clears the alarms of the water marks (A7).
func (e *Engine) levels(now Now) {
	switch {
	case e.flying >= e.cfg.HighWater:
		e.condition(now, alarmHighWater, subjectGateway, fmt.Sprintf(
			"%d instructions are unconfirmed: each node gets one at a time until some are confirmed", e.flying))
	case e.flying < e.cfg.LowWater:
		e.clear(now, alarmHighWater, subjectGateway)
	}
	switch {
	case e.open >= e.cfg.Capacity/10*8:
		e.condition(now, alarmFilling, subjectGateway, fmt.Sprintf(
			"%d of %d unfinished instructions: new tasks are refused from 90 %%", e.open, e.cfg.Capacity))
	case e.open < e.cfg.Capacity/10*7:
		e.clear(now, alarmFilling, subjectGateway)
	}
}

// drain is the token bucket through which a backlog passes, so that an outage
// does not end in a burst (A6).
type drain struct {
	tokens time.Duration // saved up, in time: one instruction costs 1/rate
	at     time.Duration // Mono of the last look
}

// takeToken takes one token if there is one.
func (e *Engine) takeToken(now Now) bool {
	cost := time.Second / time.Duration(e.cfg.DrainRate)
	most := cost * time.Duration(e.cfg.DrainBurst)
	d := &e.bucket
	d.tokens = min(most, d.tokens+now.Mono-d.at)
	d.at = now.Mono
	if d.tokens < cost && !mutant.On(mutant.DrainBurst) {
		return false
	}
	d.tokens -= cost
	return true
}

// nextToken is when takeToken will succeed next.
func (e *Engine) nextToken(now Now) time.Duration {
	cost := time.Second / time.Duration(e.cfg.DrainRate)
	return now.in(max(0, cost-e.bucket.tokens))
}

// startDrain notes that what waits for a node now is a backlog.
func (e *Engine) startDrain(n *node) {
	n.backlog, n.drainTo = 0, 0
	for _, i := range n.open {
		if i.wants && !i.safe {
			n.backlog++
			n.drainTo = max(n.drainTo, i.Seq)
		}
	}
	if n.backlog == 0 {
		e.stopDrain(n)
		return
	}
	if !n.draining {
		n.draining = true
		e.draining = append(e.draining, n)
	}
	if e.heldBack() {
		e.reconsiderNode(n)
	}
}

// backlogged reports whether an instruction passes by the token bucket: it waited
// when its node came back, or is older than what did. What is newer goes past it
// only when it is more urgent, and so does what an operator has asked for.
func (n *node) backlogged(i *inst) bool { return n.draining && i.Seq <= n.drainTo && !i.byHand }

// joinedQueue counts up what is put back into a backlog.
func (e *Engine) joinedQueue(i *inst) {
	if n := i.node; n.draining && !n.learning && i.Seq <= n.drainTo && !i.safe {
		n.backlog++
	}
}

// leftQueue counts the backlog down.
func (e *Engine) leftQueue(i *inst) {
	n := i.node
	if !n.draining || n.learning || i.Seq > n.drainTo || i.safe {
		return
	}
	if n.backlog--; n.backlog == 0 {
		e.stopDrain(n)
	}
}

func (e *Engine) stopDrain(n *node) {
	if n.draining {
		n.draining = false
		e.draining = slices.DeleteFunc(e.draining, func(m *node) bool { return m == n })
		e.wantPump(n)
		if e.heldBack() {
			e.reconsiderNode(n)
		}
	}
}

// mayDrain reports whether the node's backlog may go on as far as the node goes.
func (e *Engine) mayDrain(n *node) bool { return e.mayFly(n) && n.backlogged(n.queue[0]) }

// drainBacklogs sends backlogs as far as the bucket allows: over all nodes the
// most urgent first, then in order of submission.
func (e *Engine) drainBacklogs(now Now) {
	for len(e.draining) > 0 {
		var best *node
		for _, n := range e.draining {
			if e.mayDrain(n) && (best == nil || n.queue[0].before(best.queue[0])) {
				best = n
			}
		}
		if best == nil || !e.takeToken(now) {
			return
		}
		e.sendNext(now, best)
		e.arrange(now)
		e.wantPump(best)
	}
}

// drainAt is when drainBacklogs can go on, 0 when something else must happen
// first.
func (e *Engine) drainAt(now Now) time.Duration {
	if !slices.ContainsFunc(e.draining, e.mayDrain) {
		return 0
	}
	return e.nextToken(now)
}

// armOwn sets the timer of what belongs to no instruction and no node.
func (e *Engine) armOwn(now Now) {
	var at time.Duration
	first := func(d time.Duration) {
		if d != 0 && (at == 0 || d < at) {
			at = d
		}
	}
	first(e.drainAt(now))
	first(e.dueAt)
	if e.stands(alarmPaused, subjectGateway) {
		first(e.paceAt)
	}
	if e.quiet.On {
		first(e.quietEnd)
	}
	e.timers.put(&e.own, at)
}
