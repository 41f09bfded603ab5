package wire

import (
	"fmt"
	"strings"
	"time"
)

// Bounds of the durations in arguments. Below a millisecond an agent cannot time
// anything. What looks like a count of 2^31 ms is no duration but a mistake.
const (
	// MinPulse and MaxPulse bound a pulse; an hour is longer than anything that
	// should be called one.
	MinPulse = time.Millisecond
	MaxPulse = time.Hour
	// MinLease and MaxLease bound max_on of a write. What is shorter is a pulse; the
	// longest is the last whole day below 2^31 ms.
	MinLease = 10 * time.Millisecond
	MaxLease = 24 * 24 * time.Hour
	// MinWatch and MaxWatch bound for of a watch: an instruction lasts a day at
	// most.
	MinWatch = 100 * time.Millisecond
	MaxWatch = 24 * time.Hour
	// MinEvery and MaxEvery bound how often a watch reports.
	MinEvery     = 100 * time.Millisecond
	MaxEvery     = time.Hour
	DefaultEvery = time.Second
)

// Edge says which edges a watch reports.
type Edge uint8

// The edges.
const (
	EdgeBoth    Edge = 0
	EdgeRising  Edge = 1 // to active
	EdgeFalling Edge = 2 // to inactive
)

// String is the word in the arguments.
func (e Edge) String() string {
	switch e {
	case EdgeRising:
		return "rising"
	case EdgeFalling:
		return "falling"
	}
	return "both"
}

// GPIOWatch are the arguments of gpio.watch: the edges of the pin are reported
// for a time.
type GPIOWatch struct {
	Pin   string
	Edge  Edge
	For   time.Duration // whole milliseconds, MinWatch to MaxWatch
	Every time.Duration // between two reports, whole milliseconds, MinEvery to MaxEvery
}

// Map implements Args.
func (a GPIOWatch) Map() map[string]any {
	return map[string]any{"pin": a.Pin, "edge": a.Edge.String(),
		"for_ms": uint64(a.For.Milliseconds()), "every_ms": uint64(a.Every.Milliseconds())}
}

func watchArgs(m map[string]any) (Args, error) {
	var a GPIOWatch
	var err error
	if a.Pin, err = pinArg(m); err != nil {
		return nil, err
	}
	if a.Edge, err = edgeArg(m); err != nil {
		return nil, err
	}
	if a.For, err = watchSpan.arg(m); err != nil {
		return nil, err
	}
	if a.Every, err = everySpan.arg(m); err != nil {
		return nil, err
	}
	if a.Every == 0 {
		a.Every = DefaultEvery
	}
	return a, nil
}

func edgeArg(m map[string]any) (Edge, error) {
	const hint = `write "rising", "falling" or "both"`
	v, ok := m["edge"]
	if !ok {
		return EdgeBoth, nil
	}
	s, isText := v.(string)
	for _, e := range []Edge{EdgeBoth, EdgeRising, EdgeFalling} {
		if isText && strings.EqualFold(s, e.String()) {
			return e, nil
		}
	}
	return 0, &ArgError{"edge", "is " + describe(v), hint}
}

// span is a duration in arguments: as text with a unit under its name, or as a
// number of milliseconds under the name with _ms.
type span struct {
	name, example string
	optional      bool // 0 if it is left out
	what          string
	least, most   time.Duration
}

var (
	pulseSpan = span{"width", "500ms", false, "a pulse lasts", MinPulse, MaxPulse}
	leaseSpan = span{"max_on", "10m", true, "a lease lasts", MinLease, MaxLease}
	watchSpan = span{"for", "10m", false, "a watch lasts", MinWatch, MaxWatch}
	everySpan = span{"every", "1s", true, "a watch reports every", MinEvery, MaxEvery}
)

// isSpan reports whether an argument of this name is a duration.
func isSpan(name string) bool {
	for _, s := range []span{pulseSpan, leaseSpan, watchSpan, everySpan} {
		if s.name == name {
			return true
		}
	}
	return false
}

func (s span) hint() string {
	d, err := time.ParseDuration(s.example)
	if err != nil {
		panic("bug: " + err.Error())
	}
	return fmt.Sprintf(`write "%s": "%s" or "%[1]s_ms": %[3]d`, s.name, s.example, d.Milliseconds())
}

func (s span) limits() string { return fmt.Sprintf("%s %v to %v", s.what, s.least, s.most) }

func (s span) arg(m map[string]any) (time.Duration, error) {
	number := s.name + "_ms"
	text, hasText := m[s.name]
	num, hasNum := m[number]
	switch {
	case hasText && hasNum:
		return 0, &ArgError{s.name, "given twice, as " + s.name + " and " + number, s.hint()}
	case hasText:
		t, ok := text.(string)
		if !ok {
			return 0, &ArgError{s.name, "is " + describe(text) + ", without a unit", s.hint()}
		}
		d, err := time.ParseDuration(t)
		if err != nil {
			return 0, &ArgError{s.name, fmt.Sprintf("%q is not a duration", clip(t)), s.hint()}
		}
		return s.check(s.name, d)
	case hasNum:
		ms, ok := wholeNumber(unquote(num))
		if !ok {
			return 0, &ArgError{number, "is " + describe(num) + ", not a whole number", s.hint()}
		}
		if ms > s.most.Milliseconds() || ms < 0 {
			return 0, &ArgError{number, fmt.Sprintf("%d ms is out of range", ms), s.limits()}
		}
		return s.check(number, time.Duration(ms)*time.Millisecond)
	case s.optional:
		return 0, nil
	}
	return 0, &ArgError{s.name, "is missing", s.hint()}
}

func (s span) check(field string, d time.Duration) (time.Duration, error) {
	if d < s.least || d > s.most {
		return 0, &ArgError{field, fmt.Sprintf("%v is out of range", d), s.limits()}
	}
	if d%time.Millisecond != 0 {
		return 0, &ArgError{field, fmt.Sprintf("%v is not a whole number of milliseconds", d), s.limits()}
	}
	return d, nil
}
