package scada_test

import (
	"testing"

	"github.com/apollo-11/apollo11/gateway/engine"
	"github.com/apollo-11/apollo11/gateway/scada"
)

func benchmarkParse(b *testing.B, doc string, f scada.Format) {
	b.ReportAllocs()
	b.SetBytes(int64(len(doc)))
	for b.Loop() {
		if _, _, err := scada.ParseTask([]byte(doc), f, scada.Options{Site: "default", Now: 1}); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkParseShortJSON(b *testing.B) {
	benchmarkParse(b, `{"intent":"gpio.write","node":"pump-1","args":{"pin":"GPIO17","level":1},"ttl":"30s"}`, scada.JSON)
}

func BenchmarkParseFullJSON(b *testing.B) {
	benchmarkParse(b, `{"task_id":"collect-metrics-1712345678-b7e2","intent":"collect_metrics",
	"target_selector":{"type":"label","key":"role","value":"worker"},"timeout":120,
	"retry_policy":{"max_retries":3,"initial_interval":5,"max_interval":60,"backoff":"exponential"},
	"metadata":{"operator":"ops-team","change_ticket":"CHG-2024-001"}}`, scada.JSON)
}

func BenchmarkParseFullYAML(b *testing.B) {
	benchmarkParse(b, `task_id: collect-metrics-1712345678-b7e2
intent: collect_metrics
target_selector: {type: label, key: role, value: worker}
timeout: 120
retry_policy: {max_retries: 3, initial_interval: 5, max_interval: 60, backoff: exponential}
metadata: {operator: ops-team, change_ticket: CHG-2024-001}
`, scada.YAML)
}

func BenchmarkStatus(b *testing.B) {
	task, in := sample(b)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := scada.Marshal(scada.NewStatus("default", task, []engine.Instruction{in})); err != nil {
			b.Fatal(err)
		}
	}
}
