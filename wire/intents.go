package wire

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// The built-in intents (D2). An intent says what, not how. Others may exist at
// an agent; the gateway passes them on unread.
const (
	IntentGPIOWrite      = "gpio.write"      // set an output
	IntentGPIORead       = "gpio.read"       // read a pin
	IntentGPIOPulse      = "gpio.pulse"      // set an output for a time, timed by the agent
	IntentGPIOWatch      = "gpio.watch"      // report the edges of an input for a time
	IntentCollectMetrics = "collect_metrics" // report the board's health figures
	IntentReboot         = "reboot"          // boot the board again, once
	IntentSafe           = "gpio.safe"       // drive outputs to their safe levels, and hold them there
	IntentRelease        = "gpio.release"    // end that hold
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

// Args is the checked argument set of a built-in intent: GPIOWrite, GPIORead,
// GPIOPulse, GPIOWatch, GPIOSafe, GPIORelease, CollectMetrics or Reboot.
type Args interface {
	// Map is the canonical form, which ParseArgs reads back to the same value.
	Map() map[string]any
}

// GPIOWrite are the arguments of gpio.write.
type GPIOWrite struct {
	Pin   string
	Level bool // true is high
	// MaxOn makes the write a lease: after this time the agent sets the pin to its
	// safe level by itself (C13). Whole milliseconds, MinLease to MaxLease; 0 for
	// what the pin map says.
	MaxOn time.Duration
}

// GPIORead are the arguments of gpio.read.
type GPIORead struct{ Pin string }

// GPIOPulse are the arguments of gpio.pulse: the pin goes to Level for Width and
// then to the other level.
type GPIOPulse struct {
	Pin   string
	Level bool
	Width time.Duration // whole milliseconds, MinPulse to MaxPulse
}

// GPIOSafe are the arguments of gpio.safe: the pin goes to its safe level, and stays
// there until a gpio.release. Without a pin it is for all outputs with a safe level.
type GPIOSafe struct{ Pin string }

// GPIORelease are the arguments of gpio.release: what gpio.safe holds may be set
// again. It moves nothing. Without a pin it is for all outputs.
type GPIORelease struct{ Pin string }

// CollectMetrics are the arguments of collect_metrics: none.
type CollectMetrics struct{}

// Reboot are the arguments of reboot: none.
type Reboot struct{}

func levelNumber(high bool) uint64 {
	if high {
		return 1
	}
	return 0
}

// Map implements Args.
func (a GPIOWrite) Map() map[string]any {
	m := map[string]any{"pin": a.Pin, "level": levelNumber(a.Level)}
	if a.MaxOn != 0 {
		m["max_on_ms"] = uint64(a.MaxOn.Milliseconds())
	}
	return m
}

// Map implements Args.
func (a GPIORead) Map() map[string]any { return map[string]any{"pin": a.Pin} }

// Map implements Args.
func (a GPIOPulse) Map() map[string]any {
	return map[string]any{"pin": a.Pin, "level": levelNumber(a.Level), "width_ms": uint64(a.Width.Milliseconds())}
}

func mapOfPin(pin string) map[string]any {
	if pin == "" {
		return nil
	}
	return map[string]any{"pin": pin}
}

// Map implements Args.
func (a GPIOSafe) Map() map[string]any { return mapOfPin(a.Pin) }

// Map implements Args.
func (a GPIORelease) Map() map[string]any { return mapOfPin(a.Pin) }

// Map implements Args.
func (a CollectMetrics) Map() map[string]any { return nil }

// Map implements Args.
func (a Reboot) Map() map[string]any { return nil }

func onlyArgs(intent string, m map[string]any, known ...string) error {
	var unknown []string
	for k := range m {
		if !slices.Contains(known, k) {
			unknown = append(unknown, k)
		}
	}
	if len(unknown) == 0 {
		return nil
	}
	slices.Sort(unknown)
	hint := intent + " takes no arguments"
	if len(known) > 0 {
		hint = intent + " takes " + strings.Join(known, ", ")
	}
	return &ArgError{clip(unknown[0]), "unknown argument", hint}
}

func pinArg(m map[string]any) (string, error) {
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

// levelArg reads a level. SCADA tools spell it as 0/1, true/false, a number with
// a fraction of zero, either in quotes, or a word; all of them are accepted and
// mean the same. Zero and false are values, an empty string and null are not.
func levelArg(m map[string]any, optional bool) (bool, error) {
	const hint = `write 1 or 0, true or false, "on" or "off", "high" or "low"`
	v, ok := m["level"]
	if !ok {
		if optional {
			return true, nil
		}
		return false, &ArgError{"level", "is missing", hint}
	}
	if b, ok := parseLevel(v); ok {
		return b, nil
	}
	return false, &ArgError{"level", "is " + describe(v), hint}
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
