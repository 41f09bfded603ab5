package fieldagent_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/apollo-11/apollo11/fieldagent"
	"github.com/apollo-11/apollo11/fieldagent/gpio"
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

// A cable that is pulled says nothing on either path, and a connection that is taken for
// alive is a gateway that is there: where an output falls with the gateway, a dead
// narrowband connection is noticed as soon as a dead primary one, within 30 s.
func TestDeadNarrowbandDelaysNoLoss(t *testing.T) {
	safe := gpio.Low
	pin := gpio.PinConfig{Name: "valve-1", Line: "GPIO17", Mode: gpio.Output, Safe: &safe}
	c := fieldagent.DefaultConfig()
	c.Pins = []gpio.PinConfig{pin}
	if d := c.NarrowbandEvery(); d != time.Minute {
		t.Errorf("every byte is dear: a ping every %v", d)
	}
	pin.Name, pin.Line, pin.OnLoss = "valve-2", "GPIO18", gpio.FallSafe
	c.Pins = append(c.Pins, pin)
	if d := c.NarrowbandEvery(); d*3/2 > 30*time.Second {
		t.Errorf("a dead connection is noticed after %v", d*3/2)
	}
}
