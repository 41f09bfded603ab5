package wire

// IntentRelease ends the hold of a gpio.safe.
const IntentRelease = "gpio.release"

// GPIORelease are the arguments of gpio.release: what gpio.safe holds may be set
// again. It moves nothing. Without a pin it is for all outputs.
type GPIORelease struct{ Pin string }

// Map implements Args.
func (a GPIORelease) Map() map[string]any { return gpioRelease.canonical(a) }

// It moves nothing and waits for no line, but it has a number all the same: a hold that
// is younger than it (Order, or Seq) stays, and it ends superseded.
var gpioRelease = declare(IntentRelease, "let outputs that gpio.safe holds be set again",
	Traits{Still: true, Holds: HoldsNothing, Repeatable: true, Release: true},
	pinOrAll("name of the output", "GPIO17", func(a *GPIORelease) *string { return &a.Pin }))
