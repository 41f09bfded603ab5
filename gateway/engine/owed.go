package engine

import (
	"cmp"
	"slices"

	"github.com/apollo-11/apollo11/wire"
)

// Owed is a way to safe that nobody has confirmed yet: what is owed to a node that is
// away stands here until it has come back, or something newer has begun: a gpio.safe,
// or a write of the level that the node has told to be the safe one.
type Owed struct {
	Node string
	// Pin is empty for all outputs of the node that have a safe level.
	Pin               string
	Task, Instruction string
	Since             int64 // Unix ms of the submission, of the first one that it stands for
	// Count is how many equal submissions it stands for.
	Count uint32
	// Driven says that the node has told that its output is at the safe level and has
	// not entered that yet.
	Driven bool
	// Reason says for people what it waits for.
	Reason string
}

// Owed lists what is owed, by node, pin and time.
func (e *Engine) Owed() []Owed {
	var list []Owed
	for _, n := range e.nodes {
		for p := n.all.first; p != nil; p = p.next {
			i := p.i
			if !i.safe || i.By != 0 {
				continue
			}
			pin := ""
			if pins := i.task.act.Pins; len(pins) > 0 {
				pin = pins[0]
			}
			list = append(list, Owed{Node: i.Node, Pin: pin, Task: i.Task, Instruction: i.Key(e.cfg.Site), Since: i.Created,
				Count: 1 + i.Same, Driven: i.driven, Reason: i.owedFor()})
		}
	}
	slices.SortFunc(list, func(a, b Owed) int {
		return cmp.Or(cmp.Compare(a.Node, b.Node), cmp.Compare(a.Pin, b.Pin), cmp.Compare(a.Since, b.Since), cmp.Compare(a.Instruction, b.Instruction))
	})
	return list
}

// owedFor says what an open way to safe waits for.
func (i *inst) owedFor() string {
	switch {
	case !i.node.known:
		return "the node has never connected"
	case !i.node.online:
		return "the node is away"
	case i.driven:
		return "the pin is at its safe level, and the node has not entered that yet"
	case i.waiting():
		return "it failed and is tried again: " + i.Code.String()
	case i.State == StatePending:
		return "it is about to be sent"
	}
	return "it was sent and is not confirmed"
}

// cannot reports whether a node is known to have an agent from before the rules, which
// knows neither gpio.safe nor gpio.release.
func (n *node) cannot(intent string) bool {
	t := wire.TraitsOf(intent)
	return (t.Safe || t.Release) && len(n.Intents) > 0 && !slices.Contains(n.Intents, intent)
}
