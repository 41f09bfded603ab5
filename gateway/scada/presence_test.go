package scada_test

import (
	"testing"

	"github.com/apollo-11/apollo11/gateway/engine"
	"github.com/apollo-11/apollo11/gateway/scada"
)

// TestC6_PresenceOfANodeThatHasNotBeenHeardOf: right after a start of the gateway
// nobody knows, and every door says so.
func TestC6_PresenceOfANodeThatHasNotBeenHeardOf(t *testing.T) {
	for _, c := range []struct {
		n    engine.NodeState
		want scada.PresenceState
	}{
		{engine.NodeState{}, scada.PresenceUnknown},
		{engine.NodeState{Online: true, Since: 1}, scada.PresenceOnline},
		{engine.NodeState{Since: 1, Reason: "silent"}, scada.PresenceOffline},
	} {
		c.n.Queued, c.n.Flying = 2, 3
		if p := scada.PresenceOf(c.n); p.State != c.want || p.Reason != c.n.Reason || p.Queued != 5 {
			t.Errorf("%+v is shown as %+v, want %s", c.n, p, c.want)
		}
	}
}
