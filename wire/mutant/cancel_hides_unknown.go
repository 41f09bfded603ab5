//go:build mutant_cancel_hides_unknown

package mutant

// Active is the fault that was planted.
const Active = CancelHidesUnknown
