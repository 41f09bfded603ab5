package gpio

import (
	"errors"
	"fmt"
	"time"
)

// Bias is the pull resistor of a line.
type Bias uint8

// The biases. AsIs leaves what the board has set up.
const (
	AsIs Bias = iota
	NoPull
	PullUp
	PullDown
)

// biases are the words of the pin map, by Bias.
var biases = [...]string{"as-is", "disabled", "pull-up", "pull-down"}

// String returns the word of the pin map.
func (b Bias) String() string {
	if int(b) < len(biases) {
		return biases[b]
	}
	return fmt.Sprintf("bias %d", uint8(b))
}

// ParseBias is the reverse of String.
func ParseBias(s string) (Bias, error) {
	for i, word := range biases {
		if s == word {
			return Bias(i), nil
		}
	}
	return AsIs, fmt.Errorf("%.40q is none of as-is, disabled, pull-up, pull-down", s)
}

// Loss is what happens to an output when the gateway is lost for longer than the
// agent may work alone.
type Loss uint8

// What may happen: the level is held, or goes to the safe one.
const (
	Hold Loss = iota
	FallSafe
)

// String returns the word of the pin map.
func (l Loss) String() string {
	switch l {
	case Hold:
		return "hold"
	case FallSafe:
		return "safe"
	}
	return fmt.Sprintf("loss %d", uint8(l))
}

// ParseLoss is the reverse of String.
func ParseLoss(s string) (Loss, error) {
	switch s {
	case "hold":
		return Hold, nil
	case "safe":
		return FallSafe, nil
	}
	return Hold, fmt.Errorf("%.40q is neither hold nor safe", s)
}

// PinConfig is a line of the pin map. Levels are logical: High is active.
type PinConfig struct {
	Name string // what instructions use
	// Line is CHIP LABEL:OFFSET or the line's own name, empty for Name.
	Line      string
	Mode      Mode // Output or Input
	ActiveLow bool // the line is low when the pin is High
	Bias      Bias
	// Safe is the level to which an output is driven when the agent starts, stops
	// or panics, when it is told to, and at the end of a lease; nil for none.
	Safe *Level
	// MaxOn is the longest time that an output may have another level than the
	// safe one, 0 for no limit. The owner ends it by itself, whoever set it.
	MaxOn  time.Duration
	OnLoss Loss
	// Debounce is how long an input must be quiet before a change counts.
	Debounce time.Duration
}

// Limits of a pin map.
const (
	// MaxPins is how many pins may be mapped: more than any board of this kind has
	// lines, and few enough to drive all of them safe within a second.
	MaxPins = 256
	// MaxDebounce is the longest debounce time; what moves more slowly than this
	// is no bouncing contact.
	MaxDebounce = 10 * time.Second
	// MaxHold is the longest lease and the largest max_on.
	MaxHold = 31 * 24 * time.Hour
	// MinHold is the shortest lease; pulses may be shorter.
	MinHold = 10 * time.Millisecond
)

// line returns the name to resolve at the board.
func (c PinConfig) line() string {
	if c.Line == "" {
		return c.Name
	}
	return c.Line
}

// Check returns everything that is wrong with the line in itself.
func (c PinConfig) Check() error {
	var errs []error
	bad := func(format string, args ...any) {
		errs = append(errs, fmt.Errorf("pin %q: "+format, append([]any{c.Name}, args...)...))
	}
	if c.Name == "" {
		bad("it needs a name")
	}
	if c.Mode != Output && c.Mode != Input {
		bad("it must be an output or an input")
	}
	if int(c.Bias) >= len(biases) {
		bad("%v is not known", c.Bias)
	}
	if c.Mode == Input {
		if c.Safe != nil {
			bad("an input can't have a safe level")
		}
		if c.MaxOn != 0 {
			bad("an input can't have max_on")
		}
		if c.OnLoss != Hold {
			bad("an input can't have on_loss")
		}
	} else if c.Debounce != 0 {
		bad("only an input can be debounced")
	}
	if c.Mode == Output && c.Safe == nil && (c.MaxOn != 0 || c.OnLoss != Hold) {
		bad("max_on and on_loss need a safe level: write safe: 0 or safe: 1")
	}
	if c.MaxOn != 0 && (c.MaxOn < MinHold || c.MaxOn > MaxHold) {
		bad("max_on %v is out of range: write %v to %v", c.MaxOn, MinHold, MaxHold)
	}
	if c.Debounce < 0 || c.Debounce > MaxDebounce || c.Debounce%time.Microsecond != 0 {
		bad("debounce %v is out of range: write whole microseconds up to %v", c.Debounce, MaxDebounce)
	}
	return errors.Join(errs...)
}

// Request is how the pin is opened: with its safe level, if it has one.
func (c PinConfig) Request(cause string) Request {
	return Request{Mode: c.Mode, ActiveLow: c.ActiveLow, Bias: c.Bias, Debounce: c.Debounce,
		Initial: c.Safe, Cause: cause, Consumer: Consumer}
}

// Consumer is the name under which our lines are listed by tools like gpioinfo.
const Consumer = "apollo-agent"

// sameLine reports whether two configurations open a line in the same way.
func (c PinConfig) sameLine(d PinConfig) bool {
	return c.Mode == d.Mode && c.ActiveLow == d.ActiveLow && c.Bias == d.Bias && c.Debounce == d.Debounce
}
