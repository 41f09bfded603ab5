//go:build mutant_duplicate_publish

package mutant

// Active is the fault that was planted.
const Active = DuplicatePublish
