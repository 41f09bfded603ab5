//go:build mutant_stale_token_accepted

package mutant

// Active is the fault that was planted.
const Active = StaleTokenAccepted
