//go:build mutant_start_before_journal

package mutant

// Active is the fault that was planted.
const Active = StartBeforeJournal
