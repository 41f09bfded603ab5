package engine_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/apollo-11/apollo11/gateway/engine"
	"github.com/apollo-11/apollo11/wire"
)

// states are all states by number.
var states = []engine.State{engine.StateNone, engine.StatePending, engine.StateDispatched, engine.StateRunning,
	engine.StateSucceeded, engine.StateFailed, engine.StateRetrying, engine.StateCancelled, engine.StateTimeout}

// TestB1_TransitionTable holds the table against the lifecycle as it stands in
// the package comment, pair by pair.
func TestB1_TransitionTable(t *testing.T) {
	const lifecycle = `
		-> PENDING
		PENDING -> DISPATCHED CANCELLED TIMEOUT
		DISPATCHED -> RUNNING CANCELLED PENDING TIMEOUT
		RUNNING -> SUCCEEDED FAILED TIMEOUT CANCELLED
		FAILED -> RETRYING
		TIMEOUT -> RETRYING
		RETRYING -> RUNNING CANCELLED TIMEOUT`
	want := map[string]bool{}
	for line := range strings.Lines(strings.TrimSpace(lifecycle)) {
		from, to, _ := strings.Cut(line, "->")
		for _, s := range strings.Fields(to) {
			want[strings.TrimSpace(from)+">"+s] = true
		}
	}
	pairs := 0
	for _, from := range states {
		for _, to := range states {
			pairs++
			if got := engine.Allowed(from, to); got != want[from.String()+">"+to.String()] {
				t.Errorf("Allowed(%v, %v) = %v", from, to, got)
			}
		}
	}
	if pairs != 81 {
		t.Errorf("%d pairs were looked at, want 81", pairs)
	}
	for _, odd := range []engine.State{9, 10, 255} {
		if engine.Allowed(odd, engine.StatePending) || engine.Allowed(engine.StatePending, odd) {
			t.Errorf("state %d is in the table", odd)
		}
		if want := fmt.Sprintf("STATE_%d", odd); odd.String() != want || odd.Settled() {
			t.Errorf("state %d is called %v, settled %v", odd, odd, odd.Settled())
		}
	}
}

func TestStateNames(t *testing.T) {
	for _, s := range states[1:] {
		if got, ok := engine.ParseState(s.String()); !ok || got != s {
			t.Errorf("ParseState(%q) = %v, %v", s, got, ok)
		}
		ends := strings.Contains("SUCCEEDED FAILED CANCELLED TIMEOUT", s.String())
		if s.Settled() != ends {
			t.Errorf("%v: settled %v", s, s.Settled())
		}
	}
	for _, s := range []string{"", "pending", "STATE_9", "PENDING "} {
		if got, ok := engine.ParseState(s); ok {
			t.Errorf("ParseState(%q) = %v", s, got)
		}
	}
}

func TestSummarize(t *testing.T) {
	for _, c := range []struct{ states, want string }{
		{"", ""},
		{"SUCCEEDED SUCCEEDED", "SUCCEEDED"},
		{"SUCCEEDED CANCELLED", "CANCELLED"},
		{"SUCCEEDED CANCELLED TIMEOUT", "TIMEOUT"},
		{"TIMEOUT FAILED SUCCEEDED CANCELLED", "FAILED"},
		{"SUCCEEDED PENDING", "PENDING"},
		{"FAILED PENDING", "PENDING"},
		{"PENDING DISPATCHED", "DISPATCHED"},
		{"DISPATCHED RETRYING PENDING", "RETRYING"},
		{"RETRYING RUNNING FAILED", "RUNNING"},
	} {
		var list []engine.Instruction
		for _, name := range strings.Fields(c.states) {
			s, ok := engine.ParseState(name)
			if !ok {
				t.Fatal(name)
			}
			list = append(list, engine.Instruction{State: s})
		}
		got, counts := engine.Summarize(list)
		if got.String() != c.want {
			t.Errorf("%s: %v, want %s", c.states, got, c.want)
		}
		for _, s := range states {
			n := 0
			for _, i := range list {
				if i.State == s {
					n++
				}
			}
			if counts[s] != n {
				t.Errorf("%s: %d are %v, want %d", c.states, counts[s], s, n)
			}
		}
	}
	if s, _ := engine.Summarize([]engine.Instruction{{State: 77}}); s != engine.StateNone {
		t.Errorf("an unknown state counts as %v", s)
	}
}

// sum is the sum of a Spec that must have one.
func sum(t *testing.T, s engine.Spec) [16]byte {
	t.Helper()
	b, err := s.Sum()
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestA4_SumIdentifiesTheContent(t *testing.T) {
	args, err := wire.EncodeMap(map[string]any{"pin": "GPIO17", "level": 1}, wire.MaxArgsBytes)
	if err != nil {
		t.Fatal(err)
	}
	base := engine.Spec{Intent: "gpio.write", Args: args, Nodes: []string{"a", "b"}, TTLMs: 1000,
		Metadata: map[string]string{"x": "1", "y": "2", "z": "3"}, Retry: &engine.Retry{Max: 1}}
	for name, change := range map[string]func(*engine.Spec){
		"the task id":                    func(s *engine.Spec) { s.TaskID = "mine" },
		"the trace":                      func(s *engine.Spec) { s.Trace = wire.NewTrace(1, 2) },
		"the order of a map":             func(s *engine.Spec) { s.Metadata = map[string]string{"z": "3", "y": "2", "x": "1"} },
		"another copy":                   func(s *engine.Spec) { s.Args = slices.Clone(s.Args); s.Nodes = slices.Clone(s.Nodes) },
		"normal priority, written out":   func(s *engine.Spec) { s.Priority = wire.PriorityNormal },
		"an empty map instead of no map": func(s *engine.Spec) { s.Label = engine.Selector{} },
	} {
		s := base
		change(&s)
		if sum(t, s) != sum(t, base) {
			t.Errorf("the sum depends on %s", name)
		}
	}
	seen := map[[16]byte]string{sum(t, base): "the base"}
	for name, change := range map[string]func(*engine.Spec){
		"intent":        func(s *engine.Spec) { s.Intent = "gpio.pulse" },
		"args":          func(s *engine.Spec) { s.Args = nil },
		"nodes":         func(s *engine.Spec) { s.Nodes = []string{"a"} },
		"label":         func(s *engine.Spec) { s.Label = engine.Selector{Key: "a", Value: "b"} },
		"timeout":       func(s *engine.Spec) { s.TimeoutMs = 1 },
		"retry":         func(s *engine.Spec) { s.Retry = &engine.Retry{Max: 2} },
		"no retry":      func(s *engine.Spec) { s.Retry = &engine.Retry{} },
		"default retry": func(s *engine.Spec) { s.Retry = nil },
		"priority":      func(s *engine.Spec) { s.Priority = wire.PriorityHigh },
		"ttl":           func(s *engine.Spec) { s.TTLMs = 1001 },
		"not_after":     func(s *engine.Spec) { s.TTLMs, s.NotAfter = 0, 1000 },
		"metadata":      func(s *engine.Spec) { s.Metadata = map[string]string{"x": "1"} },
	} {
		s := base
		change(&s)
		if other, ok := seen[sum(t, s)]; ok {
			t.Errorf("%s has the same sum as %s", name, other)
		}
		seen[sum(t, s)] = name
	}
}

func TestConfigIsChecked(t *testing.T) {
	if err := (engine.Config{}).Validate(); err != nil {
		t.Errorf("the defaults are refused: %v", err)
	}
	for name, c := range map[string]engine.Config{
		"window":        {Window: 129},
		"confirm":       {ConfirmTimeout: 2, ConfirmMax: 1},
		"resends":       {MaxResends: 201},
		"offline_after": {OfflineAfter: 1},
		"capacity":      {Capacity: 9},
	} {
		if err := c.Validate(); err == nil {
			t.Errorf("%s: %+v is accepted", name, c)
		}
	}
}
