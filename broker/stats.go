package broker

import "sync/atomic"

// stats are the broker's own counters; those of the protocol engine drift.
type stats struct {
	connected    [roles]atomic.Int64
	connections  atomic.Uint64
	turnedAway   atomic.Uint64
	connRefused  atomic.Uint64
	acceptErrors atomic.Uint64
	panics       atomic.Uint64

	submissions  atomic.Uint64
	duplicates   atomic.Uint64
	pending      atomic.Int64
	withheld     atomic.Uint64
	doubleDone   atomic.Uint64
	refused      [reasons]atomic.Uint64
	uplinks      atomic.Uint64
	uplinksLost  atomic.Uint64
	throttled    atomic.Uint64
	outboundLost atomic.Uint64
	slowClosed   atomic.Uint64
}

// Stats is a reading of the broker's counters. Those not named as current rise
// from the start of the broker.
type Stats struct {
	// Operators, Agents and NarrowbandAgents are currently connected.
	Operators, Agents, NarrowbandAgents int64
	// Sessions are kept for operators that are away.
	Sessions int64
	// Connections were admitted; Refused were answered with a refusal; TurnedAway
	// were closed unread because the broker was full.
	Connections, Refused, TurnedAway uint64
	// AcceptErrors of listening sockets, and Panics in the protocol engine
	// that cost one connection each.
	AcceptErrors, Panics uint64
	// Submissions were handed to the handler; Duplicates were absorbed.
	Submissions, Duplicates uint64
	// PendingReceipts currently wait for the handler; Withheld receipts were
	// never written because the publish was not taken (MQTT 3.1.1).
	PendingReceipts int64
	Withheld        uint64
	// DoubleDone counts a handler that called done more than once: a bug.
	DoubleDone uint64
	// Refusals counts refused publishes by reason.
	Refusals map[Reason]uint64
	// Uplinks were handed to the handler; UplinksDropped were not, Throttled
	// of them because of the narrowband rate.
	Uplinks, UplinksDropped, Throttled uint64
	// OutboundDropped messages did not reach a subscriber; SlowClosed
	// connections were closed because their peer did not read.
	OutboundDropped, SlowClosed uint64
}

func (s *stats) read() Stats {
	out := Stats{
		Operators:        s.connected[Operator].Load(),
		Agents:           s.connected[Agent].Load(),
		NarrowbandAgents: s.connected[NarrowbandAgent].Load(),
		Connections:      s.connections.Load(),
		Refused:          s.connRefused.Load(),
		TurnedAway:       s.turnedAway.Load(),
		AcceptErrors:     s.acceptErrors.Load(),
		Panics:           s.panics.Load(),
		Submissions:      s.submissions.Load(),
		Duplicates:       s.duplicates.Load(),
		PendingReceipts:  s.pending.Load(),
		Withheld:         s.withheld.Load(),
		DoubleDone:       s.doubleDone.Load(),
		Refusals:         make(map[Reason]uint64),
		Uplinks:          s.uplinks.Load(),
		UplinksDropped:   s.uplinksLost.Load(),
		Throttled:        s.throttled.Load(),
		OutboundDropped:  s.outboundLost.Load(),
		SlowClosed:       s.slowClosed.Load(),
	}
	for r := range s.refused {
		if n := s.refused[r].Load(); n > 0 {
			out.Refusals[Reason(r)] = n
		}
	}
	return out
}
