package engine

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/apollo-11/apollo11/wire"
	"github.com/apollo-11/apollo11/wire/mutant"
)

// alarmHeld stands while outputs of a node are held at their safe levels.
const alarmHeld = "held_safe" // subject: node

// Hold is what gpio.safe holds on one node until a person releases it
// (docs/safety.md 6). It begins when the gpio.safe is taken, not when it arrives: what
// is submitted in between would be refused at the board anyway.
type Hold struct {
	Node string `cbor:"1,keyasint"`
	// All are all outputs with a safe level, but for Except.
	All    bool     `cbor:"2,keyasint,omitempty"`
	Except []string `cbor:"3,keyasint,omitempty"`
	Pins   []string `cbor:"4,keyasint,omitempty"` // by name
	Since  int64    `cbor:"5,keyasint,omitempty"` // Unix ms
	By     string   `cbor:"6,keyasint,omitempty"`
}

// Ended reports whether nothing is held any more.
func (h Hold) Ended() bool { return !h.All && len(h.Pins) == 0 }

// RestoreHold takes in a hold from the log.
func (e *Engine) RestoreHold(now Now, h Hold) {
	if h.Ended() || mutant.On(mutant.HoldLost) {
		return
	}
	n := e.node(h.Node)
	n.hold = &h
	e.alarmHold(now, n)
}

// Holds lists what is held, by node.
func (e *Engine) Holds() []Hold {
	var list []Hold
	for _, n := range e.nodes {
		if n.hold != nil {
			list = append(list, *n.hold)
		}
	}
	slices.SortFunc(list, func(a, b Hold) int { return strings.Compare(a.Node, b.Node) })
	return list
}

func (e *Engine) setHold(now Now, n *node, h Hold) {
	n.hold = &h
	if h.Ended() {
		n.hold = nil
		e.clear(now, alarmHeld, n.ID)
	}
	if !slices.Contains(e.newHolds, n) {
		e.newHolds = append(e.newHolds, n)
	}
	if n.hold != nil {
		e.alarmHold(now, n)
	}
}

// alarmHold keeps the alarm about what is held: it stands throughout, and its text says
// what is held now.
func (e *Engine) alarmHold(now Now, n *node) {
	e.restate(now, alarmHeld, n.ID, fmt.Sprintf("%s held at the safe level since %s by %s, until somebody releases it: apollo release %s",
		n.hold.text(), time.UnixMilli(n.hold.Since).UTC().Format(time.RFC3339), n.hold.By, n.ID))
}

// text names what is held, a few of many.
func (h Hold) text() string {
	switch {
	case h.All && len(h.Except) == 0:
		return "all outputs with a safe level are"
	case h.All:
		return "all outputs with a safe level but some are"
	case len(h.Pins) > 8:
		return fmt.Sprintf("%s and %d more are", strings.Join(h.Pins[:8], ", "), len(h.Pins)-8)
	}
	return strings.Join(h.Pins, ", ") + " is"
}

// holdSafe begins the hold of a gpio.safe, or ends that of a gpio.release.
func (e *Engine) holdSafe(now Now, i *inst, actor string) {
	n, a := i.node, i.task.act
	if !a.Release && !(a.Safe && a.Moves()) {
		return
	}
	h := Hold{Node: n.ID, Since: now.Wall, By: actor}
	if n.hold != nil {
		h = *n.hold
		h.Pins, h.Except = slices.Clone(h.Pins), slices.Clone(h.Except)
	}
	same := func(pin string) func(string) bool {
		return func(other string) bool { return n.keyOf(other) == n.keyOf(pin) }
	}
	switch {
	case a.Release && n.hold == nil:
		return
	case a.Release && len(a.Pins) == 0:
		h = Hold{Node: n.ID}
	case a.Release:
		for _, p := range a.Pins {
			h.Pins = slices.DeleteFunc(h.Pins, same(p))
			if h.All && !slices.ContainsFunc(h.Except, same(p)) && len(h.Except) < mostLines {
				h.Except = append(h.Except, p)
			}
		}
	case len(a.Pins) == 0:
		h.All, h.Except, h.Pins = true, nil, nil
	default:
		for _, p := range a.Pins {
			h.Except = slices.DeleteFunc(h.Except, same(p))
			if !slices.ContainsFunc(h.Pins, same(p)) {
				h.Pins = append(h.Pins, p)
			}
		}
		if len(h.Pins) > mostLines { // more than any board has: towards caution
			h.All, h.Except, h.Pins = true, nil, nil
		}
	}
	if n.hold == nil || !h.equal(*n.hold) {
		if a.Release {
			i.Opened = n.hold.of(n, a)
		}
		e.setHold(now, n, h)
	}
}

// equal reports whether both hold the same.
func (h Hold) equal(o Hold) bool {
	return h.All == o.All && slices.Equal(h.Except, o.Except) && slices.Equal(h.Pins, o.Pins)
}

// heldPin returns a pin of an act that is held and that it would move away from safe,
// "" for none.
func (n *node) heldPin(a wire.Act) string {
	h := n.hold
	if h == nil || !a.Moves() || a.Reboots || a.Towards(n.safeLevel) {
		return ""
	}
	if a.Holds != wire.HoldsPins || len(a.Pins) == 0 {
		return "*"
	}
	for _, p := range a.Pins {
		same := func(other string) bool { return n.keyOf(other) == n.keyOf(p) }
		_, guarded := n.safeLevel(p)
		all := h.All && !slices.ContainsFunc(h.Except, same) && (guarded || len(n.Traits) == 0)
		if all || slices.ContainsFunc(h.Pins, same) {
			return p
		}
	}
	return ""
}

// refusedHeld says why an act is not taken for a node; nil if nothing is held there.
func (n *node) refusedHeld(a wire.Act) *Refusal {
	pin := n.heldPin(a)
	switch pin {
	case "":
		return nil
	case "*":
		return &Refusal{RefusedHeld, fmt.Sprintf("%s held at the safe level on node %s, and this may move any of its outputs", n.hold.text(), n.ID),
			fmt.Sprintf("release it first: apollo release %s", n.ID)}
	}
	return &Refusal{RefusedHeld, fmt.Sprintf("%s of node %s is held at its safe level", pin, n.ID),
		fmt.Sprintf("release it first: apollo release %s %s", n.ID, pin)}
}

// heldLines are the lines that a welcome names as held.
func (n *node) heldLines() []wire.LineKey {
	h := n.hold
	if h == nil || n.Rules < wire.RulesOrder {
		return nil
	}
	var list []wire.LineKey
	add := func(k wire.LineKey) {
		if !slices.Contains(list, k) && len(list) < mostLines {
			list = append(list, k)
		}
	}
	for _, p := range h.Pins {
		add(n.keyOf(p))
	}
	for k, t := range n.Traits {
		_, ok := t.Safe()
		if h.All && ok && !slices.ContainsFunc(h.Except, func(p string) bool { return n.keyOf(p) == n.Traits[k].Line }) {
			add(t.Line)
		}
	}
	return list
}

func (e *Engine) collectHolds(r *Records) {
	for _, n := range e.newHolds {
		h := Hold{Node: n.ID}
		if n.hold != nil {
			h = *n.hold
		}
		r.Holds = append(r.Holds, h)
	}
	e.newHolds = e.newHolds[:0]
}

// forget ends what is owed to a node that was never seen, and its hold.
func (e *Engine) forget(now Now, i *inst) {
	n := i.node
	if n.hold != nil {
		e.setHold(now, n, Hold{Node: n.ID})
	}
	e.giveUp(now, i, ReasonExpired, fmt.Sprintf("no node of this name has been seen for %v", strangerHold))
}

// adoptHolds takes over what the node says it holds and the log does not know: an older
// copy of the log must not forget it. What a release on its way will open is left out.
func (e *Engine) adoptHolds(now Now, n *node) {
	h := Hold{Node: n.ID, Since: now.Wall, By: "the board"}
	if n.hold != nil {
		h = *n.hold
		h.Pins = slices.Clone(h.Pins)
	}
	known := map[wire.LineKey]bool{} // or about to be released
	for _, i := range n.open {
		if !i.task.act.Release {
			continue
		}
		keys, board := n.keysOf(i.task.act)
		if board {
			return
		}
		for _, k := range keys {
			known[k] = true
		}
	}
	for _, k := range n.heldLines() {
		known[k] = true
	}
	news := false
	for k, t := range n.Traits {
		if t.Flags&wire.PinHeld != 0 && !known[t.Line] && len(h.Pins) < mostLines {
			h.Pins, news = append(h.Pins, n.Pins[k]), true
			known[t.Line] = true
		}
	}
	if news {
		e.setHold(now, n, h)
	}
}
