//go:build mutant_open_index_lost

package mutant

// Active is the fault that was planted.
const Active = OpenIndexLost
