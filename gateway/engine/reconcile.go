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
	if n.twins.on { // what waits there is not offered to one of two
		refs = slices.DeleteFunc(refs, func(r wire.Ref) bool { return e.insts[r.Seq].StartedAt == 0 && !e.insts[r.Seq].safe })
	}
	for _, r := range refs {
		e.insts[r.Seq].offered()
	}
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
