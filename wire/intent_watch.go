package wire

import (
	"strings"
	"time"
)

// IntentGPIOWatch reports the edges of an input for a time.
const IntentGPIOWatch = "gpio.watch"

// MinWatch and MaxWatch bound for of a watch: an instruction lasts a day at most.
// MinEvery and MaxEvery bound how often it reports.
const (
	MinWatch     = 100 * time.Millisecond
	MaxWatch     = 24 * time.Hour
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
func (a GPIOWatch) Map() map[string]any { return gpioWatch.canonical(a) }

var gpioWatch = declare(IntentGPIOWatch, "report the edges of an input for a time",
	Traits{Still: true, Holds: HoldsNothing, Repeatable: true, Watch: true},
	pin("name of the pin", "GPIO4", func(a *GPIOWatch) *string { return &a.Pin }),
	edge("which edges", func(a *GPIOWatch) *Edge { return &a.Edge }),
	lasts("how long", span{name: "for", example: "10m", what: "a watch lasts", least: MinWatch, most: MaxWatch},
		func(a *GPIOWatch) *time.Duration { return &a.For }),
	spanOf("time between two reports", span{name: "every", example: "2s", what: "a watch reports every", least: MinEvery, most: MaxEvery,
		optional: true, absent: DefaultEvery}, func(a *GPIOWatch) *time.Duration { return &a.Every }))

// edge is which edges of an input are meant.
func edge[A any](text string, field func(*A) *Edge) argument[A] {
	return argument[A]{
		Argument: Argument{Name: "edge", Text: text, Accepted: "`\"rising\"`, `\"falling\"` or `\"both\"`, which is also what its absence means",
			Canonical: "edge", Becomes: "the word", Optional: true, Example: "rising"},
		read: func(m map[string]any, a *A) error {
			v, ok := m["edge"]
			if !ok {
				return nil
			}
			s, isText := v.(string)
			for _, e := range []Edge{EdgeBoth, EdgeRising, EdgeFalling} {
				if isText && strings.EqualFold(s, e.String()) {
					*field(a) = e
					return nil
				}
			}
			return &ArgError{"edge", "is " + describe(v), `write "rising", "falling" or "both"`}
		},
		value: func(a *A) any { return field(a).String() },
	}
}
