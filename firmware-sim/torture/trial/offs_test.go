package trial_test

import (
	"testing"
	"time"

	"github.com/apollo-11/apollo11/firmware-sim/torture/trial"
)

// TestC16_OffsAreInTime: one off a second through all kinds of trouble, each for some
// seconds; ten minutes of it is `torture -only offs -for 10m`. The limit of one second is
// for a machine that has time: here only what rises again, is not told or not alarmed is
// a fault, and what takes five times as long.
func TestC16_OffsAreInTime(t *testing.T) {
	r, err := trial.Offs(t.Context(), setup(t, 200), trial.OffsOptions{For: 60 * time.Second})
	t.Logf("%+v", r)
	if a := r.All; a.Risen+a.Untold+a.Mute > 0 || a.Reach.Most > 5*trial.OffLimit || a.Offs == 0 || err == nil && a.InTime == 0 {
		t.Errorf("%v", r.Faults)
	}
	if err != nil {
		t.Fatal(err)
	}
}
