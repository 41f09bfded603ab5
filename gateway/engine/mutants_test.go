//go:build mutants

package engine_test

import (
	"testing"

	"github.com/apollo-11/apollo11/wire/mutant"
	"github.com/apollo-11/apollo11/wire/mutant/mutanttest"
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
	for _, c := range faults {
		mutanttest.Bites(t, mutanttest.Case{Fault: c.fault, Want: c.want, Play: func() (out string) {
			h := newHarness(t)
			for _, b := range c.blocks {
				out = h.block(b)
			}
			return out
		}})
	}
}
