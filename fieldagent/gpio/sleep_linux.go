package gpio

import (
	"time"

	"golang.org/x/sys/unix"
)

// slept is how long this machine has slept since it was booted. The clock that timers
// and time.Since use stands still then, and a lease must not be longer by a night.
func slept() time.Duration {
	var boot, mono unix.Timespec
	if unix.ClockGettime(unix.CLOCK_BOOTTIME, &boot) != nil || unix.ClockGettime(unix.CLOCK_MONOTONIC, &mono) != nil {
		return 0
	}
	// They are read one after the other: what is less than this is no sleep.
	const noise = 10 * time.Millisecond
	if d := time.Duration(boot.Nano() - mono.Nano()); d > noise {
		return d.Truncate(noise)
	}
	return 0
}
