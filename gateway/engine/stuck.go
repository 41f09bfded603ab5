package engine

import (
	"fmt"
	"time"

	"github.com/apollo-11/apollo11/wire"
)

// watchBlock times how long a stuck instruction holds the first of its lines against
// newer ones, while its node can be reached.
func (e *Engine) watchBlock(now Now, i *inst) {
	// What waits for a place in the window or for room in the agent is not stuck.
	n := i.node
	stuck := i.Attempt != 0 && !i.wants && (i.ReceivedAt == 0 || i.waiting()) && n.online && !n.doubtful && !n.twins.on && i.blocks() != nil
	switch {
	case stuck && i.blockAt == 0:
		i.blockAt = now.in(max(0, wire.OrderWait-i.blocked))
	case !stuck && i.blockAt != 0:
		i.unblock(now)
	default:
		return
	}
	e.arm(now, i)
}

// blocks returns the first newer one that has to wait for it, nil for none.
func (i *inst) blocks() (first *inst) {
	n := i.node
	take := func(j *inst) {
		if !j.past() && (first == nil || j.order() < first.order()) {
			first = j
		}
	}
	for k := range i.places {
		if p := &i.places[k]; p.next != nil && (p.l != &n.all || i.board) {
			take(p.next.i)
		}
	}
	if b := n.board.last; b != nil && b.i.order() > i.order() {
		take(b.i)
	}
	return first
}

// unblock stops the clock of watchBlock.
func (i *inst) unblock(now Now) {
	if i.blockAt != 0 {
		i.blocked = max(0, wire.OrderWait-max(0, i.blockAt-now.Mono))
		i.blockAt = 0
	}
}

// Wait says what an instruction waits for.
type Wait struct {
	// For is the older instruction of its line, by number and by name; 0 if it is held
	// back for another reason.
	For uint64
	Key string
	// Until is when that one ends at the latest, Unix ms, as far as it is known; 0 if
	// it is not.
	Until int64
	// Why is a sentence for people.
	Why string
}

// Waits says what an unfinished instruction that has not begun waits for; false if it
// does not wait for another one.
func (e *Engine) Waits(now Now, seq uint64) (Wait, bool) {
	i := e.insts[seq]
	if i != nil && !i.wants && !i.safe && i.ReceivedAt != 0 && i.StartedAt == 0 && !i.State.Settled() && i.By == 0 {
		return e.waitsInside(i)
	}
	if i != nil && i.wants && !i.safe && i.node.twins.on {
		return Wait{Why: "held back: two boards say hello as " + i.Node}, true
	}
	if i == nil || !i.wants || i.safe || i.queued() || len(i.places) == 0 {
		return Wait{}, false
	}
	first := func(l *line) *inst {
		if p := l.head(); p != nil && p.i.order() < i.order() {
			return p.i
		}
		return nil
	}
	o := first(&i.node.board)
	for k := range i.places {
		if l := i.places[k].l; o == nil && (l != &i.node.all || i.board) {
			o = first(l)
		}
	}
	if o == nil {
		return Wait{}, false
	}
	w := Wait{For: o.Seq, Key: o.Key(e.cfg.Site)}
	at := o.blockAt
	if o.StartedAt != 0 {
		at = o.execAt
	}
	w.Why = "waits for " + w.Key
	if at != 0 {
		w.Until = now.Wall + max(0, at-now.Mono).Milliseconds()
		w.Why += " until " + time.UnixMilli(w.Until).UTC().Format(time.RFC3339)
	}
	return w, true
}

// waitsInside says what an instruction that its agent has waits for there: the one before
// it at a line, as far as that is known here.
func (e *Engine) waitsInside(i *inst) (Wait, bool) {
	for k := range i.places {
		if p := &i.places[k]; p.l != &i.node.all && p.prev != nil && !p.prev.i.State.Settled() {
			o := p.prev.i
			return Wait{For: o.Seq, Key: o.Key(e.cfg.Site), Why: "its board has it; it waits there for " + o.Key(e.cfg.Site)}, true
		}
	}
	return Wait{}, false
}

// outWaited ends what has held its line against newer work for as long as it may, or a
// withdrawn one whose agent does not say what became of it.
func (e *Engine) outWaited(now Now, i *inst) {
	if i.By != 0 {
		e.giveUp(now, i, ReasonSuperseded, "the node has not said whether it had begun before something newer stood for it")
		return
	}
	if i.past() || i.node.doubtful {
		return
	}
	o := i.blocks()
	if o == nil {
		return
	}
	why := fmt.Sprintf("it has held its line against %s for %v", o.Key(e.cfg.Site), wire.OrderWait)
	if e.unsent(i) && !i.MayHaveRun() {
		i.By = o.Seq
		e.unwant(i)
		e.endSuperseded(now, i, why)
		return
	}
	if i.Code == wire.CodeNone && i.Attempt != 0 {
		e.sendCancel(now, i, ReasonSuperseded)
	}
	e.giveUp(now, i, ReasonSuperseded, why+"; what it did is not known")
	i.By = o.Seq
}
