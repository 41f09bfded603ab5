// Package lines decides which level an output of a board may have, and when it goes
// back to its safe level by itself. It is the last authority over the pins: whatever
// asks, it is asked last, right before a line moves (docs/safety.md).
//
// It is a pure core. Step takes the time and one input and returns one Output; it
// starts no goroutine, reads no clock and touches no line. fieldagent/gpio is its
// shell on a board; a simulator can be another one.
//
//	c := lines.New(lines.Config{Autonomy: time.Minute, Lines: all}, now)
//	out := lines.Play(c, now, in, drive)   // drive moves one line and says what became of it
//
// Play is the loop that a shell must keep to: what an Output drives is driven at
// once, one after the other, and each outcome goes back into the core before any
// other input.
//
// Everything is kept by line and not by name: two names may change their lines while
// something runs, and what runs stays at its line.
//
// # A line
//
//	                Want away from safe                     at its time
//	        ┌──────────────────────────────▶ set ──┬──────────────────────────┐
//	        │   plain, or until max_on, or a lease, │ or a pulse               │
//	        │                                       │                          ▼
//	safe ◀──┤◀── Want towards safe: replaced ───────┤◀── driven ───────── falling
//	 │  ▲   │                                       │                     │    ▲
//	 │  │   │◀── loss, LOCAL, stop, reload, cancel ─┘     driving failed: │    │
//	 │  │   │                                             told, again     └────┘
//	 │  │   └ left to the hand: LOCAL, and somebody has   after 200 ms
//	 │  │     moved the line
//	 │  └─ Release
//	 ▼
//	held: every level but the safe one is refused
//
// What an instruction has set and the board has ended by itself is told once, with the
// cause that the instruction gave (End): a lease, a pulse, and also a plain level away
// from safe. A level that no instruction has set is not told: the levels say it.
//
// A pulse goes to a level and, at its time, to the other one. Whatever else ends it
// ends it at the safe level, so that a pulse towards the safe level ("off for a
// minute") switches nothing on then. On an output without a safe level it ends at its
// off level always, and also at the next start.
//
// # The whole
//
//	       Heard                        Hands: on
//	  ┌──────────────┐             ┌──────────────────┐
//	  │  Autonomy    ▼             │                  ▼
//	lost ◀─────── reached        free ◀───────── LOCAL (on, or unreadable)
//
// Lost: outputs with on_loss have their safe level, whoever asks for another. It is a
// state and not an event, so that what is under way can't undo it, and it needs
// nobody: a dead-man timer that Heard feeds.
//
// LOCAL refuses whatever is commanded, "off" included: somebody works there. When it
// is thrown, leases and pulses are driven safe once, if the line still has the level
// that was commanded, and otherwise left to the hand. From then on the core moves
// nothing by itself but at a stop. A switch that can't be read refuses what leads away
// from safe, and nothing else.
//
// Stopping: everything is driven safe, and nothing leaves that level any more.
//
// # Order
//
// A Want carries the order number of its instruction. The highest that has begun on a
// line is its mark, and a lower one is refused, whenever it comes; an equal one is the
// same instruction again. The core's own acts have no number and leave no mark.
package lines
