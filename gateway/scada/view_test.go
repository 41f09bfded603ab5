package scada_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/apollo-11/apollo11/gateway/engine"
	"github.com/apollo-11/apollo11/gateway/scada"
	"github.com/apollo-11/apollo11/wire"
)

const sampleTime = 1772366400123 // 2026-03-01T12:00:00.123Z

// sample is a finished task on one node.
func sample(t testing.TB) (engine.Task, engine.Instruction) {
	t.Helper()
	spec := parse(t, `{"task_id":"fill-3","intent":"gpio.write","node":"pump-1","args":{"pin":"GPIO17","level":1},
		"ttl":30,"retry_policy":{"max_retries":2},"metadata":{"operator":"ops"}}`, scada.JSON)
	trace := wire.NewTrace(1, 2)
	task := engine.Task{
		ID: spec.TaskID, First: 42, Count: 1, Spec: spec, Created: sampleTime, Trace: trace,
		Source: engine.Source{Via: "mqtt", Actor: "hmi", Client: "hmi-1"},
	}
	in := engine.Instruction{
		Version: 5, Seq: 42, Task: task.ID, Node: "pump-1", State: engine.StateSucceeded, Attempt: 1,
		Token: wire.Token{Shard: 1, Seq: 7, Rand: 0xabcd}, Created: sampleTime, Updated: sampleTime + 900,
		Intent: spec.Intent, Args: spec.Args, NotAfter: sampleTime + 30_000, Trace: trace, Retry: *spec.Retry, Sends: 1,
		ReceivedAt: sampleTime + 100, StartedAt: sampleTime + 101, FinishedAt: sampleTime + 102, SettledAt: sampleTime + 900,
		Code: wire.CodeOK, Payload: argsOf(t, map[string]any{"pin": "GPIO17", "level": uint64(1)}), Path: engine.PathPrimary,
	}
	return task, in
}

// golden compares a document with its file in testdata, laid out for people.
func golden(t *testing.T, name string, doc scada.Document) {
	t.Helper()
	raw, err := scada.Marshal(doc)
	if err != nil {
		t.Fatal(err)
	}
	var got bytes.Buffer
	if err := json.Indent(&got, raw, "", "  "); err != nil {
		t.Fatal(err)
	}
	got.WriteByte('\n')
	path := filepath.Join("testdata", name+".json")
	if *update {
		if err := os.WriteFile(path, got.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got.Bytes(), want) {
		t.Errorf("%s: got\n%s\nwant\n%s", path, got.Bytes(), want)
	}
}

func TestDocumentsHaveTheirShape(t *testing.T) {
	task, in := sample(t)
	golden(t, "status", scada.NewStatus("default", task, []engine.Instruction{in}))
	golden(t, "task", scada.NewTaskView("default", task, []engine.Instruction{in}, true))
	other := in
	other.Seq, other.Node, other.State, other.Reason, other.Code, other.Payload = 43, "pump-2", engine.StateTimeout, "unconfirmed", 0, nil
	other.Operator = true
	golden(t, "status-several", scada.NewStatus("default", task, []engine.Instruction{in, other}))
	golden(t, "entry", scada.NewEntryView("pump-1", engine.Entry{
		At: sampleTime, AgentAt: sampleTime - 5, What: engine.WhatProcessed, From: engine.StateRunning, To: engine.StateSucceeded,
		Actor: "pump-1", Token: in.Token, Attempt: 1, Path: engine.PathPrimary, DurationMs: 12, Code: wire.CodeOK, Event: 9,
	}))
	golden(t, "node", scada.NewNodeView(engine.Node{
		ID: "pump-1", Short: wire.Short("pump-1"), Labels: map[string]string{"role": "worker", "area": "north"},
		Version: "0.1", Intents: []string{"gpio.write"}, Pins: []string{"GPIO17"}, Board: "sim", Workers: 4,
		FirstSeen: sampleTime, LastHello: sampleTime,
	}, scada.Presence{State: scada.PresenceOnline, Since: sampleTime, LastSeen: sampleTime, Running: 1}, sampleTime+1))
	golden(t, "alarm", scada.Alarm{
		Alarm: "unconfirmed", State: scada.AlarmRaised, Severity: scada.SeverityWarning, Node: "pump-2", TaskID: task.ID,
		Detail: "pump-2 has not confirmed fill-3 after 8 sends: see the operator queue",
	}.At(sampleTime, sampleTime+5))
	golden(t, "reply-accepted", scada.Reply{
		OK: true, TaskID: task.ID, State: "PENDING", TraceID: task.Trace.String(), StatusTopic: "apollo/default/task/fill-3/status",
		Warnings: []scada.Warning{{Code: scada.WarnCoerced, Field: "task_id", Line: 1, Column: 2, Problem: "is a number"}},
	})
	_, _, err := scada.ParseTask([]byte(`{"task_id":"t-1","intnet":"gpio.read","node":"a"}`), scada.JSON, scada.Options{})
	golden(t, "reply-refused", scada.Refused(err))
	golden(t, "reply-fault", scada.Refused(fmt.Errorf("append: %w", os.ErrClosed)))
}

// C14: an unknown outcome is told apart from one that is known.
func TestOutcomeUnknown(t *testing.T) {
	for _, c := range []struct {
		name    string
		state   engine.State
		attempt uint8
		code    wire.Code
		want    bool
	}{
		{"done", engine.StateSucceeded, 1, wire.CodeOK, false},
		{"failed", engine.StateFailed, 1, wire.CodeFailed, false},
		{"still under way", engine.StateRunning, 1, wire.CodeNone, false},
		{"expired before it was sent", engine.StateTimeout, 0, wire.CodeNone, false},
		{"never confirmed", engine.StateTimeout, 1, wire.CodeNone, true},
		{"interrupted", engine.StateTimeout, 1, wire.CodeInterrupted, true},
		{"a code of a newer agent", engine.StateTimeout, 1, wire.Code(250), true},
		{"expired at the agent", engine.StateTimeout, 1, wire.CodeExpired, false},
		{"failed, and no time for another attempt", engine.StateTimeout, 2, wire.CodeIO, false},
		{"stopped by its agent when its time was over, before the effect or in its midst", engine.StateTimeout, 1, wire.CodeCancelled, true},
	} {
		v := scada.NewInstructionView("default", engine.Instruction{Seq: 1, State: c.state, Attempt: c.attempt, Code: c.code})
		if v.OutcomeUnknown != c.want {
			t.Errorf("%s: %v", c.name, v.OutcomeUnknown)
		}
	}
}

// A task on many nodes names those that need attention, and counts all.
func TestStatusOfManyNodes(t *testing.T) {
	task, in := sample(t)
	var ins []engine.Instruction
	for i := range 1000 {
		one := in
		one.Seq, one.Node = uint64(i), fmt.Sprintf("n%03d", i)
		if i == 700 {
			one.State, one.Reason, one.Code = engine.StateFailed, "interrupted", wire.CodeInterrupted
		}
		ins = append(ins, one)
	}
	s := scada.NewStatus("default", task, ins)
	if len(s.Nodes) != scada.MaxStatusNodes || s.Nodes[0] != (scada.NodeStatus{Node: "n700", State: "FAILED", Reason: "interrupted", Code: "interrupted"}) {
		t.Errorf("%d nodes, first %+v", len(s.Nodes), s.Nodes[0])
	}
	if s.Count != 1000 || s.Counts["SUCCEEDED"] != 999 || s.Counts["FAILED"] != 1 || s.State != "FAILED" || s.Node != "" {
		t.Errorf("%+v", s)
	}
	if s.Code != "unknown" {
		t.Errorf("one outcome is not known, but the code is %q", s.Code)
	}
}

// Text of any origin is data wherever it is shown.
func TestM1_MarkupIsData(t *testing.T) {
	const evil = "</script><script>alert('&')</script>\u2028"
	task, in := sample(t)
	task.Source.Actor, task.Source.Client = evil, evil
	task.Spec.Metadata = map[string]string{evil: evil}
	in.Detail, in.Reason, in.CancelBy, in.Node = evil, evil, evil, evil
	in.Payload = argsOf(t, map[string]any{evil: []any{evil, map[string]any{evil: evil}}})
	_, _, fault := scada.ParseTask([]byte(`{"`+evil+`":1}`), scada.JSON, scada.Options{})
	for _, doc := range []scada.Document{
		scada.NewStatus("default", task, []engine.Instruction{in}),
		scada.NewStatus("default", task, []engine.Instruction{in, in}),
		scada.NewTaskView("default", task, []engine.Instruction{in}, true),
		scada.NewEntryView(evil, engine.Entry{Actor: evil, Detail: evil, Event: 1}),
		scada.NewNodeView(engine.Node{ID: evil, Labels: map[string]string{evil: evil}, Pins: []string{evil}, Version: evil}, scada.Presence{Reason: evil}, 1),
		scada.Alarm{Alarm: evil, Node: evil, Detail: evil},
		scada.Refused(fault),
	} {
		b, err := scada.Marshal(doc)
		if err != nil {
			t.Fatal(err)
		}
		if bytes.ContainsAny(b, "<>&\u2028") {
			t.Errorf("%T lets markup through: %s", doc, b)
		}
		if !strings.Contains(string(b), `\u003cscript\u003e`) {
			t.Errorf("%T has lost the text: %s", doc, b)
		}
	}
	b, err := scada.MarshalTask(task.Spec)
	if err != nil || bytes.ContainsAny(b, "<>&") {
		t.Errorf("%s, %v", b, err)
	}
}

func TestResultKeepsEveryDigit(t *testing.T) {
	task, in := sample(t)
	in.Payload = argsOf(t, map[string]any{
		"max": uint64(18446744073709551615), "min": int64(-9223372036854775808), "odd": int64(9007199254740993),
		"bytes": []byte{0, 1, 255}, "half": 0.5, "none": nil,
	})
	b, err := scada.Marshal(scada.NewStatus("default", task, []engine.Instruction{in}))
	if err != nil {
		t.Fatal(err)
	}
	want := `"result":{"bytes":"AAH/","half":0.5,"max":18446744073709551615,"min":-9223372036854775808,"none":null,"odd":9007199254740993}`
	if !strings.Contains(string(b), want) {
		t.Errorf("%s", b)
	}
}

// What an agent sends wrong is shown as wrong and hides nothing else.
func TestUnreadableBytesAreShownAsSuch(t *testing.T) {
	task, in := sample(t)
	in.Payload = wire.RawMap{0xa1, 0x61, 'a', 0xf9, 0x7e, 0x00} // {"a": NaN}
	in.Args = wire.RawMap{0xff}
	task.Spec.Args = wire.RawMap{0xff}
	s := scada.NewStatus("default", task, []engine.Instruction{in})
	v := scada.NewTaskView("default", task, []engine.Instruction{in}, true)
	if s.Result != nil || s.ResultError == "" || s.State != "SUCCEEDED" {
		t.Errorf("%+v", s)
	}
	if v.TaskID != "fill-3" || v.Args["unreadable"] == nil || v.Instructions[0].Args["unreadable"] == nil {
		t.Errorf("%+v", v)
	}
	if _, err := scada.Marshal(v); err != nil {
		t.Error(err)
	}
	if _, err := scada.MarshalTask(task.Spec); err == nil {
		t.Error("a task with unreadable arguments is written as a document")
	}
}

// An agent's clock can claim any time; the document stays a document.
func TestTimesAreAlwaysRFC3339(t *testing.T) {
	for _, c := range []struct {
		ms   int64
		want string
	}{
		{0, ""},
		{1, "1970-01-01T00:00:00.001Z"},
		{-5, "1970-01-01T00:00:00.001Z"},
		{1<<63 - 1, "9999-12-31T23:59:59.999Z"},
	} {
		if got := scada.NewEntryView("n", engine.Entry{AgentAt: c.ms}).AgentTime; got != c.want {
			t.Errorf("%d: %q", c.ms, got)
		}
	}
}
