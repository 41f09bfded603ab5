package lines

import (
	"maps"
	"slices"

	"github.com/apollo-11/apollo11/wire"
	"github.com/apollo-11/apollo11/wire/mutant"
)

// quiet drives lines that are about to be closed: to their safe levels, and at the
// end of their pulses where there is none.
func (c *Core) quiet(keys []wire.LineKey) {
	for _, key := range keys {
		l := c.lines[key]
		switch {
		case l == nil || !l.Output:
		case l.HasSafe:
			c.fallTo(l, l.Safe, WhyReload, wire.LeaseReload)
		case l.set != nil && l.set.pulse:
			c.fallTo(l, l.set.end, WhyReload, wire.LeaseReload)
		case l.fall != nil:
			c.fallTo(l, l.fall.level, WhyReload, wire.LeaseReload)
		}
	}
}

// remap replaces the map. What runs stays at its line, whatever that is called now.
func (c *Core) remap(in Remap) {
	old := c.lines
	c.lines, c.keys = map[wire.LineKey]*line{}, nil
	for _, cfg := range in.Lines {
		l := c.add(cfg)
		was := old[cfg.Key]
		if was != nil {
			l.ahead = was.ahead
		}
		if was == nil || slices.Contains(in.Fresh, cfg.Key) || !cfg.Output || !was.Output {
			continue
		}
		l.known, l.level, l.set, l.fall = was.known, was.level, was.set, was.fall
		if mutant.On(mutant.ReloadForgets) && was.Line != cfg {
			l.set = nil
		}
		if l.fall != nil && l.HasSafe {
			l.fall.level = l.Safe
		}
		c.adopt(l)
	}
	if c.lost {
		c.fallLost()
	}
	c.hold(slices.Sorted(maps.Keys(c.held)))
}

// adopt brings a line in line with new limits.
func (c *Core) adopt(l *line) {
	away := l.HasSafe && (!l.known || l.level != l.Safe)
	if s := l.set; s != nil && !s.pulse && !away {
		// Its level is the safe one by now, or the line has none any more.
		l.set = nil
		if l.HasSafe {
			l.set = s
			c.end(l, wire.LeaseReload, l.level)
		}
	}
	if !away || l.MaxOn == 0 {
		return
	}
	limit := c.now + l.MaxOn
	switch s := l.set; {
	case s == nil:
		l.set = &setting{level: l.level, due: limit, timed: true}
	case !s.timed || s.due > limit:
		s.due, s.timed = limit, true
	}
}

// reopened notes that a line had gone. Its safe level came with the opening.
func (c *Core) reopened(key wire.LineKey) {
	l := c.lines[key]
	if l == nil || !l.Output {
		return
	}
	if s := l.set; s != nil {
		c.end(l, wire.LeaseRestart, l.off(s.end))
	}
	l.atSafe()
}
