package fieldagent

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/apollo-11/apollo11/fieldagent/executor"
	"github.com/apollo-11/apollo11/fieldagent/gpio"
	"github.com/apollo-11/apollo11/wire"
)

// safety.md 6: a gpio.safe that comes once more after its release drives and does not
// hold: the release is the newer word. One that a person tries again has a new number
// and holds.
func TestWhatHoldsAfterARelease(t *testing.T) {
	again := func(r *rig, in *wire.Instruction, attempt uint8, order uint64) {
		next := *in
		next.Attempt, next.Order, next.Token = attempt, order, wire.Token{Seq: in.Token.Seq + 100*uint64(attempt-1)}
		r.urg.instruction(&next)
		r.loop.offer(executor.Received{Message: &next})
		time.Sleep(time.Second)
	}
	for name, c := range map[string]struct {
		play  func(r *rig)
		holds bool
	}{
		"a copy": {func(r *rig) {
			safe := r.send(1, wire.IntentSafe, nil)
			time.Sleep(time.Second)
			r.send(2, wire.IntentRelease, nil)
			time.Sleep(time.Second)
			again(r, safe, 1, 1)
		}, false},
		"another attempt": {func(r *rig) {
			safe := r.send(1, wire.IntentSafe, nil)
			time.Sleep(time.Second)
			r.send(2, wire.IntentRelease, nil)
			time.Sleep(time.Second)
			again(r, safe, 2, 1)
		}, false},
		"another attempt, one pin was released": {func(r *rig) {
			safe := r.send(1, wire.IntentSafe, nil)
			time.Sleep(time.Second)
			r.send(2, wire.IntentRelease, map[string]any{"pin": "lamp"})
			time.Sleep(time.Second)
			again(r, safe, 2, 1)
		}, false},
		"it comes after its release": {func(r *rig) {
			r.send(2, wire.IntentRelease, nil)
			time.Sleep(time.Second)
			r.send(1, wire.IntentSafe, map[string]any{"pin": "lamp"})
			time.Sleep(time.Second)
		}, false},
		"tried again by hand": {func(r *rig) {
			safe := r.send(1, wire.IntentSafe, nil)
			time.Sleep(time.Second)
			r.send(2, wire.IntentRelease, nil)
			time.Sleep(time.Second)
			again(r, safe, 2, 3)
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, time.Minute, stays("lamp"), stays("valve"))
				defer r.cancel()
				time.Sleep(time.Second)
				c.play(r)
				r.send(9, wire.IntentGPIOWrite, map[string]any{"pin": "lamp", "level": 1})
				time.Sleep(time.Second)
				if held := r.sim.Level("lamp") == gpio.Low; held != c.holds {
					t.Errorf("held %v, want %v", held, c.holds)
				}
			})
		})
	}
}
