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
	// narrowbandPause is the least time between two questions to one node: the
	// narrowband carries ten frames a second, and the agent needs them for acks.
	narrowbandPause = 200 * time.Millisecond
	// narrowbandTries is how often one attempt is asked after.
	narrowbandTries = 3

	alarmPathDead = "primary_dead" // subject: node
)

// NarrowbandUp says whether an agent is connected to the narrowband listener.
type NarrowbandUp struct {
	Short string
	Up    bool
}

func (*NarrowbandUp) input() {}

func (e *Engine) narrowbandUp(now Now, in *NarrowbandUp) {
	n := e.nodes[e.shorts[in.Short]]
	if in.Up {
		e.narrow[in.Short] = true
	} else {
		delete(e.narrow, in.Short)
	}
	if n == nil {
		return
	}
	for _, i := range n.opened() {
		if i.flying && in.Up && i.askAt == 0 {
			i.askAt = now.in(askNarrowband)
			e.arm(now, i)
		}
	}
}

// expectWord sets when a silent attempt is asked after over narrowband.
func (e *Engine) expectWord(now Now, i *inst) {
	i.askAt, i.asks = 0, 0
	if e.narrow[i.node.Short] && i.node.Short != "" {
		i.askAt = now.in(askNarrowband)
	}
}

// ask sends the question, or postpones it when the node was asked just now.
func (e *Engine) ask(now Now, i *inst) {
	n := i.node
	if !i.flying || i.ReceivedAt != 0 || i.asks >= narrowbandTries || !e.narrow[n.Short] {
		return
	}
	if now.Mono < n.askedAt {
		i.askAt = n.askedAt
		return
	}
	n.askedAt = now.in(narrowbandPause)
	i.asks++
	i.askAt = now.in(askNarrowband * time.Duration(i.asks+1))
	e.effects.Compacts = append(e.effects.Compacts, CompactSend{n.Short, wire.CompactQuery{Seq: i.Seq, Attempt: i.Attempt}})
	e.log(now, i, Entry{What: WhatQueried, Path: PathNarrowband})
}

// never takes in the answer that an attempt has not arrived although it was sent:
// the primary path looks alive and carries nothing. It goes back into the queue
// with its token, and nothing more is sent to the node until it is heard of on
// the primary path again (B13).
func (e *Engine) never(now Now, i *inst) {
	n := i.node
	if !i.flying || i.ReceivedAt != 0 {
		return
	}
	e.effects.Confirms = append(e.effects.Confirms, Confirm{PathNarrowband, now.Mono - i.firstAt})
	n.doubtful = true
	e.condition(now, alarmPathDead, n.ID, fmt.Sprintf("%s answers over narrowband that it did not get what the primary path was given", n.ID))
	e.ground(i)
	e.requeue(now, i, "the node says over narrowband that it has not got it")
	e.arm(now, i)
}

// believe ends the doubt about a node's primary path.
func (e *Engine) believe(now Now, n *node) {
	if n.doubtful {
		n.doubtful = false
		e.wantPump(n)
	}
	e.clear(now, alarmPathDead, n.ID)
}
