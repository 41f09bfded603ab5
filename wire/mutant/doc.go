// Package mutant plants deliberate faults, to show that the simulator of whole
// sites catches them. A fault is chosen by build tags:
//
//	go build -tags mutant,mutant_stale_token_accepted ./firmware-sim/explore/cmd
//
// Without the tag mutant Active is an empty constant and every hook, which reads
//
//	if mutant.Active == mutant.StaleTokenAccepted { ... }
//
// is left out by the compiler. It lies at the bottom, beside wire, so that every
// room that decides something can be mutated.
//
// To add one: a name below, a file with its tag, a hook. The test in
// firmware-sim/explore builds and runs whatever All lists.
package mutant
