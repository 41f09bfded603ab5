package fieldagent

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/apollo-11/apollo11/fieldagent/gpio"
	"github.com/apollo-11/apollo11/wire"
)

// safety.md 5: what goes ahead of its record is driven at once, past a journal that hangs;
// what is older and waits there does not switch on after it. Its instruction settles it.
// One whose instruction does not come is told again to the next gateway that understands.
func TestSafeNowIsDrivenAndToldUntilItsInstructionComes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, time.Minute, stays("lamp"), stays("valve"))
		defer r.cancel()
		r.send(1, wire.IntentGPIOWrite, map[string]any{"pin": "lamp", "level": 1})
		r.send(2, wire.IntentGPIOWrite, map[string]any{"pin": "valve", "level": 1})
		time.Sleep(time.Second)
		r.card.slow.Store(int64(10 * time.Second))
		r.send(3, wire.IntentGPIOWrite, map[string]any{"pin": "lamp", "level": 1}) // its start is being written
		time.Sleep(time.Second)
		r.urg.now(&wire.SafeNow{Seq: 4, Token: wire.Token{Seq: 4}, Lines: []wire.LineKey{wire.LineOf("lamp")}})
		time.Sleep(10 * time.Millisecond)
		if r.sim.Level("lamp") != gpio.Low || r.sim.Level("valve") != gpio.High {
			t.Error("the lamp is on, or the valve shut")
		}
		if s := r.states(4); len(s) != 1 || s[0] != wire.StatusDriven {
			t.Errorf("told %v", s)
		}
		r.card.slow.Store(0)
		time.Sleep(time.Minute)
		if r.sim.Level("lamp") != gpio.Low {
			t.Error("an older on has begun after it")
		}
		welcome := &wire.Welcome{Rules: wire.RulesUrgent}
		r.urg.welcome(welcome)
		r.urg.welcome(&wire.Welcome{Rules: wire.RulesOrder})
		r.urg.welcome(&wire.Welcome{Rules: wire.RulesUrgent, Refused: "no"})
		if s := r.states(4); len(s) != 2 {
			t.Errorf("told %v", s)
		}
		r.send(4, wire.IntentGPIOWrite, map[string]any{"pin": "lamp", "level": 0})
		time.Sleep(time.Second)
		r.urg.welcome(welcome)
		if s := r.states(4); len(s) != 2 {
			t.Errorf("told again after its instruction came: %v", s)
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		var code wire.Code
		for _, m := range r.got {
			if e, ok := m.(*wire.Event); ok && e.Seq == 4 && e.Phase == wire.PhaseProcessed {
				code = e.Code
			}
		}
		if code != wire.CodeOK {
			t.Errorf("its instruction ends %v", code)
		}
	})
}
