// Package fieldagent is the agent that runs on a board: it takes instructions
// from the gateway, executes them once, and tells what came of them.
//
// It is the shell around the core in executor. One goroutine, the loop, owns the
// core and the journal. Everything that happens reaches it as an input:
//
//	primary link ---+                          +--> journal (append, sync)
//	narrowband   ---+--> inputs --> [ core ] --+--> work (one goroutine each)
//	work results ---+                          +--> primary link, narrowband
//	timer, stop  ---+
//
// The rules:
//
//   - The loop takes all inputs that wait, lets the core decide on each, writes
//     the records of all of them with one sync, and only then acts.
//   - The loop never waits for the network. What a link can't take is lost and
//     sent again, because the core keeps it until it is acknowledged.
//   - If the journal fails the process ends with a message. The next start
//     recovers by reading.
//   - A stop (SIGTERM) gives waiting work back, lets running work end or aborts
//     it, says goodbye, and takes at most a few seconds.
package fieldagent
