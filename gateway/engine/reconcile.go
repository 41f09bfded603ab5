package engine

import (
	"fmt"
	"slices"
	"time"

	"github.com/apollo-11/apollo11/wire"
	"github.com/apollo-11/apollo11/wire/mutant"
)

const (
	alarmSkew = "clock_skew" // subject: node

	// lostMargin is what the counters skip when agents know numbers that this log
	// does not: other agents may know higher ones still.
	lostMargin = 100_000
	// lostAttempts is likewise what the attempts of one instruction skip.
	lostAttempts = 100
	// mostLost is the most that a log can have lost, three years at a million a day:
	// a faulty agent must not use up the numbers, which end at 2^35 on narrowband.
	mostLost = 1_000_000_000

	// refusedHold is how long after the last refused hello its alarm stands.
	refusedHold = time.Minute
)

// digest compares what an agent holds with what the log says it holds (B9). Equal
// sums cost nothing more; otherwise the agent is asked after every one.
func (e *Engine) digest(n *node, m *wire.Digest) {
	var refs []wire.Ref
	for _, i := range n.opened() {
		if i.ReceivedAt != 0 && !i.waiting() && i.By == 0 {
			refs = append(refs, wire.Ref{Seq: i.Seq, Token: i.Token})
		}
	}
	hash, count := wire.DigestOf(refs)
	if hash == m.Hash && count == m.Count {
		e.effects.Counts.DigestsEqual++
		return
	}
	e.effects.Counts.DigestsDiffer++
	e.query(n, refs)
}

// query asks a node what became of attempts.
func (e *Engine) query(n *node, refs []wire.Ref) {
	for part := range slices.Chunk(refs, wire.MaxRefs) {
		m := &wire.Query{Refs: part}
		e.send(n, m, &m.Through)
	}
}

// impostor says why a hello with another memory than the node's is not believed;
// empty when it is. While the agent that the log knows was heard of just now and
// has not said goodbye, another one under its name is most likely a second board:
// a wiped one is silent first. In its own session an agent may begin anew.
func (e *Engine) impostor(now Now, n *node, m *wire.Hello) string {
	known := n.cursor.Incarnation
	if mutant.On(mutant.BoardBelieved) || known == 0 || known == m.Incarnation || !n.known || n.Left || !n.met || n.session != 0 && n.session == m.Session {
		return ""
	}
	if silent := now.Mono - n.heard; silent < e.cfg.OfflineAfter {
		n.refusedAt = now.in(0)
		return fmt.Sprintf("another agent was heard under the name %s %v ago: two boards must not share a name; "+
			"if this one replaces it, stop the other and wait %v", n.ID, silent.Round(time.Second), e.cfg.OfflineAfter)
	}
	return ""
}

// forgive ends the alarm about a refused hello. Two boards take turns at the broker,
// so that the alarm about the second one stands until nothing was heard of it for
// a while.
func (e *Engine) forgive(now Now, n *node) {
	if n.refusedAt == 0 || now.Mono-n.refusedAt >= refusedHold {
		n.refusedAt = 0
		e.clear(now, alarmRefused, n.ID)
	}
}

// Lost are numbers that agents know and this log does not: it is an older copy of
// the one that gave them out (B9).
type Lost struct {
	_ struct{} `cbor:",toarray"`
	// Seq is above every instruction that was in the log before it was noticed.
	Seq uint64
	// From and To are the token numbers, To excluded. An agent whose highest one is
	// among them was sent something that this log does not know of.
	From, To uint64
}

// RestoreLost takes in from the log what an older copy of it has lost.
func (e *Engine) RestoreLost(l Lost) { e.lost = l }

// newer notes that an agent knows numbers which this log had not given out: the
// log is an older copy. They are never given out again (B9). At the first hello of
// this process the agent can only know what the log had given out before it began.
func (e *Engine) newer(now Now, n *node, m *wire.Hello, first bool) {
	c, top := &e.counters, e.counters
	if first {
		top = e.began
	}
	switch {
	case m.TopSeq < top.NextSeq && m.TopToken < top.NextToken, mutant.On(mutant.RestoreUnseen):
	case m.TopSeq >= c.NextSeq+mostLost || m.TopToken >= c.NextToken+mostLost:
		e.alarm(now, "implausible_numbers", n.ID, fmt.Sprintf(
			"the agent has seen instruction %d and token %d, this log has given out up to %d and %d: that is too much to have been lost, so it is not believed",
			m.TopSeq, m.TopToken, top.NextSeq-1, top.NextToken-1))
		return
	case m.TopToken < e.lost.To && m.TopSeq < c.NextSeq: // known since another agent told
	default:
		e.incident(now, "log_rolled_back", n.ID, fmt.Sprintf(
			"the agent has seen instruction %d and token %d, this log had given out up to %d and %d: was an older copy restored? "+
				"Numbers go on above them; what was submitted in between must be submitted again",
			m.TopSeq, m.TopToken, top.NextSeq-1, top.NextToken-1))
		if e.lost.To == 0 || e.began.NextToken < e.lost.From {
			e.lost.From = e.began.NextToken
		}
		e.lost.Seq = c.NextSeq
		c.NextSeq = max(c.NextSeq, m.TopSeq+1) + lostMargin
		c.NextToken = max(c.NextToken, m.TopToken+1) + lostMargin
		e.lost.To = c.NextToken
		e.topUsed, e.lostNew = true, true
	}
	if m.TopToken >= e.lost.From && m.TopToken < e.lost.To {
		e.maybeDone(now, n)
	}
}

// maybeDone ends all attempts that the gateway would make by itself of what the
// node was sent after the copy of the log was made, as far as can be known: it may
// have been executed, and the agent would not recognise a new token. What the copy
// knows to have been sent is asked after as ever. An operator decides about the
// rest.
func (e *Engine) maybeDone(now Now, n *node) {
	const why = "this log is an older copy: it may have been executed since the copy was made"
	for _, i := range n.opened() {
		if i.byHand || i.Seq >= e.lost.Seq {
			continue
		}
		more := i.Retry.Max > i.Retries
		i.Retry.Max = min(i.Retry.Max, i.Retries)
		switch {
		case e.unsent(i):
			e.giveUp(now, i, ReasonRestored, why)
			e.arm(now, i)
		case more:
			e.log(now, i, Entry{What: WhatDoubted, Detail: why + "; only an operator may have it tried again"})
		}
	}
}

// aboveLost is the number of the last attempt that agents may know and this log may
// not, 0 for most instructions: compact acks name nothing but the attempt.
func (e *Engine) aboveLost(i *inst) uint8 {
	if i.Seq < e.lost.Seq {
		return lostAttempts
	}
	return 0
}

// skew watches the agent's clock (C11). Durations do not depend on it, expiry
// does: the agent judges not_after by the gateway's time. One word that was long on
// its way looks like a clock that is behind: it takes two, and to clear the alarm
// a clock that is well within the limit.
func (e *Engine) skew(now Now, n *node, clock int64, set bool) {
	const most = int64(100 * 365 * 24 * time.Hour / time.Millisecond)
	off := time.Duration(min(max(clock-now.Wall, -most), most)) * time.Millisecond
	switch {
	case !set || clock <= 0 || off.Abs() <= e.cfg.ClockSkew*4/5:
		n.skewed = 0
		e.clear(now, alarmSkew, n.ID)
	case off.Abs() <= e.cfg.ClockSkew:
	case n.skewed == 0:
		n.skewed = 1
	default:
		e.condition(now, alarmSkew, n.ID, fmt.Sprintf("the agent's clock is %v off", off.Round(time.Millisecond)))
	}
}
