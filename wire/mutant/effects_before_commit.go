//go:build mutant_effects_before_commit

package mutant

// Active is the fault that was planted.
const Active = EffectsBeforeCommit
