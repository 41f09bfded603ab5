//go:build mutants

package gpio_test

import (
	"fmt"
	"testing"

	"github.com/apollo-11/apollo11/fieldagent/gpio"
	"github.com/apollo-11/apollo11/wire/mutant"
	"github.com/apollo-11/apollo11/wire/mutant/mutanttest"
)

// TestMutantsOfTheOwner: what these tests demand of the owner's shell breaks with this
// fault.
func TestMutantsOfTheOwner(t *testing.T) {
	mutanttest.Bites(t, mutanttest.Case{Fault: mutant.LateAtPin, Want: "lamp low", Play: func() string {
		b := newSim(t, gpio.SimOptions{})
		o, stop := run(t, b)
		defer func() { must(t, stop()) }()
		err := o.Do(t.Context(), gpio.Drive{Pin: "GPIO17", Level: gpio.High, Check: func() error { return gpio.ErrLate }})
		return fmt.Sprintf("lamp %v: %v", b.Level("GPIO17"), err)
	}})
}
