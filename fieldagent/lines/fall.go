package lines

import (
	"maps"
	"slices"
	"time"

	"github.com/apollo-11/apollo11/wire"
	"github.com/apollo-11/apollo11/wire/mutant"
)

// fallTo drives a line on the core's own account. as is what is told to whoever has
// set it.
func (c *Core) fallTo(l *line, level bool, why Why, as wire.LeaseEnd) {
	c.drive(drive{line: l, level: level, why: why, as: as})
}

// fell takes the outcome of such a drive.
func (c *Core) fell(d drive, fate Fate) {
	l, s := d.line, d.line.set
	if fate == Moved {
		ended := s
		c.end(l, d.as, d.level)
		if ended != nil && l.HasSafe && d.level != l.Safe {
			// A pulse that began at the safe level: what it has left is a level like any
			// other, with the limit of the map.
			l.set = l.settingOf(Want{Level: d.level, Cause: ended.cause, Order: ended.order}, d.begun)
		}
		return
	}
	if l.HasSafe && d.level != l.Safe {
		if s == nil {
			return
		}
		if s.tries++; s.tries < endTries {
			s.due = c.now + FallAgain
			return
		}
		d.level = l.Safe
	}
	c.missed(l, fall{level: d.level, why: d.why, as: d.as})
}

// missed notes that a line is not where it has to be. That is told once to whoever has
// set it; another end follows when it has worked.
func (c *Core) missed(l *line, f fall) {
	if s := l.set; s != nil && s.told && !s.stuck {
		s.stuck = true
		c.out.Ends = append(c.out.Ends, End{Line: l.Key, Cause: s.cause, ID: s.id, Why: wire.LeaseFailed, Level: s.level, At: c.now})
	}
	f.again = c.now + FallAgain
	l.fall = &f
}

// due drives what has to be driven by now. Under LOCAL the core moves nothing by
// itself, except at a stop.
func (c *Core) due() {
	if c.hands == HandsOn {
		return
	}
	c.each(func(l *line) {
		s := l.set
		switch {
		case l.fall != nil && l.fall.again <= c.now:
			c.fallTo(l, l.fall.level, l.fall.why, l.fall.as)
		case l.fall != nil || s == nil || !s.timed || s.due > c.now:
		case !s.pulse:
			c.fallTo(l, l.Safe, WhyExpired, wire.LeaseExpired)
		default:
			level, as := c.pulseEnd(l)
			c.fallTo(l, level, WhyPulse, as)
		}
	})
}

// pulseEnd is the level at which a pulse ends at its time. One that began at the safe
// level leaves it then, unless something forbids that. Each of these has ended what
// runs when it came; this is the second look, right before the drive.
func (c *Core) pulseEnd(l *line) (level bool, as wire.LeaseEnd) {
	s := l.set
	if !l.HasSafe || s.end == l.Safe {
		return s.end, wire.LeaseExpired
	}
	switch {
	case c.stopping:
		return l.Safe, wire.LeaseStopped
	case c.hands != HandsOff:
		return l.Safe, wire.LeaseLocal
	case c.lost && l.OnLoss:
		return l.Safe, wire.LeaseLoss
	case c.isHeld(l), s.order > 0 && s.order < c.Mark(l.Key):
		return l.Safe, wire.LeaseReplaced
	}
	return s.end, wire.LeaseExpired
}

// heard notes that the gateway was heard.
func (c *Core) heard(at time.Duration) {
	if !mutant.On(mutant.HeardIgnored) {
		c.contact = max(c.contact, min(at, c.now))
	}
	if c.lost && c.now-c.contact < c.autonomy {
		c.lost = false
	}
}

// mindLoss looks whether the gateway has been unheard for too long.
func (c *Core) mindLoss() {
	if mutant.On(mutant.LossIgnored) || c.autonomy == 0 || c.lost || c.stopping || c.now-c.contact < c.autonomy {
		return
	}
	c.lost = true
	c.fallLost()
}

// fallLost drives what has to be safe while the gateway is lost.
func (c *Core) fallLost() {
	if c.hands == HandsOn {
		return // when the switch is off again
	}
	c.each(func(l *line) {
		if l.OnLoss && l.HasSafe {
			c.fallTo(l, l.Safe, WhyLoss, wire.LeaseLoss)
		}
	})
}

// local takes the LOCAL switch.
func (c *Core) local(in Local) {
	was := c.hands
	c.hands = in.Hands
	switch {
	case in.Hands == HandsOn && was != HandsOn:
		c.each(func(l *line) {
			s := l.set
			if s == nil || !s.timed {
				return // a level that stays: whoever works there sees it
			}
			if found, ok := in.Read[l.Key]; ok && l.known && found != l.level {
				c.end(l, wire.LeaseHand, found)
				l.fall = nil
				return
			}
			level := l.off(s.end)
			if s.pulse && mutant.On(mutant.PulseEndBlind) {
				level = s.end
			}
			c.fallTo(l, level, WhyLocal, wire.LeaseLocal)
		})
	case was == HandsOn && in.Hands != HandsOn:
		if c.lost {
			c.fallLost()
		}
		c.hold(slices.Sorted(maps.Keys(c.held)))
	}
}

// stop drives all safe levels, and ends pulses where there is none.
func (c *Core) stop() {
	c.stopping = true
	c.each(func(l *line) {
		switch {
		case l.HasSafe:
			c.fallTo(l, l.Safe, WhyStop, wire.LeaseStopped)
		case l.set != nil && l.set.pulse:
			c.fallTo(l, l.set.end, WhyStop, wire.LeaseStopped)
		case l.fall != nil:
			c.fallTo(l, l.fall.level, WhyStop, wire.LeaseStopped)
		}
	})
}

// leftover ends a pulse that an earlier process has begun. Somebody who works there is
// not disturbed: it is driven when the switch is off.
func (c *Core) leftover(in Leftover) {
	l := c.lines[in.Line]
	if l == nil && c.open {
		l = c.add(Line{Key: in.Line, Output: true})
	}
	if l == nil || !l.Output || l.HasSafe {
		return // it has its safe level already
	}
	l.fall = &fall{level: in.Off, why: WhyStart, as: wire.LeaseRestart, again: c.now}
}

// Unsettled lists the lines on which a lease, a pulse or a fall-back is not over.
func (c *Core) Unsettled() map[wire.LineKey]time.Duration {
	open := map[wire.LineKey]time.Duration{}
	c.each(func(l *line) {
		switch {
		case l.fall != nil:
			open[l.Key] = l.fall.again
		case l.set != nil && l.set.timed:
			open[l.Key] = l.set.due
		}
	})
	return open
}
