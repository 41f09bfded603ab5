package scada

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// maxExactFloat is the first whole number from which on a float can no longer
// tell neighbours apart.
const maxExactFloat = 1 << 53

// number reads a number literal: int64, else uint64, else float64 for one that
// is not whole.
func (v *value) number(field string) (any, *Error) {
	if !strings.ContainsAny(v.text, ".eE") {
		if i, err := strconv.ParseInt(v.text, 10, 64); err == nil {
			return i, nil
		}
		if u, err := strconv.ParseUint(v.text, 10, 64); err == nil {
			return u, nil
		}
		return nil, faultAt(v.at, CodeOutOfRange, field, "is "+v.describe()+", which does not fit into 64 bits",
			"the limits are -9223372036854775808 and 18446744073709551615")
	}
	f, err := strconv.ParseFloat(v.text, 64)
	switch {
	case errors.Is(err, strconv.ErrRange):
		return nil, faultAt(v.at, CodeOutOfRange, field, "is "+v.describe()+", which is too large", "leave the field out if there is no value")
	case err != nil:
		return nil, faultAt(v.at, CodeSyntax, field, "is "+v.describe()+", which is no number", "write a decimal number")
	case f == 0 && !isZero(v.text):
		return nil, faultAt(v.at, CodeOutOfRange, field, "is "+v.describe()+", which is too small", "write 0 if 0 is meant")
	case math.Abs(f) >= maxExactFloat:
		return nil, faultAt(v.at, CodeOutOfRange, field, "is "+v.describe()+", which cannot be exact with a fraction or an exponent",
			"write whole numbers from 2^53 on as plain digits")
	case f == math.Trunc(f):
		return int64(f), nil
	}
	return f, nil
}

// isZero reports whether a literal has only zeros before its exponent.
func isZero(literal string) bool {
	mantissa := literal
	if i := strings.IndexAny(literal, "eE"); i >= 0 {
		mantissa = literal[:i]
	}
	return !strings.ContainsAny(mantissa, "123456789")
}

// span is the bounds of a length of time, in ms.
type span struct {
	min, max int64
	example  string
}

func (s span) hint() string {
	return "write seconds or a text with its unit, for example " + s.example
}

// millis reads a length of time: a number of seconds, or text with a unit.
func (v *value) millis(field string, s span) (int64, *Error) {
	switch v.kind {
	case kindNumber:
		n, fault := v.number(field)
		if fault != nil {
			return 0, fault
		}
		return v.secondsToMillis(field, n, s)
	case kindText:
		if v.text == "" {
			return 0, faultAt(v.at, CodeBadValue, field, "is an empty string", s.hint())
		}
		if jsonNumber(v.text) {
			return 0, faultAt(v.at, CodeWrongType, field, "is "+v.describe()+", a number in quotes", "write it without quotes for seconds, or with its unit, for example "+s.example)
		}
		d, err := time.ParseDuration(v.text)
		if err != nil {
			return 0, faultAt(v.at, CodeBadValue, field, "is "+v.describe()+", not a length of time", s.hint()+"; units are ms, s, m, h")
		}
		if d%time.Millisecond != 0 {
			return 0, finerThanMs(v, field)
		}
		return v.within(field, d.Milliseconds(), s)
	}
	return 0, faultAt(v.at, CodeWrongType, field, "is "+v.describe()+", not a length of time", s.hint())
}

func finerThanMs(v *value, field string) *Error {
	return faultAt(v.at, CodeBadValue, field, "is "+v.describe()+", which is finer than a millisecond", "round it to milliseconds")
}

func (v *value) secondsToMillis(field string, n any, s span) (int64, *Error) {
	switch n := n.(type) {
	case int64:
		// Clamped first, so that the product cannot overflow.
		return v.within(field, min(max(n, -1), s.max)*1000, s)
	case uint64:
		return v.within(field, math.MaxInt64, s)
	case float64:
		if math.Abs(n) > float64(s.max) {
			return v.within(field, int64(math.Copysign(math.MaxInt32, n))*1000, s)
		}
		// The literal has at most three decimals exactly when dividing the rounded
		// milliseconds gives the same float again.
		ms := math.Round(n * 1000)
		if ms/1000 != n {
			return 0, finerThanMs(v, field)
		}
		return v.within(field, int64(ms), s)
	}
	panic(fmt.Sprintf("bug: number of type %T", n))
}

func (v *value) within(field string, ms int64, s span) (int64, *Error) {
	if ms >= s.min && ms <= s.max {
		return ms, nil
	}
	return 0, faultAt(v.at, CodeOutOfRange, field, "is "+v.describe()+", out of range",
		fmt.Sprintf("allowed are %v to %v", time.Duration(s.min)*time.Millisecond, time.Duration(s.max)*time.Millisecond))
}

// Bounds of an absolute time, Unix ms: 2000-01-01 and 2100-01-01 UTC. What lies
// outside is another unit, not a deadline.
const (
	minInstant = 946684800000
	maxInstant = 4102444800000
)

// instant reads an absolute time: RFC 3339 with a zone, or Unix ms.
func (v *value) instant(field string) (int64, *Error) {
	switch v.kind {
	case kindNumber:
		n, fault := v.number(field)
		if fault != nil {
			return 0, fault
		}
		ms, ok := n.(int64)
		if !ok || ms < minInstant || ms >= maxInstant {
			return 0, faultAt(v.at, CodeOutOfRange, field, "is "+v.describe()+", not a time between 2000 and 2100 in Unix milliseconds", unitHint(n))
		}
		return ms, nil
	case kindText:
		return v.instantText(field)
	}
	return 0, faultAt(v.at, CodeWrongType, field, "is "+v.describe()+", not a time", instantHint)
}

const instantHint = "write Unix milliseconds or RFC 3339 with a zone, for example 2026-03-01T12:00:00Z"

func (v *value) instantText(field string) (int64, *Error) {
	if v.text == "" {
		return 0, faultAt(v.at, CodeBadValue, field, "is an empty string", instantHint)
	}
	if jsonNumber(v.text) {
		return 0, faultAt(v.at, CodeWrongType, field, "is "+v.describe()+", a number in quotes", "write it without quotes")
	}
	t, err := time.Parse(time.RFC3339Nano, v.text)
	if err != nil {
		for _, layout := range []string{"2006-01-02T15:04:05", "2006-01-02 15:04:05", "2006-01-02T15:04", "2006-01-02 15:04", time.DateOnly} {
			if _, err := time.Parse(layout, v.text); err == nil {
				return 0, faultAt(v.at, CodeBadValue, field, "is "+v.describe()+", a time without a zone", "write it as 2026-03-01T12:00:00Z, or with +02:00 for local time")
			}
		}
		return 0, faultAt(v.at, CodeBadValue, field, "is "+v.describe()+", not a time", instantHint)
	}
	// UnixMilli rounds down: never later than what was written.
	ms := t.UnixMilli()
	if ms < minInstant || ms >= maxInstant {
		return 0, faultAt(v.at, CodeOutOfRange, field, "is "+v.describe()+", not a time between 2000 and 2100", instantHint)
	}
	return ms, nil
}

// unitHint names the unit in which a number would be a time of this century.
func unitHint(n any) string {
	var f float64
	switch n := n.(type) {
	case int64:
		f = float64(n)
	case uint64:
		f = float64(n)
	case float64:
		f = n
	}
	for _, u := range []struct {
		name  string
		perMs float64
		fix   string
	}{
		{"seconds", 1e-3, "multiply by 1000"},
		{"microseconds", 1e3, "divide by 1000"},
		{"nanoseconds", 1e6, "divide by 1000000"},
	} {
		if ms := f / u.perMs; ms >= minInstant && ms < maxInstant {
			return "this looks like " + u.name + ": " + u.fix
		}
	}
	return instantHint
}
