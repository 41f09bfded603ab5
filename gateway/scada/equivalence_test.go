package scada_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/apollo-11/apollo11/gateway/scada"
)

// writer draws task documents, right and wrong ones, from a seed.
type writer struct{ *rand.Rand }

func (w writer) pick(of ...any) any { return of[w.IntN(len(of))] }

// scalar draws any scalar that both formats have. The text "1e999" is not among
// them: the YAML library writes it without quotes, and without quotes it is a
// number to us.
func (w writer) scalar() any {
	return w.pick(0, 1, -1, 21, 0.5, -2.25, 1e3, 123456789012345678, uint64(18446744073709551615), true, false, nil,
		"", "on", "off", "yes", "no", "null", "~", "true", "1", "0x10", "010", ".inf", "2026-03-01", "2026-03-01T12:00:00Z",
		"<b>&", "ä€😀", "a: b", "# x", "- x", "&a", "*a", "!t", "'", "\"", "\\", "a\nb", "\t", " x ", "pump-1", "30s", "-5s", "GPIO17")
}

func (w writer) any(depth int) any {
	switch n := w.IntN(10); {
	case depth > 0 && n == 0:
		list := make([]any, w.IntN(4))
		for i := range list {
			list[i] = w.any(depth - 1)
		}
		return list
	case depth > 0 && n == 1:
		m := make(map[string]any)
		for range w.IntN(4) {
			m[fmt.Sprint(w.pick("a", "b", "on", "null", "x y", "1", "<<", "ä", "pin", "level"))] = w.any(depth - 1)
		}
		return m
	}
	return w.scalar()
}

// task draws a task; each field is mostly right and sometimes anything.
func (w writer) task() map[string]any {
	m := map[string]any{"intent": w.pick("gpio.write", "gpio.read", "collect_metrics", "valve.set")}
	m[fmt.Sprint(w.pick("node", "node", "nodes", "target_selector"))] = w.pick("pump-1", "pump-1", []any{"b", "a"},
		map[string]any{"type": "label", "key": "role", "value": "worker"}, map[string]any{"type": "nodes", "nodes": []any{"a"}})
	for _, f := range []struct {
		name  string
		value any
	}{
		{"task_id", w.pick("t-1", 42, "a/b")},
		{"timeout", w.pick(120, 0.5, "2m", 0)},
		{"ttl", w.pick(30, "30s", "1h")},
		{"not_after", w.pick(1772366400000, "2026-03-01T12:00:00Z", 1772366400)},
		{"priority", w.pick("high", "normal", "low")},
		{"metadata", map[string]any{"k": w.scalar(), "on": w.scalar()}},
		{"trace_id", "0190a5b8-0000-4000-8000-00000000000f"},
		{"depends_on", []any{"x"}},
		{"args", w.pick(map[string]any{"pin": "GPIO17", "level": w.scalar()}, map[string]any{"pin": "GPIO17"}, map[string]any{"v": w.any(3)}, w.any(4))},
		{"retry_policy", map[string]any{"max_retries": w.pick(0, 3, 200), "initial_interval": w.pick(5, "5s"), "backoff": w.pick("fixed", "exponential", "tiered")}},
	} {
		switch w.IntN(12) {
		case 0, 1, 2:
			m[f.name] = f.value
		case 3:
			if w.IntN(6) == 0 {
				m[f.name] = w.any(2)
			}
		}
	}
	return m
}

// The same task in JSON and in YAML gives the same Spec, or the same faults.
func TestJSONAndYAMLMeanTheSame(t *testing.T) {
	accepted := 0
	const rounds = 1000
	for seed := range uint64(rounds) {
		task := writer{rand.New(rand.NewPCG(seed, 1))}.task()
		asJSON, err := json.Marshal(task)
		if err != nil {
			t.Fatal(err)
		}
		asYAML, err := yaml.Marshal(task)
		if err != nil {
			t.Fatal(err)
		}
		fromJSON, jsonWarnings, jsonErr := scada.ParseTask(asJSON, scada.JSON, scada.Options{})
		fromYAML, yamlWarnings, yamlErr := scada.ParseTask(asYAML, scada.YAML, scada.Options{})
		if (jsonErr == nil) != (yamlErr == nil) {
			t.Fatalf("seed %d\n%s\n%v\n%s\n%v", seed, asJSON, jsonErr, asYAML, yamlErr)
		}
		if jsonErr != nil {
			if a, b := faultsOf(jsonErr), faultsOf(yamlErr); a != b {
				t.Fatalf("seed %d\n%s\n%s\n%s\n%s", seed, asJSON, a, asYAML, b)
			}
			continue
		}
		accepted++
		if !reflect.DeepEqual(fromJSON, fromYAML) || len(jsonWarnings) != len(yamlWarnings) {
			t.Fatalf("seed %d\n%s\n%+v %v\n%s\n%+v %v", seed, asJSON, fromJSON, jsonWarnings, asYAML, fromYAML, yamlWarnings)
		}
	}
	if accepted < rounds/20 {
		t.Errorf("only %d of %d documents were accepted: the test says little", accepted, rounds)
	}
}

// faultsOf are the faults without their places, which differ between formats, in
// alphabetical order: the two libraries sort keys differently when they write.
func faultsOf(err error) string {
	fault := err.(*scada.Error)
	var lines []string
	for _, f := range append([]*scada.Error{fault}, fault.More...) {
		lines = append(lines, fmt.Sprintf("%s %s: %s", f.Code, f.Field, f.Problem))
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// The order of fields and of nodes means nothing.
func TestOrderMeansNothing(t *testing.T) {
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 2))
		fields := []string{`"task_id":"x"`, `"intent":"gpio.write"`, `"args":{"pin":"GPIO17","level":1}`, `"ttl":30`, `"metadata":{"a":"1","b":"2"}`}
		nodes := []string{`"a"`, `"b"`, `"c"`, `"d"`}
		want := parse(t, "{"+strings.Join(fields, ",")+`,"nodes":[`+strings.Join(nodes, ",")+"]}", scada.JSON)
		r.Shuffle(len(nodes), func(i, j int) { nodes[i], nodes[j] = nodes[j], nodes[i] })
		fields = append(fields, `"nodes":[`+strings.Join(nodes, ",")+"]")
		r.Shuffle(len(fields), func(i, j int) { fields[i], fields[j] = fields[j], fields[i] })
		if got := parse(t, "{"+strings.Join(fields, ", ")+"}", scada.JSON); !reflect.DeepEqual(got, want) {
			t.Fatalf("seed %d: %v", seed, fields)
		}
	}
}
