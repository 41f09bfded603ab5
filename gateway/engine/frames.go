package engine

import (
	"time"

	"github.com/apollo-11/apollo11/wire"
	"github.com/apollo-11/apollo11/wire/mutant"
)

// How many of the frames that a node may be sent over narrowband in a second
// (wire.NarrowbandRate) each kind may use up: what comes later in this list always
// finds a place behind what comes before it.
const (
	frameQuestion = wire.NarrowbandRate - 3 // what became of an attempt
	frameCancel   = wire.NarrowbandRate - 2 // stop an attempt
	frameSafe     = wire.NarrowbandRate     // towards safe
)

// frames are when the latest frames were sent to a node over narrowband.
type frames struct {
	at   [wire.NarrowbandRate]time.Duration // 0 for never
	next int
}

// take asks whether one more frame may go now, of a kind that may use up so many of
// the last second. Then it is counted, and the answer is 0; else it is when to ask
// again.
func (f *frames) take(now Now, most int) time.Duration {
	// The most-th latest must be a second old.
	k := (f.next + len(f.at) - most) % len(f.at)
	if at := f.at[k]; at != 0 && now.in(0)-at < time.Second {
		return at + time.Second
	}
	f.at[f.next] = now.in(0)
	f.next = (f.next + 1) % len(f.at)
	return 0
}

// reachable reports whether a frame about an attempt can be sent to its node.
func (e *Engine) reachable(i *inst) bool {
	return e.narrow[i.node.Short] > 0 && i.Attempt != 0 && i.Seq <= wire.MaxCompactSeq && !mutant.On(mutant.CompactCancelUnsent)
}

// unwanted reports whether an attempt that the agent may have is to be stopped: somebody
// wants that, or something newer stands for it.
func (e *Engine) unwanted(i *inst) bool {
	return (i.CancelBy != "" || i.By != 0) && !i.State.Settled() && !i.waiting()
}

// wantStop sets when the wish to cancel an instruction goes over narrowband too: at
// once when the primary path is gone or carries nothing, else when it has brought no
// answer for as long as it takes until a question would be asked (A21).
func (e *Engine) wantStop(now Now, i *inst) {
	if !e.unwanted(i) || !e.reachable(i) {
		return
	}
	at := now.in(askNarrowband)
	if !i.node.online || i.node.doubtful {
		at = now.in(0)
	}
	if i.stopAt == 0 || at < i.stopAt {
		i.stopAt = at
	}
}

// stopCompact sends the cancel over narrowband, and again until it is answered: less
// and less often, for the frames are few.
func (e *Engine) stopCompact(now Now, i *inst) {
	if !e.unwanted(i) || !e.reachable(i) {
		return
	}
	if free := i.node.frames.take(now, frameCancel); free != 0 {
		i.stopAt = free
		return
	}
	i.stops = min(i.stops+1, 100)
	i.stopAt = now.in(min(askNarrowband*time.Duration(i.stops+1), e.cfg.ConfirmTimeout))
	e.sendStop(i)
	if i.stops <= narrowbandTries { // a node may be silent for days
		e.log(now, i, Entry{What: WhatCancelAsk, Path: PathNarrowband})
	}
}

func (e *Engine) sendStop(i *inst) {
	e.effects.Compacts = append(e.effects.Compacts, CompactSend{i.node.Short, wire.CompactCancel{Seq: i.Seq, Attempt: i.Attempt}})
}

// stopOnce tells the agent once to stop an attempt that the gateway waits for no more,
// by the path that is there.
func (e *Engine) stopOnce(now Now, i *inst, reason string) {
	if i.node.online {
		e.sendCancel(now, i, reason)
	}
	if (!i.node.online || i.node.doubtful) && e.reachable(i) && i.node.frames.take(now, frameCancel) == 0 {
		e.sendStop(i)
	}
}
