package lines

import (
	"time"

	"github.com/apollo-11/apollo11/wire"
	"github.com/apollo-11/apollo11/wire/mutant"
)

// want looks whether a line may have a level, and has it driven.
func (c *Core) want(w Want) {
	l := c.lines[w.Line]
	if l == nil && c.open {
		l = c.add(Line{Key: w.Line, Output: true})
	}
	if c.out.Refused = c.refusal(l, w); c.out.Refused.Reason != NotRefused {
		return
	}
	// From here on it has begun.
	if w.Order > 0 && !w.Unmarked {
		c.mark(l.Key, w.Order)
	}
	if w.Ahead {
		l.ahead = max(l.ahead, w.Order)
	}
	if w.Hold && l.HasSafe && (w.Order == 0 || w.Order >= max(c.released[l.Key], c.released[board])) {
		c.held[l.Key] = max(c.held[l.Key], w.Order)
	}
	if w.Safe {
		w.Level = l.Safe
	}
	if l.towards(w) {
		c.partnersFirst(l)
	}
	c.drive(drive{line: l, level: w.Level, want: &w, why: WhyWant})
}

// partnersFirst takes the partners of a line that goes to its safe level to theirs. What
// becomes of that hinders nothing.
func (c *Core) partnersFirst(l *line) {
	if c.partners == nil {
		return
	}
	for _, key := range c.partners(l.Key) {
		p := c.lines[key]
		if p != nil && p.Output && p.HasSafe && (!p.known || p.level != p.Safe || p.set != nil) {
			c.fallTo(p, p.Safe, WhyPartner, wire.LeaseReplaced)
		}
	}
}

// towards reports whether a Want brings a line to its safe level and nothing else.
func (l *line) towards(w Want) bool {
	return w.Width == 0 && l.HasSafe && (w.Safe || w.Level == l.Safe)
}

// refusal says why a Want is refused. What is newer comes first: it is true whatever
// the switch says, and a refusal for another reason leaves no mark.
func (c *Core) refusal(l *line, w Want) Refusal {
	if l == nil {
		return Refusal{Reason: NoLine}
	}
	away := !l.towards(w)
	newest := max(c.Mark(l.Key), l.ahead)
	if !away {
		newest = c.marks[l.Key] // what held the whole board has not moved this line
	}
	switch s := l.set; {
	case !l.Output:
		return Refusal{Reason: NotOutput}
	case !l.HasSafe && (w.Safe || w.For > 0):
		return Refusal{Reason: NoSafe}
	case w.Order > 0 && w.Order < newest && !mutant.On(mutant.NumberUnchecked):
		return Refusal{Reason: Superseded, By: newest}
	case c.hands == HandsOn:
		return Refusal{Reason: ByHand}
	case c.hands == HandsUnknown && away:
		return Refusal{Reason: HandsDoubt}
	case c.stopping && away:
		return Refusal{Reason: Stopping}
	case c.isHeld(l) && away && !mutant.On(mutant.HoldUnasked):
		return Refusal{Reason: HeldSafe}
	case c.lost && l.OnLoss && away && !mutant.On(mutant.LossIsEvent):
		return Refusal{Reason: Lost}
	case s != nil && s.pulse && away:
		return Refusal{Reason: Busy, Cause: s.cause, Until: s.due}
	case away && l.MaxOn > 0 && (w.For > l.MaxOn || w.Level != l.Safe && w.Width > l.MaxOn):
		return Refusal{Reason: TooLong, Until: l.MaxOn}
	}
	return Refusal{}
}

// wanted takes the outcome of what somebody asked for.
func (c *Core) wanted(d drive, fate Fate) {
	l, w := d.line, *d.want
	if fate == Moved {
		if s := l.set; s != nil && s.timed && !s.pulse && mutant.On(mutant.LeaseUnreplaced) {
			return
		}
		c.end(l, wire.LeaseReplaced, d.level)
		if w.Width > 0 {
			d.begun = c.now // it has its whole width; a lease must not be longer for a slow pin
		}
		l.set = l.settingOf(w, d.begun)
		return
	}
	switch {
	case l.towards(w):
		// The safe level is owed from now on, whatever becomes of whoever asked.
		c.missed(l, fall{level: l.Safe, why: WhySafe, as: wire.LeaseReplaced})
	case fate == Unmoved:
	case w.Width > 0:
		// It may have begun, and nobody would end it.
		c.drive(drive{line: l, level: l.off(!w.Level), why: WhyPulse, as: wire.LeaseReplaced, cause: w.Cause})
	case l.set == nil || !l.set.timed:
		// It falls back as if it had worked. What held before still holds otherwise.
		if next := l.settingOf(w, d.begun); next != nil && next.timed {
			if s := l.set; s != nil { // a level without a limit, whose end is still told
				s.due, s.timed = next.due, true
				return
			}
			next.told = false
			l.set = next
		}
	}
}

// settingOf is what a Want leaves behind at its line, nil for nothing that ends or is
// told.
func (l *line) settingOf(w Want, begun time.Duration) *setting {
	away := !l.HasSafe || w.Level != l.Safe
	s := &setting{cause: w.Cause, id: w.ID, order: w.Order, level: w.Level, pulse: w.Width > 0, end: !w.Level}
	s.told = w.Cause != "" && (s.pulse || l.HasSafe && away)
	hold := w.For
	switch {
	case s.pulse:
		hold = w.Width
	case !away:
		return nil
	case hold == 0 && l.HasSafe:
		hold = l.MaxOn
	}
	if mutant.On(mutant.LeaseHalf) && !s.pulse {
		hold /= 2
	}
	s.due, s.timed = begun+hold, hold > 0
	if !s.told && !s.timed {
		return nil
	}
	return s
}

// off is the level at which a line rests: the safe one, if it has one.
func (l *line) off(otherwise bool) bool {
	if l.HasSafe {
		return l.Safe
	}
	return otherwise
}

// cancel ends what this cause has begun, if it lives: not what came after it.
func (c *Core) cancel(cause string) {
	if cause == "" || c.hands == HandsOn {
		return // what lived there ended with the switch
	}
	c.each(func(l *line) {
		if s := l.set; s != nil && s.cause == cause && s.timed {
			why := WhyExpired
			if s.pulse {
				why = WhyPulse
			}
			c.fallTo(l, l.off(s.end), why, wire.LeaseCancelled)
		}
	})
}
