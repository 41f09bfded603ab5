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
// Cancelling takes back what no agent can have done: then it is CANCELLED at
// once. Everything else becomes CANCELLED when the agent says that it stopped, and
// a retry after an unknown outcome goes back to TIMEOUT.
//
// # Order at a line
//
// Every unfinished instruction that may move something stands in the list of each of
// its lines, by its number (docs/safety.md). Only the first of a list that is not past
// is ever in the queue of its node: past is what the agent has confirmed (what has
// ended, for an agent that follows no rules), what was withdrawn, and what has ended in
// whatever way. Priority orders lines against each other: what waits lifts what it
// waits for. What holds its line without a word ends after wire.OrderWait.
//
// Towards safe passes by all that: it is not in the queue, has no window and no budget,
// is handed out in any doubt, and withdraws what is older on its lines when it is
// submitted, for good. An agent's "superseded" is believed only if the engine knows the
// newer one itself.
//
// Flow control counts what is inside an agent: sent, not ended, and not known to run.
//
// # After the end
//
// A lease is an output that a finished instruction has left on for a limited time
// (C13). The board ends it; its event adds to the timeline and to
// Instruction.Lease, and changes no state. Progress of a running instruction is
// listed up to a limit and counted beyond it.
//
// # What the engine relies on
//
// An agent executes a token at most once, as long as it has its journal. When it
// has lost that, its hello names a new incarnation, and nothing is sent again
// under a token that the old journal knew. A message that was on its way before
// that hello may still carry one: an agent takes no instruction before the welcome
// of its session, and a node's messages keep their order.
//
// # Memory
//
// Only unfinished tasks live in memory. When an input names something else,
// Wants says what to load from the log, and Adopt takes it in.
package engine
