package engine

import (
	"fmt"
	"slices"
	"strings"

	"github.com/apollo-11/apollo11/wire"
	"github.com/apollo-11/apollo11/wire/mutant"
)

// Alarms about people who work at a board (C15), and about an output that a board
// cannot set to its safe level (C13). They are cleared when the board says that it
// is over; a board that is silent leaves them as they are.
const (
	alarmForeign = "pin_foreign"  // subject: node
	alarmLocal   = "node_local"   // subject: node
	alarmLease   = "lease_failed" // subject: node
)

// Urgency is how soon somebody must act on an alarm.
type Urgency uint8

const (
	UrgencyDay  Urgency = iota // look at it today
	UrgencyNone                // good to know
	UrgencyNow                 // look at it now
)

// Urgency says how soon somebody must act.
func (a Alarm) Urgency() Urgency {
	switch a.Kind {
	case alarmLocal:
		return UrgencyNone // somebody wants it so
	case alarmLease, alarmTwin, alarmSafeLate, alarmSafeLocal, alarmSafeGone:
		return UrgencyNow // an output is on that should be off
	}
	return UrgencyDay
}

// hand takes in what a heartbeat says of the LOCAL switch and of outputs that
// somebody else has changed. Nothing is done about either: the local hand wins.
func (e *Engine) hand(now Now, n *node, m *wire.Heartbeat) {
	e.heardThrows(now, n, n.Process, m.Throws, m.Local)
	e.setLocal(now, n, m.Local)
	e.beatLevels(now, n, m)
	if slices.Equal(m.Foreign, n.foreign) {
		return
	}
	n.foreign = slices.Clone(m.Foreign)
	e.show(n)
	e.clear(now, alarmForeign, n.ID) // its text names the pins
	if len(n.foreign) > 0 {
		e.condition(now, alarmForeign, n.ID, foreignText(n.foreign))
	}
}

// helloLocal takes in what a hello says of the LOCAL switch: one that is on is told at
// once. An agent that follows no rules says nothing of it there.
func (e *Engine) helloLocal(now Now, n *node, m *wire.Hello) {
	e.heardThrows(now, n, m.Nonce, m.Throws, m.Local)
	if m.Local || m.Rules >= wire.RulesOrder {
		e.setLocal(now, n, m.Local)
	}
}

func (e *Engine) setLocal(now Now, n *node, local bool) {
	if local != n.local {
		n.local = local
		e.show(n)
	}
	if local {
		e.condition(now, alarmLocal, n.ID, "the LOCAL switch is on: commands that would move something are refused")
	} else {
		e.clear(now, alarmLocal, n.ID)
	}
}

// heardThrows takes in how often the LOCAL switch of a node has been thrown since its
// process was started: the switch may be off again by now. It is kept in the log, so
// that a restart of the gateway does not take an old throw for a new one. Of an agent
// that does not tell it only the level is known, and that is not kept.
func (e *Engine) heardThrows(now Now, n *node, process, throws uint64, local bool) {
	news := throws != n.Throws
	switch {
	case throws == 0:
		news = local && !n.local
	case process != n.Process:
		news = throws > 1 || local
	}
	if throws != n.Throws || process != n.Process {
		n.Process, n.Throws = process, throws
		e.renew(n)
	}
	if news && !mutant.On(mutant.LocalSpares) {
		e.thrown(now, n)
	}
}

// thrown ends what was to move something away from its safe level and was submitted
// before the gateway heard that the LOCAL switch has been thrown, as far as it is known
// not to have begun (docs/safety.md 8). The rest gets no further attempt by itself, and
// an agent that has not got it yet is told not to begin it.
func (e *Engine) thrown(now Now, n *node) {
	const why = "the LOCAL switch of its node was thrown after it had been submitted: submit it again if it is still wanted"
	for _, i := range n.opened() {
		if i.safe || i.By != 0 || !i.task.act.Moves() {
			continue
		}
		known := i.Thrown
		i.Thrown = true
		switch {
		case e.unsent(i) && !i.MayHaveRun():
			e.unwant(i)
			i.waitAt, i.blockAt, i.blocked = 0, 0, 0
			e.endSuperseded(now, i, why)
		case i.waiting():
			e.giveUp(now, i, i.Reason, why+"; what its last attempt did is not known")
		case !known:
			e.log(now, i, Entry{What: WhatThrown, Path: PathPrimary, Actor: n.ID})
		}
		e.arm(now, i)
	}
}

// foreignText names the pins, a few of them when there are many.
func foreignText(list []wire.Foreign) string {
	const most = 8
	var pins []string
	for _, f := range list[:min(len(list), most)] {
		pins = append(pins, fmt.Sprintf("%s is %d, commanded was %d", f.Pin, f.Found, f.Commanded))
	}
	s := "changed by somebody else: " + strings.Join(pins, "; ")
	if more := len(list) - most; more > 0 {
		s += fmt.Sprintf("; and %d more", more)
	}
	return s
}
