package engine

import (
	"fmt"
	"strings"

	"github.com/apollo-11/apollo11/wire"
)

// maxFailing bounds the leases of a node whose failed end is remembered: more
// outputs than any board has.
const maxFailing = 512

// Lease is an output that an instruction has set for a limited time (C13): the
// board ends it by itself, whether anybody hears of it or not.
type Lease struct {
	Pin string `cbor:"1,keyasint"`
	// Until is when it ends by itself, by the agent's clock, Unix ms.
	Until   int64  `cbor:"2,keyasint"`
	MaxOnMs uint64 `cbor:"3,keyasint"`
	// EndedAt is when it ended, by the agent's clock, Unix ms; 0 while that has not
	// been told.
	EndedAt int64         `cbor:"4,keyasint,omitempty"`
	End     wire.LeaseEnd `cbor:"5,keyasint,omitempty"`
	// Level is the pin's level since then, nil when the agent does not say.
	Level *uint8 `cbor:"6,keyasint,omitempty"`
	// Memory is the incarnation of the agent that has told of it, 0 if an older version
	// has written it down: one with another memory knows nothing of it.
	Memory uint64 `cbor:"7,keyasint,omitempty"`
}

// Over reports whether the lease is known to have ended for good.
func (l *Lease) Over() bool { return l.End != 0 && l.End != wire.LeaseFailed }

// stoppable reports whether the lease of a SUCCEEDED one lives, as far as anybody knows,
// in an agent that can be told to end it.
func (e *Engine) stoppable(i *inst) bool {
	l, n := i.Lease, i.node
	if i.State != StateSucceeded || l == nil || l.Over() || !n.online && !e.reachable(i) {
		return false
	}
	return l.Memory == 0 || l.Memory == n.cursor.Incarnation
}

// leased notes the lease that a result begins.
func (i *inst) leased(r report) {
	if i.Lease = leased(i.Intent, r.code, r.payload); i.Lease != nil {
		i.Lease.Memory = i.node.cursor.Incarnation
	}
}

// leased reads from a result whether it begins a lease, nil if not.
func leased(intent string, code wire.Code, payload wire.RawMap) *Lease {
	if !wire.TraitsOf(intent).Leases || code != wire.CodeOK {
		return nil
	}
	m, err := wire.DecodeMap(payload)
	if err != nil {
		return nil
	}
	pin, _ := m["pin"].(string)
	until, ok := m["until_ms"].(uint64)
	if !ok || until == 0 || until > 1<<62 || wire.CheckPin(pin) != nil {
		return nil
	}
	l := &Lease{Pin: pin, Until: int64(until)}
	l.MaxOnMs, _ = m["max_on_ms"].(uint64)
	return l
}

// leaseEnded takes in the end of a lease. The instruction has usually finished long
// ago and keeps its state. The lease may be that of an earlier attempt; then only
// the timeline has it.
func (e *Engine) leaseEnded(now Now, n *node, m *wire.Event) {
	i := e.insts[m.Seq]
	if i == nil || i.node != n || m.Attempt > i.Attempt || m.Attempt == i.Attempt && m.Token != i.Token {
		e.reported(now, n, m) // alarms what does not fit
		return
	}
	pin, level := pinOf(m.Payload)
	l := Lease{Pin: pin, Memory: n.cursor.Incarnation}
	current := m.Attempt == i.Attempt
	if current && i.Lease != nil {
		if i.Lease.Over() {
			e.effects.Counts.DuplicateEvents++ // a second copy of the journal tells it again
			return
		}
		l = *i.Lease
	}
	l.End, l.EndedAt, l.Level = m.Lease, m.FinishedAt, level
	if current && (i.Lease != nil || pin != "") {
		i.Lease = &l // a new one: the old may be on its way out
	}
	e.effects.Counts.LeasesEnded++
	e.log(now, i, Entry{What: WhatLease, Path: PathPrimary, Actor: n.ID, AgentAt: m.FinishedAt, Event: m.Number,
		Token: m.Token, Attempt: m.Attempt, Detail: leaseText(&l, m.Detail)})
	e.failing(now, n, i, &l)
	if current {
		e.levelEnded(now, i, &l)
	}
	e.pinNews(now, i, PinNews{Pin: pin, Lease: &l, Event: m.Number})
}

// leaseText is the end of a lease for people.
func leaseText(l *Lease, detail string) string {
	s := l.End.String()
	if l.Pin != "" {
		s += ": " + l.Pin
		if l.Level != nil {
			s += [...]string{" is off", " is on"}[*l.Level&1]
		}
	}
	if l.End == wire.LeaseHand {
		s += "; a person had moved it, it was left to the hand"
	}
	if l.End == wire.LeaseFailed {
		s += " could not be set to its safe level; the agent goes on trying"
	}
	if detail != "" {
		s += "; " + detail
	}
	return s
}

// failing keeps the alarm about outputs of a node that cannot be set to their safe
// levels: it stands until the agent says of each that it could.
func (e *Engine) failing(now Now, n *node, i *inst, l *Lease) {
	if l.End != wire.LeaseFailed {
		delete(n.failing, i.Seq)
		if len(n.failing) == 0 {
			e.clear(now, alarmLease, n.ID)
		}
		return
	}
	if n.failing == nil {
		n.failing = map[uint64]struct{}{}
	}
	if len(n.failing) < maxFailing {
		n.failing[i.Seq] = struct{}{}
	}
	e.condition(now, alarmLease, n.ID, fmt.Sprintf(
		"the lease of %s (instruction %s) is over, and the pin could not be set to its safe level: go and look", l.Pin, i.Key(e.cfg.Site)))
}

// pinOf reads the pin, and its level if there is one, from a payload.
func pinOf(payload wire.RawMap) (pin string, level *uint8) {
	m, err := wire.DecodeMap(payload)
	if err != nil {
		return "", nil
	}
	if s, ok := m["pin"].(string); ok && wire.CheckPin(s) == nil {
		pin = s
	}
	if v, ok := m["level"].(uint64); ok && v <= 1 {
		b := uint8(v)
		level = &b
	}
	return pin, level
}

// maxProgress bounds the progress entries in one instruction's timeline. Of what
// comes after them there is an entry for each maxProgress that says how many they
// were, and one at the end. A watch can make ten a second for a day.
const maxProgress = 1000

// PinNews is something that happened at a pin, for those who follow it: edges that
// a watch has seen (Edges), or the end of a lease (Lease).
type PinNews struct {
	Node, Pin   string
	At          int64 // gateway, Unix ms
	Task        string
	Instruction string      // its key
	Event       uint64      // number of the agent's event
	Edges       wire.RawMap // the payload of the agent's event, nil for none
	Lease       *Lease      // nil for none
}

func (e *Engine) pinNews(now Now, i *inst, p PinNews) {
	if p.Pin == "" {
		return
	}
	p.Node, p.At, p.Task, p.Instruction = i.node.ID, now.Wall, i.Task, i.Key(e.cfg.Site)
	e.effects.Pins = append(e.effects.Pins, p)
}

// progress enters how far an execution has come, or what it has seen.
func (e *Engine) progress(now Now, i *inst, r report) {
	i.Percent = r.percent
	if i.Progress >= maxProgress {
		if i.unlisted++; i.unlisted == maxProgress {
			e.sumProgress(now, i)
		}
		return
	}
	i.Progress++
	en := Entry{What: WhatProgress, Path: r.path, Actor: i.Node, Event: r.event, Payload: r.payload}
	en.Detail = fmt.Sprintf("%d %%", r.percent)
	if r.payload != nil {
		en.Detail = seenText(r.payload)
	}
	e.log(now, i, en)
}

// sumProgress enters how many reports of progress were not listed. After a restart
// of the gateway some of them are not counted.
func (e *Engine) sumProgress(now Now, i *inst) {
	if i.unlisted == 0 {
		return
	}
	i.Unlisted += i.unlisted
	e.log(now, i, Entry{What: WhatProgress, Path: PathPrimary, Actor: i.Node, Detail: fmt.Sprintf("%d more reports, which are not listed", i.unlisted)})
	i.unlisted = 0
}

// seenText is what a watch has seen for people, for example "door: 1 0 1 (9 so far)".
func seenText(payload wire.RawMap) string {
	m, err := wire.DecodeMap(payload)
	if err != nil {
		return "unreadable: " + err.Error()
	}
	const most = 32 // levels
	var levels []string
	edges, _ := m["edges"].([]any)
	for _, x := range edges[:min(len(edges), most)] {
		if v, ok := x.([]any); ok && len(v) > 0 {
			levels = append(levels, fmt.Sprint(v[0]))
		}
	}
	pin, _ := pinOf(payload)
	s := fmt.Sprintf("%s: %s", pin, strings.Join(levels, " "))
	if total, ok := m["total"].(uint64); ok {
		s += fmt.Sprintf(" (%d so far)", total)
	}
	return wire.FitText(s)
}
