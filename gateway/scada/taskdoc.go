package scada

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/apollo-11/apollo11/gateway/engine"
	"github.com/apollo-11/apollo11/wire"
)

// TaskDoc is a task as a document. What ParseTask makes of it is the Spec that
// it was made from.
type TaskDoc struct {
	TaskID   string            `json:"task_id,omitempty"`
	Intent   string            `json:"intent"`
	Args     map[string]any    `json:"args,omitempty"`
	Nodes    []string          `json:"nodes,omitempty"`
	Selector *SelectorDoc      `json:"target_selector,omitempty"`
	Timeout  string            `json:"timeout,omitempty"` // with its unit
	Retry    *RetryDoc         `json:"retry_policy,omitempty"`
	Priority string            `json:"priority,omitempty"`
	TTL      string            `json:"ttl,omitempty"` // with its unit
	NotAfter string            `json:"not_after,omitempty"`
	Metadata map[string]string `json:"metadata,omitempty"`
	TraceID  string            `json:"trace_id,omitempty"`
}

// SelectorDoc is target_selector of type label.
type SelectorDoc struct {
	Type  string `json:"type"`
	Key   string `json:"key"`
	Value string `json:"value"`
}

// RetryDoc is retry_policy; its intervals have their unit.
type RetryDoc struct {
	MaxRetries      uint8  `json:"max_retries"`
	InitialInterval string `json:"initial_interval"`
	MaxInterval     string `json:"max_interval"`
	Backoff         string `json:"backoff"`
}

// NewTaskDoc writes a Spec as a document. It returns an error for arguments that
// are not a CBOR map by our rules.
func NewTaskDoc(s engine.Spec) (TaskDoc, error) {
	args, err := wire.DecodeMap(s.Args)
	if err != nil {
		return TaskDoc{}, fmt.Errorf("arguments of task %s: %w", s.TaskID, err)
	}
	d := TaskDoc{
		TaskID:   s.TaskID,
		Intent:   s.Intent,
		Args:     args,
		Nodes:    s.Nodes,
		Timeout:  length(int64(s.TimeoutMs)),
		TTL:      length(s.TTLMs),
		NotAfter: stamp(s.NotAfter),
		Metadata: s.Metadata,
		TraceID:  traceText(s.Trace),
	}
	if !s.Label.IsZero() {
		d.Selector = &SelectorDoc{"label", s.Label.Key, s.Label.Value}
	}
	if s.Priority != 0 {
		d.Priority = s.Priority.String()
	}
	if r := s.Retry; r != nil {
		d.Retry = &RetryDoc{r.Max, length(int64(r.InitialMs)), length(int64(r.MaxMs)), backoffText(r.Backoff)}
	}
	return d, nil
}

// MarshalTask writes a Spec as a JSON document that ParseTask reads back to an
// equal Spec.
func MarshalTask(s engine.Spec) ([]byte, error) {
	d, err := NewTaskDoc(s)
	if err != nil {
		return nil, err
	}
	b, err := json.Marshal(d)
	if err != nil {
		return nil, fmt.Errorf("task %s as JSON: %w", s.TaskID, err)
	}
	return b, nil
}

func backoffText(b engine.Backoff) string {
	switch b {
	case engine.BackoffFixed:
		return "fixed"
	case engine.BackoffTiered:
		return "tiered"
	}
	return "exponential"
}

func traceText(t wire.Trace) string {
	if t.IsZero() {
		return ""
	}
	return t.String()
}

// length writes ms with units, empty for 0.
func length(ms int64) string {
	if ms == 0 {
		return ""
	}
	return (time.Duration(ms) * time.Millisecond).String()
}

// maxStamp is the last millisecond of the year 9999: RFC 3339 has four digits
// for the year, and an agent's clock can claim anything.
const maxStamp = 253402300799999

// stamp writes Unix ms as RFC 3339 UTC with milliseconds, empty for 0.
func stamp(ms int64) string {
	if ms == 0 {
		return ""
	}
	return time.UnixMilli(min(max(ms, 1), maxStamp)).UTC().Format("2006-01-02T15:04:05.000Z")
}
