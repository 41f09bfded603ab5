package api_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/apollo-11/apollo11/gateway/api"
	"github.com/apollo-11/apollo11/gateway/api/apitest"
	"github.com/apollo-11/apollo11/wire"
)

// instructionOf is what the gateway has stored of a verb.
func instructionOf(t *testing.T, s *site, seq uint64) (intent string, args map[string]any) {
	t.Helper()
	in, _, ok, err := s.g.Timeline(context.Background(), seq)
	if err != nil || !ok {
		t.Fatalf("instruction %d: %v, %v", seq, ok, err)
	}
	args, err = wire.DecodeMap(in.Args)
	if err != nil {
		t.Fatal(err)
	}
	return in.Intent, args
}

func TestVerbsAreTakenWithoutADocument(t *testing.T) {
	for _, c := range []struct {
		path, body, node, intent string
		pin                      any
		header                   []string
	}{
		{"/v1/safe/pump-1", "", "pump-1", wire.IntentSafe, nil, nil},
		{"/v1/safe/pump-1/valve-1", "", "pump-1", wire.IntentSafe, "valve-1", nil},
		{"/v1/safe/pump-1/pinctrl-bcm2835:17", "", "pump-1", wire.IntentSafe, "pinctrl-bcm2835:17", nil},
		{"/v1/safe/pump-1", "", "pump-1", wire.IntentSafe, nil, []string{"Content-Type", "application/x-www-form-urlencoded"}},
		{"/v1/safe/pump-1", `{"reason":"leak"}`, "pump-1", wire.IntentSafe, nil, []string{"Content-Type", "application/json"}},
		{"/v1/safe/never-seen", "{}", "never-seen", wire.IntentSafe, nil, nil},
		{"/v1/safe/owed", "", "owed", wire.IntentSafe, nil, nil},
		{"/v1/safe/owed/valve-1", "", "owed", wire.IntentSafe, "valve-1", nil},
		{"/v1/release/pump-1", "", "pump-1", wire.IntentRelease, nil, nil},
		{"/v1/release/pump-1/valve-1", "", "pump-1", wire.IntentRelease, "valve-1", nil},
	} {
		t.Run(c.path, func(t *testing.T) {
			s := newSite(t, api.Options{})
			var got submitted
			a := s.call("POST", c.path, c.body, c.header...).want(201, &got)
			if len(got.Instructions) != 1 || got.Instructions[0].Node != c.node || a.header.Get("Location") != "/v1/tasks/"+got.TaskID {
				t.Fatalf("%+v, Location %s", got, a.header.Get("Location"))
			}
			intent, args := instructionOf(t, s, 1)
			if intent != c.intent || args["pin"] != c.pin {
				t.Errorf("%s with %v", intent, args)
			}
		})
	}
}

// The same command twice with a key is one; without a key it is counted with the one
// that has not arrived yet, and another one when that has ended.
func TestVerbsCanBeRepeated(t *testing.T) {
	s := newSite(t, api.Options{})
	var first, second, third submitted
	s.call("POST", "/v1/safe/pump-1", "", "Idempotency-Key", "stop-1").want(201, &first)
	s.call("POST", "/v1/safe/pump-1", "", "Idempotency-Key", "stop-1").want(200, &second)
	if first.TaskID != "stop-1" || second.TaskID != "stop-1" || !second.Existing {
		t.Errorf("%+v, then %+v", first, second)
	}
	if f := s.call("POST", "/v1/safe/pump-2", "", "Idempotency-Key", "stop-1").fault(409); f.Code != "conflict" {
		t.Errorf("%+v", f)
	}
	s.call("POST", "/v1/safe/pump-1", "").want(200, &third)
	if third.TaskID != "stop-1" || !third.Existing {
		t.Errorf("%+v", third)
	}
	s.g.Connect("pump-1", nil, apitest.Behaviour{Rules: true})
	third = submitted{}
	s.call("POST", "/v1/safe/pump-1", "").want(201, &third)
	if third.TaskID == "stop-1" {
		t.Errorf("%+v", third)
	}
}

// TestNoBodyHindersTheWayToSafe: a button of an HMI sends what it likes (C16).
func TestNoBodyHindersTheWayToSafe(t *testing.T) {
	for name, c := range map[string]struct {
		body   string
		header []string
	}{
		"text": {"xx", nil}, "a task": {writeTask, nil}, "a list": {"[]", nil}, "YAML": {"reason: x", []string{"Content-Type", "application/yaml"}},
		"a reason that is long": {`{"reason":"` + strings.Repeat("ü", 300) + `"}`, nil}, "a body that is long": {strings.Repeat(" ", api.MaxBody+1), nil},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t, api.Options{})
			var first submitted
			s.call("POST", "/v1/safe/pump-1", c.body, c.header...).want(201, &first)
		})
	}
}

// What can be read of a reason is kept, cut where it is too long and at no character.
func TestAReasonIsKeptAsFarAsItFits(t *testing.T) {
	for body, want := range map[string]string{
		`{"reason":"leak"}`: "leak",
		`{"why":"leak"}`:    "",
		`{"reason":7}`:      "",
		`{"reason":"` + strings.Repeat("ü", 300) + `"}`:           strings.Repeat("ü", api.MaxReason/2),
		`{"reason":"x` + strings.Repeat("ü", 300) + `"}`:          "x" + strings.Repeat("ü", api.MaxReason/2-1),
		`{"reason":"` + strings.Repeat("x", api.MaxReason) + `"}`: strings.Repeat("x", api.MaxReason),
	} {
		s := newSite(t, api.Options{})
		var v struct{ Metadata map[string]string }
		var first submitted
		s.call("POST", "/v1/safe/pump-1", body).want(201, &first)
		s.call("GET", "/v1/tasks/"+first.TaskID, "").want(200, &v)
		if v.Metadata["reason"] != want {
			t.Errorf("of %.40q was kept %q", body, v.Metadata)
		}
	}
}

func TestBadVerbs(t *testing.T) {
	long := strings.Repeat("x", wire.MaxNodeLen+1)
	for name, c := range map[string]struct {
		method, path, body string
		header             []string
		status             int
		code, field        string
	}{
		"a node that is long":     {"POST", "/v1/safe/" + long, "", nil, 400, "bad_value", "node"},
		"a node with a slash":     {"POST", "/v1/safe/a%2Fb", "", nil, 400, "bad_value", "node"},
		"a node with a wildcard":  {"POST", "/v1/safe/+", "", nil, 400, "bad_value", "node"},
		"a node in another form":  {"POST", "/v1/safe/s%C3%BCd", "", nil, 400, "bad_value", "node"},
		"a pin with markup":       {"POST", "/v1/safe/pump-1/%3Cb%3E", "", nil, 400, "bad_value", "pin"},
		"a pin that is long":      {"POST", "/v1/release/pump-1/" + long, "", nil, 400, "bad_value", "pin"},
		"an empty pin":            {"POST", "/v1/safe/pump-1/", "", nil, 404, "no_such_path", ""},
		"no node":                 {"POST", "/v1/safe", "", nil, 404, "no_such_path", ""},
		"too many levels":         {"POST", "/v1/safe/pump-1/valve-1/x", "", nil, 404, "no_such_path", ""},
		"a query":                 {"POST", "/v1/safe/pump-1?pin=valve-1", "", nil, 400, "unknown_field", "pin"},
		"a task":                  {"POST", "/v1/release/pump-1", writeTask, nil, 400, "unknown_field", "intent"},
		"a list":                  {"POST", "/v1/release/pump-1", "[]", nil, 400, "syntax", ""},
		"YAML":                    {"POST", "/v1/release/pump-1", "reason: x", []string{"Content-Type", "application/yaml"}, 415, "unsupported_media_type", ""},
		"a reason that is long":   {"POST", "/v1/release/pump-1", `{"reason":"` + strings.Repeat("x", 257) + `"}`, nil, 400, "too_large", "reason"},
		"a body that is long":     {"POST", "/v1/release/pump-1", strings.Repeat(" ", api.MaxBody+1), nil, 413, "too_large", ""},
		"a key that is no name":   {"POST", "/v1/safe/pump-1", "", []string{"Idempotency-Key", "a/b"}, 400, "bad_value", "Idempotency-Key"},
		"reading":                 {"GET", "/v1/safe/pump-1", "", nil, 405, "method_not_allowed", ""},
		"reading a release":       {"GET", "/v1/release/pump-1", "", nil, 405, "method_not_allowed", ""},
		"deleting what is owed":   {"DELETE", "/v1/safe/owed", "", nil, 405, "method_not_allowed", ""},
		"a query of what is owed": {"GET", "/v1/safe/owed?node=pump-1", "", nil, 400, "unknown_field", "node"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t, api.Options{})
			f := s.call(c.method, c.path, c.body, c.header...).fault(c.status)
			if f.Code != c.code || f.Field != c.field {
				t.Errorf("%+v, want %s of %q", f, c.code, c.field)
			}
			if list, _, err := s.g.Tasks(context.Background(), 0, 10); err != nil || len(list) != 0 {
				t.Errorf("%d tasks, %v", len(list), err)
			}
		})
	}
}

// Whoever drives a node safe whose agent does not know the intent must hear that
// nothing will move.
func TestOldAgentsAreWarnedOf(t *testing.T) {
	s := newSite(t, api.Options{})
	s.g.Connect("old", nil, apitest.Behaviour{Hold: true})
	s.g.Connect("new", nil, apitest.Behaviour{Hold: true, Rules: true})
	for _, verb := range []string{"safe", "release"} {
		var v submitted
		s.call("POST", "/v1/"+verb+"/old", "").want(201, &v)
		if len(v.Warnings) != 1 || !strings.Contains(v.Warnings[0].Message, "does not know gpio."+verb) {
			t.Errorf("%s: %+v", verb, v.Warnings)
		}
		v = submitted{}
		s.call("POST", "/v1/"+verb+"/new", "").want(201, &v)
		if len(v.Warnings) != 0 {
			t.Errorf("%s: %+v", verb, v.Warnings)
		}
	}
	s.g.Disconnect("old", "power")
	var v submitted
	s.call("POST", "/v1/safe/old", "").want(201, &v)
	if len(v.Warnings) != 1 || !strings.Contains(v.Warnings[0].Message, "does not know gpio.safe") {
		t.Errorf("while it is away: %+v", v.Warnings)
	}
}

func TestWhatIsOwedIsListed(t *testing.T) {
	s := newSite(t, api.Options{})
	var v struct {
		Owed []struct {
			Node, Pin, TaskID, Instruction, Since, Reason string
			Count                                         int
			Driven                                        bool
		}
		More int
	}
	s.call("GET", "/v1/safe/owed", "").want(200, &v)
	if v.Owed == nil || len(v.Owed) != 0 || v.More != 0 {
		t.Errorf("%+v", v)
	}
	s.g.Connect("here", nil, apitest.Behaviour{Rules: true, Payload: map[string]any{"driven": []any{"GPIO17"}}})
	s.g.Connect("busy", nil, apitest.Behaviour{Rules: true, Hold: true})
	for _, path := range []string{"/v1/safe/away", "/v1/safe/away/valve-2", "/v1/safe/busy", "/v1/safe/here", "/v1/release/away"} {
		s.call("POST", path, "").want(201, nil)
	}
	s.submit(`{"task_id":"other","intent":"gpio.write","node":"away","args":{"pin":"valve-2","level":0}}`)
	s.call("GET", "/v1/safe/owed", "").want(200, &v)
	var got []string
	for _, o := range v.Owed {
		got = append(got, fmt.Sprintf("%s/%s x%d: %s", o.Node, o.Pin, o.Count, o.Reason))
		if o.Driven || o.Since == "" || o.Instruction == "" {
			t.Errorf("%+v", o)
		}
	}
	want := []string{"away/ x1: the node has never connected", "away/valve-2 x1: the node has never connected", "busy/ x1: it was sent and is not confirmed"}
	if !slices.Equal(got, want) {
		t.Errorf("owed is %q, want %q", got, want)
	}
}

// A long list is cut, and says so.
func TestWhatIsOwedIsBounded(t *testing.T) {
	s := newSite(t, api.Options{})
	for k := range 1003 {
		s.call("POST", fmt.Sprintf("/v1/safe/n%03d/p%d", k%1000, k/1000), "").want(201, nil)
	}
	var v struct {
		Owed []json.RawMessage
		More int
	}
	s.call("GET", "/v1/safe/owed", "").want(200, &v)
	if len(v.Owed) != 1000 || v.More != 3 {
		t.Errorf("%d are listed, %d are not", len(v.Owed), v.More)
	}
}
