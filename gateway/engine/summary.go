package engine

// StateCounts counts a task's instructions by state.
type StateCounts [stateCount]int

// Summarize gives the state of a task and how many of its instructions are in
// which state. While any is unfinished, the task shows the furthest of the
// unfinished ones; afterwards the worst of the ends, so that SUCCEEDED always
// means all of them.
func Summarize(list []Instruction) (State, StateCounts) {
	var c StateCounts
	for k := range list {
		if s := list[k].State; s < stateCount {
			c[s]++
		}
	}
	for _, s := range []State{StateRunning, StateRetrying, StateDispatched, StatePending,
		StateFailed, StateTimeout, StateCancelled, StateSucceeded} {
		if c[s] > 0 {
			return s, c
		}
	}
	return StateNone, c
}
