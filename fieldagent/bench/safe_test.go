package bench

import (
	"testing"

	"github.com/apollo-11/apollo11/fieldagent"
	"github.com/apollo-11/apollo11/fieldagent/gpio"
)

// heldBoard has a hand on every relay.
type heldBoard struct{ *gpio.Sim }

type heldPin struct{ gpio.Pin }

func (heldPin) Actual() (gpio.Level, error) { return gpio.High, nil }

func (b heldBoard) Open(name string, r gpio.Request) (gpio.Pin, error) {
	p, err := b.Sim.Open(name, r)
	if err != nil {
		return nil, err
	}
	return heldPin{p}, nil
}

// A9, C15: an output that somebody else holds or drives is reported and not fought: it
// is no failure, which would keep the agent down.
func TestA9_ForeignHandIsReportedAndNoFailure(t *testing.T) {
	sim, err := gpio.NewSim(gpio.SimOptions{})
	if err != nil {
		t.Fatal(err)
	}
	low := gpio.Low
	r := fieldagent.LineRule{Name: "valve", Line: "GPIO17", Safe: &low}
	b := &bench{board: heldBoard{sim}}
	if foreign, err := b.driveSafe(r); err != nil || foreign == nil {
		t.Errorf("driven by hand: %v, %v", foreign, err)
	}
	sim.Hold("GPIO17", "gpio-keys")
	if foreign, err := b.driveSafe(r); err != nil || foreign == nil {
		t.Errorf("held by another program: %v, %v", foreign, err)
	}
}
