package fieldagent

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/apollo-11/apollo11/fieldagent/gpio"
	"github.com/apollo-11/apollo11/wire"
)

// A1, clause 1: the card takes its time over the record of a start, and meanwhile a reload
// exchanges two names. What is about to begin holds the line that it was sent for: the
// other one is not moved under its name.
func TestA1_ReloadWhileAStartIsWrittenDown(t *testing.T) {
	for intent, args := range map[string]map[string]any{
		wire.IntentGPIOWrite: {"pin": "left", "level": 1},
		wire.IntentGPIOPulse: {"pin": "left", "width": "1s"},
	} {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, time.Hour, stays("left"), stays("right"))
			defer r.cancel()
			time.Sleep(time.Second)
			r.card.slow.Store(int64(10 * time.Second))
			r.send(1, intent, args)
			time.Sleep(time.Second)
			left, right := stays("left"), stays("right")
			left.Line, right.Line = "right", "left"
			if err := r.pins.Reload(t.Context(), []gpio.PinConfig{left, right, {Name: "local", Mode: gpio.Input}}); err != nil {
				t.Fatal(err)
			}
			r.card.slow.Store(0)
			time.Sleep(time.Minute)
			for _, a := range r.sim.Actuations() {
				if a.Level == gpio.High {
					t.Errorf("%s: %+v", intent, a)
				}
			}
			r.mu.Lock()
			defer r.mu.Unlock()
			for _, m := range r.got {
				if e, ok := m.(*wire.Event); ok && e.Phase == wire.PhaseProcessed && e.Code != wire.CodeMapChanged {
					t.Errorf("%s: told as %v: %s", intent, e.Code, e.Detail)
				}
			}
		})
	}
}
