package e2e

import (
	"os"
	"path/filepath"
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

// TestA20_PulseLongerThanTheDefaultLimit: it has the time that it needs, without saying
// so twice. (The programs' own defaults are passed in virtual time, in explore.)
func TestA20_PulseLongerThanTheDefaultLimit(t *testing.T) {
	t.Parallel()
	config := filepath.Join(t.TempDir(), "gateway.yaml")
	if err := os.WriteFile(config, []byte("delivery:\n  default_timeout: 1s\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := newSite(t, "--config", config)
	s.agent("pump-1")
	s.publish(taskJSON("long", "gpio.pulse", "pump-1", `{"pin":"GPIO17","width":"8s"}`, ""))
	i := s.done("long")
	all := s.actuations("pump-1")
	if len(all) != 2 || i.Attempt != 1 {
		t.Fatalf("attempt %d, %+v", i.Attempt, all)
	}
	if on := time.Duration(all[1].At - all[0].At); on < 8*time.Second || on > 12*time.Second { // this machine has other work
		t.Errorf("it was on for %v", on)
	}
}
