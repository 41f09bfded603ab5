// Package explore plays whole sites in virtual time: a gateway (the real engine,
// rounds and ledger), agents (the real executor, rounds and journal), a network,
// clocks, disks and pins that misbehave on request, and clients that submit,
// repeat and cancel. One seed decides everything; an hour takes well under a
// second.
//
//	r := explore.Run(explore.Options{Seed: 42, Nodes: 3, Profile: "all"})
//	if r.Violation != nil { ... r.Violation, explore.Shrink, r.Replay() }
//
// # The two phases
//
// In the faulty phase the steps of a plan, drawn from the seed before anything
// runs, happen to the site: faults by profile, and what clients do. Then
// everything is healed, and within a bound everything must settle.
//
// # The rules
//
//   - Time is a queue of events of our own. Nothing reads a real clock, starts a
//     goroutine that decides, or ranges over a map to produce output. Two runs of
//     a seed give the same trace, to the last message.
//   - What is checked is checked by code of its own (check*.go), which knows what
//     really happened at the pins, on the disks and on the wires, and shares no
//     decision with the code under test: it has its own table of transitions.
//   - Faults are fair: each is something that the real world does and that the
//     rooms promise to survive. The list is in docs/simulation.md.
//
// # Files
//
//	world.go    time, the queue of events, the trace, both phases
//	profile.go  which faults, how often
//	plan.go     the steps of a seed
//	steps.go    what a step does
//	gateway.go  the gateway's process; store.go its disk
//	agent.go    an agent's process; work.go what it executes
//	pins.go     its outputs with a safe level, and their leases
//	inputs.go   its inputs with edges, its watches, its LOCAL switch
//	planpins.go what is done with these three
//	link.go     the paths between them
//	client.go   who submits
//	clock.go    clocks that are wrong
//	memory.go   memories that are lost or doubled: restored logs and cards, second boards
//	check*.go   the invariants
//	run.go      one seed; shrink.go less of it
package explore
