package executor

import (
	"math"
	"time"

	"github.com/apollo-11/apollo11/wire/mutant"
)

// clock knows the gateway's time, which not_after is measured in, between two
// bounds. A time in a message is a lower bound, since the message may have waited
// somewhere. The welcome that answers a hello also gives an upper one: it can't be
// older than the hello. The monotonic clock carries both on. What must not happen
// late is judged by the upper bound; what is told uses the lower one, so that
// nothing seems to arrive before it was sent.
//
// What has passed by the lower bound is refused. Between the two bounds, and in doubt,
// nothing begins and nothing is refused, and the agent asks. Quartz drifts; the doubt
// that this brings is noticed (see heard) and ends with another hello.
type clock struct {
	heardOf bool // low holds
	bounded bool // high holds
	// doubt: the gateway has sent something that is too old for the bounds. Either it
	// was long under way or the gateway's clock was set back, and then they are wrong:
	// until the next welcome nothing is known.
	doubt bool
	// Gateway's Unix ms when Mono was 0.
	low, high int64

	// wallBase is Wall minus Mono at the last step, to notice jumps.
	wallSeen bool
	wallBase int64
}

// heard takes the time at which the gateway sent a message that has just come. It
// reports whether the bounds are so far from it that they should be measured
// again.
func (c *clock) heard(now Now, ms int64) (doubtful bool) {
	if ms <= 0 {
		return false
	}
	b := ms - now.Mono.Milliseconds()
	c.doubt = c.doubt || c.heardOf && c.low-b > ClockLimit.Milliseconds()
	if !c.heardOf || b > c.low {
		c.heardOf, c.low = true, b
	}
	c.high = max(c.high, c.low)
	return c.bounded && c.high-b > ClockLimit.Milliseconds()
}

// welcomed takes the gateway's time of a welcome that came took after its hello,
// and returns how far the agent's own clock is ahead of it.
func (c *clock) welcomed(now Now, ms int64, took time.Duration) (ahead time.Duration) {
	c.heardOf, c.bounded, c.doubt = true, true, false
	c.low = ms - now.Mono.Milliseconds()
	c.high = c.low + took.Milliseconds()
	return span(now.Wall, ms)
}

// wallFits reports whether the agent's own clock is trusted and near what is
// known of the gateway's.
func (c *clock) wallFits(now Now) bool {
	if !now.WallOK {
		return false
	}
	b, limit := now.Wall-now.Mono.Milliseconds(), ClockLimit.Milliseconds()
	return (!c.heardOf || b >= c.low-limit) && (!c.bounded || b <= c.high+limit)
}

// latest is the latest that the gateway's time can be, in Unix ms. ok is false
// when that is not known: before the first word of the gateway the own clock says
// nothing about the gateway's, however well it is synchronised (explorer seed 840
// of five nodes).
func (c *clock) latest(now Now) (ms int64, ok bool) {
	mono := now.Mono.Milliseconds()
	switch {
	case c.doubt:
	case c.wallFits(now) && c.heardOf:
		return max(now.Wall, c.low+mono), true
	case c.bounded:
		return c.high + mono, true
	}
	return 0, false
}

// stamp is the Unix time in ms for events: the agent's own if it is trusted and
// near the gateway's, else the gateway's, else the agent's own as it is.
func (c *clock) stamp(now Now) int64 {
	ms := now.Wall
	if c.heardOf && !c.wallFits(now) {
		ms = c.low + now.Mono.Milliseconds()
	}
	return max(ms, 1)
}

// told is the Unix time in ms for a heartbeat: the agent's own if it is trusted,
// however far it is from the gateway's, so that the gateway sees that; else as
// for events.
func (c *clock) told(now Now) int64 {
	if now.WallOK {
		return max(now.Wall, 1)
	}
	return c.stamp(now)
}

// stepped returns by how much the own clock was set since the last step; 0 when
// it ran on.
func (c *clock) stepped(now Now) time.Duration {
	b := now.Wall - now.Mono.Milliseconds()
	d := span(b, c.wallBase)
	seen := c.wallSeen
	if !seen || d.Abs() > ClockLimit {
		c.wallSeen, c.wallBase = true, b
	}
	if !seen || d.Abs() <= ClockLimit {
		return 0
	}
	return d
}

// ClockView is what the core knows of the gateway's time, as of a step: a small value
// that anybody may keep and ask.
type ClockView struct{ c clock }

// Clock returns what is known of the gateway's time now.
func (c *Core) Clock() ClockView { return ClockView{c.clock} }

// Late reports whether work must not begin any more because of its not_after, by the
// gateway's time; 0 is no limit. A time in doubt counts as late, but not for what is
// towards safe.
func (v ClockView) Late(now Now, notAfter int64, towards bool) bool {
	if mutant.On(mutant.LateAtPin) {
		return false
	}
	if towards {
		return v.c.past(now, notAfter)
	}
	return !v.c.ahead(now, notAfter)
}

// Left is how long something may last that has to end by a time of the gateway's, 0 for
// no limit, and that would last so long by itself. In doubt about the time it is nothing.
func (v ClockView) Left(now Now, endsBy int64, length time.Duration) time.Duration {
	if endsBy == 0 {
		return length
	}
	ms, ok := v.c.latest(now)
	if !ok {
		return 0
	}
	return max(0, min(length, span(endsBy, ms)))
}

// past reports whether a limit of the gateway's time has passed for certain. 0 is no
// limit. What it says may be told: it is not taken back by a better measure.
func (c *clock) past(now Now, limit int64) bool {
	e, ok := c.earliest(now)
	if mutant.On(mutant.ExpiredEarly) {
		e += time.Hour.Milliseconds()
	}
	return limit != 0 && ok && e > limit
}

// ahead reports whether a limit has not passed for certain: only then anything begins.
func (c *clock) ahead(now Now, limit int64) bool {
	l, ok := c.latest(now)
	return limit == 0 || ok && l <= limit
}

// earliest is the earliest that the gateway's time can be, in Unix ms. ok is false
// when that is not known.
func (c *clock) earliest(now Now) (ms int64, ok bool) {
	return c.low + now.Mono.Milliseconds(), c.heardOf && !c.doubt
}

// maxSpan is the longest time between two moments that is told apart from never: no
// sum of a few of them overflows a duration. Peers may name any moment.
const maxSpan = 50 * 365 * 24 * time.Hour

// span is the time from one Unix ms to another, within maxSpan.
func span(to, from int64) time.Duration {
	d := to - from
	if (d < 0) != (to < from) { // it has overflowed
		d = math.MaxInt64
		if to < from {
			d = -d
		}
	}
	return min(max(time.Duration(min(max(d, -maxSpan.Milliseconds()), maxSpan.Milliseconds()))*time.Millisecond, -maxSpan), maxSpan)
}
