package wire

import "time"

// IntentGPIOWrite sets an output, for good or for a time.
const IntentGPIOWrite = "gpio.write"

// GPIOWrite are the arguments of gpio.write.
type GPIOWrite struct {
	Pin   string
	Level bool // true is high
	// MaxOn makes the write a lease: after this time the agent sets the pin to its
	// safe level by itself (C13). Whole milliseconds, MinLease to MaxLease; 0 for
	// what the pin map says.
	MaxOn time.Duration
}

// Map implements Args.
func (a GPIOWrite) Map() map[string]any { return gpioWrite.canonical(a) }

var gpioWrite = declare(IntentGPIOWrite, "set an output",
	Traits{Holds: HoldsPins, Repeatable: true, Leases: true, Undo: UndoLevel},
	pin("name of the pin", "GPIO17", func(a *GPIOWrite) *string { return &a.Pin }),
	level("what the output is set to", func(a *GPIOWrite) *bool { return &a.Level }),
	maxOn(func(a *GPIOWrite) *time.Duration { return &a.MaxOn }))
