package engine

import (
	"fmt"
	"slices"
	"time"

	"github.com/apollo-11/apollo11/wire"
)

const (
	alarmSkew = "clock_skew" // subject: node

	// lostMargin is what the counters skip when agents know numbers that this log
	// does not: other agents may know higher ones still.
	lostMargin = 100_000
)

// digest compares what an agent holds with what the log says it holds (B9). Equal
// sums cost nothing more; otherwise the agent is asked after every one.
func (e *Engine) digest(n *node, m *wire.Digest) {
	var refs []wire.Ref
	for _, i := range n.opened() {
		if i.ReceivedAt != 0 && !i.waiting() {
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
// a wiped one is silent first.
func (e *Engine) impostor(now Now, n *node, m *wire.Hello) string {
	known := n.cursor.Incarnation
	if known == 0 || known == m.Incarnation || !n.known || n.left || !n.met {
		return ""
	}
	if silent := now.Mono - n.heard; silent < e.cfg.OfflineAfter {
		return fmt.Sprintf("another agent was heard under the name %s %v ago: two boards must not share a name; "+
			"if this one replaces it, stop the other and wait %v", n.ID, silent.Round(time.Second), e.cfg.OfflineAfter)
	}
	return ""
}

// newer notes that an agent knows numbers which this log has not given out: the
// log is an older copy. They are never given out again (B9).
func (e *Engine) newer(now Now, n *node, m *wire.Hello) {
	c := &e.counters
	if m.TopSeq < c.NextSeq && m.TopToken < c.NextToken {
		return
	}
	e.incident(now, "log_rolled_back", n.ID, fmt.Sprintf(
		"the agent has seen instruction %d and token %d, this log has given out up to %d and %d: was an older copy restored? "+
			"Numbers go on above them; what was submitted in between must be submitted again",
		m.TopSeq, m.TopToken, c.NextSeq-1, c.NextToken-1))
	c.NextSeq = max(c.NextSeq, m.TopSeq+lostMargin)
	c.NextToken = max(c.NextToken, m.TopToken+lostMargin)
	e.topUsed = true
}

// skew watches the agent's clock (C11). Durations do not depend on it, expiry
// does: the agent judges not_after by the gateway's time.
func (e *Engine) skew(now Now, n *node, clock int64, set bool) {
	off := time.Duration(clock-now.Wall) * time.Millisecond
	if !set || clock <= 0 || off.Abs() <= e.cfg.ClockSkew {
		e.clear(now, alarmSkew, n.ID)
		return
	}
	e.condition(now, alarmSkew, n.ID, fmt.Sprintf("the agent's clock is %v off", off.Round(time.Millisecond)))
}
