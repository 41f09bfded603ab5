package engine

import (
	"slices"

	"github.com/apollo-11/apollo11/wire"
	"github.com/apollo-11/apollo11/wire/mutant"
)

// Order at a line (docs/safety.md 1, 3, 4, 7). Every unfinished instruction that may
// move something stands in the list of each of its lines, by its number. Only the
// first of a list that is not past may be handed out, and only it stands in the
// queue of its node: what waits behind it costs nothing until its turn comes, and
// no other line waits for it.

// line is the order at one kernel line of a node, or of the whole board.
type line struct {
	key         wire.LineKey
	first, last *place
	ranks       [wire.PriorityLow + 1]int // those that wait to be handed out, by rank
	wanting     int                       // how many that are
	inside      int                       // sent, not ended, not known to run
	cand        *inst                     // was the first not past at the latest look
	touched     bool
	newest      newest
}

// place is where an instruction stands in the list of one line.
type place struct {
	i          *inst
	l          *line
	prev, next *place
}

// mostLines bounds the lines of a node that are remembered although nothing waits
// there: no board has more.
const mostLines = wire.MaxLines

// order is the instruction's number in the order at its lines.
func (i *inst) order() uint64 {
	if i.Order != 0 {
		return i.Order
	}
	if mutant.On(mutant.PriorityOvertakes) {
		return i.Seq + uint64(i.rank())<<40
	}
	return i.Seq
}

// stands reports whether an act has its place in the order at lines. What ends a hold
// has: handed out before the order to hold it would be undone by it.
func stands(a wire.Act) bool { return a.Moves() || a.Release }

// keysOf are the lines of an act on this node; board says that it is all of them.
func (n *node) keysOf(a wire.Act) (keys []wire.LineKey, board bool) {
	switch {
	case !stands(a):
		return nil, false
	case a.Moves() && a.Holds != wire.HoldsPins:
		return nil, true
	case len(a.Pins) == 0:
		for _, t := range n.Traits {
			if _, ok := t.Safe(); ok && !slices.Contains(keys, t.Line) {
				keys = append(keys, t.Line)
			}
		}
		return keys, len(n.Traits) == 0
	}
	for _, p := range a.Pins {
		if k := n.keyOf(p); !slices.Contains(keys, k) {
			keys = append(keys, k)
		}
	}
	return keys, false
}

// standsAt are the lines at which an act has its place in the order. A pin that the
// hello does not tell of, where it tells of any, may be another name of any of them
// (without a pin map P1_11 is GPIO17): only the agent knows. It stands at all of them,
// and moves but one.
func (n *node) standsAt(a wire.Act) (keys []wire.LineKey, board bool) {
	if a.Moves() && !a.Traits.Safe && len(n.Traits) > 0 {
		for _, p := range a.Pins {
			if _, ok := n.traitsOf(p); !ok {
				return nil, true
			}
		}
	}
	return n.keysOf(a)
}

// keyOf is the key of a pin: by the latest hello, by the name until one told it.
func (n *node) keyOf(pin string) wire.LineKey {
	if t, ok := n.traitsOf(pin); ok {
		return t.Line
	}
	return wire.LineOf(pin)
}

func (n *node) traitsOf(pin string) (wire.PinTraits, bool) {
	if k, ok := n.pins[pin]; ok && k < len(n.Traits) {
		return n.Traits[k], true
	}
	return wire.PinTraits{}, false
}

// safeLevel is the safe level of a pin as the latest hello told it.
func (n *node) safeLevel(pin string) (high, ok bool) {
	t, known := n.traitsOf(pin)
	if !known {
		return false, false
	}
	return t.Safe()
}

func (n *node) line(k wire.LineKey) *line {
	l := n.lines[k]
	if l == nil {
		if n.lines == nil {
			n.lines = map[wire.LineKey]*line{}
		}
		l = &line{key: k}
		n.lines[k] = l
		n.byAge = append(n.byAge, l)
	}
	return l
}

// insert puts a place where its number belongs, mostly at the end.
func (l *line) insert(p *place) {
	at := l.last
	for at != nil && at.i.order() > p.i.order() {
		at = at.prev
	}
	p.prev = at
	if at == nil {
		p.next, l.first = l.first, p
	} else {
		p.next, at.next = at.next, p
	}
	if p.next == nil {
		l.last = p
	} else {
		p.next.prev = p
	}
}

func (l *line) remove(p *place) {
	if p.prev == nil {
		l.first = p.next
	} else {
		p.prev.next = p.next
	}
	if p.next == nil {
		l.last = p.prev
	} else {
		p.next.prev = p.prev
	}
	if l.cand == p.i {
		l.cand = nil
	}
}

// head is the first that is not past.
func (l *line) head() *place {
	for p := l.first; p != nil; p = p.next {
		if !p.i.past() {
			return p
		}
	}
	return nil
}
