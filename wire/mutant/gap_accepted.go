//go:build mutant_gap_accepted

package mutant

// Active is the fault that was planted.
const Active = GapAccepted
