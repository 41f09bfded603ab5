package fieldagent_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/apollo-11/apollo11/fieldagent"
	"github.com/apollo-11/apollo11/wire"
)

// A hello holds the labels beside all pins that a map can have, so what does not fit
// is refused where somebody reads it: at the start, and not when the hello is sent.
func TestLabelsLeaveRoomForThePins(t *testing.T) {
	for total, ok := range map[int]bool{wire.MaxLabelBytes: true, wire.MaxLabelBytes + 1: false} {
		c := fieldagent.DefaultConfig()
		c.Gateway, c.Node, c.GPIO, c.Data = "tcp://127.0.0.1:1883", "pump-1", "sim", t.TempDir()
		c.Labels = map[string]string{}
		for i := range wire.MaxLabels {
			c.Labels[fmt.Sprintf("%016d", i)] = strings.Repeat("x", wire.MaxLabelBytes/wire.MaxLabels-16)
		}
		c.Labels[fmt.Sprintf("%016d", 0)] += strings.Repeat("x", total-wire.MaxLabelBytes)
		err := c.Validate()
		if (err == nil) != ok {
			t.Errorf("labels of %d bytes: %v", total, err)
		}
		if !ok && (err == nil || !strings.Contains(err.Error(), "label") || !strings.Contains(err.Error(), "8192")) {
			t.Errorf("labels of %d bytes: %v", total, err)
		}
	}
}
