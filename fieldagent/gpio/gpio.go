package gpio

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"
)

// Level is the level of a pin: Low or High. In JSON it is 0 or 1.
type Level bool

// The two levels.
const (
	Low  Level = false
	High Level = true
)

// String returns "low" or "high".
func (l Level) String() string {
	if l {
		return "high"
	}
	return "low"
}

// MarshalJSON writes 0 or 1.
func (l Level) MarshalJSON() ([]byte, error) {
	if l {
		return []byte("1"), nil
	}
	return []byte("0"), nil
}

// UnmarshalJSON reads 0 or 1 and nothing else.
func (l *Level) UnmarshalJSON(b []byte) error {
	switch string(b) {
	case "0":
		*l = Low
	case "1":
		*l = High
	default:
		return fmt.Errorf("level %.20q is neither 0 nor 1", b)
	}
	return nil
}

// Mode is what a pin is used as.
type Mode uint8

// The modes.
const (
	Output Mode = 1 // set by us; Get returns the commanded level
	Input  Mode = 2 // set by the world; Get reads it
)

// String returns "output" or "input".
func (m Mode) String() string {
	switch m {
	case Output:
		return "output"
	case Input:
		return "input"
	}
	return fmt.Sprintf("mode %d", uint8(m))
}

// Board is a set of pins with names. Its methods are called by one goroutine at
// a time, except Names and Resolve, which are safe anywhere.
type Board interface {
	// Names lists the pins in their natural order, each once.
	Names() []string
	// Resolve returns the one name under which a pin is opened, or an
	// ErrNoSuchPin that says which pins there are.
	Resolve(name string) (string, error)
	// Open takes a pin, by its resolved name. It moves nothing.
	Open(name string, mode Mode) (Pin, error)
}

// Pin is an open pin.
type Pin interface {
	// Set drives an output. cause says why, for the trace: a token or a word.
	Set(level Level, cause string) error
	// Get returns the commanded level of an output and reads an input. An output
	// that was never set has none: ErrNoLevel.
	Get() (Level, error)
	// Close gives the pin back. It does not change its level on purpose.
	Close() error
}

// Errors a caller branches on.
var (
	ErrNoSuchPin    = errors.New("no such pin")
	ErrNotPermitted = errors.New("no permission for the pin")
	ErrBusy         = errors.New("pin in use")
	ErrUnsupported  = errors.New("the pin can't do this")
	ErrNoLevel      = errors.New("the output has not been set yet")
	ErrIO           = errors.New("the pin reports an error")
	// ErrNotDone means that the request was given up before anything happened.
	ErrNotDone = errors.New("nothing was done")
	// ErrUnknown means that the request was begun and did not come back: the pin
	// may have changed or not.
	ErrUnknown = errors.New("it is not known whether the pin has changed")
)

// The back ends that OpenBoard knows.
const (
	BoardSim    = "sim"
	BoardPeriph = "periph"
)

// BoardOptions are the settings of all back ends.
type BoardOptions struct {
	Log *slog.Logger // must not be nil
	Sim SimOptions
}

// OpenBoard opens the back end with this name. Nothing is guessed: an empty or
// unknown name is an error, and so is a board without pins.
func OpenBoard(kind string, o BoardOptions) (Board, error) {
	switch kind {
	case BoardSim:
		return NewSim(o.Sim)
	case BoardPeriph:
		return OpenPeriph(o.Log)
	}
	return nil, fmt.Errorf("gpio back end %q is not known: say %q for simulated pins or %q for the pins of this board",
		kind, BoardSim, BoardPeriph)
}

// maxListed is how many names an error lists: enough for a 40-pin header.
const maxListed = 40

// noSuchPin explains a name that was not found.
func noSuchPin(name string, names []string) error {
	if name != "" && strings.Trim(name, "0123456789") == "" {
		return fmt.Errorf("%w %q: a bare number means different pins on different kernels: use a name, there are %s", ErrNoSuchPin, name, list(names))
	}
	for _, n := range names {
		if strings.EqualFold(n, name) {
			return fmt.Errorf("%w %q: did you mean %q?", ErrNoSuchPin, name, n)
		}
	}
	return fmt.Errorf("%w %q: there are %s", ErrNoSuchPin, name, list(names))
}

func list(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	if len(names) <= maxListed {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:maxListed], ", "), len(names)-maxListed)
}
