package wire

// IntentSafe drives outputs to their safe levels, and holds them there.
const IntentSafe = "gpio.safe"

// GPIOSafe are the arguments of gpio.safe: the pin goes to its safe level, and stays
// there until a gpio.release. Without a pin it is for all outputs with a safe level.
type GPIOSafe struct{ Pin string }

// Map implements Args.
func (a GPIOSafe) Map() map[string]any { return gpioSafe.canonical(a) }

var gpioSafe = declare(IntentSafe, "drive outputs to their safe levels and hold them there",
	Traits{Holds: HoldsPins, Repeatable: true, Safe: true, Undo: UndoRelease},
	pinOrAll("name of the output", "GPIO17", func(a *GPIOSafe) *string { return &a.Pin }))
