package rig

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"

	"github.com/apollo-11/apollo11/gateway/scada"
)

// maxDocument bounds a document of the HTTP API.
const maxDocument = 64 << 20

// Task is what trials read of a task.
type Task struct {
	TaskID       string                  `json:"task_id"`
	State        string                  `json:"state"`
	Settled      bool                    `json:"settled"`
	Instructions []scada.InstructionView `json:"instructions"`
}

func (s *Site) get(ctx context.Context, path string) (body []byte, status int, err error) {
	return s.Ask(ctx, http.MethodGet, path, "")
}

// Ask makes a request of the HTTP API; an empty document is none. That the
// gateway refuses is no error: the status says it.
func (s *Site) Ask(ctx context.Context, method, path, document string) (body []byte, status int, err error) {
	req, err := http.NewRequestWithContext(ctx, method, "http://"+s.http+path, strings.NewReader(document))
	if err != nil {
		return nil, 0, err
	}
	if document != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	r, err := s.web.Do(req)
	if err != nil {
		return nil, 0, err
	}
	defer func() { _ = r.Body.Close() }() // only read from
	body, err = io.ReadAll(io.LimitReader(r.Body, maxDocument))
	return body, r.StatusCode, err
}

// document reads a document and reports whether it is there.
func (s *Site) document(ctx context.Context, path string, into any) (bool, error) {
	body, status, err := s.get(ctx, path)
	switch {
	case err != nil:
		return false, err
	case status == http.StatusNotFound:
		return false, nil
	case status != http.StatusOK:
		return false, fmt.Errorf("GET %s: status %d: %s", path, status, body)
	}
	return true, json.Unmarshal(body, into)
}

// Retry has an operator try an instruction again, also when nobody knows whether it
// was done.
func (s *Site) Retry(ctx context.Context, instruction string) error {
	return s.Post(ctx, "/v1/instructions/"+instruction+"/retry", `{"accept_unknown":true}`)
}

// Post sends a document and wants it to be taken.
func (s *Site) Post(ctx context.Context, path, doc string) error {
	return s.change(ctx, http.MethodPost, path, doc)
}

// Put does it the other way.
func (s *Site) Put(ctx context.Context, path, doc string) error {
	return s.change(ctx, http.MethodPut, path, doc)
}

func (s *Site) change(ctx context.Context, method, path, doc string) error {
	req, err := http.NewRequestWithContext(ctx, method, "http://"+s.http+path, strings.NewReader(doc))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	r, err := s.web.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = r.Body.Close() }() // only read from
	body, err := io.ReadAll(io.LimitReader(r.Body, maxDocument))
	if err == nil && r.StatusCode/100 != 2 {
		err = fmt.Errorf("%s %s: status %d: %s", method, path, r.StatusCode, body)
	}
	return err
}

// Task reads a task; false means that the log does not have it.
func (s *Site) Task(ctx context.Context, id string) (t Task, found bool, err error) {
	found, err = s.document(ctx, "/v1/tasks/"+id, &t)
	return t, found, err
}

// Timeline is the history of an instruction.
func (s *Site) Timeline(ctx context.Context, seq uint64) ([]scada.EntryView, error) {
	var v struct {
		Entries []scada.EntryView `json:"entries"`
	}
	found, err := s.document(ctx, "/v1/instructions/"+strconv.FormatUint(seq, 10)+"/timeline", &v)
	if err == nil && !found {
		err = fmt.Errorf("instruction %d has no timeline", seq)
	}
	return v.Entries, err
}

// Node is what the gateway knows of a node; the zero value if it never met it.
func (s *Site) Node(ctx context.Context, id string) (scada.NodeView, error) {
	var v struct {
		Nodes []scada.NodeView `json:"nodes"`
	}
	if _, err := s.document(ctx, "/v1/nodes", &v); err != nil {
		return scada.NodeView{}, err
	}
	for _, n := range v.Nodes {
		if n.Node == id {
			return n, nil
		}
	}
	return scada.NodeView{}, nil
}

// AwaitNode waits for a node to be online or offline.
func (s *Site) AwaitNode(ctx context.Context, id string, state scada.PresenceState) (scada.NodeView, error) {
	var n scada.NodeView
	err := Await(ctx, Patience, fmt.Sprintf("node %s %s", id, state), func() (bool, error) {
		var err error
		n, err = s.Node(ctx, id)
		return err == nil && n.State == string(state), err
	})
	return n, err
}

// Bucket is one bucket of a histogram: how many values were at most Most seconds.
type Bucket struct {
	Most  float64
	Count uint64
}

// UnknownWindows is the histogram of status-unknown windows that signs of one path
// have ended.
func (s *Site) UnknownWindows(ctx context.Context, path string) ([]Bucket, error) {
	body, status, err := s.get(ctx, "/metrics")
	if err != nil || status != http.StatusOK {
		return nil, fmt.Errorf("read metrics: status %d: %w", status, err)
	}
	prefix := `apollo_status_unknown_seconds_bucket{path="` + path + `",le="`
	var list []Bucket
	lines := bufio.NewScanner(strings.NewReader(string(body)))
	for lines.Scan() {
		rest, ok := strings.CutPrefix(lines.Text(), prefix)
		if !ok {
			continue
		}
		le, count, ok := strings.Cut(rest, `"} `)
		if !ok {
			return nil, fmt.Errorf("read metrics: %q", lines.Text())
		}
		b := Bucket{}
		if b.Most, err = strconv.ParseFloat(le, 64); err != nil { // +Inf is a number for it
			return nil, fmt.Errorf("read metrics: %w", err)
		}
		if b.Count, err = strconv.ParseUint(count, 10, 64); err != nil {
			return nil, fmt.Errorf("read metrics: %w", err)
		}
		list = append(list, b)
	}
	return list, nil
}

// Alarm is one that stands.
type Alarm struct {
	Alarm   string `json:"alarm"`
	Subject string `json:"subject"` // node, instruction, or gateway
	Raised  string `json:"raised"`
}

// Alarms are those that stand.
func (s *Site) Alarms(ctx context.Context) ([]Alarm, error) {
	var v struct {
		Standing []Alarm `json:"standing"`
	}
	_, err := s.document(ctx, "/v1/alarms", &v)
	return v.Standing, err
}

// NarrowbandConnections is how many agents are connected to the narrowband door.
func (s *Site) NarrowbandConnections(ctx context.Context) (int, error) {
	body, status, err := s.get(ctx, "/metrics")
	if err != nil || status != http.StatusOK {
		return 0, fmt.Errorf("read metrics: status %d: %w", status, err)
	}
	for line := range strings.Lines(string(body)) {
		if rest, ok := strings.CutPrefix(line, "apollo_narrowband_connections "); ok {
			return strconv.Atoi(strings.TrimSpace(rest))
		}
	}
	return 0, nil
}
