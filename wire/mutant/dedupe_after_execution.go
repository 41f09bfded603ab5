//go:build mutant_dedupe_after_execution

package mutant

// Active is the fault that was planted.
const Active = DedupeAfterExecution
