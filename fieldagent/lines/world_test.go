package lines_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/apollo-11/apollo11/fieldagent/lines"
	"github.com/apollo-11/apollo11/wire"
)

// Lines of the tests: a valve that falls at a loss, a lamp, a fan that is safe when it
// is on, a horn without a safe level.
const (
	valve = wire.LineKey(1)
	lamp  = wire.LineKey(2)
	fan   = wire.LineKey(3)
	horn  = wire.LineKey(4)
	door  = wire.LineKey(5)
)

var names = map[wire.LineKey]string{valve: "valve", lamp: "lamp", fan: "fan", horn: "horn", door: "door"}

func all() []lines.Line {
	return []lines.Line{
		{Key: valve, Output: true, HasSafe: true, OnLoss: true, MaxOn: 10 * time.Minute},
		{Key: lamp, Output: true, HasSafe: true},
		{Key: fan, Output: true, HasSafe: true, Safe: true},
		{Key: horn, Output: true},
		{Key: door},
	}
}

// world is a board for a core: it does what it is told, and writes everything down.
type world struct {
	t    *testing.T
	c    *lines.Core
	now  time.Duration
	has  map[wire.LineKey]bool // real levels
	fate func(lines.Drive) lines.Fate
	log  []string
	next time.Duration
	each func(lines.Drive)
	told func(lines.End)
}

func newWorld(t *testing.T, cfg ...lines.Line) *world {
	if cfg == nil {
		cfg = all()
	}
	w := &world{t: t, has: map[wire.LineKey]bool{}}
	for _, l := range cfg {
		w.has[l.Key] = l.Safe
	}
	w.c = lines.New(lines.Config{Autonomy: time.Minute, Lines: cfg}, 0)
	w.next = w.c.Step(0, lines.Tick{}).Deadline
	return w
}

// do gives an input to the core and does what it wants.
func (w *world) do(in lines.Input) lines.Refusal {
	out := lines.Play(w.c, func() time.Duration { return w.now }, in, func(d lines.Drive) lines.Fate {
		fate := lines.Moved
		if w.fate != nil {
			fate = w.fate(d)
		}
		if w.each != nil {
			w.each(d)
		}
		if fate == lines.Moved {
			w.has[d.Line] = d.Level
		}
		w.say("%s %s", names[d.Line], level(d.Level))
		if d.Cause != "" {
			w.log[len(w.log)-1] += " " + d.Cause
		}
		if fate != lines.Moved {
			w.log[len(w.log)-1] += " fails"
		}
		return fate
	})
	for _, e := range out.Ends {
		w.say("end %s %s: %v, %s", names[e.Line], e.Cause, e.Why, level(e.Level))
		if w.told != nil {
			w.told(e)
		}
	}
	if r := out.Refused; r.Reason != lines.NotRefused {
		w.say("refused: %v", r.Reason)
	}
	w.next = out.Deadline
	return out.Refused
}

func (w *world) say(format string, args ...any) {
	w.log = append(w.log, fmt.Sprintf("@%v ", w.now)+fmt.Sprintf(format, args...))
}

// wait lets time pass, and wakes the core whenever it wants.
func (w *world) wait(d time.Duration) {
	end := w.now + d
	for w.next <= end {
		w.now = max(w.now, w.next)
		w.do(lines.Tick{})
	}
	w.now = end
}

// want checks what has happened since the last time.
func (w *world) want(lines ...string) {
	w.t.Helper()
	if got, want := strings.Join(w.log, "\n"), strings.Join(lines, "\n"); got != want {
		w.t.Errorf("happened\n%s\nwant\n%s", got, want)
	}
	w.log = nil
}

func (w *world) hears() { w.do(lines.Heard{At: w.now}) }

func level(high bool) string {
	if high {
		return "high"
	}
	return "low"
}

func on(l wire.LineKey, order uint64, cause string) lines.Want {
	return lines.Want{Line: l, Level: true, Order: order, Cause: cause}
}

func off(l wire.LineKey, order uint64, cause string) lines.Want {
	return lines.Want{Line: l, Order: order, Cause: cause}
}

func pulse(l wire.LineKey, high bool, width time.Duration, order uint64, cause string) lines.Want {
	return lines.Want{Line: l, Level: high, Width: width, Order: order, Cause: cause, ID: order}
}
