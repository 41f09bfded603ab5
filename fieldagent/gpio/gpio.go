package gpio

import (
	"errors"
	"fmt"
	"strings"
	"time"
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
	// Look reads a pin as it is: neither its direction nor anything else is
	// changed. It is for pins that no configuration speaks of.
	Look Mode = 3
)

// String returns "output", "input" or "look".
func (m Mode) String() string {
	switch m {
	case Output:
		return "output"
	case Input:
		return "input"
	case Look:
		return "look"
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
	// Open takes a pin, by its resolved name, for as long as it is open. An output
	// without an initial level does not move.
	Open(name string, r Request) (Pin, error)
}

// Request says how a pin is opened. The zero value of everything but Mode leaves
// the pin as it is.
type Request struct {
	Mode      Mode
	ActiveLow bool // levels are logical: High drives the line low
	Bias      Bias
	// Debounce is how long an input must be quiet before a change counts, 0 for
	// none.
	Debounce time.Duration
	// Initial is the logical level that an output has from its first moment on:
	// it is given together with the direction, so that a line that has it already
	// shows no edge. nil: opening moves nothing, and the first Set gives both.
	Initial *Level
	// Cause says why, for the trace, if there is an initial level.
	Cause string
	// Consumer is what other programs are told that holds the line.
	Consumer string
}

// Pin is an open pin. Levels are logical.
type Pin interface {
	// Set drives an output. cause says why, for the trace: a token or a word.
	Set(level Level, cause string) error
	// Get returns the commanded level of an output and reads an input. An output
	// that was never set has none: ErrNoLevel.
	Get() (Level, error)
	// Close gives the pin back. It does not change its level on purpose.
	Close() error
}

// ActualPin is a pin that can be read without changing anything, also while it is
// an output.
type ActualPin interface {
	Pin
	// Actual returns the level that the line has now.
	Actual() (Level, error)
}

// EdgePin is an input that can report its edges.
type EdgePin interface {
	Pin
	// Edges sends the edges to a channel until stop is called, which waits for the
	// sender, or until the pin breaks. Pin holds the name that the pin was opened
	// by.
	Edges(to chan<- Edge) (stop func() error, err error)
}

// Edge is one change of an input.
type Edge struct {
	Pin    string
	Level  Level         // after the change
	Kernel time.Duration // on CLOCK_MONOTONIC, taken by the kernel when it happened
	At     time.Time     // the same moment on the wall clock
	Missed uint64        // edges lost between the one before and this one

	broken error // the pin reports no edges any more
}

// Broken returns why no edges come any more, nil for an edge.
func (e Edge) Broken() error { return e.broken }

// Errors a caller branches on.
var (
	ErrNoSuchPin    = errors.New("no such pin")
	ErrNotPermitted = errors.New("no permission for the pin")
	ErrBusy         = errors.New("pin in use")
	ErrUnsupported  = errors.New("the pin can't do this")
	ErrNoLevel      = errors.New("the output has not been set yet")
	ErrIO           = errors.New("the pin reports an error")
	// ErrGone is an ErrIO of a line whose chip has disappeared.
	ErrGone = fmt.Errorf("%w: its chip is gone", ErrIO)
	// ErrNotDone means that the request was given up before anything happened.
	ErrNotDone = errors.New("nothing was done")
	// Refusals of the owner, because of what is going on at the board.
	ErrSuperseded = errors.New("something newer has begun there")
	ErrHeldSafe   = errors.New("it is held at its safe level until somebody releases it")
	ErrLocal      = errors.New("somebody works there by hand")
	ErrLost       = errors.New("the gateway is lost, and the pin has on_loss: safe")
	ErrTooLong    = errors.New("the pin map allows less time")
	ErrLate       = errors.New("its time has passed") // for Drive.Check
	ErrTimeDoubt  = errors.New("whether its time has passed is not known")
	ErrMapChanged = errors.New("its name stands for another line since then") // for Drive.Check
	// ErrUnknown means that the request was begun and did not come back: the pin
	// may have changed or not.
	ErrUnknown = errors.New("it is not known whether the pin has changed")
)

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
