package wire

import (
	"math"
	"time"
)

// Numbers that both sides rely on. Each stands here once; whoever needs one of them
// reads it here.
const (
	// DefaultTimeout bounds an execution whose task names no limit. The gateway
	// resolves it and sends it; an agent uses it only for what an old gateway sends.
	DefaultTimeout = 60 * time.Second
	// TimeoutRoom is what the limit of something that takes a known time leaves
	// beside that time: for the way to the pin.
	TimeoutRoom = 10 * time.Second
	// OrderWait is how long an older instruction that is not received, or is tried
	// again, may hold its line against newer ones, counted while the node can be
	// reached; and how long an agent keeps a line for a retry (docs/safety.md 4).
	OrderWait = 60 * time.Second
	// LinePlaces is how many places in the window one line may have while another
	// line waits.
	LinePlaces = 2
	// SafeLate is how long something towards safe may be undelivered before that is
	// an alarm.
	SafeLate = 5 * time.Second
	// ResendAfter is when an agent tells an event again that nobody acknowledged.
	ResendAfter = 5 * time.Second
	// NarrowbandRate is how many frames a second the narrowband path carries.
	NarrowbandRate = 10
	// DigestEvery is the time between two digests of an agent (B9).
	DigestEvery = 5 * time.Minute
	// HeartbeatEvery is the time between two signs of life, if the welcome names none.
	HeartbeatEvery = 5 * time.Second
)

// TimeoutFor is the limit of an execution whose task names none, where nobody has
// configured another default.
func TimeoutFor(a Act) time.Duration {
	return time.Duration(LimitMs(a, 0, DefaultTimeout)) * time.Millisecond
}

// LimitMs is the limit that a gateway sends for what a task says, 0 for nothing; def
// is its own default. The doors refuse a limit that is shorter than what the work takes
// by itself; one that is just as long gets the room that its author has not thought of.
func LimitMs(a Act, timeoutMs uint32, def time.Duration) uint32 {
	limit := def
	if timeoutMs != 0 {
		limit = time.Duration(timeoutMs) * time.Millisecond
	}
	if a.Lasts != 0 {
		limit = max(limit, a.Lasts+TimeoutRoom)
	}
	return uint32(max(1, min(limit.Milliseconds(), math.MaxUint32)))
}
