package fieldagent

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/apollo-11/apollo11/fieldagent/gpio"
	"github.com/apollo-11/apollo11/wire"
)

// safety.md 8: somebody throws the LOCAL switch while the card hangs, works for a second,
// and turns it back. What waited behind the card, or in the agent, does not run then.
func TestLocalThrownAndTurnedBackWhileTheCardHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, time.Hour, stays("lamp"), stays("valve"))
		defer r.cancel()
		time.Sleep(time.Second)
		r.send(1, wire.IntentGPIOPulse, map[string]any{"pin": "valve", "level": 1, "width": "20s"})
		time.Sleep(time.Second)
		r.send(2, wire.IntentGPIOWrite, map[string]any{"pin": "valve", "level": 1}) // waits for the pulse
		time.Sleep(time.Second)
		r.card.slow.Store(int64(10 * time.Second))
		r.send(3, wire.IntentGPIOWrite, map[string]any{"pin": "lamp", "level": 1}) // waits for its record
		time.Sleep(2 * time.Second)
		r.sim.Drive("local", gpio.High)
		time.Sleep(time.Second)
		r.sim.Drive("local", gpio.Low)
		time.Sleep(time.Second)
		r.card.slow.Store(0)
		time.Sleep(time.Minute)
		for _, pin := range []string{"lamp", "valve"} {
			if r.sim.Level(pin) == gpio.High {
				t.Errorf("%s is on: it was switched on after the LOCAL switch was turned back", pin)
			}
		}
		r.send(4, wire.IntentGPIOWrite, map[string]any{"pin": "lamp", "level": 1})
		time.Sleep(time.Second)
		if r.sim.Level("lamp") != gpio.High {
			t.Error("what comes after that is not done")
		}
	})
}
