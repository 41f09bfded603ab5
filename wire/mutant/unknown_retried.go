//go:build mutant_unknown_retried

package mutant

// Active is the fault that was planted.
const Active = UnknownRetried
