package outage

import (
	"fmt"
	"slices"
	"time"

	"github.com/apollo-11/apollo11/gateway/engine"
	"github.com/apollo-11/apollo11/wire"
)

// The engine's defaults (A6): what DrainSummary is held against.
const (
	drainRate  = 50
	drainBurst = 100
)

// DrainOptions say which outage.
type DrainOptions struct {
	Seed     uint64
	Nodes    int
	Commands int           // submitted during the outage, of mixed priorities
	Outage   time.Duration // how long all nodes are away
}

// DefaultDrain is the one that is drawn and measured.
func DefaultDrain() DrainOptions {
	return DrainOptions{Seed: 11, Nodes: 20, Commands: 5000, Outage: time.Hour}
}

// Dispatch is one command that went out.
type Dispatch struct {
	At       time.Duration // since the nodes are back
	Priority wire.Priority
	Seq      uint64
}

// DrainSummary says how an outage ended.
type DrainSummary struct {
	Commands    int           `json:"commands"`
	Nodes       int           `json:"nodes"`
	Took        time.Duration `json:"took_ns"`      // from the comeback to the last dispatch
	FirstSecond int           `json:"first_second"` // commands sent in it
	MostLater   int           `json:"most_later"`   // the most in any second after the burst
	Ordered     bool          `json:"ordered"`      // no command went before one that is more urgent
	Over        int           `json:"over"`         // by how many commands the bucket was ever overdrawn
	Succeeded   int           `json:"succeeded"`
	Twice       int           `json:"twice"` // tokens that ran more than once
	Err         string        `json:"error,omitempty"`
}

// OK reports whether the bucket was kept, the urgent went first, and everything
// ran exactly once.
func (d DrainSummary) OK() bool {
	return d.Err == "" && d.Over == 0 && d.Ordered && d.Succeeded == d.Commands && d.Twice == 0
}

// Drained is an outage's end in detail.
type Drained struct {
	Summary    DrainSummary
	Dispatches []Dispatch // in order of time
}

// priorities are mixed like this: of ten commands one is high, six are normal,
// three are low.
var priorityMix = [...]wire.Priority{wire.PriorityNormal, wire.PriorityLow, wire.PriorityNormal, wire.PriorityHigh, wire.PriorityNormal,
	wire.PriorityLow, wire.PriorityNormal, wire.PriorityNormal, wire.PriorityLow, wire.PriorityNormal}

// Drain lets all nodes be away while commands are submitted, and come back all at
// once.
func Drain(o DrainOptions) Drained {
	s := newSite(o.Seed, o.Nodes, true)
	d := Drained{}
	succeeded := 0
	back := time.Duration(0)
	s.wrote = func(w engine.Write) {
		for _, e := range w.Entries {
			if e.What == engine.WhatDispatched && !e.Implied {
				d.Dispatches = append(d.Dispatches, Dispatch{s.now - back, w.Instruction.Priority, w.Instruction.Seq})
			}
			if e.To == engine.StateSucceeded && e.From != e.To {
				succeeded++
			}
		}
	}
	for _, n := range s.nodes {
		n.connect()
	}
	s.until(5*time.Second, nil)
	for _, n := range s.nodes {
		n.drop()
	}
	for k := range o.Commands {
		s.after(o.Outage*time.Duration(k)/time.Duration(o.Commands), func() {
			s.submit(s.nodes[k%len(s.nodes)].name, priorityMix[(k/len(s.nodes)+k%len(s.nodes))%len(priorityMix)], k/len(s.nodes))
		})
	}
	s.until(s.now+o.Outage, nil)
	back = s.now
	s.even = true // all hellos arrive together: what comes first is not chance
	for _, n := range s.nodes {
		n.connect()
	}
	s.even = false
	s.until(back+o.Outage, func() bool { return succeeded == o.Commands })
	d.summarize(o, s, succeeded)
	return d
}

func (d *Drained) summarize(o DrainOptions, s *site, succeeded int) {
	m := &d.Summary
	*m = DrainSummary{Commands: o.Commands, Nodes: o.Nodes, Succeeded: succeeded, Ordered: true}
	if s.err != nil {
		m.Err = s.err.Error()
	}
	if len(d.Dispatches) == 0 {
		m.Err = "nothing was dispatched"
		return
	}
	m.Took = d.Dispatches[len(d.Dispatches)-1].At
	m.Over = overdrawn(d.Dispatches)
	m.Ordered = slices.IsSortedFunc(d.Dispatches, func(a, b Dispatch) int { return int(a.Priority) - int(b.Priority) })
	for _, n := range d.PerSecond() {
		sum := 0
		for _, c := range n {
			sum += c
		}
		if m.FirstSecond == 0 {
			m.FirstSecond = sum
		} else {
			m.MostLater = max(m.MostLater, sum)
		}
	}
	for _, n := range s.nodes {
		for token, times := range n.ran {
			if times > 1 {
				m.Twice++
				m.Err = fmt.Sprintf("%s ran %v %d times", n.name, token, times)
			}
		}
	}
}

// overdrawn pours dispatches through a bucket of its own and returns by how many it
// was ever overdrawn, which the engine's rounding may do by less than one.
func overdrawn(list []Dispatch) int {
	level, last, worst := float64(drainBurst), time.Duration(0), 0.0
	for _, x := range list {
		level = min(drainBurst, level+(x.At-last).Seconds()*drainRate)
		last = x.At
		level--
		worst = min(worst, level)
	}
	return int(-worst)
}

// PerSecond is how many commands went out in each second since the comeback, by
// priority: high, normal, low.
func (d Drained) PerSecond() [][3]int {
	var list [][3]int
	for _, x := range d.Dispatches {
		for int(x.At/time.Second) >= len(list) {
			list = append(list, [3]int{})
		}
		list[int(x.At/time.Second)][band(x.Priority)]++
	}
	return list
}

func band(p wire.Priority) int {
	switch p {
	case wire.PriorityHigh:
		return 0
	case wire.PriorityLow:
		return 2
	}
	return 1
}
