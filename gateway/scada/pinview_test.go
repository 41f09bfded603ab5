package scada_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/apollo-11/apollo11/gateway/engine"
	"github.com/apollo-11/apollo11/gateway/scada"
	"github.com/apollo-11/apollo11/wire"
)

func encoded(t *testing.T, m map[string]any) wire.RawMap {
	t.Helper()
	raw, err := wire.EncodeMap(m, wire.MaxPayloadBytes)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// C13: a display that has seen the valve open must see that it is closed again.
func TestC13_EndsOfLeasesAreShown(t *testing.T) {
	task, in := sample(t)
	off := uint8(0)
	open := engine.Lease{Pin: "valve-1", Until: sampleTime + 600_000, MaxOnMs: 600_000}
	over := open
	over.End, over.EndedAt, over.Level = wire.LeaseExpired, sampleTime+600_000, &off
	failed := open
	failed.End, failed.EndedAt = wire.LeaseFailed, sampleTime+600_000
	in.Lease = &over
	golden(t, "status-lease", scada.NewStatus("default", task, []engine.Instruction{in}))
	golden(t, "pin-lease", scada.NewPinView(engine.PinNews{Node: "pump-1", Pin: "valve-1", At: sampleTime, Task: task.ID,
		Instruction: in.Key("default"), Event: 9, Lease: &over}))
	for name, c := range map[string]struct {
		lease engine.Lease
		open  bool
		end   string
	}{"open": {open, true, ""}, "over": {over, false, "expired"}, "failed": {failed, true, "failed"}} {
		if v := scada.NewLeaseView(&c.lease); v.Open != c.open || v.End != c.end {
			t.Errorf("%s: %+v", name, v)
		}
	}
	if scada.NewLeaseView(nil) != nil {
		t.Error("there is a lease where there is none")
	}
}

func TestEdgesAreShown(t *testing.T) {
	golden(t, "pin-edges", scada.NewPinView(engine.PinNews{Node: "pump-1", Pin: "door", At: sampleTime, Task: "watch-1", Instruction: "x",
		Event: 10, Edges: encoded(t, map[string]any{"pin": "door", "edges": []any{[]any{uint64(1), uint64(86_400_000_000_123), uint64(sampleTime)}},
			"total": uint64(9), "unlisted": uint64(2), "missed": uint64(1)})}))
}

// The execution of a watch may take as long as the watch, and the document need not
// say so twice.
func TestTimeoutFitsTheWatch(t *testing.T) {
	for _, c := range []struct {
		name, doc string
		ms        uint32 // 0: refused
	}{
		{"by itself", `"args":{"pin":"door","for":"2h"}`, 7_200_000},
		{"the longest", `"args":{"pin":"door","for":"24h"}`, 86_400_000},
		{"longer", `"timeout":"3h","args":{"pin":"door","for":"2h"}`, 10_800_000},
		{"equal", `"timeout":7200,"args":{"pin":"door","for":"2h"}`, 7_200_000},
		{"shorter", `"timeout":7199,"args":{"pin":"door","for":"2h"}`, 0},
	} {
		spec, _, err := scada.ParseTask([]byte(`{"intent":"gpio.watch","node":"a",`+c.doc+`}`), scada.JSON, scada.Options{})
		var fault *scada.Error
		switch {
		case c.ms != 0 && (err != nil || spec.TimeoutMs != c.ms):
			t.Errorf("%s: %d ms, %v", c.name, spec.TimeoutMs, err)
		case c.ms == 0 && (!errors.As(err, &fault) || fault.Field != "timeout" || fault.Line != 1 || fault.Hint == ""):
			t.Errorf("%s: %v", c.name, err)
		}
	}
	a, _, err := scada.ParseTask([]byte(`{"intent":"gpio.write","node":"a","args":{"pin":"v","level":1,"max_on":"10m"}}`), scada.JSON, scada.Options{})
	if err != nil || a.TimeoutMs != 0 {
		t.Errorf("a lease is no long execution: %d ms, %v", a.TimeoutMs, err)
	}
}

// TestB27_NodeViewTellsLevels: as the agent says them, with what was expected where that
// is another one.
func TestB27_NodeViewTellsLevels(t *testing.T) {
	v := scada.NewNodeView(engine.Node{ID: "a"}, scada.PresenceOf(engine.NodeState{Online: true, Twin: true, Levels: []engine.PinLevel{
		{Pin: "valve", Level: wire.LevelHeld},
		{Pin: "lamp", Level: wire.LevelLow, Expected: wire.LevelHigh},
		{Pin: "pump", Level: wire.LevelHigh},
	}}), 0)
	got, err := scada.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"twin":true`, `{"pin":"valve","held":true}`, `{"pin":"lamp","level":0,"expected":1}`, `{"pin":"pump","level":1}`} {
		if !strings.Contains(string(got), want) {
			t.Errorf("%s is missing in %s", want, got)
		}
	}
}
