package engine_test

import (
	"slices"
	"time"

	"github.com/apollo-11/apollo11/wire"
)

// What a simulated agent does about order at a line (docs/safety.md), as a gateway may
// expect it: marks, the way to safe, lines that are kept for a next attempt, a queue
// that may be full.

// simPins are the outputs of every board; the last one has no safe level.
var simPins = []string{"valve", "pump", "lamp"}

// simQueue is how many instructions may wait in an agent that follows the rules.
const simQueue = 4

type kept struct {
	seq   uint64
	until time.Duration
}

// order is the attempt's number.
func (t *attempt) order() uint64 {
	if t.msg.Order != 0 {
		return t.msg.Order
	}
	return t.msg.Seq
}

func simTraits() []wire.PinTraits {
	var list []wire.PinTraits
	for k, p := range simPins {
		t := wire.PinTraits{Line: wire.LineOf("chip:" + p), Flags: wire.PinOutput}
		if k < 2 {
			t.Flags |= wire.PinHasSafe
		}
		list = append(list, t)
	}
	return list
}

func simSafe(pin string) (bool, bool) {
	k := slices.Index(simPins, pin)
	return false, k == 0 || k == 1
}

func (a *simAgent) tellLines(h *wire.Hello) {
	if a.rules {
		h.Rules, h.Pins, h.Traits = wire.NewestRules, simPins, simTraits()
	}
}

func (a *simAgent) act(m *wire.Instruction) wire.Act {
	act, err := wire.ParseAct(m.Intent, m.Args)
	if err != nil {
		return wire.Act{}
	}
	return act
}

// linesOf are the lines of an instruction; all of them for one that holds the board.
func (a *simAgent) linesOf(m *wire.Instruction) []wire.LineKey {
	act := a.act(m)
	if !act.Moves() || m.Intent == "" {
		return nil
	}
	var keys []wire.LineKey
	for k, t := range simTraits() {
		_, safe := t.Safe()
		switch {
		case act.Holds != wire.HoldsPins, len(act.Pins) == 0 && safe, slices.Contains(act.Pins, simPins[k]):
			keys = append(keys, t.Line)
		}
	}
	return keys
}

// placesOf are the lines at which an instruction stands in the gateway's order: what
// ends a hold does, though it moves nothing.
func (a *simAgent) placesOf(m *wire.Instruction) []wire.LineKey {
	act := a.act(m)
	if !act.Release {
		return a.linesOf(m)
	}
	c := *m
	c.Intent = wire.IntentSafe
	return a.linesOf(&c)
}

func (a *simAgent) towards(m *wire.Instruction) bool { return a.act(m).Towards(simSafe) }

// orderly answers what is older than what has begun on its line, and what there is no
// room for. Towards safe it ends what waits and what runs there.
func (a *simAgent) orderly(t *attempt) bool {
	keys := a.linesOf(t.msg)
	newer := func(k wire.LineKey) bool { return t.order() < a.journal.marks[k] }
	// Towards safe is judged line by line: some of its lines may have seen newer work.
	if slices.ContainsFunc(keys, newer) && (!a.towards(t.msg) || len(slices.DeleteFunc(slices.Clone(keys), newer)) == 0) {
		a.end(t, wire.CodeSuperseded)
		return false
	}
	if !a.towards(t.msg) {
		if a.waiting() >= simQueue {
			a.say(&wire.Report{States: []wire.State{{Seq: t.ref.Seq, Token: t.ref.Token, Status: wire.StatusFull}}})
			return false
		}
		return true
	}
	a.start(t)
	for _, o := range slices.Clone(a.queue) {
		if a.shares(o, keys) && o.order() < t.order() && a.act(o.msg).Holds == wire.HoldsPins && !a.towards(o.msg) {
			a.end(o, wire.CodeSuperseded)
		}
	}
	for _, o := range a.attemptsRunning() {
		if o != t && a.shares(o, keys) && o.order() < t.order() && a.act(o.msg).Holds == wire.HoldsPins && !a.towards(o.msg) {
			a.end(o, wire.CodeCancelled)
		}
	}
	return false
}

func (a *simAgent) attemptsRunning() []*attempt {
	var list []*attempt
	for _, o := range a.running {
		list = append(list, o)
	}
	slices.SortFunc(list, func(x, y *attempt) int { return int(x.ref.Token.Seq) - int(y.ref.Token.Seq) })
	return list
}

func (a *simAgent) shares(o *attempt, keys []wire.LineKey) bool {
	return slices.ContainsFunc(a.linesOf(o.msg), func(k wire.LineKey) bool { return slices.Contains(keys, k) })
}

// itsTurn reports whether nothing older waits, runs or keeps one of its lines.
func (a *simAgent) itsTurn(t *attempt) bool {
	keys := a.linesOf(t.msg)
	if !t.offered {
		return false
	}
	for _, k := range keys {
		if h, ok := a.journal.keeps[k]; ok && h.seq != t.ref.Seq && a.w.now < h.until {
			return false
		}
		if t.order() < a.journal.marks[k] {
			a.later(0, func() { a.end(t, wire.CodeSuperseded) })
			return false
		}
	}
	for _, o := range a.queue {
		// What was not offered again is over for the gateway, or will be offered.
		if o != t && o.offered && a.shares(o, keys) && o.order() < t.order() {
			return false
		}
	}
	for _, o := range a.running {
		if a.shares(o, keys) {
			return false
		}
	}
	return true
}

// keep keeps the lines of what may be tried again.
func (a *simAgent) keep(t *attempt) {
	if !t.msg.Keep || t.code.Class() != wire.ClassRetryable {
		return
	}
	for _, k := range a.linesOf(t.msg) {
		a.journal.keeps[k] = kept{t.ref.Seq, a.w.now + wire.OrderWait}
	}
	a.later(wire.OrderWait, a.work)
}

func (a *simAgent) release(seq uint64) {
	for k, h := range a.journal.keeps {
		if h.seq == seq {
			delete(a.journal.keeps, k)
		}
	}
}

// room is what a heartbeat says of it.
func (a *simAgent) room() uint32 {
	if !a.rules {
		return 0
	}
	return uint32(max(0, simQueue-a.waiting())) + 1
}

// waiting counts what takes a place in the queue: what was not offered again since the
// start takes none, for the gateway may have given it up.
func (a *simAgent) waiting() (n int) {
	for _, t := range a.queue {
		if t.offered {
			n++
		}
	}
	return n
}
