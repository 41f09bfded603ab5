package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/apollo-11/apollo11/fieldagent/gpio"
)

// alarmed reports whether an alarm of a kind stands for a subject.
func (s *site) alarmed(kind, subject string) (bool, string) {
	s.t.Helper()
	var v struct {
		Standing []struct{ Alarm, Subject string } `json:"standing"`
	}
	body := s.fetch("/v1/alarms", &v)
	return slices.ContainsFunc(v.Standing, func(a struct{ Alarm, Subject string }) bool { return a.Alarm == kind && a.Subject == subject }), body
}

// copyDir copies the files of a directory, as a card is copied.
func copyDir(t *testing.T, from, to string) {
	t.Helper()
	list, err := os.ReadDir(from)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(to, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, f := range list {
		if !f.Type().IsRegular() {
			continue
		}
		b, err := os.ReadFile(filepath.Join(from, f.Name()))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(to, f.Name()), b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// TestB28_TwoBoardsOfOneCard: a card was copied, and both boards have switched their
// outputs on. The alarm is there within seconds; what leads to safe reaches both, also
// the one that the gateway has refused; nothing else runs, on either. When one is
// switched off the alarm ends, and what waited runs on the other, once.
func TestB28_TwoBoardsOfOneCard(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	config := filepath.Join(s.dir, "agent.yaml")
	const pins = "pins:\n  - {name: valve, line: GPIO17, direction: out, safe: 0}\n  - {name: lamp, line: GPIO18, direction: out, safe: 0}\n"
	if err := os.WriteFile(config, []byte(pins), 0o600); err != nil {
		t.Fatal(err)
	}
	on := func(k int) {
		for _, pin := range []string{"valve", "lamp"} {
			id := fmt.Sprintf("on-%s-%d", pin, k)
			s.publish(write(id, "pump-1", pin, 1))
			s.done(id)
		}
	}
	one := s.agent("pump-1", "--config", config)
	s.online("pump-1")
	on(1)
	// The card of the other is a copy, and its board comes while the first is not heard:
	// the gateway takes it for the first, started again.
	signal := func(sig syscall.Signal) {
		if err := one.cmd.Process.Signal(sig); err != nil {
			t.Fatal(err)
		}
	}
	signal(syscall.SIGSTOP)
	data := filepath.Join(s.dir, "agent-copy")
	copyDir(t, filepath.Join(s.dir, "agent-pump-1"), data)
	s.agent("pump-1", "--config", config, "--data", data, "--gpio-trace", s.trace("copy"))
	on(2)
	high := func(node, pin string) bool { return s.level(node, pin) == gpio.High }
	for _, node := range []string{"pump-1", "copy"} {
		if !high(node, "GPIO17") || !high(node, "GPIO18") {
			t.Fatalf("%s has not switched its outputs on", node)
		}
	}
	signal(syscall.SIGCONT)
	began := time.Now()
	within(t, slow, "alarm twin", func() (bool, string) { return s.alarmed("twin", "pump-1") })
	t.Logf("noticed after %v", time.Since(began))

	s.publish(write("held", "pump-1", "lamp", 1))
	began = time.Now()
	if out, code := s.apollo("safe", "pump-1", "valve", "--no-wait"); code != 0 {
		t.Fatalf("apollo safe: %d\n%s", code, out)
	}
	s.publish(write("off", "pump-1", "lamp", 0))
	for _, node := range []string{"pump-1", "copy"} {
		within(t, slow, "both outputs of "+node+" low", func() (bool, string) {
			return !high(node, "GPIO17") && !high(node, "GPIO18"), fmt.Sprint(s.actuations(node))
		})
		t.Logf("%s is safe after %v", node, time.Since(began))
	}
	s.publish(write("on-again", "pump-1", "lamp", 1))
	s.publish(taskJSON("pulse", "gpio.pulse", "pump-1", `{"pin":"lamp","width":"50ms"}`, ""))
	before := map[string]int{"pump-1": len(s.actuations("pump-1")), "copy": len(s.actuations("copy"))}
	raised := func(node string) (n int) {
		for _, a := range s.actuations(node)[before[node]:] {
			if a.Level == gpio.High {
				n++
			}
		}
		return n
	}
	time.Sleep(10 * time.Second) // they throw each other out a dozen times
	if yes, body := s.alarmed("twin", "pump-1"); !yes {
		t.Errorf("the alarm is gone while both are there: %s", body)
	}
	for node := range before {
		if n := raised(node); n > 0 {
			t.Errorf("%s has switched something on %d times, of two with its name: %+v", node, n, s.actuations(node))
		}
	}

	one.mute = true
	one.kill()
	within(t, 3*slow, "the alarm cleared", func() (bool, string) {
		yes, body := s.alarmed("twin", "pump-1")
		return !yes, body
	})
	s.done("on-again")
	s.done("pulse")
	if first, second := raised("pump-1"), raised("copy"); first != 0 || second != 2 {
		t.Errorf("what waited has run %d times on the first and %d times on the copy, want 0 and 2", first, second)
	}
	for _, id := range []string{"held", "off"} {
		t.Logf("%s: %s %s", id, s.settled(id).State, s.settled(id).one(t).Detail)
	}
}
