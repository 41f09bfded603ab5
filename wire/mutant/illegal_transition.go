//go:build mutant_illegal_transition

package mutant

// Active is the fault that was planted.
const Active = IllegalTransition
