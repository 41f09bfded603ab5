package trial_test

import (
	"strings"
	"testing"

	"github.com/apollo-11/apollo11/firmware-sim/torture/trial"
)

// TestA11_OrderHoldsAtALine: eight commands for one line with a fault in the middle
// of them. `make torture` plays 200 rounds of each.
func TestA11_OrderHoldsAtALine(t *testing.T) {
	for k, c := range trial.OrderCases {
		t.Run(strings.ReplaceAll(c.Name, ",", ""), func(t *testing.T) {
			t.Parallel()
			r, err := trial.Order(t.Context(), setup(t, uint64(100+k)), c, 3)
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("%+v", r)
			if !r.OK() {
				t.Errorf("faults: %v", r.Faults)
			}
		})
	}
}
