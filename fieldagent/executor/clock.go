package executor

import "time"

// clock knows the gateway's time, which not_after is measured in. Every message
// that carries it gives a lower bound, since the message may have waited
// somewhere; so the highest bound counts, until a welcome says something newer.
// Between messages the monotonic clock carries it on.
type clock struct {
	known bool
	base  int64 // gateway's Unix ms when Mono was 0

	// wallBase is Wall minus Mono at the last step, to notice jumps.
	wallSeen bool
	wallBase int64
}

// heard takes a gateway time from an instruction.
func (c *clock) heard(now Now, ms int64) {
	if ms <= 0 {
		return
	}
	if b := ms - now.Mono.Milliseconds(); !c.known || b > c.base {
		c.known, c.base = true, b
	}
}

// welcomed takes the gateway time of a welcome, and returns how far the agent's
// own clock is ahead of it.
func (c *clock) welcomed(now Now, ms int64) (ahead time.Duration) {
	c.known, c.base = true, ms-now.Mono.Milliseconds()
	return time.Duration(now.Wall-ms) * time.Millisecond
}

// gateway is the best guess of the gateway's time in Unix ms. ok is false when
// neither the gateway nor a trusted clock has told. A trusted own clock counts
// while it is near the gateway's; the later of the two is taken, so that nothing
// starts late.
func (c *clock) gateway(now Now) (ms int64, ok bool) {
	if !c.known {
		return now.Wall, now.WallOK
	}
	ms = c.base + now.Mono.Milliseconds()
	if now.WallOK && now.Wall > ms && now.Wall-ms <= ClockLimit.Milliseconds() {
		ms = now.Wall
	}
	return ms, true
}

// stamp is the Unix time in ms for events: the agent's own if it is trusted, else
// the gateway's, else the agent's own as it is.
func (c *clock) stamp(now Now) int64 {
	ms := now.Wall
	if !now.WallOK && c.known {
		ms = c.base + now.Mono.Milliseconds()
	}
	return max(ms, 1)
}

// stepped returns by how much the own clock was set since the last step; 0 when
// it ran on.
func (c *clock) stepped(now Now) time.Duration {
	b := now.Wall - now.Mono.Milliseconds()
	d := time.Duration(b-c.wallBase) * time.Millisecond
	seen := c.wallSeen
	if !seen || d.Abs() > ClockLimit {
		c.wallSeen, c.wallBase = true, b
	}
	if !seen || d.Abs() <= ClockLimit {
		return 0
	}
	return d
}
