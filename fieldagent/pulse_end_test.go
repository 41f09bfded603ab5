package fieldagent

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/apollo-11/apollo11/fieldagent/executor"
	"github.com/apollo-11/apollo11/fieldagent/gpio"
	"github.com/apollo-11/apollo11/wire"
)

// B27: a pulse that the board ends by itself is told as such, with the reason and the
// pin, in an end of its own. One that runs its time, or that an instruction or a cancel
// has cut, is not.
func TestB27_PulseThatTheBoardEndsIsTold(t *testing.T) {
	for name, c := range map[string]struct {
		cut  func(r *rig)
		want []string
	}{
		"its time": {func(*rig) {}, nil},
		"LOCAL":    {func(r *rig) { r.sim.Drive("local", gpio.High) }, []string{"local"}},
		"the stop": {func(r *rig) { r.quit() }, []string{"stopped"}},
		"an off":   {func(r *rig) { r.send(2, wire.IntentGPIOWrite, map[string]any{"pin": "valve", "level": 0}) }, nil},
		"a cancel": {func(r *rig) {
			r.loop.offer(executor.Received{Message: &wire.Cancel{Seq: 1, Token: wire.Token{Seq: 1}}})
		}, nil},
		"the loss": {func(r *rig) { r.loop.offer(executor.Disconnected{}) }, []string{"loss"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, time.Minute, falls("valve"))
				defer r.cancel()
				time.Sleep(time.Second)
				r.send(1, wire.IntentGPIOPulse, map[string]any{"pin": "valve", "level": 1, "width": "3m"})
				time.Sleep(time.Second)
				c.cut(r)
				time.Sleep(4 * time.Minute)
				r.loop.offer(executor.Connected{Session: 10})
				r.loop.offer(executor.Received{Message: &wire.Welcome{Session: 10, Epoch: 1, Now: time.Now().UnixMilli(), HeartbeatMs: 600_000,
					Phases: wire.MaxPhase, Rules: wire.NewestRules}})
				time.Sleep(time.Second)
				if got := slices.Compact(r.ends(1)); !slices.Equal(got, c.want) {
					t.Errorf("told %v, want %v", got, c.want)
				}
			})
		})
	}
}
