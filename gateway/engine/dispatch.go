package engine

import (
	"container/heap"
	"slices"
	"time"

	"github.com/apollo-11/apollo11/wire"
	"github.com/apollo-11/apollo11/wire/mutant"
)

// queue holds what waits to be sent to one node: high priority first, then in
// order of submission, so that a node sees commands in the order in which they
// were given.
type queue []*inst

func (q queue) Len() int           { return len(q) }
func (q queue) Less(a, b int) bool { return q[a].before(q[b]) }
func (q queue) Swap(a, b int) {
	q[a], q[b] = q[b], q[a]
	q[a].place, q[b].place = a+1, b+1
}
func (q *queue) Push(x any) {
	i := x.(*inst)
	*q = append(*q, i)
	i.place = len(*q)
}
func (q *queue) Pop() any {
	last := len(*q) - 1
	i := (*q)[last]
	(*q)[last] = nil
	*q = (*q)[:last]
	i.place = 0
	return i
}

// before reports whether i is sent before j when both wait.
func (i *inst) before(j *inst) bool {
	if i.lift != j.lift {
		return i.lift < j.lift
	}
	return i.order() < j.order()
}

func (i *inst) queued() bool { return i.place != 0 }

// rank is the priority in the queue; what an operator asked for by hand is before
// them all.
func (i *inst) rank() wire.Priority {
	if i.byHand {
		return 0
	}
	if i.Priority == 0 {
		return wire.PriorityNormal
	}
	return i.Priority
}

// enqueue notes that an instruction is to be handed out; a withdrawn one never is.
func (e *Engine) enqueue(i *inst) {
	if i.undue {
		return // see becomeDue
	}
	if i.By == 0 || mutant.On(mutant.WithdrawnOffered) {
		e.want(i)
	}
}

func (e *Engine) wantPump(n *node) {
	if !n.pumped {
		n.pumped = true
		e.pumps = append(e.pumps, n)
	}
}

// highWater reports whether so much is unconfirmed that nodes are sent one at a
// time.
func (e *Engine) highWater() bool { return e.flying >= e.cfg.HighWater }

// pump sends what the node's window and the water mark allow. A backlog goes by
// drainBacklogs instead.
func (e *Engine) pump(now Now, n *node) {
	e.sendSafe(now, n)
	for e.mayFly(n) && !n.backlogged(n.queue[0]) {
		e.sendNext(now, n)
		e.arrange(now)
	}
	if e.highWater() && n.online && len(n.queue) > 0 && !n.blocked {
		n.blocked = true
		e.blocked = append(e.blocked, n)
	}
}

// sendNext hands out the first of a node's queue.
func (e *Engine) sendNext(now Now, n *node) {
	i := heap.Pop(&n.queue).(*inst)
	e.unwant(i)
	e.dispatch(now, i)
	e.arm(now, i)
}

// dispatch hands out an attempt: a new one with a new token, or the current one
// once more with the same token (A5).
func (e *Engine) dispatch(now Now, i *inst) {
	if e.expire(now, i) {
		return
	}
	if e.unsent(i) {
		e.newAttempt(i)
	}
	what := WhatDispatched
	if i.Sends == 0 {
		i.noteLines()
	}
	if i.Sends > 0 {
		what = WhatResent
		e.effects.Counts.Resent++
	} else {
		e.effects.Counts.Dispatched++
	}
	if i.Sends < 255 {
		i.Sends++
	}
	i.sentAt = now.Mono
	i.offered()
	if i.firstAt == 0 && !i.driven {
		i.firstAt = now.in(0)
	}
	e.expectWord(now, i)
	i.sendAt = now.in(e.confirmWait(i.resends))
	if i.safe {
		i.sendAt = min(i.sendAt, now.in(e.jitter(safeAgain)))
		e.watchSafe(now, i)
	}
	e.setInside(i, true)
	if i.node.online { // what goes to the silent holds nobody else back
		e.acks.send(now)
	}
	if i.node.online && !i.flying {
		i.flying = true
		i.node.flying++
		e.flying++
	}
	if i.State == StatePending {
		e.move(now, i, StateDispatched, Entry{What: what, Path: PathPrimary})
	} else if !i.untold() {
		e.log(now, i, Entry{What: what, Path: PathPrimary})
	}
	m := &wire.Instruction{Seq: i.Seq, Key: i.Key(e.cfg.Site), Token: i.Token, Attempt: i.Attempt,
		Intent: i.Intent, Args: i.Args, NotAfter: i.notAfter(now), TimeoutMs: uint32(i.limit(e.cfg).Milliseconds()), Priority: i.Priority,
		Trace: i.Trace, SentAt: now.Wall, Resend: i.Sends - 1, EndsBy: i.endsBy(now)}
	if mutant.On(mutant.LimitUnsent) {
		m.NotAfter = 0
	}
	e.inOrderAtLine(i, m)
	if i.safe {
		i.node.sentSafe(now, m)
		e.urge(now, i)
	}
	e.send(i.node, m, &m.Through)
}

// inOrderAtLine fills in what an agent must know of the order at its lines. One that
// follows no rules is told nothing that it can't read; the order is then the gateway's
// alone.
func (e *Engine) inOrderAtLine(i *inst, m *wire.Instruction) {
	a := i.task.act
	if a.Moves() && !i.safe && i.node.Throws != 0 {
		if m.Throws = i.node.Throws; i.Thrown {
			m.Throws = wire.ThrownSince
		}
	}
	if i.node.Rules < wire.RulesOrder || !stands(a) {
		return
	}
	m.Order = i.Order
	i.kept = a.Moves() && !i.safe && i.Retries < i.Retry.Max && !i.Thrown
	if m.Keep = i.kept; i.kept {
		i.node.keeps(i.Seq)
	}
	for _, p := range a.Pins {
		t, ok := i.node.traitsOf(p)
		if !ok {
			m.Lines = nil
			return
		}
		if !slices.Contains(m.Lines, t.Line) {
			m.Lines = append(m.Lines, t.Line)
		}
	}
}

// limit is the time limit of one execution: what the task names, or what fits what it
// does.
func (i *inst) limit(cfg Config) time.Duration {
	return time.Duration(wire.LimitMs(i.task.act, i.TimeoutMs, cfg.DefaultTimeout)) * time.Millisecond
}

// newAttempt allots the next token (A5).
func (e *Engine) newAttempt(i *inst) {
	i.Begun = i.Begun || i.Attempt != 0 && !i.knownUndone()
	i.Attempt = max(i.Attempt, e.aboveLost(i)) + 1
	if i.Token.IsZero() || !mutant.On(mutant.TokenReused) {
		i.Token = wire.Token{Shard: e.counters.Shard, Seq: e.counters.NextToken, Rand: e.rnd.Uint32()}
	}
	e.counters.NextToken++
	i.unwritten = true
	i.node.give(i.given())
	i.noteHandedOut()
	e.topUsed = true
	i.Sends, i.RetryAt, i.Percent = 0, 0, 0
	i.ReceivedAt, i.StartedAt, i.FinishedAt, i.SettledAt = 0, 0, 0, 0
	i.Code, i.Detail, i.Payload, i.Path, i.Reason, i.Lease = wire.CodeNone, "", nil, PathNone, "", nil
	i.resends, i.queries, i.firstAt, i.byHand, i.disowned, i.Doubted, i.noRoom = 0, 0, 0, false, false, false, false
	i.stopAt, i.stops, i.Thrown = 0, 0, false
	i.offers = offers{}
	i.whisperAt, i.whispers, i.driven = 0, 0, false
}

// send queues a message for a node. through is its field for a piggybacked
// EventAck.
func (e *Engine) send(n *node, m wire.Message, through *uint64) {
	e.effects.Sends = append(e.effects.Sends, Send{n.ID, m})
	n.carrier = through
}

// confirmWait is the wait after the n-th resend: it grows by half each time, is
// stretched when few acks have come in the last ten minutes, and is spread by
// ±10 %, so that nodes do not beat in time (A6).
func (e *Engine) confirmWait(resends int) time.Duration {
	d := time.Duration(float64(e.cfg.ConfirmTimeout) / max(e.acks.rate(e.flying), leastRate))
	for range resends {
		if d >= e.cfg.ConfirmMax {
			break
		}
		d = d * 3 / 2
	}
	return e.jitter(min(d, e.cfg.ConfirmMax))
}

func (e *Engine) jitter(d time.Duration) time.Duration {
	return d*9/10 + time.Duration(e.rnd.Int64N(int64(d)/5+1))
}

// reachable reports whether it may be sent: to a node that is heard, or towards safe over
// a connection that stands.
func (i *inst) reachable() bool { return i.node.online || i.safe && i.node.session != 0 }

// unconfirmed sends the same token again, or gives up.
func (e *Engine) unconfirmed(now Now, i *inst) {
	if !i.reachable() || i.ReceivedAt != 0 || i.State.Settled() {
		return
	}
	if i.By != 0 {
		return // only its cancel is sent
	}
	if e.heldBack() && !i.safe && !e.pressed(i) {
		i.sendAt = now.in(e.jitter(pauseCheck))
		return
	}
	if i.resends >= e.cfg.MaxResends && !i.safe {
		e.giveUp(now, i, ReasonUnconfirmed, "the node is connected but never confirmed that it has the instruction")
		return
	}
	if i.node.twins.on && !i.safe {
		e.takeBack(now, i, "two boards say hello as its node")
		return
	}
	if i.node.doubtful && !i.safe {
		e.takeBack(now, i, "its node's primary path seems dead")
		return
	}
	i.resends++
	e.dispatch(now, i)
}

// ground ends the wait for a confirmation.
func (e *Engine) ground(i *inst) {
	i.sendAt, i.askAt = 0, 0
	if i.flying {
		i.flying = false
		i.node.flying--
		e.flying--
		e.wantPump(i.node)
		if e.highWater() {
			return
		}
		for _, n := range e.blocked {
			n.blocked = false
			e.wantPump(n)
		}
		e.blocked = e.blocked[:0]
	}
}

// overdue asks the agent about an execution that takes too long, and after
// several questions stops it (C2).
func (e *Engine) overdue(now Now, i *inst) {
	if !i.node.online {
		if i.State == StateRunning {
			e.stopOnce(now, i, "execution timeout")
			e.giveUp(now, i, ReasonExecution, "it did not report its end in time and its node is offline")
		}
		return
	}
	switch {
	case i.node.twins.on && i.StartedAt == 0 && !i.safe: // a question offers it again
		i.execAt = now.in(receivedCheck)
		return
	case i.safe: // it is asked after until it is answered; stopping it would help nobody
		i.queries = min(i.queries, e.cfg.MaxQueries-1)
	case i.By != 0: // a question would offer it again
		i.execAt = now.in(e.cfg.QueryInterval)
		if i.queries++; i.queries > e.cfg.MaxQueries {
			e.giveUp(now, i, ReasonSuperseded, "the node has not said whether it had begun before something newer stood for it")
		}
		return
	}
	if i.queries >= e.cfg.MaxQueries {
		e.stopOnce(now, i, "execution timeout")
		e.giveUp(now, i, ReasonExecution, "it did not report its end in time; its node has been told to stop it")
		return
	}
	i.queries++
	i.execAt = now.in(e.cfg.QueryInterval)
	i.offered()
	m := &wire.Query{Refs: []wire.Ref{{Seq: i.Seq, Token: i.Token}}}
	e.send(i.node, m, &m.Through)
	e.log(now, i, Entry{What: WhatQueried, Path: PathPrimary})
}

// Words for Instruction.Reason that the engine itself gives. An agent's result
// puts its code's name there.
const (
	ReasonExpired     = "expired"           // not_after passed, never executed
	ReasonUnconfirmed = "unconfirmed"       // sent, but the node never said what became of it
	ReasonExecution   = "execution_timeout" // started, but its end was not reported in time
	ReasonForgotten   = "agent_forgot"      // the agent has lost its memory of it
	ReasonCancelled   = "cancelled"
	ReasonReplaced    = "board_replaced" // it waited for a board or journal that was replaced
	ReasonRestored    = "log_restored"   // the log is an older copy: it may have been executed since
	ReasonSuperseded  = "superseded"     // something newer stands for it: Instruction.By
	ReasonUnordered   = "order_lost"     // the agent knows something newer, and the log does not
)

// giveUp makes the gateway's opinion a state: TIMEOUT. The outcome is unknown
// except for expired.
func (e *Engine) giveUp(now Now, i *inst, reason, detail string) {
	e.sumProgress(now, i)
	if !e.move(now, i, StateTimeout, Entry{What: WhatTimeout, Detail: detail}) {
		return
	}
	if i.By != 0 {
		reason = ReasonSuperseded
	}
	i.Reason, i.Detail, i.SettledAt = reason, detail, now.Wall
	e.levelsMoved(i)
	e.safeEnded(now, i)
	again := reason == ReasonExecution || reason == ReasonForgotten
	if seq, _ := e.newerThan(i); seq != 0 {
		again = false // an unknown outcome holds no line against newer work, and comes back behind none
	}
	if again && i.safe && e.again(now, i, detail) || again && e.mayRepeat(i, wire.CodeNone, reason) && e.retry(now, i) {
		return
	}
	i.Operator = i.By == 0 // else something newer stands for it, and nobody need decide
	e.effects.Counts.TimedOut++
}
