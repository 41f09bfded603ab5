// Package gpio moves the pins of a board, real or simulated.
//
// # Idea
//
// A Board knows pins by name and opens them. One goroutine, the Owner, is the
// only one that touches open pins; everybody else asks it:
//
//	board, err := gpio.OpenBoard(ctx, gpio.BoardChardev, gpio.BoardOptions{Log: log})
//	owner, err := gpio.NewOwner(board, pins)        // every fault of the pin map at once
//	go owner.Run(ctx)                               // waited for by the caller
//	<-owner.Started()                               // the pins are open, and safe
//	err = owner.Set(ctx, "valve-1", gpio.High, token) // the cause goes into the trace
//	err = owner.Lease(ctx, "valve-1", gpio.High, 10*time.Minute, token)
//	level, err := owner.Get(ctx, "door")
//	edges, err := owner.Watch(ctx, "door")
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
//     panics, whenever Safe is called, at the end of a lease, and on Loss if it is
//     configured so. A fall-back that fails is tried again until it works. Pins
//     without one hold their last level while the process lives. What they do
//     afterwards is the kernel's business; where it matters, fit a pull resistor.
//   - Leases are kept by Run itself, and it waits for nobody: not for whoever asks,
//     nor for those who take the ends of leases or the edges.
//   - A request that nobody has taken when its context ends is not carried out,
//     and says so. One that was taken but did not come back in time is ErrUnknown.
//
// # A pin's fall-back
//
//	        Set, Lease (hold > 0 or max_on)
//	safe ───────────────────────────────────▶ due at its time
//	 ▲                                          │  │ ▲
//	 │  Set to the safe level, Set without a    │  │ │ Set, Lease: replaced
//	 │  limit: replaced                         │  └─┘
//	 ├──────────────────────────────────────────┤
//	 │  its time, Loss, stop: driven            │
//	 └──────────────────────────────────────────┤
//	                     driving fails: failed, │
//	                     again after 200 ms     ▼
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
