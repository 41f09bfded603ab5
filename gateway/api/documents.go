package api

import "github.com/apollo-11/apollo11/gateway/scada"

// The documents of the API, for its clients. openapi.yaml describes them.

// Fault is the one shape of an error.
type Fault struct {
	Code    string `json:"code"`
	Message string `json:"message"`
	// Field, Line and Column say where in the request; columns count characters
	// from 1.
	Field  string `json:"field,omitempty"`
	Line   int    `json:"line,omitempty"`
	Column int    `json:"column,omitempty"`
	Hint   string `json:"hint,omitempty"`
	// More are the further faults of the same document.
	More []Fault `json:"more,omitempty"`
}

// ErrorBody is the body of every answer that is not a success.
type ErrorBody struct {
	Error Fault `json:"error"`
}

// Accepted answers a submission that is on disk.
type Accepted struct {
	TaskID string `json:"task_id"`
	// Existing says that the same task had been submitted before: nothing new
	// will happen because of this request.
	Existing     bool                  `json:"existing"`
	Trace        string                `json:"trace_id"`
	Instructions []AcceptedInstruction `json:"instructions"`
	Warnings     []Warning             `json:"warnings"`
}

// AcceptedInstruction is the task on one node.
type AcceptedInstruction struct {
	ID   string `json:"id"`
	Node string `json:"node"`
}

// Warning is for people: the task was taken all the same.
type Warning struct {
	Code    string `json:"code"`
	Message string `json:"message"`
	Field   string `json:"field,omitempty"`
	Line    int    `json:"line,omitempty"`
	Column  int    `json:"column,omitempty"`
}

// Cancelled tells how a cancellation stands, by number of instructions.
type Cancelled struct {
	TaskID string `json:"task_id"`
	// Cancelled were stopped before an agent had them.
	Cancelled int `json:"cancelled"`
	// Asked may be running: their agents decide, and are asked until they answer.
	Asked int `json:"asked"`
	// Final had ended before.
	Final int `json:"final"`
}

// TaskList is a page of tasks, the newest first.
type TaskList struct {
	Tasks []scada.TaskView `json:"tasks"`
	// Next is the before of the following page, 0 when there is none. With a
	// filter a page may be short, or empty, and still have a following one.
	Next uint64 `json:"next"`
}

// Timeline is an instruction with its history.
type Timeline struct {
	Instruction scada.InstructionView `json:"instruction"`
	Entries     []scada.EntryView     `json:"entries"` // the oldest first
}

// NodeList is every node that has ever connected.
type NodeList struct {
	Nodes []scada.NodeView `json:"nodes"` // by name
}

// NodeDetail is a node with the alarms that speak of it.
type NodeDetail struct {
	scada.NodeView
	// InFlight were sent and are not confirmed; they are part of Queued.
	InFlight int     `json:"in_flight"`
	Standing []Alarm `json:"standing"`
	Recent   []Alarm `json:"recent"` // the oldest first
}

// Queue is a page of what waits for an operator, in order of submission.
type Queue struct {
	Instructions []scada.InstructionView `json:"instructions"`
	// Next is the after of the following page, 0 when there is none.
	Next uint64 `json:"next"`
}

// Done answers an operator's action that is on disk.
type Done struct {
	Action  string `json:"action"`  // see engine.Action
	Subject string `json:"subject"` // instruction id or number of a dead letter; may be empty
	Text    string `json:"text"`    // what follows, for people
	Until   string `json:"until,omitempty"`
}

// OwedList is what is owed to nodes: ways to safe that nobody has confirmed yet.
type OwedList struct {
	Owed []Owed `json:"owed"` // by node and pin
	// More counts what the list has no room for.
	More int `json:"more"`
}

// Owed is one of them.
type Owed struct {
	Node        string `json:"node"`
	Pin         string `json:"pin,omitempty"` // absent for all outputs of the node
	TaskID      string `json:"task_id"`
	Instruction string `json:"instruction"`
	Since       string `json:"since"`
	// Count is how many equal submissions it stands for.
	Count uint32 `json:"count"`
	// Driven: the output is at its safe level, and that is not on the board's disk yet.
	Driven bool   `json:"driven"`
	Reason string `json:"reason"` // what it waits for, for people
}

// Quiet is the quiet period (A8).
type Quiet struct {
	On     bool   `json:"on"`
	Since  string `json:"since,omitempty"`
	Until  string `json:"until,omitempty"`
	By     string `json:"by,omitempty"`
	Reason string `json:"reason,omitempty"`
}

// Alarms are those that stand, by kind and subject, and the latest incidents, the
// oldest first. Both begin with the gateway's process.
type Alarms struct {
	Standing []Alarm `json:"standing"`
	Recent   []Alarm `json:"recent"`
}

// Alarm is a condition that stands, or something that happened.
type Alarm struct {
	Alarm   string `json:"alarm"`   // what kind, a short word
	Subject string `json:"subject"` // node, instruction, or gateway
	Detail  string `json:"detail"`  // a sentence
	Raised  string `json:"raised"`
}

// AuditList is a page of the audit trail, the oldest entry first.
type AuditList struct {
	Entries []AuditEntry `json:"entries"`
	// Next is the after of the following page, 0 when there is none.
	Next uint64 `json:"next"`
}

// AuditEntry is one thing that an operator did (B11), chained to the one before;
// see engine.Audit.
type AuditEntry struct {
	Number  uint64 `json:"number"`
	Time    string `json:"time"`
	Actor   string `json:"actor"`
	Path    string `json:"path"`
	Action  string `json:"action"`
	Subject string `json:"subject"`
	Note    string `json:"note"`
	Prev    string `json:"prev"` // hexadecimal, as the next
	Hash    string `json:"hash"`
}

// DeadLetterList is a page of dead letters in order of number.
type DeadLetterList struct {
	DeadLetters []DeadLetter `json:"dead_letters"`
	// Next is the after of the following page, 0 when there is none.
	Next uint64 `json:"next"`
}

// DeadLetter is a message that could not be processed (B10).
type DeadLetter struct {
	Number uint64 `json:"number"`
	Time   string `json:"time"`
	Kind   string `json:"kind"` // task, event, compact
	From   string `json:"from"` // node or client id
	Reason string `json:"reason"`
	// Raw is what came; Text is the same when it is text. Cut says that what came
	// was longer, or may have been.
	Raw  []byte `json:"raw_base64,omitempty"`
	Text string `json:"text,omitempty"`
	Cut  bool   `json:"cut,omitempty"`
}

// HealthBody is what /healthz says. Only Status is told to strangers.
type HealthBody struct {
	// Status is ok, degraded (it works, see Degraded) or unavailable (it takes no
	// tasks).
	Status    string     `json:"status"`
	Version   string     `json:"version,omitempty"`
	UptimeS   int64      `json:"uptime_s,omitempty"`
	Epoch     string     `json:"epoch,omitempty"` // hexadecimal: it does not fit a float
	Open      *int       `json:"open_instructions,omitempty"`
	Listeners []Listener `json:"listeners,omitempty"`
	Degraded  []string   `json:"degraded,omitempty"`
}
