package engine

import (
	"slices"
	"time"

	"github.com/apollo-11/apollo11/wire"
)

// Hooks are the seams at which what the order at a line must know of, and what is not
// built yet, decides (docs/safety.md 1, 3, 5, 6): the zero value decides nothing. They are
// asked in the engine's own calls and are pure, as it is.
type Hooks struct {
	// Due reports whether everything has come about that a task itself declares to wait
	// for: a time, a window, a dependency, an arm. Until then its instruction has no
	// number in the order and no place at a line, so that a task for Sunday blocks nothing;
	// with it comes a new number. again is after how long to ask once more, 0 for a second.
	// What is due once stays so.
	Due func(now Now, t *Task, i *Instruction) (due bool, again time.Duration)
	// Supersedes reports whether a task declares that it stands for the older ones of its
	// lines that are known not to have begun.
	Supersedes func(t *Task) bool
	// Refuses says why the log takes nothing more, for example because its disk fills; nil
	// if it does. What leads to safe is never asked about.
	Refuses func() *Refusal
}

// askDue is how often the engine asks where nobody says how often.
const askDue = time.Second

// undueAtFirst reports whether an instruction that has just been made, or comes from the
// log, waits for what its task declares. What is due has its number; so that a restart
// does not ask again, it is written down where somebody declares such things.
func (e *Engine) undueAtFirst(now Now, i *inst) bool {
	due := e.cfg.Hooks.Due
	if due == nil || i.Order != 0 || i.State.Settled() || i.Attempt != 0 || i.By != 0 {
		return false
	}
	ok, again := due(now, &i.task.Task, &i.Instruction)
	if ok {
		i.Order = i.Seq
		return false
	}
	i.undue = true
	e.undue = append(e.undue, i)
	e.askAgain(now, again)
	return true
}

func (e *Engine) askAgain(now Now, again time.Duration) {
	if again <= 0 {
		again = askDue
	}
	if at := now.in(again); e.dueAt == 0 || at < e.dueAt {
		e.dueAt = at
	}
}

// becomeDue looks whether what waits for its time has become due. It gets the newest
// number: it was submitted long ago, and everything that has moved since was newer.
func (e *Engine) becomeDue(now Now) {
	e.dueAt = 0
	list := e.undue
	e.undue = nil
	for _, i := range list {
		if i.State.Settled() {
			i.undue = false
			continue
		}
		if ok, again := e.cfg.Hooks.Due(now, &i.task.Task, &i.Instruction); !ok {
			e.undue = append(e.undue, i)
			e.askAgain(now, again)
			continue
		}
		i.undue = false
		e.renumber(i)
		i.safe = i.task.act.Towards(i.node.safeLevel)
		e.place(i)
		e.log(now, i, Entry{What: WhatDue})
		e.begins(now, i, i.task.Source.Actor)
	}
}

// begins is what a new instruction does to the others of its lines, when it has its
// number: it stands for older ones, holds, and waits to be handed out.
func (e *Engine) begins(now Now, i *inst, actor string) {
	switch declared := e.cfg.Hooks.Supersedes; {
	case i.safe:
		e.supersede(now, i)
	case declared != nil && declared(&i.task.Task):
		e.standFor(now, i)
	default:
		e.renewal(now, i)
	}
	e.holdSafe(now, i, actor)
	e.watchSafe(now, i)
	e.enqueue(i)
	e.arm(now, i)
}

// standFor withdraws what is older on the lines of an instruction and known not to have
// begun, because it declares so. What leads to safe stays.
func (e *Engine) standFor(now Now, o *inst) {
	var list []*inst
	for k := range o.places {
		if l := o.places[k].l; l != &o.node.all {
			for p := l.first; p != nil && p.i.order() < o.order(); p = p.next {
				if i := p.i; i.By == 0 && !i.safe && e.unsent(i) && !i.MayHaveRun() && o.covers(i) && !slices.Contains(list, i) {
					list = append(list, i)
				}
			}
		}
	}
	for _, i := range list {
		e.supersededBy(now, i, o)
	}
}

// endUndue ends what waits without a number on the lines that a gpio.safe holds
// (docs/safety.md 6).
func (e *Engine) endUndue(now Now, o *inst) {
	if len(e.undue) == 0 || !o.task.act.Safe || !o.task.act.Moves() {
		return
	}
	held, all := o.node.keysOf(o.task.act)
	all = all || len(o.task.act.Pins) == 0
	for _, i := range slices.Clone(e.undue) {
		a := i.task.act
		if i.node != o.node || i.By != 0 || i.State.Settled() || !a.Moves() || a.Safe || holdsBoard(a) {
			continue
		}
		keys, board := i.node.keysOf(a)
		if all || board || slices.ContainsFunc(keys, func(k wire.LineKey) bool { return slices.Contains(held, k) }) {
			e.supersededBy(now, i, o)
		}
	}
}
