package explore

import "time"

// start is the true Unix time at the start of a simulation, in ms.
const start = int64(1_790_000_000_000)

// clock is one machine's idea of time. The monotonic part begins anew with every
// start of the process and runs a little fast or slow; the wall clock is off by
// an error that faults change.
type clock struct {
	w       *world
	started time.Duration // true time at which mono was 0
	ppm     int64         // how much mono is fast, in millionths
	unset   bool          // no wall clock: it counts from 1970 since the start
	err     time.Duration // wall clock minus true time, when it is set
	synced  bool          // the machine says that its wall clock can be trusted
}

func (c *clock) mono() time.Duration {
	d := c.w.now - c.started
	return d + d/1000*time.Duration(c.ppm)/1000
}

// truly is how long it truly takes until mono is at.
func (c *clock) truly(at time.Duration) time.Duration {
	d := at - c.mono()
	if d <= 0 {
		return 0
	}
	return d - d/1000*time.Duration(c.ppm)/1000 + time.Microsecond
}

// wall is the machine's Unix time in ms.
func (c *clock) wall() int64 {
	if c.unset {
		return c.mono().Milliseconds()
	}
	return start + (c.w.now + c.err).Milliseconds()
}
