package explore

import (
	"testing"
	"time"

	"github.com/apollo-11/apollo11/gateway/engine"
	"github.com/apollo-11/apollo11/wire"
)

// A20: a pulse longer than the default limit of both programs ends well without saying
// how long it is a second time, and is as long as it was asked for: the real engine, the
// real agent and the real order at its lines, in virtual time.
func TestA20_APulseLongerThanTheDefaultLimit(t *testing.T) {
	for _, width := range []time.Duration{3 * time.Minute, 11 * time.Minute, time.Hour} {
		args, err := wire.EncodeMap(map[string]any{"pin": plain[0], "width": width.String()}, wire.MaxArgsBytes)
		if err != nil {
			t.Fatal(err)
		}
		o, p, err := Options{Seed: 1, Nodes: 1, Profile: "calm", Span: width + 5*time.Minute}.fill()
		if err != nil {
			t.Fatal(err)
		}
		w := newWorld(o, p)
		w.plan = []step{{at: time.Second, kind: opSubmit, number: 1,
			spec: &engine.Spec{TaskID: "long", Intent: wire.IntentGPIOPulse, Nodes: []string{nodeName(0)}, Args: args}}}
		w.guarded()
		if w.violation != nil {
			t.Fatalf("%v: %+v", width, w.violation)
		}
		for _, i := range w.check.book.insts {
			lasted := time.Duration(i.FinishedAt-i.StartedAt) * time.Millisecond
			if i.State != engine.StateSucceeded || (lasted-width).Abs() > time.Second {
				t.Errorf("%v: %v %s after %v: %s", width, i.State, i.Reason, lasted, i.Detail)
			}
		}
		if len(w.check.book.insts) != 1 {
			t.Errorf("%d instructions", len(w.check.book.insts))
		}
	}
}
