package wire

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// ArgError says which argument is wrong, why, and what to write instead.
type ArgError struct {
	Field   string // as the caller wrote it, for example "level"; empty for the whole
	Problem string
	Hint    string // may be empty
}

func (e *ArgError) Error() string {
	field := e.Field
	if field == "" {
		return e.Problem
	}
	if checkName("argument", field, len(field)) != nil {
		field = strconv.Quote(field) // a name of the caller's own making
	}
	s := fmt.Sprintf("args.%s: %s", field, e.Problem)
	if e.Hint != "" {
		s += "; " + e.Hint
	}
	return s
}

// Argument is one argument of an intent, as everybody may know it.
type Argument struct {
	// Name is how it is written; a duration may also come as a number of milliseconds,
	// under Canonical.
	Name string
	// Text says what it means, Accepted which values it may have, for people.
	Text, Accepted string
	// Canonical is its name in the canonical form, and Becomes what it is there, for
	// people.
	Canonical, Becomes string
	Optional           bool
	// Lasts says that the execution takes as long as it says.
	Lasts bool
	// Example is a value as a person would write it. It is not the one that is meant
	// when the argument is left out.
	Example any
}

// Names are those under which it may come.
func (a Argument) Names() []string {
	if a.Name == a.Canonical {
		return []string{a.Name}
	}
	return []string{a.Name, a.Canonical}
}

// argument is one argument of an intent whose arguments have the type A.
type argument[A any] struct {
	Argument
	// read takes it from the map into its field, or refuses it.
	read func(m map[string]any, a *A) error
	// value is its canonical value, nil if it is left out there.
	value func(a *A) any
	// means says what it means for lines and time; nil for nothing.
	means func(a *A, act *Act)
}

// pin is the name of the pin that the intent is for. The others are made alike: each
// takes the field that it fills in.
func pin[A any](text, example string, field func(*A) *string) argument[A] {
	return argument[A]{
		Argument: Argument{Name: "pin", Text: text, Accepted: "a name, never a number", Canonical: "pin", Becomes: "the name", Example: example},
		read: func(m map[string]any, a *A) (err error) {
			*field(a), err = readPin(m)
			return err
		},
		value: func(a *A) any { return *field(a) },
		means: func(a *A, act *Act) { act.Pins = []string{*field(a)} },
	}
}

// pinOrAll is a pin, or all outputs with a safe level if it is left out.
func pinOrAll[A any](text, example string, field func(*A) *string) argument[A] {
	arg := pin(text, example, field)
	arg.Optional = true
	arg.Accepted += "; all outputs with a safe level if it is left out"
	arg.read = func(m map[string]any, a *A) (err error) {
		if _, ok := m["pin"]; ok {
			*field(a), err = readPin(m)
		}
		return err
	}
	arg.value = func(a *A) any {
		if *field(a) == "" {
			return nil
		}
		return *field(a)
	}
	arg.means = func(a *A, act *Act) {
		if *field(a) != "" {
			act.Pins = []string{*field(a)}
		}
	}
	return arg
}

func readPin(m map[string]any) (string, error) {
	v, ok := m["pin"]
	if !ok {
		return "", &ArgError{"pin", "is missing", `write for example "pin": "GPIO17"`}
	}
	s, ok := v.(string)
	if !ok {
		return "", &ArgError{"pin", "is " + describe(v) + ", not a name", fmt.Sprintf(`pins are named, never numbered: write for example "GPIO%v"`, pinExample(v))}
	}
	if err := CheckPin(s); err != nil {
		return "", &ArgError{"pin", err.Error(), `write for example "pin": "GPIO17"`}
	}
	return s, nil
}

func pinExample(v any) any {
	switch v := v.(type) {
	case int64:
		if v >= 0 {
			return v
		}
	case uint64:
		return v
	}
	return 17
}

// level is what the intent sets its pin to first. SCADA tools spell it as 0/1,
// true/false, a number with a fraction of zero, either in quotes, or a word; all of
// them are accepted and mean the same. Zero and false are values, an empty string and
// null are not.
func level[A any](text string, field func(*A) *bool) argument[A] {
	const hint = `write 1 or 0, true or false, "on" or "off", "high" or "low"`
	return argument[A]{
		Argument: Argument{Name: "level", Text: text, Canonical: "level", Becomes: "0 or 1", Example: "on",
			Accepted: "`0`/`1`, `true`/`false`, `\"on\"`/`\"off\"`, `\"high\"`/`\"low\"` in any case"},
		read: func(m map[string]any, a *A) error {
			v, ok := m["level"]
			if !ok {
				return &ArgError{"level", "is missing", hint}
			}
			if *field(a), ok = parseLevel(v); !ok {
				return &ArgError{"level", "is " + describe(v), hint}
			}
			return nil
		},
		value: func(a *A) any {
			if *field(a) {
				return uint64(1)
			}
			return uint64(0)
		},
		means: func(a *A, act *Act) { act.Sets, act.Level = true, *field(a) },
	}
}

// levelOrHigh is a level that is high if it is left out.
func levelOrHigh[A any](text string, field func(*A) *bool) argument[A] {
	arg := level(text, field)
	arg.Optional, arg.Example = true, "off"
	arg.Accepted += "; 1 if it is left out"
	given := arg.read
	arg.read = func(m map[string]any, a *A) error {
		if _, ok := m["level"]; !ok {
			*field(a) = true
			return nil
		}
		return given(m, a)
	}
	return arg
}

func parseLevel(v any) (level, ok bool) {
	switch v := unquote(v).(type) {
	case bool:
		return v, true
	case int64:
		return v == 1, v == 0 || v == 1
	case uint64:
		return v == 1, v == 0 || v == 1
	case float64:
		return v == 1, v == 0 || v == 1
	case string:
		switch strings.ToLower(v) {
		case "true", "on", "high":
			return true, true
		case "false", "off", "low":
			return false, true
		}
	}
	return false, false
}

// unquote reads a number that a publisher has put in quotes (A3): decimal digits
// with an optional minus sign and fraction, nothing around them. It means the
// same as the bare number, in every argument that takes one. Other values are returned as they
// are.
func unquote(v any) any {
	s, ok := v.(string)
	if !ok || !decimal(s) {
		return v
	}
	if n, err := strconv.ParseInt(s, 10, 64); err == nil {
		return n
	}
	if f, err := strconv.ParseFloat(s, 64); err == nil {
		return f
	}
	return v
}

func decimal(s string) bool {
	const most = 20 // digits of a 64-bit number with its sign
	if len(s) > most {
		return false
	}
	whole, fraction, point := strings.Cut(strings.TrimPrefix(s, "-"), ".")
	digits := func(s string) bool { return s != "" && strings.Trim(s, "0123456789") == "" }
	return digits(whole) && (!point || digits(fraction))
}

func wholeNumber(v any) (int64, bool) {
	switch v := v.(type) {
	case int64:
		return v, true
	case uint64:
		return int64(v), v <= math.MaxInt64
	case float64:
		if v == math.Trunc(v) && math.Abs(v) < 1<<53 {
			return int64(v), true
		}
	}
	return 0, false
}

// describe names a value for an error message, without repeating long text.
func describe(v any) string {
	switch v := v.(type) {
	case nil:
		return "null"
	case string:
		if v == "" {
			return "an empty string"
		}
		return fmt.Sprintf("the string %q", clip(v))
	case bool, int64, uint64, float64:
		return fmt.Sprintf("%v", v)
	case []any:
		return "a list"
	case map[string]any:
		return "an object"
	}
	return fmt.Sprintf("a %T", v)
}
