package engine

import (
	"container/heap"
	"maps"
	"slices"

	"github.com/apollo-11/apollo11/wire"
)

// orders are a node's lines.
type orders struct {
	lines    map[wire.LineKey]*line
	byAge    []*line // the same, in the order in which they came up
	all      line    // everything that stands at a line
	board    line    // what holds the whole board
	pins     map[string]int
	safes    []*inst // towards safe, to be handed out at once
	wanting  int     // instructions that wait to be handed out
	waiting  int     // lines, or all that need none, with something that waits
	loose    int     // of wanting, those that stand at no line
	full     bool    // the agent's queue has no room
	inside   int     // sent, not ended, not known to run
	learning bool    // its lines are being made anew
	learned  learned
}

// learn takes in the pins of a node: at its hello, or from the log. If they are not
// what they were, what is open there is put in order anew.
func (e *Engine) learn(now Now, n *node) {
	same := slices.Equal(n.learned.pins, n.Pins) && slices.Equal(n.learned.traits, n.Traits)
	n.learned = learned{n.Pins, n.Traits}
	if e.touchNode(n); same {
		return // only its rules may be others
	}
	n.pins = make(map[string]int, len(n.Pins))
	for k, p := range n.Pins {
		n.pins[p] = k
	}
	type was struct {
		i                   *inst
		wants, safe, inside bool
	}
	var list []was
	n.learning = true // a backlog stays what it is
	for p := n.all.first; p != nil; p = n.all.first {
		i := p.i
		list = append(list, was{i, i.wants, i.safe, i.inside})
		e.unwant(i)
		e.setInside(i, false)
		e.unplace(i)
	}
	for _, w := range list {
		i := w.i
		i.safe = i.task.act.Towards(n.safeLevel)
		e.place(i)
		e.setInside(i, w.inside)
		if w.wants {
			e.want(i)
		}
	}
	n.learning = false
	for _, w := range list {
		if i := w.i; i.safe && !w.safe { // this hello is the first to say so
			e.supersede(now, i)
			e.watchSafe(now, i)
			e.arm(now, i)
		}
	}
}

// learned is what a node's lines were made of.
type learned struct {
	pins   []string
	traits []wire.PinTraits
}

// place puts an unfinished instruction into the order at its lines.
func (e *Engine) place(i *inst) {
	a := i.task.act
	if !stands(a) || i.places != nil || i.undue {
		return
	}
	n := i.node
	n.numbered = max(n.numbered, i.order())
	keys, board := n.standsAt(a)
	i.board = board
	i.places = make([]place, 0, len(keys)+2)
	add := func(l *line) {
		i.places = append(i.places, place{i: i, l: l})
		l.insert(&i.places[len(i.places)-1])
	}
	add(&n.all)
	if board {
		add(&n.board)
	}
	for _, k := range keys {
		add(n.line(k))
	}
	if i.Attempt != 0 {
		i.noteHandedOut()
	}
	e.touchLines(i)
}

// unplace takes an instruction out of the order.
func (e *Engine) unplace(i *inst) {
	n := i.node
	e.touchLines(i)
	for k := range i.places {
		l := i.places[k].l
		l.remove(&i.places[k])
		if l.first == nil && len(n.lines) > mostLines && n.lines[l.key] == l {
			delete(n.lines, l.key)
			n.byAge = slices.DeleteFunc(n.byAge, func(m *line) bool { return m == l })
		}
	}
	i.places, i.board = nil, false
}

// past reports whether nothing newer has to wait for it any more. An agent that
// follows the rules keeps by itself the order in which it received; for any other
// the next one waits until this one has ended.
func (i *inst) past() bool {
	switch {
	case i.State.Settled() || i.By != 0:
		return true
	case i.waiting() || i.wants || i.ReceivedAt == 0:
		return false
	}
	return i.node.Rules >= wire.RulesOrder
}

// touchLines asks for a look at the lines of an instruction before anything is sent.
func (e *Engine) touchLines(i *inst) {
	if len(i.places) == 0 {
		return
	}
	n := i.node
	if i.board || n.board.first != nil {
		e.touchNode(n)
	}
	for k := range i.places {
		e.touchLine(n, i.places[k].l)
	}
}

// touchNode asks for a look at all lines of a node.
func (e *Engine) touchNode(n *node) {
	e.touchLine(n, &n.board)
	for _, l := range n.byAge {
		if l.first != nil {
			e.touchLine(n, l)
		}
	}
}

func (e *Engine) touchLine(n *node, l *line) {
	if l != &n.all && !l.touched {
		l.touched = true
		e.lines = append(e.lines, nodeLine{n, l})
	}
}

type nodeLine struct {
	n *node
	l *line
}

// arrange looks at the lines that something has changed on, and lets into the queues
// what its turn has come for.
func (e *Engine) arrange(now Now) {
	for k := 0; k < len(e.lines); k++ {
		n, l := e.lines[k].n, e.lines[k].l
		l.touched = false
		p := l.head()
		var i *inst
		if p != nil {
			i = p.i
		}
		if c := l.cand; c != nil && c != i {
			e.consider(c) // something older has come back
		}
		l.cand = i
		if i != nil {
			e.consider(i)
			e.watchBlock(now, i)
		}
		e.wantPump(n)
	}
	e.lines = e.lines[:0]
}

// consider puts an instruction into its node's queue, takes it out, or finds its
// place there anew.
func (e *Engine) consider(i *inst) {
	if !i.wants || i.safe {
		return
	}
	q := &i.node.queue
	lift := i.lifted()
	switch may := e.itsTurn(i); {
	case may && !i.queued():
		i.lift = lift
		heap.Push(q, i)
	case !may && i.queued():
		heap.Remove(q, i.place-1)
	case may && i.lift != lift:
		i.lift = lift
		heap.Fix(q, i.place-1)
	default:
		return
	}
	e.wantPump(i.node)
}

// itsTurn reports whether nothing but the node's window holds it.
func (e *Engine) itsTurn(i *inst) bool {
	n := i.node
	if e.heldBack() && e.restrained(i) && !e.pressed(i) {
		return false
	}
	if len(i.places) == 0 {
		return true
	}
	if i.board {
		p := n.all.head()
		return p != nil && p.i == i
	}
	if b := n.board.head(); b != nil && b.i.order() < i.order() {
		return false
	}
	for k := range i.places[1:] {
		l := i.places[k+1].l
		if p := l.head(); p == nil || p.i != i || e.crowded(n, l) && !i.hasPlace() {
			return false
		}
	}
	return true
}

// lifted is the rank of an instruction: what waits behind it lifts it to its own, so
// that priority orders lines against each other and never jumps within one.
func (i *inst) lifted() wire.Priority {
	r := i.rank()
	for k := range i.places {
		l := i.places[k].l
		if l == &i.node.all && i.node.board.wanting == 0 {
			continue
		}
		for s := range r {
			if l.ranks[s] > 0 {
				r = s
				break
			}
		}
	}
	return r
}

// want notes that an instruction waits to be handed out.
func (e *Engine) want(i *inst) {
	if i.wants {
		return
	}
	n := i.node
	i.wants = true
	n.wanting++
	e.joinedQueue(i)
	if i.safe {
		n.safes = append(n.safes, i)
		e.wantPump(n)
		return
	}
	i.wantRank = i.rank()
	before := n.waiting
	if len(i.places) == 0 {
		if n.loose++; n.loose == 1 {
			n.waiting++
		}
		e.consider(i)
	}
	for k := range i.places {
		l := i.places[k].l
		l.ranks[i.wantRank]++
		if l.wanting++; l.wanting == 1 && l != &n.all {
			n.waiting++
		}
	}
	e.recrowd(n, before)
	e.touchLines(i)
	e.wantPump(n)
}

// unwant ends that: it is handed out, or need not be any more.
func (e *Engine) unwant(i *inst) {
	if !i.wants {
		return
	}
	n := i.node
	i.wants = false
	n.wanting--
	if i.queued() {
		heap.Remove(&n.queue, i.place-1)
	}
	e.leftQueue(i)
	if i.safe {
		n.safes = slices.DeleteFunc(n.safes, func(j *inst) bool { return j == i })
		e.wantPump(n)
		return
	}
	before := n.waiting
	if len(i.places) == 0 {
		if n.loose--; n.loose == 0 {
			n.waiting--
		}
	}
	for k := range i.places {
		l := i.places[k].l
		l.ranks[i.wantRank]--
		if l.wanting--; l.wanting == 0 && l != &n.all {
			n.waiting--
		}
	}
	e.recrowd(n, before)
	e.touchLines(i)
	e.wantPump(n) // what stands first now may be no backlog
}

// restrained reports whether a quiet period or a pause holds an instruction back: it
// is repeated, or waited while its node was away.
func (e *Engine) restrained(i *inst) bool {
	return !i.byHand && (i.waiting() || i.node.backlogged(i))
}

// pressed reports whether something that is not held back waits behind it: quiet and
// pause never hold a line against newer work.
func (e *Engine) pressed(i *inst) bool {
	if b := i.node.board.last; len(i.places) > 0 && b != nil && b.i != i && b.i.order() > i.order() && (b.i.wants && !e.restrained(b.i) || b.i.inside) {
		return true // it waits for every line
	}
	for k := range i.places {
		l := i.places[k].l
		if l == &i.node.all && !i.board {
			continue
		}
		// One that is inside the agent waits there for the lines that are kept for this one.
		if t := l.last; t != nil && t.i != i && (t.i.wants && !e.restrained(t.i) || t.i.inside) {
			return true
		}
	}
	return false
}

// reconsider looks at everything that waits for a node, when a quiet period or a
// pause has begun or ended.
func (e *Engine) reconsider() {
	for _, id := range slices.Sorted(maps.Keys(e.nodes)) {
		e.reconsiderNode(e.nodes[id])
	}
}

func (e *Engine) reconsiderNode(n *node) {
	if n.wanting == 0 {
		return
	}
	for _, i := range n.opened() {
		if i.wants && len(i.places) == 0 {
			e.consider(i)
		}
	}
	e.touchNode(n)
}
