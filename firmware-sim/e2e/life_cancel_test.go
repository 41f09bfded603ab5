package e2e

import (
	"testing"
	"time"

	"github.com/apollo-11/apollo11/fieldagent/gpio"
)

// TestA21_CancelFallsOverNarrowband: the primary path is dead, in whatever way, and a
// pulse of a minute runs. Somebody cancels it: the pin falls within a second or so, by
// narrowband, and the gateway knows.
func TestA21_CancelFallsOverNarrowband(t *testing.T) {
	t.Parallel()
	for _, dead := range []struct {
		name string
		kill func(*proxy)
	}{
		{"nothing goes up", func(p *proxy) { p.hold(up) }},
		{"nothing goes down", func(p *proxy) { p.hold(down) }},
		{"gone", func(p *proxy) { p.hold(up); p.hold(down); p.sever() }},
	} {
		t.Run(dead.name, func(t *testing.T) {
			s := newSite(t)
			primary := newProxy(t, s.mqtt)
			s.agentVia("pump-1", primary.addr, s.narrow)
			s.online("pump-1")
			s.publish(taskJSON("long", "gpio.pulse", "pump-1", `{"pin":"GPIO17","width":"1m"}`, ""))
			s.until("long", "RUNNING", func(v taskView) bool { return v.State == "RUNNING" })
			s.moved("pump-1", 1)
			within(t, slow, "high", func() (bool, string) { return s.level("pump-1", "GPIO17") == gpio.High, "" })

			dead.kill(primary)
			if out, code := s.apollo("task", "cancel", "long"); code != 0 {
				t.Fatalf("cancel: %d\n%s", code, out)
			}
			asked := time.Now()
			within(t, slow, "low", func() (bool, string) { return s.level("pump-1", "GPIO17") == gpio.Low, "" })
			took := time.Since(asked)
			t.Logf("the pin fell after %v", took)
			if took > 10*time.Second { // a second or so; this machine has other work
				t.Errorf("the pin fell only after %v", took)
			}
			s.until("long", "CANCELLED", func(v taskView) bool { return v.State == "CANCELLED" })
		})
	}
}
