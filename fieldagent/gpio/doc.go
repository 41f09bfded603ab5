// Package gpio moves the pins of a board, real or simulated.
//
// # Idea
//
// A Board knows pins by name and opens them. One goroutine, the Owner, is the
// only one that touches open pins; everybody else asks it:
//
//	board, err := gpio.OpenBoard(ctx, gpio.BoardChardev, gpio.BoardOptions{Log: log})
//	owner, err := gpio.NewOwner(board, pins, opts)  // every fault of the pin map at once
//	go owner.Run(ctx)                               // waited for by the caller
//	<-owner.Started()                               // the pins are open, and safe
//	err = owner.Do(ctx, gpio.Drive{Pin: "valve-1", Level: gpio.High, For: 10 * time.Minute, Cause: token})
//	end, err := owner.Pulse(ctx, gpio.Drive{Pin: "horn", Level: gpio.High, Cause: token}, time.Second)
//	done, err := owner.Safe(ctx, gpio.Safe{Cause: token, Hold: true})
//	level, err := owner.Get(ctx, "door")
//	edges, err := owner.Watch(ctx, "door")
//
// What may be driven, and what goes back by itself, is decided by package lines; the
// Owner opens, drives and reads pins, and keeps the time. Its files: owner.go (the
// goroutine), do.go (what can be asked), step.go (what the core decides is done),
// notice.go (what it is told and nobody waits for), local.go (the LOCAL switch),
// reload.go, view.go (what others may know).
//
// # Back ends
//
// They are named and never fall back to another. "chardev" (chardev*.go, abi.go,
// kernel*.go, explain.go) speaks version 2 of the kernel's character device
// interface. "periph" (periph*.go) is for memory-mapped pins. "sim" (sim*.go)
// needs no hardware. What a back end can do beyond setting and getting it says by
// the methods of its pins: ActualPin, EdgePin.
//
// # Rules
//
//   - A name means one line or is refused. Several names of one line (GPIO17,
//     P1_11, pinctrl-bcm2835:17) are resolved to one, its key, so that it is opened
//     once. Numbers that change with the kernel are refused.
//   - Levels are logical: High is active. Only the line itself knows better.
//   - With a pin map only its pins may be used, by the names that it gives. They
//     are all opened at the start, and held.
//   - A first level comes together with the direction. Opening a pin without one
//     moves nothing, and a pin that no configuration speaks of is only looked at.
//   - The level of an output is the one that was commanded last. Reading it back
//     serves to notice other hands, where that changes nothing, and never to fight
//     them.
//   - A pin with a safe level is driven to it when the owner starts, stops or
//     panics, at the end of a lease, and when the gateway is lost if it is configured
//     so (Heard). A fall-back that fails is tried again until it works. Pins
//     without one hold their last level while the process lives, and a pulse on them
//     ends at its off level. What they do afterwards is the kernel's business; where
//     it matters, fit a pull resistor.
//   - Leases and pulses are kept by Run itself, and it waits for nobody: not for
//     whoever asks, nor for those who take the ends or the edges. What drives safe
//     levels is served before other requests.
//   - A line that somebody else has is not fought for: it is Missing, and taken at its
//     safe level when it is free.
//   - The LOCAL switch, the limits of a request (Drive.Check) and its number are
//     looked at right before the pin moves.
//   - A request that nobody has taken when its context ends is not carried out,
//     and says so. One that was taken but did not come back in time is ErrUnknown.
//
// # Simulated board
//
// The simulated board writes every Set to a trace file, one JSON line each,
// before Set returns:
//
//	{"t":1767225600000000000,"pin":"GPIO17","level":1,"cause":"0-12-9f3a"}
//
// so that a test can count at the pin what a killed process really did
// (ReadTrace). A second file holds the levels of the lines as one JSON object,
// replaced by rename, for other processes to look at (ReadLevels); a board that
// starts takes its levels from it, as real lines keep theirs.
package gpio
