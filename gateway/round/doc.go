// Package round is the gateway's loop without its goroutines: how inputs go into
// the engine, how what follows is written, and that nothing leaves before it is
// on disk. The gateway's loop and the simulator of whole sites both run it, so
// that what is proved there is what runs here.
//
//	for in := range waiting {
//		err = round.Step(eng, log, now, in)
//	}
//	job, deadline, err := round.Flush(eng, log, now)
//	...
//	err = job.Settle(deliver) // waits for the disk, then lets the effects out
//
// # Rules
//
//   - Only what is towards safe may leave before its record, and only as Ahead says:
//     under numbers that are reserved on disk. While the disk takes no more rounds, the
//     loop goes on with at most Held inputs that lead to records, and takes no more.
//   - What the engine wants for an input is looked up before the input is taken.
//   - One round is one atomic batch.
//   - Jobs are settled in the order of their Flush. After one that did not reach
//     the disk nothing may be settled any more: the process ends.
package round
