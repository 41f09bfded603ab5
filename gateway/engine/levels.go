package engine

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/apollo-11/apollo11/wire"
)

// The levels of outputs (B27). What an instruction has done says how a line stands; so
// does each move that the board makes by itself, which its agent tells as the end of a
// lease or of a level. And each heartbeat tells the level of every output: where that is
// another one than all that was told makes it, somebody must know.
const (
	alarmEnded  = "output_ended"     // incident, subject: instruction
	alarmDiffer = "level_unexpected" // incident, subject: node

	// differAgain is the least time between two alarms about levels of one node.
	differAgain = time.Minute
)

// PinLevel is how an output stands, as its agent says.
type PinLevel struct {
	Pin   string
	Level wire.Level // never unknown
	// Expected is the level that the log makes of what was told, where it is another one;
	// unknown else.
	Expected wire.Level
}

// believed is the level of a line after the last that was told of it.
type believed struct {
	high  bool
	order uint64 // of the instruction that set it
}

// levels are those of a node's outputs.
type levels struct {
	told    []wire.Level // in the order of Node.Pins; nil while they are not known
	news    map[wire.LineKey]believed
	differs []bool // as shown, in the same order
	odd     []bool // seen once, by the latest heartbeat
	oddAt   time.Duration
}

func levelOf(high bool) wire.Level {
	if high {
		return wire.LevelHigh
	}
	return wire.LevelLow
}

// helloLevels takes in the levels of a hello. What happened since the last event that
// is in the log is still to be told, so they are not compared.
func (e *Engine) helloLevels(n *node, m *wire.Hello) {
	l := &n.levels
	for k := range l.news { // what is no pin any more is not remembered
		if !slices.ContainsFunc(n.Traits, func(t wire.PinTraits) bool { return t.Line == k }) {
			delete(l.news, k)
		}
	}
	l.told, l.differs, l.odd = nil, nil, nil
	if len(m.Traits) == 0 {
		return
	}
	l.told = make([]wire.Level, len(m.Traits))
	for k, t := range m.Traits {
		switch {
		case t.Flags&wire.PinOutput == 0:
		case t.Flags&wire.PinHeld != 0:
			l.told[k] = wire.LevelHeld
		case t.Flags&wire.PinCommanded != 0:
			l.told[k] = levelOf(t.Flags&wire.PinHigh != 0)
		}
	}
	l.differs, l.odd = make([]bool, len(l.told)), make([]bool, len(l.told))
}

// beatLevels takes in the levels of a heartbeat, and compares them when everything that
// the agent had to tell is in the log. A difference counts when it is there twice.
func (e *Engine) beatLevels(now Now, n *node, m *wire.Heartbeat) {
	l := &n.levels
	if l.told == nil || len(m.Levels) == 0 {
		return
	}
	changed := false
	for k := range l.told {
		if v := wire.UnpackLevel(m.Levels, k); n.Traits[k].Flags&wire.PinOutput != 0 && v != l.told[k] {
			l.told[k], changed = v, true
		}
	}
	var news []string
	for k := range l.told {
		want, known := n.expected(k)
		differs := known && l.told[k] != wire.LevelUnknown && n.high(k) != want
		if differs && m.Next != n.cursor.Last+1 {
			continue // its reason may be on its way
		}
		twice := differs && l.odd[k]
		l.odd[k] = differs
		if twice && !l.differs[k] {
			news = append(news, fmt.Sprintf("%s is %s, told was %s", n.Pins[k], onOff(!want), onOff(want)))
		}
		if twice != l.differs[k] && (twice || !differs) {
			l.differs[k], changed = twice, true
		}
	}
	if changed {
		e.show(n)
	}
	if len(news) > 0 && (l.oddAt == 0 || now.Mono-l.oddAt >= differAgain) {
		l.oddAt = now.in(0)
		const most = 8
		more := ""
		if len(news) > most {
			more, news = fmt.Sprintf("; and %d more", len(news)-most), news[:most]
		}
		e.incident(now, alarmDiffer, n.ID, "nobody has told why: "+strings.Join(news, "; ")+more)
	}
}

// high reports whether the k-th pin is, as the agent says.
func (n *node) high(k int) bool {
	if l := n.levels.told[k]; l != wire.LevelHeld {
		return l == wire.LevelHigh
	}
	safe, _ := n.Traits[k].Safe()
	return safe
}

// expected is the level of the k-th pin as the log makes it, false while it is not
// known or something is under way on its line.
func (n *node) expected(k int) (high, ok bool) {
	key := n.Traits[k].Line
	b, ok := n.levels.news[key]
	for _, l := range []*line{n.lines[key], &n.board} {
		if l != nil && l.first != nil && l.first.i.Attempt != 0 {
			return false, false
		}
	}
	return b.high, ok
}

// levelsNow are the levels as they are shown.
func (n *node) levelsNow() []PinLevel {
	var list []PinLevel
	for k, v := range n.levels.told {
		if v == wire.LevelUnknown {
			continue
		}
		p := PinLevel{Pin: n.Pins[k], Level: v}
		if want, ok := n.expected(k); ok && n.levels.differs[k] {
			p.Expected = levelOf(want)
		}
		list = append(list, p)
	}
	return list
}

// levelsMoved notes what the end of an instruction says of the levels of its lines.
func (e *Engine) levelsMoved(i *inst) {
	a := i.task.act
	n := i.node
	if !a.Moves() || len(n.Traits) == 0 {
		return
	}
	pins := a.Pins
	if len(pins) == 0 { // all that have a safe level, or nobody knows which
		pins = n.Pins
	}
	done := i.State == StateSucceeded
	high, told := i.levelTold()
	for k, p := range pins {
		t, known := n.traitsOf(p)
		safe, guarded := t.Safe()
		if len(i.sentTo) == len(a.Pins) && len(a.Pins) > 0 && i.sentTo[k] != t.Line {
			// The name has moved since. What is towards safe may have driven both lines.
			if i.safe {
				delete(n.levels.news, i.sentTo[k])
				delete(n.levels.news, t.Line)
				continue
			}
			t.Line, known = i.sentTo[k], true
		}
		switch {
		case !known || n.levels.news[t.Line].order > i.order():
		case done && a.Safe && guarded:
			n.noteLevel(t.Line, safe, i.order())
		case a.Safe && !guarded:
		case done && a.Sets:
			n.noteLevel(t.Line, a.Level != a.Pulse, i.order())
		case done && told:
			n.noteLevel(t.Line, high, i.order())
		case done || i.MayHaveRun():
			delete(n.levels.news, t.Line) // whatever it did
		}
	}
}

// levelTold is the level that its pin has since, as its result says; false if it says none
// of the pin that the instruction names.
func (i *inst) levelTold() (high, ok bool) {
	pin, level := pinOf(i.Payload)
	a := i.task.act
	if level == nil || len(a.Pins) != 1 || pin != a.Pins[0] {
		return false, false
	}
	return *level == 1, true
}

// noteLines remembers which lines an attempt is sent for.
func (i *inst) noteLines() {
	i.sentTo = i.sentTo[:0]
	for _, p := range i.task.act.Pins {
		if t, ok := i.node.traitsOf(p); ok {
			i.sentTo = append(i.sentTo, t.Line)
		}
	}
}

// lineSet is the line whose level an instruction has set, as far as that is still what is
// known of the line; false if there is none. Names may have moved since.
func (n *node) lineSet(order uint64) (line wire.LineKey, ok bool) {
	for k, b := range n.levels.news {
		if b.order == order && (!ok || k < line) {
			line, ok = k, true
		}
	}
	return line, ok
}

func (n *node) noteLevel(k wire.LineKey, high bool, order uint64) {
	l := &n.levels
	if l.news == nil {
		l.news = map[wire.LineKey]believed{}
	}
	if _, ok := l.news[k]; ok || len(l.news) < mostLines {
		l.news[k] = believed{high, order}
	}
}

// levelEnded notes what the board has done by itself to the level that an instruction
// had set, and tells of it where somebody counts on that level.
func (e *Engine) levelEnded(now Now, i *inst, l *Lease) {
	n := i.node
	t, known := n.traitsOf(l.Pin)
	if k, ok := n.lineSet(i.order()); ok && n.levels.news[t.Line].order != i.order() {
		at := slices.IndexFunc(n.Traits, func(t wire.PinTraits) bool { return t.Line == k })
		if known = at >= 0; known {
			t = n.Traits[at]
		}
	}
	safe, guarded := t.Safe()
	if b := n.levels.news[t.Line]; known && b.order <= i.order() && l.End != wire.LeaseReplaced {
		switch {
		case l.Level != nil:
			n.noteLevel(t.Line, *l.Level&1 != 0, i.order())
		case guarded && l.End != wire.LeaseFailed && l.End != wire.LeaseHand && l.End != wire.LeaseReload:
			n.noteLevel(t.Line, safe, i.order())
		default:
			delete(n.levels.news, t.Line)
		}
	}
	switch l.End {
	case wire.LeaseReload: // its level may have become the safe one, or it has none any more
		stands := "nobody knows how it stands"
		if l.Level != nil {
			stands = "it is " + onOff(*l.Level&1 != 0)
		}
		e.alarm(now, alarmEnded, i.Key(e.cfg.Site), fmt.Sprintf(
			"the level of %s of %s, which %s had set, is not that of the command any more: %s, and %s", l.Pin, n.ID, i.what(), endText(l.End), stands))
	case wire.LeaseLoss, wire.LeaseStopped, wire.LeaseRestart:
		e.alarm(now, alarmEnded, i.Key(e.cfg.Site), fmt.Sprintf(
			"%s of %s, which %s had set, was taken to its safe level by the board itself: %s", l.Pin, n.ID, i.what(), endText(l.End)))
	}
}

// endText says for people why a board has ended a level.
func endText(end wire.LeaseEnd) string {
	switch end {
	case wire.LeaseLoss:
		return "it had lost the gateway for longer than it may"
	case wire.LeaseStopped:
		return "the agent was stopped"
	case wire.LeaseRestart:
		return "the agent was started again"
	case wire.LeaseReload:
		return "the pin map was reloaded"
	}
	return end.String()
}

func onOff(high bool) string {
	if high {
		return "on"
	}
	return "off"
}
