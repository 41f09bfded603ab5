package fieldagent

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/apollo-11/apollo11/fieldagent/executor"
	"github.com/apollo-11/apollo11/fieldagent/gpio"
	"github.com/apollo-11/apollo11/fieldagent/round"
	"github.com/apollo-11/apollo11/wire"
)

// A6: the card hangs over the record of a start. Meanwhile both links end and the
// autonomy window with them; that is still in the loop's queue when the record is
// durable. Nothing begins before the gateway has welcomed the agent again.
func TestA6_StartBehindAHangingDiskKeepsToTheWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, time.Minute, stays("lamp"))
		defer r.cancel()
		time.Sleep(time.Second)
		r.card.slow.Store(int64(2 * time.Minute))
		r.send(1, wire.IntentGPIOWrite, map[string]any{"pin": "lamp", "level": 1})
		time.Sleep(10 * time.Second)
		r.links.down(round.Primary)
		r.loop.offer(executor.Disconnected{})
		time.Sleep(2 * time.Minute)
		r.card.slow.Store(0)
		time.Sleep(10 * time.Minute)
		if r.sim.Level("lamp") == gpio.High {
			t.Fatal("the lamp is on: it was switched on after the window of 1m0s")
		}
		r.links.up(round.Primary)
		r.loop.offer(executor.Connected{Session: 10})
		time.Sleep(time.Second)
		if r.sim.Level("lamp") == gpio.High {
			t.Fatal("the lamp is on, and nobody has welcomed the agent")
		}
		r.loop.offer(executor.Received{Message: &wire.Welcome{Session: 10, Epoch: 1, Now: time.Now().UnixMilli(), HeartbeatMs: 600_000,
			Phases: wire.MaxPhase, Rules: wire.NewestRules}})
		time.Sleep(time.Second)
		if r.sim.Level("lamp") == gpio.High {
			t.Fatal("the lamp is on, and nobody has offered the command in this session")
		}
		r.send(1, wire.IntentGPIOWrite, map[string]any{"pin": "lamp", "level": 1})
		time.Sleep(time.Second)
		if r.sim.Level("lamp") != gpio.High {
			t.Error("the gateway offers it again, and what waited does not go on")
		}
	})
}

// A6: the same, and there is a connection again when the record is durable. Nobody has
// answered on it.
func TestA6_ANewConnectionIsNoWordOfTheGateway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, time.Minute, stays("lamp"))
		defer r.cancel()
		time.Sleep(time.Second)
		r.card.slow.Store(int64(2 * time.Minute))
		r.send(1, wire.IntentGPIOWrite, map[string]any{"pin": "lamp", "level": 1})
		time.Sleep(10 * time.Second)
		r.links.down(round.Primary)
		r.loop.offer(executor.Disconnected{})
		time.Sleep(100 * time.Second)
		r.links.up(round.Primary)
		r.loop.offer(executor.Connected{Session: 10})
		time.Sleep(20 * time.Second)
		r.card.slow.Store(0)
		time.Sleep(10 * time.Minute)
		if r.sim.Level("lamp") == gpio.High {
			t.Error("the lamp is on: it was switched on after the window of 1m0s")
		}
	})
}
