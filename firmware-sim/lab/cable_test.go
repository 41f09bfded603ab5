package lab

import (
	"fmt"
	"time"

	"github.com/apollo-11/apollo11/firmware-sim/torture/rig"
)

// cablePull is how long the cable is out: long enough for both ends to notice, who
// wait 20 s and 30 s.
const cablePull = 35 * time.Second

// cable: commands before, during and after a pulled cable run once each.
func (s *site) cable() {
	const each = 3
	before := map[string]int{}
	count := map[string]int{}
	client, err := s.Client(s.t.Context(), "scada-cable")
	s.must(err)
	defer client.Close()
	submit := func(when string) {
		s.t.Helper()
		var docs []string
		for _, l := range levels {
			for range each {
				id := fmt.Sprintf("%s-cable-%d", l.name, count[l.name])
				count[l.name]++
				docs = append(docs, doc(id, "gpio.pulse", l.name, `{"pin":"out","width_ms":60}`, `,"ttl":"10m","retry_policy":{"max_retries":0}`))
			}
		}
		if _, err := client.Submit(rig.TaskTopic, docs...); err != nil {
			s.t.Fatalf("%s: %v", when, err)
		}
	}
	for _, l := range levels {
		s.online(l.name)
		before[l.name] = s.board.Lines().Rises(l.out)
	}
	submit("before")
	s.must(rig.Pause(s.t.Context(), 100*time.Millisecond)) // some have begun
	s.must(s.board.Cable(false))
	submit("during")
	s.must(rig.Pause(s.t.Context(), pull(s.t)))
	for _, l := range levels {
		if n := s.board.Lines().Rises(l.out) - before[l.name]; n > each {
			s.t.Errorf("%s: %d pulses without a cable, %d were sent before", l.name, n, each)
		}
	}
	s.must(s.board.Cable(true))
	plugged := time.Now()
	for _, l := range levels {
		s.online(l.name)
		s.t.Logf("%s: online %v after the cable", l.name, time.Since(plugged).Round(time.Millisecond))
	}
	submit("after")
	for _, l := range levels {
		for k := range count[l.name] {
			s.done(s.t, fmt.Sprintf("%s-cable-%d", l.name, k))
		}
		if n := s.board.Lines().Rises(l.out) - before[l.name]; n != count[l.name] {
			s.t.Errorf("%s: %d pulses seen, %d commanded", l.name, n, count[l.name])
		}
	}
}
