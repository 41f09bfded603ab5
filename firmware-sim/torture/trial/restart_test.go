package trial_test

import (
	"testing"

	"github.com/apollo-11/apollo11/firmware-sim/torture/trial"
)

// TestC5_RestartOfALongLog: the figure is printed, and has slack here.
func TestC5_RestartOfALongLog(t *testing.T) {
	t.Parallel()
	r, err := trial.Restart(t.Context(), setup(t, 6), trial.LogSize{Finished: 2000, Unfinished: 500}, 2)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%+v", r)
	if r.Dispatch.Most > 10*trial.DispatchLimit {
		t.Errorf("the first dispatch came %v after the start", r.Dispatch.Most)
	}
}
