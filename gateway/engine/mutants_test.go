//go:build mutants

package engine_test

import (
	"strings"
	"testing"

	"github.com/apollo-11/apollo11/wire/mutant"
)

// planted is a fault and what shows it.
type planted struct {
	fault  mutant.Fault
	blocks []string
	want   string // in what the last block prints, unless the fault is planted
}

// bites plays each fault's blocks without it and with it.
func bites(t *testing.T, faults []planted) {
	t.Helper()
	defer mutant.Plant(mutant.None)
	for _, c := range faults {
		for _, on := range []bool{false, true} {
			if on {
				mutant.Plant(c.fault)
			}
			h, out := newHarness(t), ""
			for _, b := range c.blocks {
				out = h.block(b)
			}
			mutant.Plant(mutant.None)
			if strings.Contains(out, c.want) == on {
				t.Errorf("%v planted %v:\n%s", c.fault, on, out)
			}
		}
	}
}
