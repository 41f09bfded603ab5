// Package engine decides what happens to tasks and instructions. It is pure: no
// clock, no goroutine, no I/O, no global randomness. The same code runs in the
// gateway and in the simulator.
//
// The caller's loop:
//
//	for in := range inputs {            // drain what is waiting
//		e.Step(now, in)                 // after Adopt for what Wants asked for
//	}
//	r := e.Ready(now)
//	commit(r.Records)                   // one atomic, fsync'd batch
//	deliver(r.Effects)                  // only after the commit
//	wakeAt(r.Deadline)
//
// The order of the fields of Ready is the order in which they must be carried
// out: nothing may leave the gateway before the record that justifies it is
// durable.
//
// # Lifecycle
//
//	PENDING    -> DISPATCHED | CANCELLED | TIMEOUT
//	DISPATCHED -> RUNNING | CANCELLED | PENDING | TIMEOUT
//	RUNNING    -> SUCCEEDED | FAILED | TIMEOUT | CANCELLED
//	FAILED     -> RETRYING
//	TIMEOUT    -> RETRYING
//	RETRYING   -> RUNNING | CANCELLED | TIMEOUT
//
// A report that skips a step is not a jump: each implied step is entered in the
// timeline and marked so. A timeout is the gateway's opinion, an agent's report
// is a fact: a late report with the current token settles a TIMEOUT.
//
// Only unfinished tasks live in memory. When an input names something else,
// Wants says what to load from the log, and Adopt takes it in.
package engine
