package wire

import "time"

// IntentGPIOPulse sets an output for a time, timed by the agent.
const IntentGPIOPulse = "gpio.pulse"

// MinPulse and MaxPulse bound a pulse; an hour is longer than anything that should be
// called one.
const (
	MinPulse = time.Millisecond
	MaxPulse = time.Hour
)

// GPIOPulse are the arguments of gpio.pulse: the pin goes to Level for Width and
// then to the other level.
type GPIOPulse struct {
	Pin   string
	Level bool
	Width time.Duration // whole milliseconds, MinPulse to MaxPulse
}

// Map implements Args.
func (a GPIOPulse) Map() map[string]any { return gpioPulse.canonical(a) }

// A pulse whose own end leads away from the safe level leaves the output there.
var gpioPulse = declare(IntentGPIOPulse, "set an output for a time, timed by the agent",
	Traits{Holds: HoldsPins, Pulse: true, Leases: true},
	pin("name of the pin", "GPIO17", func(a *GPIOPulse) *string { return &a.Pin }),
	levelOrHigh("level of the pulse", func(a *GPIOPulse) *bool { return &a.Level }),
	lasts("how long the pulse lasts", span{name: "width", example: "500ms", what: "a pulse lasts", least: MinPulse, most: MaxPulse},
		func(a *GPIOPulse) *time.Duration { return &a.Width }))
