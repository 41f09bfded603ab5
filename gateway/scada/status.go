package scada

import (
	"cmp"
	"errors"
	"slices"

	"github.com/apollo-11/apollo11/gateway/engine"
	"github.com/apollo-11/apollo11/wire"
)

// MaxStatusNodes bounds the nodes listed in one Status. Those that need
// attention come first; Counts covers all.
const MaxStatusNodes = 32

// Status is the payload of apollo/<site>/task/<id>/status. Fields without
// omitempty are always there: a display that binds to a key must not go on
// showing an old value because the key is absent.
type Status struct {
	TaskID      string         `json:"task_id"`
	Intent      string         `json:"intent"`
	State       string         `json:"state"`
	Settled     bool           `json:"settled"` // nothing more happens by itself
	Reason      string         `json:"reason"`
	Code        string         `json:"code"`
	Detail      string         `json:"detail"`
	Node        string         `json:"node"` // empty when there are several
	Instruction string         `json:"instruction,omitempty"`
	Attempt     uint8          `json:"attempt"`
	Percent     uint8          `json:"percent"`
	Path        string         `json:"path"`
	Result      map[string]any `json:"result,omitempty"`
	ResultError string         `json:"result_error,omitempty"`
	Lease       *LeaseView     `json:"lease,omitempty"` // of an output that was set for a limited time
	Operator    bool           `json:"operator"`        // waits for an operator
	Created     string         `json:"created"`
	Updated     string         `json:"updated"`
	TraceID     string         `json:"trace_id"`
	// For several nodes only.
	Count  int            `json:"count,omitempty"`
	Counts map[string]int `json:"counts,omitempty"`
	Nodes  []NodeStatus   `json:"nodes,omitempty"`
}

// NodeStatus is the part of a Status that concerns one node.
type NodeStatus struct {
	Node   string `json:"node"`
	State  string `json:"state"`
	Reason string `json:"reason"`
	Code   string `json:"code"`
	// Lease is of an output that was set for a limited time.
	Lease *LeaseView `json:"lease,omitempty"`
}

// NewStatus sums up a task from all of its instructions.
func NewStatus(site string, t engine.Task, ins []engine.Instruction) Status {
	state, counts := summary(ins)
	s := Status{
		TaskID:  t.ID,
		Intent:  t.Spec.Intent,
		State:   state,
		Settled: settled(ins),
		Created: stamp(t.Created),
		Updated: stamp(updated(t, ins)),
		TraceID: traceText(t.Trace),
	}
	if len(ins) == 1 {
		s.one(site, ins[0])
		return s
	}
	s.Count, s.Counts = len(ins), counts
	order := slices.Clone(ins)
	slices.SortStableFunc(order, func(a, b engine.Instruction) int {
		return cmp.Or(cmp.Compare(attention(a.State), attention(b.State)), cmp.Compare(a.Node, b.Node))
	})
	for i, in := range order {
		s.Operator = s.Operator || in.Operator
		if in.Code.Class() == wire.ClassUnknown {
			s.Code = wire.CodeUnknown.String() // whatever the state says, one outcome is not known
		}
		if i < MaxStatusNodes {
			s.Nodes = append(s.Nodes, NodeStatus{in.Node, in.State.String(), in.Reason, codeText(in.Code), NewLeaseView(in.Lease)})
		}
	}
	return s
}

// one fills in what only a task on a single node has.
func (s *Status) one(site string, in engine.Instruction) {
	s.Reason, s.Code, s.Detail = in.Reason, codeText(in.Code), in.Detail
	s.Node, s.Attempt, s.Percent = in.Node, in.Attempt, in.Percent
	s.Instruction = wire.Key{Site: site, Millis: in.Created, Seq: in.Seq}.String()
	s.Path, s.Operator = pathText(in), in.Operator
	s.Result, s.ResultError = result(in.Payload)
	s.Lease = NewLeaseView(in.Lease)
}

// attention orders states by how much they need somebody's eye.
func attention(s engine.State) int {
	switch s {
	case engine.StateFailed:
		return 0
	case engine.StateTimeout:
		return 1
	case engine.StateRetrying:
		return 2
	case engine.StateCancelled:
		return 3
	case engine.StateRunning:
		return 4
	case engine.StateDispatched:
		return 5
	case engine.StatePending:
		return 6
	}
	return 7
}

func settled(ins []engine.Instruction) bool {
	for _, in := range ins {
		if !in.State.Settled() {
			return false
		}
	}
	return len(ins) > 0
}

// summary is the state of a task as the engine sums it up, and how many of its
// instructions are in which state.
func summary(ins []engine.Instruction) (string, map[string]int) {
	state, counts := engine.Summarize(ins)
	m := make(map[string]int)
	for s, n := range counts {
		if n > 0 {
			m[engine.State(s).String()] = n
		}
	}
	return state.String(), m
}

func updated(t engine.Task, ins []engine.Instruction) int64 {
	last := t.Created
	for _, in := range ins {
		last = max(last, in.Updated)
	}
	return last
}

// Alarm is the payload of apollo/<site>/alarm.
type Alarm struct {
	Alarm       string        `json:"alarm"` // what kind, a short word
	State       AlarmState    `json:"state"`
	Severity    AlarmSeverity `json:"severity"`
	Node        string        `json:"node"`
	TaskID      string        `json:"task_id"`
	Instruction string        `json:"instruction,omitempty"`
	Detail      string        `json:"detail"` // a sentence: what, where, what to do
	Raised      string        `json:"raised"`
	Updated     string        `json:"updated"`
	TraceID     string        `json:"trace_id,omitempty"`
}

// AlarmState says whether an alarm stands.
type AlarmState string

const (
	AlarmRaised  AlarmState = "raised"
	AlarmCleared AlarmState = "cleared"
)

// AlarmSeverity says how soon somebody must act.
type AlarmSeverity string

const (
	SeverityInfo     AlarmSeverity = "info"     // good to know
	SeverityWarning  AlarmSeverity = "warning"  // look at it today
	SeverityCritical AlarmSeverity = "critical" // look at it now
)

// At sets an alarm's times, Unix ms: when it was raised, and its last change.
func (a Alarm) At(raised, updated int64) Alarm {
	a.Raised, a.Updated = stamp(raised), stamp(updated)
	return a
}

// Reply is the payload of apollo/<site>/reply/<client> and the body of an HTTP
// answer to a submission.
type Reply struct {
	OK          bool      `json:"ok"`
	TaskID      string    `json:"task_id,omitempty"`
	State       string    `json:"state,omitempty"`
	TraceID     string    `json:"trace_id,omitempty"`
	StatusTopic string    `json:"status_topic,omitempty"`
	Error       *Error    `json:"error,omitempty"`
	More        []*Error  `json:"more,omitempty"`
	Warnings    []Warning `json:"warnings,omitempty"`
}

// Refused answers a task that was not taken. Any error but an *Error is a fault
// of the gateway.
func Refused(err error) Reply {
	var fault *Error
	if !errors.As(err, &fault) {
		fault = &Error{Code: CodeInternal, Problem: err.Error(), Hint: "see the gateway's log"}
	}
	return Reply{TaskID: fault.TaskID, Error: fault, More: fault.More}
}
