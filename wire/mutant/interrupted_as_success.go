//go:build mutant_interrupted_as_success

package mutant

// Active is the fault that was planted.
const Active = InterruptedAsSuccess
