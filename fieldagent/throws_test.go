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

// safety.md 8: the switch is thrown and turned back while a command is on its way. The
// gateway had not heard of it when it handed that out.
func TestLocalThrownAndTurnedBackWhileACommandIsOnItsWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, time.Hour, stays("lamp"))
		defer r.cancel()
		time.Sleep(time.Second)
		r.sim.Drive("local", gpio.High)
		time.Sleep(time.Second)
		r.sim.Drive("local", gpio.Low)
		time.Sleep(time.Second)
		for k, heard := range []uint64{1, wire.ThrownSince, 3, 2} {
			want := gpio.Level(heard == 2)
			r.sendWith(uint64(k+1), wire.IntentGPIOWrite, map[string]any{"pin": "lamp", "level": 1}, func(in *wire.Instruction) { in.Throws = heard })
			time.Sleep(time.Second)
			if got := r.sim.Level("lamp"); got != want {
				t.Errorf("handed out when the gateway had heard of %d: the lamp is %v", heard, got)
			}
		}
	})
}

// safety.md 8: a renewal waits at the board behind a pulse. Its lease ends when it should,
// and not its own length after that.
func TestARenewalThatWaitedEndsInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, time.Hour, stays("lamp"))
		defer r.cancel()
		time.Sleep(time.Second)
		r.send(1, wire.IntentGPIOPulse, map[string]any{"pin": "lamp", "level": 1, "width": "5m"})
		time.Sleep(time.Second)
		began := time.Now()
		r.sendWith(2, wire.IntentGPIOWrite, map[string]any{"pin": "lamp", "level": 1, "max_on": "10m"}, func(in *wire.Instruction) {
			in.EndsBy = began.Add(10 * time.Minute).UnixMilli()
			in.NotAfter = in.EndsBy
		})
		time.Sleep(9 * time.Minute)
		if r.sim.Level("lamp") != gpio.High {
			t.Error("it has not begun")
		}
		time.Sleep(time.Minute + time.Second)
		if r.sim.Level("lamp") != gpio.Low {
			t.Error("it is on for longer than it was good for")
		}
	})
}
