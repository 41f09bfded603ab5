package executor

import (
	"fmt"
	"maps"
	"slices"

	"github.com/apollo-11/apollo11/wire"
	"github.com/apollo-11/apollo11/wire/mutant"
)

// wholeBoard is the key of the mark that counts for every line: of what holds the
// board, and of lines whose own marks found no room.
const wholeBoard wire.LineKey = 0

// maxMarks bounds the marks: four times what one pin map can have. Beyond it the
// lowest becomes one of the whole board, which refuses too much rather than too
// little.
const maxMarks = 4 * wire.MaxLines

// Marks returns the highest number that has begun on each line, as far as the
// journal knows: the owner of the pins starts with them, before anything is driven.
// Key 0 stands for the whole board; it does not hinder what is towards safe.
func (c *Core) Marks() map[wire.LineKey]uint64 { return maps.Clone(c.marks) }

// orderOf is the number of an instruction in the order at its lines.
func orderOf(in *wire.Instruction) uint64 {
	if in.Order != 0 {
		return in.Order
	}
	return in.Seq
}

// mark notes that a number has begun on lines.
func (c *Core) mark(lines []wire.LineKey, board bool, order uint64) {
	c.table.see(order, 0)
	if board {
		c.marks[wholeBoard] = max(c.marks[wholeBoard], order)
	}
	for _, l := range lines {
		c.marks[l] = max(c.marks[l], order)
	}
	for len(c.marks) > maxMarks {
		low := wholeBoard
		for _, l := range slices.Sorted(maps.Keys(c.marks)) {
			if l != wholeBoard && (low == wholeBoard || c.marks[l] < c.marks[low]) {
				low = l
			}
		}
		c.marks[wholeBoard] = max(c.marks[wholeBoard], c.marks[low])
		delete(c.marks, low)
	}
}

// overtaken returns the number of something newer that has begun where the attempt
// would move something; 0 for nothing. An equal number is the same instruction.
func (c *Core) overtaken(a *attempt) uint64 {
	if a.releases {
		return c.heldLater(a)
	}
	if !a.actuates {
		return 0
	}
	if a.towards {
		if len(c.passable(a.lines, a.order)) > 0 {
			return 0
		}
		return c.newest(a.lines)
	}
	newest := max(c.marks[wholeBoard], c.newest(a.lines))
	if a.board {
		for _, m := range c.marks { // the highest does not depend on the order
			newest = max(newest, m)
		}
	}
	if newest > a.order {
		return newest
	}
	return 0
}

// heldLater returns the number of a hold that is newer than a release of it, if the
// release comes too late for all that it would release.
func (c *Core) heldLater(a *attempt) (by uint64) {
	if len(c.releasable(a.lines, a.order)) > 0 {
		return 0
	}
	for l, order := range c.holds { // the highest does not depend on the order
		if order > a.order && (len(a.lines) == 0 || slices.Contains(a.lines, l)) {
			by = max(by, order)
		}
	}
	return by
}

func (c *Core) newest(lines []wire.LineKey) (m uint64) {
	for _, l := range lines {
		m = max(m, c.marks[l])
	}
	return m
}

// passable are the lines on which nothing newer has begun. What brings many lines to
// their safe levels does so at these, even if it comes too late for others.
func (c *Core) passable(lines []wire.LineKey, order uint64) []wire.LineKey {
	var list []wire.LineKey
	for _, l := range lines {
		if c.marks[l] <= order {
			list = append(list, l)
		}
	}
	return list
}

func superseded(by uint64) Result {
	return Result{Code: wire.CodeSuperseded, Detail: fmt.Sprintf("instruction %d, which is newer, has begun on its line", by)}
}

// holdsAny reports whether the attempt keeps anything else from beginning.
func (a *attempt) holdsAny() bool { return a.board || len(a.lines) > 0 }

// shares reports whether two attempts must not overlap.
func (a *attempt) shares(b *attempt) bool {
	if !a.holdsAny() || !b.holdsAny() {
		return false
	}
	return a.board || b.board || slices.ContainsFunc(a.lines, func(l wire.LineKey) bool { return slices.Contains(b.lines, l) })
}

// occupied are the lines on which something runs or waits.
type occupied struct {
	lines      map[wire.LineKey]bool
	board, any bool
}

func (o *occupied) add(a *attempt) {
	o.any, o.board = o.any || a.holdsAny(), o.board || a.board
	for _, l := range a.lines {
		o.lines[l] = true
	}
}

// free reports whether the attempt finds nothing on its lines.
func (o *occupied) free(a *attempt) bool {
	switch {
	case !a.holdsAny() || mutant.On(mutant.LinesIgnored):
		return true
	case o.board || a.board && o.any:
		return false
	}
	return !slices.ContainsFunc(a.lines, func(l wire.LineKey) bool { return o.lines[l] })
}

// seat gives an attempt that waits its place on its lines. What actuates stands by
// its number, whenever it came. The rest has none: it comes after what waited when
// it came.
func (a *attempt) seat(before []*attempt) {
	a.place = a.order
	if a.actuates {
		return
	}
	a.place = 0
	for _, o := range before {
		if o.shares(a) {
			a.place = max(a.place, o.place)
		}
	}
}

// mapChanged says why the attempt's pins are not the lines that the gateway took
// them for; empty if they are, as far as it said.
func mapChanged(in *wire.Instruction, v Verdict) string {
	if v.Map != "" {
		return v.Map
	}
	if len(in.Lines) == 0 || len(v.Lines) == 0 {
		return "" // the gateway does not know, or it holds no line of its own
	}
	for _, l := range in.Lines {
		if !slices.Contains(v.Lines, l) {
			return "a name of its pins means another line than when it was sent"
		}
	}
	for _, l := range v.Lines {
		if !slices.Contains(in.Lines, l) {
			return "a name of its pins means another line than when it was sent"
		}
	}
	return ""
}

// safeLines are the lines that something towards safe drives: what its pins mean
// now, and what the gateway took them for if that is still an output with a safe
// level.
func (c *Core) safeLines(in *wire.Instruction, v Verdict) []wire.LineKey {
	lines := slices.Clone(v.Lines)
	for _, l := range in.Lines {
		if slices.Contains(lines, l) {
			continue
		}
		for _, t := range c.cfg.Hello.Traits {
			if _, ok := t.Safe(); ok && t.Line == l {
				lines = append(lines, l)
				break
			}
		}
	}
	return lines
}
