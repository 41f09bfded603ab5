//go:build mutants

package mutanttest

import (
	"strings"
	"testing"

	"github.com/apollo-11/apollo11/wire/mutant"
)

// Case is a fault and what shows it.
type Case struct {
	Fault mutant.Fault
	// Play plays what the fault spoils, from the start, and says what came of it.
	Play func() string
	Want string // in what it says, unless the fault is planted
}

// Bites plays each case without its fault and with it.
func Bites(t *testing.T, cases ...Case) {
	t.Helper()
	defer mutant.Plant(mutant.None)
	for _, c := range cases {
		for _, on := range []bool{false, true} {
			if on {
				mutant.Plant(c.Fault)
			}
			out := c.Play()
			mutant.Plant(mutant.None)
			if strings.Contains(out, c.Want) == on {
				t.Errorf("%v planted %v, wanted without it is %q:\n%s", c.Fault, on, c.Want, out)
			}
		}
	}
}
