package trial_test

import (
	"testing"
	"time"

	"github.com/apollo-11/apollo11/firmware-sim/torture/trial"
)

// TestC16_OffsAreInTime: one off a second through every kind of trouble, for a few
// seconds each; `make torture` takes ten minutes. The limit of one second is for a
// machine that has time: here only what rises again or is not told is a fault, and
// what stays on for five times as long.
func TestC16_OffsAreInTime(t *testing.T) {
	list, err := trial.Offs(t.Context(), setup(t, 200), 8*time.Second, 500)
	for _, r := range list {
		t.Logf("%+v", r)
		if r.Risen+r.Untold > 0 || r.On.Most > 5*trial.OffLimit || r.Offs == 0 && r.Skipped == "" {
			t.Errorf("%s: %v", r.Name, r.Faults)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
}
