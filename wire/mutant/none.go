//go:build !mutant

package mutant

// Active is the fault that was planted: none.
const Active = ""
