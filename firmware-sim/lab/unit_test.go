package lab

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// maxOn limits how long an output of the tests may be on, whoever switched it on.
const maxOn = 40 * time.Second

// watchdog is what the shipped unit says, checked by unitText.
const watchdog = 15 * time.Second

// unitText is the shipped unit, for the agent of one level: only paths are others,
// because three agents share the board.
func unitText(t *testing.T, l level) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(moduleRoot, "deploy/systemd/apollo-agent.service"))
	if err != nil {
		t.Fatal(err)
	}
	text := string(b)
	for _, c := range [][2]string{
		{"/usr/local/bin/apollo-agent ", agentPath(l.name) + " "},
		{"/etc/apollo/agent.yaml\n", configPath(l) + "\n"},
		{"StateDirectory=apollo/agent\n", "StateDirectory=apollo/" + l.name + "\n"},
	} {
		if !strings.Contains(text, c[0]) {
			t.Fatalf("the shipped unit does not say %q any more", c[0])
		}
		text = strings.ReplaceAll(text, c[0], c[1])
	}
	if !strings.Contains(text, fmt.Sprintf("WatchdogSec=%ds\n", int(watchdog.Seconds()))) {
		t.Fatalf("the shipped unit has another watchdog than %v", watchdog)
	}
	return text
}

func configPath(l level) string { return "/etc/apollo/" + l.name + ".yaml" }

// config is the agent.yaml of a level, with its two lines and more pins.
func config(l level, more ...string) string {
	return configOf(l, append([]string{output("out", l.out, fmt.Sprintf("max_on: %v", maxOn)), input("in", l.in)}, more...)...)
}

// configOf is an agent.yaml with these pins.
func configOf(l level, pins ...string) string {
	return fmt.Sprintf(`gateway: tcp://%s
narrowband: tcp://%s
node: %s
data: /var/lib/apollo/%s
gpio: chardev
pins:
`, gatewayMQTT, gatewayNarrow, l.name, l.name) + strings.Join(pins, "")
}

// output is a pin of the map whose safe level is 0.
func output(name string, n int, more ...string) string {
	return fmt.Sprintf("  - {%s}\n", strings.Join(append([]string{"name: " + name, fmt.Sprintf("line: %q", line(n)), "direction: out", "safe: 0"}, more...), ", "))
}

func input(name string, n int) string {
	return fmt.Sprintf("  - {name: %s, line: %q, direction: in}\n", name, line(n))
}

// relay is the active-low pin that an agent can be given on top.
func relay(more string) string {
	return fmt.Sprintf("  - {name: relay, line: %q, direction: out, active_low: true, safe: 0%s}\n", line(relayLine), more)
}

// startUnit gives a level its configuration and starts its unit.
func (s *site) startUnit(l level, more ...string) {
	s.t.Helper()
	s.startWith(l, config(l, more...))
}

// startWith starts a unit with this configuration.
func (s *site) startWith(l level, text string) {
	s.t.Helper()
	s.must(s.board.WriteFile(configPath(l), "", text, 0o644))
	s.must(s.board.StartUnit(l.name, unitText(s.t, l)))
}

// starts is how often the program of a unit was started.
func (s *site) starts(l level) int {
	s.t.Helper()
	r, _, err := s.board.Unit(l.name)
	s.must(err)
	return r.Starts
}
