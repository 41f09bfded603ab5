package engine

import (
	"fmt"
	"time"

	"github.com/apollo-11/apollo11/wire"
)

// Config holds the engine's numbers. The zero value of a field is replaced by
// its default.
type Config struct {
	// Site names the site in instruction ids.
	Site string
	// Window is the most instructions that a node may have been sent without
	// having confirmed them. Default 16: small against the broker's queue of 256
	// packets a client, which drops silently when it is full.
	Window int
	// ConfirmTimeout is the wait for the received ack before the same token is
	// sent again; it grows by half each time up to ConfirmMax, with ±10 % jitter.
	// Defaults 5 s and 60 s (A6).
	ConfirmTimeout time.Duration
	ConfirmMax     time.Duration
	// MaxResends is how often an unconfirmed attempt is sent again while the
	// node is connected, before it becomes TIMEOUT. Default 8.
	MaxResends int
	// ExpiryGrace is how long after not_after the engine waits for the report of
	// an attempt that was handed out in time. Default 10 s.
	ExpiryGrace time.Duration
	// DefaultTimeout bounds an execution when the task names no timeout.
	// Default 60 s.
	DefaultTimeout time.Duration
	// ExecGrace is added to an execution's timeout before the gateway asks the
	// agent, which enforces the timeout itself. Default 10 s.
	ExecGrace time.Duration
	// QueryInterval is the wait for an answer to a query. Default 5 s.
	QueryInterval time.Duration
	// MaxQueries is how often a silent agent is asked about an overdue
	// execution before it becomes TIMEOUT. Default 3.
	MaxQueries int
	// Retry is the policy of tasks that bring none. Default 3 retries, 1 s
	// doubling to 60 s (C3).
	Retry Retry
	// Heartbeat is what agents are told; a node silent for OfflineAfter is
	// offline. Defaults 5 s and 15 s (C1).
	Heartbeat    time.Duration
	OfflineAfter time.Duration
	// Capacity bounds unfinished instructions, all of which are in memory
	// (about 1 kB each). Default 100,000; from 90 % new tasks are refused (A7).
	Capacity int
	// LowWater and HighWater are unconfirmed instructions over all nodes. At the
	// high mark a node gets one instruction at a time instead of Window, so that
	// those which do not answer do not stop the others, and an alarm stands until
	// the low mark. Defaults 100 and 1000 (A7).
	LowWater, HighWater int
	// LatencyLimit is the 95th percentile of ack latency over which compensation
	// pauses, until it is under half. Default 5 s (A6).
	LatencyLimit time.Duration
	// DrainRate and DrainBurst are the token bucket through which the backlog of a
	// node passes that was away: instructions a second over all nodes, and how
	// many may go at once. Defaults 50 and 100 (A6).
	DrainRate, DrainBurst int
	// ClockSkew is how far an agent's clock may be from the gateway's before it is
	// alarmed. Default 5 s (C11).
	ClockSkew time.Duration
	// Reserve is how many numbers of instructions and of tokens the log sets aside
	// ahead, so that none is given out twice even if the latest records are lost.
	// Default 1000; negative for none.
	Reserve int
	// MarkWindow is how long a retransmitted publish is recognised. Default 1 h:
	// longer than any client keeps retrying, shorter than a client takes to come
	// around to the same packet id with the same payload (65,535 publishes).
	MarkWindow time.Duration
	// Hooks are asked where something is decided that is not built yet.
	Hooks Hooks
}

func (c Config) withDefaults() Config {
	def := func(d *time.Duration, v time.Duration) {
		if *d == 0 {
			*d = v
		}
	}
	num := func(n *int, v int) {
		if *n == 0 {
			*n = v
		}
	}
	if c.Site == "" {
		c.Site = "default"
	}
	num(&c.Window, 16)
	def(&c.ConfirmTimeout, 5*time.Second)
	def(&c.ConfirmMax, 60*time.Second)
	num(&c.MaxResends, 8)
	def(&c.ExpiryGrace, 10*time.Second)
	def(&c.DefaultTimeout, wire.DefaultTimeout)
	def(&c.ExecGrace, 10*time.Second)
	def(&c.QueryInterval, 5*time.Second)
	num(&c.MaxQueries, 3)
	if c.Retry == (Retry{}) {
		c.Retry = Retry{Max: 3, InitialMs: 1000, MaxMs: 60_000}
	}
	def(&c.Heartbeat, wire.HeartbeatEvery)
	def(&c.OfflineAfter, 15*time.Second)
	num(&c.Capacity, 100_000)
	num(&c.LowWater, 100)
	num(&c.HighWater, 1000)
	def(&c.LatencyLimit, 5*time.Second)
	num(&c.DrainRate, 50)
	num(&c.DrainBurst, 100)
	def(&c.ClockSkew, 5*time.Second)
	def(&c.MarkWindow, time.Hour)
	num(&c.Reserve, 1000)
	return c
}

// Validate reports the first number that makes no sense.
func (c Config) Validate() error {
	d := c.withDefaults()
	switch {
	case d.Window < 1 || d.Window > 128:
		return fmt.Errorf("window is %d, it must be 1 to 128", d.Window)
	case d.ConfirmTimeout < 0 || d.ConfirmMax < d.ConfirmTimeout:
		return fmt.Errorf("confirm timeout %v and its maximum %v make no range", d.ConfirmTimeout, d.ConfirmMax)
	case d.MaxResends < 0 || d.MaxResends > 200:
		return fmt.Errorf("max resends is %d, it must be 0 to 200", d.MaxResends)
	case d.OfflineAfter < 2*d.Heartbeat:
		return fmt.Errorf("offline after %v is less than two heartbeats of %v", d.OfflineAfter, d.Heartbeat)
	case d.LowWater < 1 || d.HighWater < d.LowWater:
		return fmt.Errorf("water marks %d and %d make no range", d.LowWater, d.HighWater)
	case d.DrainRate < 1 || d.DrainRate > 1_000_000 || d.DrainBurst < 1:
		return fmt.Errorf("drain of %d a second with bursts of %d: the rate must be 1 to 1,000,000, the burst at least 1", d.DrainRate, d.DrainBurst)
	case d.LatencyLimit < 0 || d.ClockSkew < 0:
		return fmt.Errorf("latency limit %v and clock skew %v must not be negative", d.LatencyLimit, d.ClockSkew)
	case d.Capacity < 10:
		return fmt.Errorf("capacity is %d, it must be at least 10", d.Capacity)
	}
	return nil
}
