package wire

import (
	"fmt"
	"time"
)

// span is a duration in arguments: as text with a unit under its name, or as a
// number of milliseconds under the name with _ms. Below a millisecond an agent cannot
// time anything. What looks like a count of 2^31 ms is no duration but a mistake.
type span struct {
	name, example string
	what          string // begins the sentence about its limits
	least, most   time.Duration
	optional      bool
	absent        time.Duration // what it is if it is left out, 0 for nothing
}

// spanOf is a duration that means nothing for lines and time limits.
func spanOf[A any](text string, s span, field func(*A) *time.Duration) argument[A] {
	accepted := fmt.Sprintf("a duration with unit (`\"%s\"`) or a number of milliseconds; %s to %s, whole milliseconds", s.example, brief(s.least), brief(s.most))
	switch {
	case s.absent != 0:
		accepted += "; " + brief(s.absent) + " if it is left out"
	case s.optional:
		accepted += "; may be left out"
	}
	return argument[A]{
		Argument: Argument{Name: s.name, Text: text, Accepted: accepted, Canonical: s.name + "_ms", Becomes: "`" + s.name + "_ms`", Optional: s.optional, Example: s.example},
		read: func(m map[string]any, a *A) (err error) {
			*field(a), err = s.read(m)
			return err
		},
		value: func(a *A) any {
			if *field(a) == 0 {
				return nil
			}
			return uint64(field(a).Milliseconds())
		},
	}
}

// lasts is a duration that the execution takes by itself: its time limit leaves room
// for that.
func lasts[A any](text string, s span, field func(*A) *time.Duration) argument[A] {
	arg := spanOf(text, s, field)
	arg.Lasts = true
	arg.means = func(a *A, act *Act) { act.Lasts = *field(a) }
	return arg
}

// MinLease and MaxLease bound max_on. What is shorter is a pulse; the longest is the
// last whole day below 2^31 ms.
const (
	MinLease = 10 * time.Millisecond
	MaxLease = 24 * 24 * time.Hour
)

// maxOn makes a level a lease (C13).
func maxOn[A any](field func(*A) *time.Duration) argument[A] {
	arg := spanOf("time after which the output goes to its safe level by itself",
		span{name: "max_on", example: "10m", what: "a lease lasts", least: MinLease, most: MaxLease, optional: true}, field)
	arg.means = func(a *A, act *Act) { act.MaxOn = *field(a) }
	return arg
}

// brief is a duration as the documents have it.
func brief(d time.Duration) string {
	for _, u := range []struct {
		is   time.Duration
		name string
	}{{24 * time.Hour, "days"}, {time.Hour, "h"}, {time.Minute, "min"}, {time.Second, "s"}} {
		if d%u.is == 0 && (u.is < 24*time.Hour || d > u.is) {
			return fmt.Sprintf("%d %s", d/u.is, u.name)
		}
	}
	return fmt.Sprintf("%d ms", d.Milliseconds())
}

func (s span) hint() string {
	d, err := time.ParseDuration(s.example)
	if err != nil {
		panic("bug: " + err.Error())
	}
	return fmt.Sprintf(`write "%s": "%s" or "%[1]s_ms": %[3]d`, s.name, s.example, d.Milliseconds())
}

func (s span) limits() string { return fmt.Sprintf("%s %v to %v", s.what, s.least, s.most) }

func (s span) read(m map[string]any) (time.Duration, error) {
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
		return s.absent, nil
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
