package scada

import (
	"encoding/json"
	"fmt"

	"github.com/apollo-11/apollo11/gateway/engine"
	"github.com/apollo-11/apollo11/wire"
)

// Document is one of this package's outgoing documents.
type Document interface{ document() }

func (Status) document()          {}
func (Alarm) document()           {}
func (Reply) document()           {}
func (TaskView) document()        {}
func (InstructionView) document() {}
func (EntryView) document()       {}
func (NodeView) document()        {}

// Marshal writes a document as JSON. Markup in any text leaves as an escape, so
// that a page which shows it cannot be made to run it.
func Marshal(d Document) ([]byte, error) {
	b, err := json.Marshal(d)
	if err != nil {
		return nil, fmt.Errorf("%T as JSON: %w", d, err)
	}
	return b, nil
}

// TaskView is a task with how far it has come.
type TaskView struct {
	TaskDoc
	State   string         `json:"state"`   // see engine.Summarize
	Settled bool           `json:"settled"` // nothing more happens by itself
	Count   int            `json:"count"`   // of instructions
	Counts  map[string]int `json:"counts"`  // of instructions by state
	Created string         `json:"created"`
	Updated string         `json:"updated"` // of the instruction that changed last
	Via     string         `json:"via"`     // mqtt, http
	Actor   string         `json:"actor,omitempty"`
	Client  string         `json:"client,omitempty"`
	// Instructions is filled in by NewTaskView when asked for.
	Instructions []InstructionView `json:"instructions,omitempty"`
}

// NewTaskView joins a task and all of its instructions. With detail they are
// listed.
func NewTaskView(site string, t engine.Task, ins []engine.Instruction, detail bool) TaskView {
	doc, err := NewTaskDoc(t.Spec)
	if err != nil {
		// A task with unreadable arguments is still shown.
		doc = TaskDoc{Intent: t.Spec.Intent, Nodes: t.Spec.Nodes, Args: map[string]any{"unreadable": err.Error()}}
	}
	doc.TaskID, doc.TraceID = t.ID, traceText(t.Trace)
	state, counts := summary(ins)
	v := TaskView{
		TaskDoc: doc,
		State:   state,
		Settled: settled(ins),
		Count:   len(ins),
		Counts:  counts,
		Created: stamp(t.Created),
		Updated: stamp(updated(t, ins)),
		Via:     t.Source.Via,
		Actor:   t.Source.Actor,
		Client:  t.Source.Client,
	}
	if detail {
		v.Instructions = make([]InstructionView, 0, len(ins))
		for _, in := range ins {
			v.Instructions = append(v.Instructions, NewInstructionView(site, in))
		}
	}
	return v
}

// InstructionView is one instruction.
type InstructionView struct {
	Instruction    string         `json:"instruction"` // the idempotency key (A4)
	Seq            uint64         `json:"seq"`
	Version        uint32         `json:"version"`
	TaskID         string         `json:"task_id"`
	Node           string         `json:"node"`
	Intent         string         `json:"intent"`
	Args           map[string]any `json:"args,omitempty"`
	State          string         `json:"state"`
	Settled        bool           `json:"settled"`
	Reason         string         `json:"reason"`
	Code           string         `json:"code"`
	Detail         string         `json:"detail"`
	Attempt        uint8          `json:"attempt"`
	Token          string         `json:"token,omitempty"`
	Sends          uint8          `json:"sends"`
	Retries        uint8          `json:"retries"`
	MaxRetries     uint8          `json:"max_retries"`
	RetryAt        string         `json:"retry_at,omitempty"`
	Percent        uint8          `json:"percent,omitempty"`
	Path           string         `json:"path,omitempty"` // of the result
	Result         map[string]any `json:"result,omitempty"`
	ResultError    string         `json:"result_error,omitempty"`    // why there is no result
	Lease          *LeaseView     `json:"lease,omitempty"`           // of an output that was set for a limited time
	Unlisted       uint32         `json:"unlisted,omitempty"`        // reports of progress that the timeline only counts
	Operator       bool           `json:"operator,omitempty"`        // waits for an operator
	OutcomeUnknown bool           `json:"outcome_unknown,omitempty"` // see engine.Instruction.OutcomeUnknown
	Waits          string         `json:"waits,omitempty"`           // what it waits for, as GET /v1/tasks/{task_id} tells; not on topics
	CancelBy       string         `json:"cancel_by,omitempty"`
	Priority       string         `json:"priority"`
	TimeoutMs      uint32         `json:"timeout_ms,omitempty"`
	NotAfter       string         `json:"not_after,omitempty"`
	Created        string         `json:"created"`
	Updated        string         `json:"updated"`
	Received       string         `json:"received,omitempty"` // by the agent's clock, as the next two
	Started        string         `json:"started,omitempty"`
	Finished       string         `json:"finished,omitempty"`
	SettledAt      string         `json:"settled_at,omitempty"`
	TraceID        string         `json:"trace_id"`
}

// NewInstructionView writes an instruction of a site.
func NewInstructionView(site string, in engine.Instruction) InstructionView {
	v := InstructionView{
		Instruction:    wire.Key{Site: site, Millis: in.Created, Seq: in.Seq}.String(),
		Seq:            in.Seq,
		Version:        in.Version,
		TaskID:         in.Task,
		Node:           in.Node,
		Intent:         in.Intent,
		State:          in.State.String(),
		Settled:        in.State.Settled(),
		Reason:         in.Reason,
		Code:           codeText(in.Code),
		Detail:         in.Detail,
		Attempt:        in.Attempt,
		Token:          tokenText(in.Token),
		Sends:          in.Sends,
		Retries:        in.Retries,
		MaxRetries:     in.Retry.Max,
		RetryAt:        stamp(in.RetryAt),
		Percent:        in.Percent,
		Path:           pathText(in),
		Lease:          NewLeaseView(in.Lease),
		Unlisted:       in.Unlisted,
		Operator:       in.Operator,
		OutcomeUnknown: in.OutcomeUnknown(),
		CancelBy:       in.CancelBy,
		Priority:       in.Priority.String(),
		TimeoutMs:      in.TimeoutMs,
		NotAfter:       stamp(in.NotAfter),
		Created:        stamp(in.Created),
		Updated:        stamp(in.Updated),
		Received:       stamp(in.ReceivedAt),
		Started:        stamp(in.StartedAt),
		Finished:       stamp(in.FinishedAt),
		SettledAt:      stamp(in.SettledAt),
		TraceID:        traceText(in.Trace),
	}
	var err error
	if v.Args, err = wire.DecodeMap(in.Args); err != nil {
		v.Args = map[string]any{"unreadable": err.Error()}
	}
	v.Result, v.ResultError = result(in.Payload)
	return v
}

// EntryView is one line of a timeline (B4).
type EntryView struct {
	Time       string `json:"time"`                 // the gateway's
	AgentTime  string `json:"agent_time,omitempty"` // of the agent's own step
	What       string `json:"what"`
	From       string `json:"from"` // empty before the first state
	To         string `json:"to"`
	Actor      string `json:"actor,omitempty"`
	Token      string `json:"token,omitempty"`
	Attempt    uint8  `json:"attempt,omitempty"`
	Path       string `json:"path"`
	DurationMs int64  `json:"duration_ms,omitempty"`
	Implied    bool   `json:"implied,omitempty"`
	Code       string `json:"code,omitempty"`
	Detail     string `json:"detail,omitempty"`
	EventID    string `json:"event_id,omitempty"`
	// Payload is what a running instruction has seen, of progress.
	Payload map[string]any `json:"payload,omitempty"`
}

// NewEntryView writes an entry of an instruction on a node.
func NewEntryView(node string, e engine.Entry) EntryView {
	v := EntryView{
		Time:       stamp(e.At),
		AgentTime:  stamp(e.AgentAt),
		What:       e.What.String(),
		From:       e.From.String(),
		To:         e.To.String(),
		Actor:      e.Actor,
		Token:      tokenText(e.Token),
		Attempt:    e.Attempt,
		Path:       e.Path.String(),
		DurationMs: e.DurationMs,
		Implied:    e.Implied,
		Code:       codeText(e.Code),
		Detail:     e.Detail,
	}
	if e.Event != 0 {
		v.EventID = wire.EventID(node, e.Event)
	}
	v.Payload, _ = result(e.Payload)
	return v
}

// codeText is empty while there is no result.
func codeText(c wire.Code) string {
	if c == wire.CodeNone {
		return ""
	}
	return c.String()
}

func tokenText(t wire.Token) string {
	if t.IsZero() {
		return ""
	}
	return t.String()
}

// pathText is by which way the result came; empty before there is one.
func pathText(in engine.Instruction) string {
	if !in.State.Settled() && in.Path == engine.PathNone {
		return ""
	}
	return in.Path.String()
}

// result reads a payload that an agent sent. Bytes become base64 and integers
// keep all their digits; NaN and infinities cannot occur.
func result(p wire.RawMap) (map[string]any, string) {
	m, err := wire.DecodeMap(p)
	if err != nil {
		return nil, err.Error()
	}
	return m, ""
}
