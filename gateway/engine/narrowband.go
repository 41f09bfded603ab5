package engine

import (
	"fmt"
	"time"

	"github.com/apollo-11/apollo11/wire"
)

const (
	// askNarrowband is how long after an attempt was handed out, without a word of
	// it, the agent is asked over narrowband what became of it: with the round trip
	// the state is known again within a second (B3).
	askNarrowband = 500 * time.Millisecond
	// narrowbandPause is the time between two questions to one node in the long run,
	// and narrowbandBurst how many may go at once. The narrowband carries ten frames a
	// second, each question is answered by one, and the agent needs them for acks: in
	// no second are there more than nine. What is beyond the burst is known a pause
	// later each; more at once would leave the agent none.
	narrowbandPause = 200 * time.Millisecond
	narrowbandBurst = 4
	// narrowbandTries is how often one attempt is asked after.
	narrowbandTries = 3

	// proofHold is how long after the latest bad word a primary path must have been
	// good for its alarm to be cleared.
	proofHold = 15 * time.Second

	alarmPathDead = "primary_dead" // subject: node
)

// NarrowbandUp says that a connection to the narrowband listener was made or has
// ended. Each is told of twice: when an agent connects anew, its old connection may
// be told to have ended after the new one was told of.
type NarrowbandUp struct {
	Short string
	Up    bool
}

func (*NarrowbandUp) input() {}

func (e *Engine) narrowbandUp(now Now, in *NarrowbandUp) {
	if !in.Up {
		if e.narrow[in.Short]--; e.narrow[in.Short] <= 0 {
			delete(e.narrow, in.Short)
		}
		return
	}
	e.narrow[in.Short]++
	n := e.nodes[e.shorts[in.Short]]
	if n == nil {
		return
	}
	e.whisperAll(now, n)
	for _, i := range n.opened() {
		if i.flying && i.askAt == 0 {
			i.askAt = now.in(askNarrowband)
		}
		e.wantStop(now, i)
		e.arm(now, i)
	}
}

// doubt is what is held against a node's primary path.
type doubt struct {
	doubtful bool          // nothing is sent by it
	times    int           // how often in a row it came to that
	until    time.Duration // before this no word ends it
	neverAt  time.Duration // of the latest bad word
	unproven bool          // nothing that was sent since then is known to have arrived
}

// expectWord sets when a silent attempt is asked after over narrowband.
func (e *Engine) expectWord(now Now, i *inst) {
	i.askAt, i.asks = 0, 0
	if i.safe && i.resends > narrowbandTries {
		return // its safe frames ask enough
	}
	if e.narrow[i.node.Short] > 0 {
		i.askAt = now.in(askNarrowband)
	}
}

// ask sends the question, or postpones it when the node was asked too much just now.
func (e *Engine) ask(now Now, i *inst) {
	n := i.node
	if !i.flying || i.asks >= narrowbandTries || e.narrow[n.Short] == 0 || i.Seq > wire.MaxCompactSeq {
		return
	}
	if free := n.askedAt - (narrowbandBurst-1)*narrowbandPause; now.Mono < free {
		i.askAt = free
		return
	}
	if free := n.frames.take(now, frameQuestion); free != 0 {
		i.askAt = free
		return
	}
	n.askedAt = max(n.askedAt, now.Mono) + narrowbandPause
	i.asks++
	i.askAt = now.in(askNarrowband * time.Duration(i.asks+1))
	e.effects.Compacts = append(e.effects.Compacts, CompactSend{n.Short, wire.CompactQuery{Seq: i.Seq, Attempt: i.Attempt}})
	e.log(now, i, Entry{What: WhatQueried, Path: PathNarrowband})
}

// never takes in the answer that an attempt has not arrived although it was sent:
// the primary path looks alive and carries nothing. It goes back into the queue
// with its token, and nothing more is sent to the node until it is heard of on
// the primary path again (B13). That a word comes up does not mean that one goes
// down: from the second time on the wait grows as it does between resends, and
// these count as such.
func (e *Engine) never(now Now, i *inst) {
	n := i.node
	if !i.flying {
		return
	}
	e.windowEnds(now, i, PathNarrowband)
	if !n.doubtful {
		n.doubtful = true
		if n.times++; n.times > 1 {
			n.until = now.in(e.confirmWait(n.times - 2))
		}
	}
	n.neverAt, n.unproven, i.disowned = now.in(0), true, true
	e.condition(now, alarmPathDead, n.ID, fmt.Sprintf("%s answers over narrowband that it did not get what the primary path was given", n.ID))
	switch {
	case i.safe: // it is sent again anyway, and over narrowband meanwhile
	case i.resends >= e.cfg.MaxResends:
		e.giveUp(now, i, ReasonUnconfirmed, "the node is connected and says over narrowband, time after time, that it has not got it")
	default:
		e.takeBack(now, i, "the node says over narrowband that it has not got it")
	}
	e.arm(now, i)
}

// takeBack puts back what was sent in vain, so that it keeps its place before what
// came after it.
func (e *Engine) takeBack(now Now, i *inst, why string) {
	resends := i.resends + 1
	e.ground(i)
	e.requeue(now, i, why)
	i.resends = resends
}

// arrived notes that the node has the current attempt, which only the primary path
// can have brought. That proves the path when it is the first word of the attempt and
// came by this path, or when the node had said that it had not got it: a copy was held
// on the way. Every report comes by here, also of what is not flying any more. What
// was cancelled over narrowband need not have arrived. What was disowned is known to
// be lost or held, and does not count among the acks that are late.
func (e *Engine) arrived(now Now, i *inst, r report) {
	first := r.path == PathPrimary && i.ReceivedAt == 0
	held := i.disowned && (r.path == PathPrimary || r.code.Class() != wire.ClassCancelled)
	if first && i.flying && !i.disowned {
		e.acks.turn(now)
		e.acks.took.add(now.Mono-i.sentAt, i.Sends, r.fresh, e.cfg.LatencyLimit)
	}
	if first || held {
		i.node.times, i.node.unproven = 0, false
	}
	i.disowned = i.disowned && !held
}

// believe looks at a doubt about the primary path when a word has come by it. What
// was taken back passes as a backlog, so that it waits when resends have to.
func (e *Engine) believe(now Now, n *node) {
	if n.doubtful && now.Mono >= n.until {
		n.doubtful = false
		e.startDrain(n)
		e.wantPump(n)
	}
	if n.neverAt == 0 || n.doubtful || now.Mono-n.neverAt < proofHold {
		return
	}
	if !n.unproven || len(n.queue) == 0 && n.flying == 0 {
		n.doubt = doubt{}
		e.clear(now, alarmPathDead, n.ID)
	}
}
