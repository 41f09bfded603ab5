package engine

import "fmt"

// State is the state of an instruction (B1).
type State uint8

const (
	StateNone       State = 0 // not submitted: only the From of the first entry
	StatePending    State = 1
	StateDispatched State = 2
	StateRunning    State = 3
	StateSucceeded  State = 4
	StateFailed     State = 5
	StateRetrying   State = 6
	StateCancelled  State = 7
	StateTimeout    State = 8

	stateCount = 9
)

var stateNames = [stateCount]string{"", "PENDING", "DISPATCHED", "RUNNING", "SUCCEEDED", "FAILED", "RETRYING", "CANCELLED", "TIMEOUT"}

// String is the state's name as it stands everywhere. An unknown number says so.
func (s State) String() string {
	if int(s) < stateCount {
		return stateNames[s]
	}
	return fmt.Sprintf("STATE_%d", uint8(s))
}

// ParseState reads a name that String wrote; false for anything else.
func ParseState(name string) (State, bool) {
	for s := StatePending; s < stateCount; s++ {
		if stateNames[s] == name {
			return s, true
		}
	}
	return StateNone, false
}

// transitions is the whole table. Every change of state, whatever its source,
// goes through Allowed.
var transitions = [stateCount]uint16{
	StateNone:       bit(StatePending),
	StatePending:    bit(StateDispatched) | bit(StateCancelled) | bit(StateTimeout),
	StateDispatched: bit(StateRunning) | bit(StateCancelled) | bit(StatePending) | bit(StateTimeout),
	StateRunning:    bit(StateSucceeded) | bit(StateFailed) | bit(StateTimeout) | bit(StateCancelled),
	StateFailed:     bit(StateRetrying),
	StateTimeout:    bit(StateRetrying),
	StateRetrying:   bit(StateRunning) | bit(StateCancelled) | bit(StateTimeout),
	StateSucceeded:  0,
	StateCancelled:  0,
}

func bit(s State) uint16 { return 1 << s }

// Allowed reports whether an instruction may go from one state to another.
func Allowed(from, to State) bool {
	if from >= stateCount || to >= stateCount {
		return false
	}
	return transitions[from]&bit(to) != 0
}

// Settled reports whether the state needs nothing more from the engine itself:
// SUCCEEDED and CANCELLED for good, FAILED and TIMEOUT until an operator or a
// late report moves them. RETRYING is entered in the same step as the failure
// when a retry is due, so that a stored FAILED or TIMEOUT always means that
// none is.
func (s State) Settled() bool {
	return s == StateSucceeded || s == StateFailed || s == StateCancelled || s == StateTimeout
}
