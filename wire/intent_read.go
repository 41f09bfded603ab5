package wire

// IntentGPIORead reads a pin.
const IntentGPIORead = "gpio.read"

// GPIORead are the arguments of gpio.read.
type GPIORead struct{ Pin string }

// Map implements Args.
func (a GPIORead) Map() map[string]any { return gpioRead.canonical(a) }

var gpioRead = declare(IntentGPIORead, "read a pin", Traits{Still: true, Holds: HoldsPins, Repeatable: true},
	pin("name of the pin", "GPIO17", func(a *GPIORead) *string { return &a.Pin }))
