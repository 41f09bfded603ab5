// Package round is the agent's loop without its goroutines: how inputs become
// one Output, and in which order that Output is carried out. The agent's loop and
// the simulator of whole sites both run it, so that what is proved there is what
// runs here.
//
//	out := round.Collect(core, now, first, next)
//	late, err := performer.Perform(out)
//	if len(late) > 0 { the next input is executor.Unstarted{late} }
//
// The order is the promise: what the core wrote down is durable before anything
// starts, stops or is told, on either path. The one exception is what is towards
// safe (Output.Urgent): it is driven first, whatever the disk does (docs/safety.md
// 5). Links is what the loop may learn late: how long the gateway has been away. After an
// error nothing more may be performed: the process ends and recovers by
// reading its journal.
package round
