package trial_test

import (
	"testing"
	"time"

	"github.com/apollo-11/apollo11/firmware-sim/torture/rig"
	"github.com/apollo-11/apollo11/firmware-sim/torture/trial"
	"github.com/apollo-11/apollo11/wire"
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

// TestAlarmIsSeen: an off for a board that is not there is the alarm that is wanted.
func TestAlarmIsSeen(t *testing.T) {
	t.Parallel()
	u := setup(t, 201)
	s, err := rig.NewSite(t.Context(), u.Bin, u.Dir, rig.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	c, err := s.Client(t.Context(), "scada")
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.Submit(rig.TaskTopic, `{"intent":"gpio.safe","node":"pump-1"}`); err != nil {
		t.Fatal(err)
	}
	if after, err := trial.AlarmAfter(t.Context(), s); err != nil || after < wire.SafeLate-time.Second/2 {
		t.Errorf("it stood after %v: %v", after, err)
	}
}
