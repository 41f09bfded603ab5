package engine

import (
	"fmt"
	"math/bits"
	"slices"
	"time"
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
)

// acks counts sends and confirmations of the last ten minutes, by minute.
type acks struct {
	minute    int64 // number of the current one
	sent      [ackMinutes]int
	confirmed [ackMinutes]int
	// late counts confirmations by latency: slot k holds those under 2^k ms. It is
	// that of the current minute, before that of the one before it.
	late, before [24]int
}

func (a *acks) turn(now Now) {
	m := int64(now.Mono / time.Minute)
	if m-a.minute > 1 {
		a.late = [24]int{} // the minute before was empty
	}
	for ; a.minute < m; a.minute++ {
		if m-a.minute > ackMinutes {
			a.minute = m - ackMinutes
		}
		k := (a.minute + 1) % ackMinutes
		a.sent[k], a.confirmed[k] = 0, 0
		a.before, a.late = a.late, [24]int{}
	}
}

func (a *acks) send(now Now) {
	a.turn(now)
	a.sent[a.minute%ackMinutes]++
}

func (a *acks) confirm(now Now, latency time.Duration) {
	a.turn(now)
	a.confirmed[a.minute%ackMinutes]++
	a.late[min(bits.Len64(uint64(max(0, latency.Milliseconds()))), len(a.late)-1)]++
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

// p95 is the latency under which 95 % of the last one to two minutes'
// confirmations stayed, to a factor of two; false when too few are known.
func (a *acks) p95() (time.Duration, bool) {
	total := 0
	for k := range a.late {
		total += a.late[k] + a.before[k]
	}
	if total < ackSamples {
		return 0, false
	}
	seen := 0
	for k := range a.late {
		if seen += a.late[k] + a.before[k]; seen*100 >= total*95 {
			return time.Duration(1<<k) * time.Millisecond, true
		}
	}
	return 0, false
}

// held reports whether automatic repetition has to wait: an operator works by
// hand, or the acks show that more messages would only add to a jam.
func (e *Engine) heldBack() bool { return e.quiet.On || e.paused }

// pace looks at the latency of acks once every pauseCheck, and pauses or resumes
// compensation (A6).
func (e *Engine) pace(now Now) {
	e.endQuiet(now)
	if now.Mono < e.paceAt {
		return
	}
	e.paceAt = now.in(pauseCheck)
	e.acks.turn(now)
	p95, known := e.acks.p95()
	switch {
	case !e.paused && known && p95 > e.cfg.LatencyLimit:
		e.paused = true
		e.condition(now, alarmPaused, subjectGateway, fmt.Sprintf(
			"acks take up to %v, more than %v: nothing is sent again until they take half", p95, e.cfg.LatencyLimit))
	case e.paused && (!known || p95 <= e.cfg.LatencyLimit/2):
		e.paused = false
		e.clear(now, alarmPaused, subjectGateway)
		e.unpause(now)
	}
}

// unpause lets what was held back go on. Instructions look again by themselves;
// backlogs need a push.
func (e *Engine) unpause(now Now) {
	if e.heldBack() {
		return
	}
	for _, n := range e.draining {
		e.wantPump(n)
	}
}

// levels raises and clears the alarms of the water marks (A7).
func (e *Engine) levels(now Now) {
	switch {
	case e.flying >= e.cfg.HighWater:
		e.condition(now, alarmHighWater, subjectGateway, fmt.Sprintf(
			"%d instructions are unconfirmed: no more are sent until some are confirmed", e.flying))
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
	if d.tokens < cost {
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
	if len(n.queue) == 0 {
		return
	}
	n.backlog = 0
	n.drainTo = 0
	for _, i := range n.queue {
		n.backlog++
		n.drainTo = max(n.drainTo, i.Seq)
	}
	if !n.draining {
		n.draining = true
		e.draining = append(e.draining, n)
	}
}

// leftQueue counts down the backlog.
func (e *Engine) leftQueue(i *inst) {
	n := i.node
	if !n.draining || i.Seq > n.drainTo {
		return
	}
	if n.backlog--; n.backlog <= 0 {
		e.stopDrain(n)
	}
}

func (e *Engine) stopDrain(n *node) {
	if n.draining {
		n.draining = false
		e.draining = slices.DeleteFunc(e.draining, func(m *node) bool { return m == n })
		e.wantPump(n)
	}
}

// drainBacklogs sends backlogs as far as the bucket allows: over all nodes the
// most urgent first, then in order of submission.
func (e *Engine) drainBacklogs(now Now) {
	for len(e.draining) > 0 && !e.heldBack() && e.flying < e.cfg.HighWater {
		var best *node
		for _, n := range e.draining {
			if !e.mayFly(n) {
				continue
			}
			if best == nil || n.queue[0].before(best.queue[0]) {
				best = n
			}
		}
		if best == nil || !e.takeToken(now) {
			return
		}
		e.sendNext(now, best)
	}
}

// drainAt is when drainBacklogs can go on, 0 when something else must happen
// first.
func (e *Engine) drainAt(now Now) time.Duration {
	if e.heldBack() || e.flying >= e.cfg.HighWater || !slices.ContainsFunc(e.draining, e.mayFly) {
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
	if e.paused {
		first(e.paceAt)
	}
	if e.quiet.On {
		first(now.in(until(now, e.quiet.Until) + 1))
	}
	e.timers.put(&e.own, at)
}
