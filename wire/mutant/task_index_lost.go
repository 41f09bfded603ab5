//go:build mutant_task_index_lost

package mutant

// Active is the fault that was planted.
const Active = TaskIndexLost
