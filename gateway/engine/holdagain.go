package engine

import (
	"fmt"
	"slices"

	"github.com/apollo-11/apollo11/wire"
)

// A gpio.release opens the door when it is taken, and closes it again if it is taken back,
// or refused, before its board has done it (docs/safety.md 6): the board holds throughout.

// allLines stands for all of them.
const allLines wire.LineKey = 0

// covers reports whether a hold is one of a pin as well.
func (h *Hold) covers(n *node, pin string) bool {
	same := func(other string) bool { return n.keyOf(other) == n.keyOf(pin) }
	return h.All && !slices.ContainsFunc(h.Except, same) || slices.ContainsFunc(h.Pins, same)
}

// of is the part of a hold that a release opens, nil for nothing.
func (h *Hold) of(n *node, a wire.Act) *Hold {
	part := &Hold{Node: n.ID, Since: h.Since, By: h.By}
	if len(a.Pins) == 0 {
		part.All, part.Except, part.Pins = h.All, slices.Clone(h.Except), slices.Clone(h.Pins)
		return part
	}
	for _, p := range a.Pins {
		if h.covers(n, p) {
			part.Pins = append(part.Pins, p)
		}
	}
	if part.Ended() {
		return nil
	}
	return part
}

// without takes a pin out of a hold.
func (h *Hold) without(n *node, pin string) {
	same := func(other string) bool { return n.keyOf(other) == n.keyOf(pin) }
	h.Pins = slices.DeleteFunc(h.Pins, same)
	if h.All && !slices.ContainsFunc(h.Except, same) && len(h.Except) < mostLines {
		h.Except = append(h.Except, pin)
	}
}

// with adds one hold to another.
func (h *Hold) with(n *node, part *Hold) {
	switch {
	case part.All && h.All:
		h.Except = slices.DeleteFunc(h.Except, func(p string) bool { return part.covers(n, p) })
	case part.All:
		h.All, h.Except = true, slices.Clone(part.Except)
	}
	for _, p := range part.Pins {
		h.Except = slices.DeleteFunc(h.Except, func(other string) bool { return n.keyOf(other) == n.keyOf(p) })
		if !h.covers(n, p) {
			h.Pins = append(h.Pins, p)
		}
	}
	if len(h.Pins) > mostLines { // towards caution
		h.All, h.Except, h.Pins = true, nil, nil
	}
}

// holdsAgain looks at every gpio.release that has ended in this round. It reports whether
// one was taken back.
func (e *Engine) holdsAgain(now Now) (back bool) {
	for _, t := range e.touched {
		if !t.act.Release {
			continue
		}
		for _, i := range t.insts {
			if !i.State.Settled() {
				continue
			}
			if i.State == StateSucceeded || i.MayHaveRun() {
				i.Opened = nil
				i.node.release(i)
			} else if i.Opened != nil {
				e.holdAgain(now, i)
				back = true
			}
		}
	}
	return back
}

// release notes that a board has done a release, or may have.
func (n *node) release(i *inst) {
	if n.freed == nil || len(n.freed) > mostLines {
		n.freed = map[wire.LineKey]uint64{} // what is forgotten holds too much rather than too little
	}
	keys, _ := n.keysOf(i.task.act)
	if len(i.task.act.Pins) == 0 {
		keys = []wire.LineKey{allLines}
	}
	for _, k := range keys {
		n.freed[k] = max(n.freed[k], i.order())
	}
}

// holdAgain takes back what a gpio.release has opened that was itself taken back, or
// refused: its board still holds, or will. What a younger one opens as well, or has
// opened, is left to that.
func (e *Engine) holdAgain(now Now, i *inst) {
	n, was := i.node, i.Opened.of(i.node, wire.Act{}) // whoever has seen the old one keeps it
	i.Opened = nil
	for _, o := range n.opened() {
		if !o.task.act.Release || o.order() <= i.order() {
			continue
		}
		part := was.of(n, o.task.act)
		if part == nil {
			continue
		}
		if o.Opened != nil {
			part.with(n, o.Opened)
		}
		o.Opened = part
		e.log(now, o, Entry{What: WhatSubmitted, Detail: fmt.Sprintf("%s was taken back: this one opens what that had opened", i.Key(e.cfg.Site))})
		if len(o.task.act.Pins) == 0 {
			return
		}
		for _, p := range o.task.act.Pins {
			was.without(n, p)
		}
	}
	if n.freed[allLines] > i.order() {
		return
	}
	for _, p := range slices.Concat(was.Pins, n.Pins) {
		if n.freed[n.keyOf(p)] > i.order() {
			was.without(n, p)
		}
	}
	if was.Ended() {
		return
	}
	h := Hold{Node: n.ID, Since: was.Since, By: was.By}
	if n.hold != nil {
		h = *n.hold
		h.Pins, h.Except = slices.Clone(h.Pins), slices.Clone(h.Except)
	}
	h.with(n, was)
	e.setHold(now, n, h)
}
