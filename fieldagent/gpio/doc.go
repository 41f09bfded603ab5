// Package gpio moves the pins of a board, real or simulated.
//
// # Idea
//
// A Board knows pins by name and opens them. One goroutine, the Owner, is the
// only one that touches open pins; everybody else asks it:
//
//	board, err := gpio.OpenBoard("periph", gpio.BoardOptions{Log: log})
//	owner, err := gpio.NewOwner(board, pins)
//	go owner.Run(ctx)                                // waited for by the caller
//	err = owner.Set(ctx, "GPIO17", gpio.High, token) // the cause goes into the trace
//	level, err := owner.Get(ctx, "GPIO17")
//
// # Rules
//
//   - The back end is named, "sim" or "periph", and never falls back to another.
//   - A name means one pin or is refused. Several names of one pin (GPIO17,
//     P1_11) are resolved to one, so that it is opened once. Bare numbers are
//     refused: what they mean changes with the kernel.
//   - An output is never read back. Its level is the one that was commanded last
//     and that we remember: with the common drivers, reading an output turns it
//     into an input.
//   - The first Set of an output gives level and direction together. Opening it
//     moves nothing. The one back end where this still clicks says so when the
//     pin is opened (see periph.go).
//   - A request that nobody has taken when its context ends is not carried out,
//     and says so. One that was taken but did not come back in time is ErrUnknown.
//   - A pin with a safe level is driven to it when the owner starts and stops and
//     whenever Safe is called. Pins without one hold their last level while the
//     process lives. What they do afterwards is the kernel's business:
//     memory-mapped pins and the simulated board keep their level, character
//     device lines are released. Where it matters, fit a pull resistor.
//
// # Simulated board
//
// The simulated board writes every Set to a trace file, one JSON line each,
// before Set returns:
//
//	{"t":1767225600000000000,"pin":"GPIO17","level":1,"cause":"0-12-9f3a"}
//
// so that a test can count at the pin what a killed process really did
// (ReadTrace). A second file holds the levels of now as one JSON object, replaced
// by rename, for other processes to look at (ReadLevels); a board that starts
// takes its levels from it, as real pins keep theirs.
package gpio
