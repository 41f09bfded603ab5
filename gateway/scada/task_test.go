package scada_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/apollo-11/apollo11/gateway/engine"
	"github.com/apollo-11/apollo11/gateway/scada"
	"github.com/apollo-11/apollo11/wire"
)

// parse accepts a document or fails the test.
func parse(t testing.TB, doc string, f scada.Format) engine.Spec {
	t.Helper()
	spec, _, err := scada.ParseTask([]byte(doc), f, scada.Options{Site: "default"})
	if err != nil {
		t.Fatalf("%s\n%v", doc, err)
	}
	return spec
}

// argsOf encodes what the arguments should be.
func argsOf(t testing.TB, m map[string]any) wire.RawMap {
	t.Helper()
	b, err := wire.EncodeMap(m, wire.MaxArgsBytes)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// The task definition of the requirement documents, as it stands.
func TestTaskDefinitionInYAML(t *testing.T) {
	got := parse(t, `task_id: collect-metrics-1712345678-b7e2
intent: collect_metrics
target_selector: {type: label, key: role, value: worker}
timeout: 120
retry_policy: {max_retries: 3, initial_interval: 5, max_interval: 60, backoff: exponential}
metadata: {operator: ops-team, change_ticket: CHG-2024-001}
`, scada.YAML)
	want := engine.Spec{
		TaskID:    "collect-metrics-1712345678-b7e2",
		Intent:    "collect_metrics",
		Label:     engine.Selector{Key: "role", Value: "worker"},
		TimeoutMs: 120_000,
		Retry:     &engine.Retry{Max: 3, InitialMs: 5000, MaxMs: 60_000},
		Metadata:  map[string]string{"operator": "ops-team", "change_ticket": "CHG-2024-001"},
	}
	if want.Means(want.Act()); !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v\nwant %+v", got, want)
	}
}

// The short command that a shell sends with mosquitto_pub.
func TestShortCommandInJSON(t *testing.T) {
	got := parse(t, `{"intent":"gpio.write","node":"pump-1","args":{"pin":"GPIO17","level":1},"ttl":"30s"}`, scada.JSON)
	want := engine.Spec{
		Intent: "gpio.write",
		Args:   argsOf(t, map[string]any{"pin": "GPIO17", "level": uint64(1)}),
		Nodes:  []string{"pump-1"},
		TTLMs:  30_000,
	}
	if want.Means(want.Act()); !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v\nwant %+v", got, want)
	}
}

// with is a document around the fields under test.
func with(fields string) string {
	return `{"intent":"collect_metrics","node":"a",` + fields + `}`
}

func TestFields(t *testing.T) {
	base := engine.Spec{Intent: "collect_metrics", Nodes: []string{"a"}}
	for _, c := range []struct {
		name   string
		fields string
		change func(*engine.Spec)
	}{
		{"a task id in capitals and signs", `"task_id":"A.b_c:d-9"`, func(s *engine.Spec) { s.TaskID = "A.b_c:d-9" }},
		{"timeout in seconds", `"timeout":120`, func(s *engine.Spec) { s.TimeoutMs = 120_000 }},
		{"timeout with a fraction", `"timeout":0.25`, func(s *engine.Spec) { s.TimeoutMs = 250 }},
		{"timeout with three decimals", `"timeout":1.001`, func(s *engine.Spec) { s.TimeoutMs = 1001 }},
		{"timeout with an exponent", `"timeout":1.2e2`, func(s *engine.Spec) { s.TimeoutMs = 120_000 }},
		{"timeout as text", `"timeout":"2m"`, func(s *engine.Spec) { s.TimeoutMs = 120_000 }},
		{"the longest timeout", `"timeout":"24h"`, func(s *engine.Spec) { s.TimeoutMs = 86_400_000 }},
		{"ttl in seconds", `"ttl":30`, func(s *engine.Spec) { s.TTLMs = 30_000 }},
		{"ttl as text", `"ttl":"1h30m0.5s"`, func(s *engine.Spec) { s.TTLMs = 5_400_500 }},
		{"the longest ttl", `"ttl":31622400`, func(s *engine.Spec) { s.TTLMs = scada.MaxTTLMs }},
		{"the shortest ttl", `"ttl":"1ms"`, func(s *engine.Spec) { s.TTLMs = 1 }},
		{"not_after with a zone", `"not_after":"2026-03-01T14:00:00.5+02:00"`, func(s *engine.Spec) { s.NotAfter = 1772366400500 }},
		{"not_after finer than a millisecond is never later", `"not_after":"2026-03-01T12:00:00.0019Z"`, func(s *engine.Spec) { s.NotAfter = 1772366400001 }},
		{"not_after in Unix milliseconds", `"not_after":1772366400000`, func(s *engine.Spec) { s.NotAfter = 1772366400000 }},
		{"expires_at is not_after", `"expires_at":"2026-03-01T12:00:00Z"`, func(s *engine.Spec) { s.NotAfter = 1772366400000 }},
		{"high priority", `"priority":"high"`, func(s *engine.Spec) { s.Priority = wire.PriorityHigh }},
		{"low priority", `"priority":"low"`, func(s *engine.Spec) { s.Priority = wire.PriorityLow }},
		{"normal priority is the absent one", `"priority":"normal"`, func(*engine.Spec) {}},
		{"empty objects are as good as none", `"args":{},"metadata":{},"retry_policy":{}`, func(*engine.Spec) {}},
		{"a trace id in capitals", `"trace_id":"0190A5B8-0000-4000-8000-00000000000F"`, func(s *engine.Spec) {
			s.Trace = wire.Trace{0x01, 0x90, 0xa5, 0xb8, 0, 0, 0x40, 0, 0x80, 0, 0, 0, 0, 0, 0, 0x0f}
		}},
		{"metadata of scalars", `"metadata":{"a":"x","b":1.50,"c":true,"d":"","e":18446744073709551616}`, func(s *engine.Spec) {
			s.Metadata = map[string]string{"a": "x", "b": "1.50", "c": "true", "d": "", "e": "18446744073709551616"}
		}},
		{"a retry policy in part", `"retry_policy":{"max_retries":0}`, func(s *engine.Spec) {
			s.Retry = &engine.Retry{Max: 0, InitialMs: 1000, MaxMs: 60_000}
		}},
		{"a long initial interval raises the maximum that is not given", `"retry_policy":{"initial_interval":"2m"}`, func(s *engine.Spec) {
			s.Retry = &engine.Retry{Max: 3, InitialMs: 120_000, MaxMs: 120_000}
		}},
		{"a fixed backoff has one interval", `"retry_policy":{"backoff":"fixed","initial_interval":5,"max_interval":"1m"}`, func(s *engine.Spec) {
			s.Retry = &engine.Retry{Max: 3, InitialMs: 5000, MaxMs: 5000, Backoff: engine.BackoffFixed}
		}},
		{"C3: a tiered backoff has its own waits and eight retries", `"retry_policy":{"backoff":"tiered"}`, func(s *engine.Spec) {
			s.Retry = &engine.Retry{Max: 8, InitialMs: 5000, MaxMs: 60_000, Backoff: engine.BackoffTiered}
		}},
		{"a tiered backoff with other waits keeps its own", `"retry_policy":{"initial_interval":90,"max_interval":1,"backoff":"tiered","max_retries":2}`, func(s *engine.Spec) {
			s.Retry = &engine.Retry{Max: 2, InitialMs: 5000, MaxMs: 60_000, Backoff: engine.BackoffTiered}
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			want := base
			c.change(&want)
			want.Means(want.Act())
			if got := parse(t, with(c.fields), scada.JSON); !reflect.DeepEqual(got, want) {
				t.Errorf("got %+v\nwant %+v", got, want)
			}
		})
	}
}

func TestTargets(t *testing.T) {
	for _, c := range []struct {
		target string
		nodes  []string
		label  engine.Selector
	}{
		{`"node":"a"`, []string{"a"}, engine.Selector{}},
		{`"nodes":["c","a","b"]`, []string{"a", "b", "c"}, engine.Selector{}},
		{`"target_selector":{"type":"nodes","nodes":["b","a"]}`, []string{"a", "b"}, engine.Selector{}},
		{`"target_selector":{"nodes":["b"],"type":"node"}`, []string{"b"}, engine.Selector{}},
		{`"target_selector":{"value":"w x","key":"role","type":"label"}`, nil, engine.Selector{Key: "role", Value: "w x"}},
	} {
		got := parse(t, `{"intent":"collect_metrics",`+c.target+`}`, scada.JSON)
		if !reflect.DeepEqual(got.Nodes, c.nodes) || got.Label != c.label {
			t.Errorf("%s: nodes %v, label %+v", c.target, got.Nodes, got.Label)
		}
	}
}

func TestNodeListIsBounded(t *testing.T) {
	list := func(n int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, `,"n%d"`, i)
		}
		return `{"intent":"collect_metrics","nodes":[` + b.String()[1:] + `]}`
	}
	if got := parse(t, list(scada.MaxNodes), scada.JSON); len(got.Nodes) != scada.MaxNodes {
		t.Errorf("%d nodes of %d", len(got.Nodes), scada.MaxNodes)
	}
	refuse(t, list(scada.MaxNodes+1), scada.JSON, scada.CodeTooLarge, "nodes")
}

// refuse checks the first fault of a document.
func refuse(t *testing.T, doc string, f scada.Format, code scada.Code, field string) *scada.Error {
	t.Helper()
	_, _, err := scada.ParseTask([]byte(doc), f, scada.Options{Site: "default"})
	if err == nil {
		t.Fatalf("accepted: %.200q", doc)
	}
	fault := err.(*scada.Error)
	if fault.Code != code || fault.Field != field {
		t.Errorf("%.200q: %s %q (%v), want %s %q", doc, fault.Code, fault.Field, fault, code, field)
	}
	return fault
}

func TestArgsOfOtherIntentsArePassedOn(t *testing.T) {
	got := parse(t, `{"intent":"valve.set","node":"a","args":{"z":null,"big":18446744073709551615,"neg":-9223372036854775808,
		"exact":9007199254740993,"whole":21.0,"kilo":1e3,"half":0.5,"minus":-0.0,"text":"<b>\u00e4\u0000","list":[1,[true]],"map":{"a":{}}}}`, scada.JSON)
	want := argsOf(t, map[string]any{
		"z": nil, "big": uint64(18446744073709551615), "neg": int64(-9223372036854775808),
		"exact": int64(9007199254740993), "whole": int64(21), "kilo": int64(1000), "half": 0.5, "minus": int64(0),
		"text": "<b>ä\x00", "list": []any{int64(1), []any{true}}, "map": map[string]any{"a": map[string]any{}},
	})
	if !bytes.Equal(got.Args, want) {
		t.Errorf("got  %x\nwant %x", got.Args, want)
	}
}

// What is accepted can be stored in the gateway's log and read by an agent.
func TestDeepestArgsPassTheWireAndTheLog(t *testing.T) {
	spec := parse(t, `{"intent":"set","node":"a","args":{"a":[{"a":[{"a":[{"a":[1]}]}]}]}}`, scada.JSON)
	record, err := wire.EncodeRecord(engine.Task{ID: "x", Spec: spec})
	if err != nil {
		t.Fatal(err)
	}
	var back engine.Task
	if err := wire.DecodeRecord(record, &back); err != nil {
		t.Errorf("the log cannot read it: %v", err)
	}
	msg, err := wire.Encode(&wire.Instruction{
		Seq: 1, Key: wire.Key{Site: "s", Millis: 1, Seq: 1}.String(), Token: wire.Token{Seq: 1}, Attempt: 1,
		Intent: spec.Intent, Args: spec.Args, Trace: wire.NewTrace(1, 2), SentAt: 1,
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := wire.DecodeDownlink(msg); err != nil {
		t.Errorf("an agent cannot read it: %v", err)
	}
	if _, err := wire.DecodeMap(spec.Args); err != nil {
		t.Error(err)
	}
	refuse(t, `{"intent":"set","node":"a","args":{"a":[{"a":[{"a":[{"a":[[1]]}]}]}]}}`, scada.JSON, scada.CodeTooDeep, "args.a[0].a[0].a[0].a[0]")
}

func TestArgsAreBounded(t *testing.T) {
	many := func(n int, entry string) string { return strings.TrimPrefix(strings.Repeat(","+entry, n), ",") }
	numbered := func(n int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, `,"k%d":1`, i)
		}
		return b.String()[1:]
	}
	set := func(args string) string { return `{"intent":"set","node":"a","args":{` + args + `}}` }
	parse(t, set(`"a":[`+many(wire.MaxArrayElements, "1")+`]`), scada.JSON)
	refuse(t, set(`"a":[`+many(wire.MaxArrayElements+1, "1")+`]`), scada.JSON, scada.CodeTooLarge, "args.a")
	parse(t, set(numbered(wire.MaxMapPairs)), scada.JSON)
	refuse(t, set(numbered(wire.MaxMapPairs+1)), scada.JSON, scada.CodeTooLarge, "args")
	refuse(t, set(`"a":"`+strings.Repeat("x", wire.MaxArgsBytes)+`"`), scada.JSON, scada.CodeTooLarge, "args")
}

func TestMetadataIsBounded(t *testing.T) {
	entries := func(n int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, `,"k%d":"v"`, i)
		}
		return `"metadata":{` + b.String()[1:] + `}`
	}
	parse(t, with(entries(scada.MaxMetadata)), scada.JSON)
	refuse(t, with(entries(scada.MaxMetadata+1)), scada.JSON, scada.CodeTooLarge, "metadata")
	parse(t, with(`"metadata":{"k":"`+strings.Repeat("x", scada.MaxMetadataValue)+`"}`), scada.JSON)
	refuse(t, with(`"metadata":{"k":"`+strings.Repeat("x", scada.MaxMetadataValue+1)+`"}`), scada.JSON, scada.CodeTooLarge, "metadata.k")
	refuse(t, with(`"metadata":{"":"x"}`), scada.JSON, scada.CodeBadValue, "metadata.")
}

func TestDocumentIsBounded(t *testing.T) {
	doc := with(`"metadata":{"k":"v"}`)
	full := doc + strings.Repeat(" ", scada.MaxTaskBytes-len(doc))
	parse(t, full, scada.JSON)
	refuse(t, full+" ", scada.JSON, scada.CodeTooLarge, "")
	refuse(t, strings.Repeat("x", 1<<20), scada.Auto, scada.CodeTooLarge, "")
	_, _, err := scada.ParseTask([]byte(doc), scada.JSON, scada.Options{MaxBytes: 10})
	if err == nil || !strings.Contains(err.Error(), "the limit is 10") {
		t.Errorf("a limit of 10: %v", err)
	}
}

func TestWarnings(t *testing.T) {
	for _, c := range []struct {
		name, doc string
		now       int64
		want      []scada.Warning
	}{
		{"nothing to say", `{"task_id":"x","intent":"collect_metrics","node":"a"}`, 0, nil},
		{"no task id (D4)", `{"intent":"collect_metrics","node":"a"}`, 0, []scada.Warning{
			{scada.WarnNoTaskID, "task_id", 1, 1, "is absent: sending this document again makes another task"}}},
		{"a number as the task id", `{"task_id":42,"intent":"collect_metrics","node":"a"}`, 0, []scada.Warning{
			{scada.WarnCoerced, "task_id", 1, 12, "is a number and was taken as the text 42"}}},
		{"a number in metadata", "{\"task_id\":\"x\",\"intent\":\"collect_metrics\",\"node\":\"a\",\n\"metadata\":{\"n\":7}}", 0, []scada.Warning{
			{scada.WarnCoerced, "metadata.n", 2, 17, "is the number 7 and was taken as text"}}},
		{"a deadline that has passed", `{"task_id":"x","intent":"collect_metrics","node":"a","not_after":1772366400000}`, 1772366400000, []scada.Warning{
			{scada.WarnPast, "not_after", 1, 66, "has already passed: the task will not be executed"}}},
		{"a deadline to come", `{"task_id":"x","intent":"collect_metrics","node":"a","not_after":1772366400001}`, 1772366400000, nil},
		{"almost a built-in intent", `{"task_id":"x","intent":"gpio.wirte","node":"a"}`, 0, []scada.Warning{
			{scada.WarnIntent, "intent", 1, 25, "gpio.wirte is not built in and only works where an agent has it: did you mean gpio.write?"}}},
		{"a maximum without effect", `{"task_id":"x","intent":"collect_metrics","node":"a","retry_policy":{"backoff":"fixed","max_interval":60}}`, 0, []scada.Warning{
			{scada.WarnUnused, "retry_policy.max_interval", 1, 103, "has no effect with backoff fixed"}}},
		{"waits without effect", `{"task_id":"x","intent":"collect_metrics","node":"a","retry_policy":{"backoff":"tiered","initial_interval":1,"max_interval":90}}`, 0, []scada.Warning{
			{scada.WarnUnused, "retry_policy.initial_interval", 1, 108, "has no effect with backoff tiered"},
			{scada.WarnUnused, "retry_policy.max_interval", 1, 125, "has no effect with backoff tiered"}}},
		{"the waits of the tiers themselves", `{"task_id":"x","intent":"collect_metrics","node":"a","retry_policy":{"backoff":"tiered","initial_interval":5,"max_interval":"1m"}}`, 0, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, got, err := scada.ParseTask([]byte(c.doc), scada.JSON, scada.Options{Now: c.now})
			if err != nil || !reflect.DeepEqual(got, c.want) {
				t.Errorf("got %+v, %v\nwant %+v", got, err, c.want)
			}
		})
	}
}

// Columns count characters, so that an editor jumps to the right place.
func TestPositionsCountCharacters(t *testing.T) {
	json := refuse(t, "{\"metadata\":{\"wer\":\"Jürgen 😀\"},\"x\":1,\"intent\":\"collect_metrics\",\"node\":\"a\"}", scada.JSON, scada.CodeUnknownField, "x")
	yaml := refuse(t, "{metadata: {wer: Jürgen 😀}, x: 1, intent: collect_metrics, node: a}", scada.YAML, scada.CodeUnknownField, "x")
	if json.Line != 1 || json.Column != 32 || yaml.Line != 1 || yaml.Column != 29 {
		t.Errorf("JSON at %d:%d, YAML at %d:%d", json.Line, json.Column, yaml.Line, yaml.Column)
	}
}

func TestFormatOf(t *testing.T) {
	for _, c := range []struct {
		contentType string
		format      scada.Format
		ok          bool
	}{
		{"", scada.Auto, true},
		{"application/json", scada.JSON, true},
		{"Application/JSON; charset=utf-8", scada.JSON, true},
		{"application/vnd.x+json", scada.JSON, true},
		{"application/yaml", scada.YAML, true},
		{"text/x-yaml", scada.YAML, true},
		{"application/x-www-form-urlencoded", scada.Auto, true},
		{"text/plain; charset=utf-8", scada.Auto, true},
		{"application/xml", scada.Auto, false},
		{"image/png", scada.Auto, false},
		{";;", scada.Auto, false},
	} {
		if f, ok := scada.FormatOf(c.contentType); f != c.format || ok != c.ok {
			t.Errorf("%q: %v, %v", c.contentType, f, ok)
		}
	}
}

func TestAutoTellsTheFormatByTheFirstByte(t *testing.T) {
	want := engine.Spec{Intent: "collect_metrics", Nodes: []string{"a"}}
	want.Means(want.Act())
	for _, doc := range []string{
		" \r\n{\"intent\":\"collect_metrics\",\"node\":\"a\"}",
		"\xef\xbb\xbf{\"intent\":\"collect_metrics\",\"node\":\"a\"}",
		"# a task\nintent: collect_metrics\nnode: a\n",
		"---\nintent: collect_metrics\r\nnode: a\r\n",
	} {
		if got := parse(t, doc, scada.Auto); !reflect.DeepEqual(got, want) {
			t.Errorf("%q: %+v", doc, got)
		}
	}
	if fault := refuse(t, "{intent: collect_metrics}", scada.Auto, scada.CodeSyntax, ""); !strings.Contains(fault.Problem, "not JSON") {
		t.Errorf("YAML flow style taken as JSON says: %v", fault)
	}
}

func TestUnknownFormatIsRefused(t *testing.T) {
	refuse(t, "{}", scada.Format(9), scada.CodeInternal, "")
}

// The task id of a refused document goes into the answer, so that the sender
// can tell which of its documents it was.
func TestRefusalKnowsTheTask(t *testing.T) {
	fault := refuse(t, `{"task_id":"t-1","intent":"collect_metrics","node":"a","x":1}`, scada.JSON, scada.CodeUnknownField, "x")
	b, err := scada.Marshal(scada.Refused(fmt.Errorf("submit: %w", fault)))
	if err != nil {
		t.Fatal(err)
	}
	var got map[string]any
	if err := json.Unmarshal(b, &got); err != nil {
		t.Fatal(err)
	}
	if got["task_id"] != "t-1" || got["ok"] != false {
		t.Errorf("%s", b)
	}
}
