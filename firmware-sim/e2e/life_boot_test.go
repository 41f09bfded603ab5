package e2e

import (
	"testing"

	"github.com/apollo-11/apollo11/fieldagent/gpio"
)

// TestC4_BootOrder: a board that lost power comes back to a level that it had
// saved, a broker that keeps nothing for it, and a queue. The level at the end is
// the queue's, and one entry of one timeline explains it.
func TestC4_BootOrder(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	a := s.agent("pump-1")
	s.online("pump-1")
	s.publish(write("before", "pump-1", "GPIO17", 1))
	s.done("before")
	a.mute = true
	a.kill()
	s.nodeState("pump-1", "offline")
	// Refused, and so in no timeline.
	if out, err := s.tryPublish(write("kept", "pump-1", "GPIO17", 1), "-r"); err != nil {
		t.Logf("mosquitto_pub -r: %v %s", err, out)
	}
	s.publish(write("queued", "pump-1", "GPIO17", 0))
	if s.level("pump-1", "GPIO17") != gpio.High {
		t.Error("the saved level was lost with the power")
	}
	s.agent("pump-1")
	i := s.done("queued")
	if s.level("pump-1", "GPIO17") != gpio.Low || s.get("/v1/tasks/kept", new(taskView)) {
		t.Errorf("level %v, or the retained command became a task", s.level("pump-1", "GPIO17"))
	}
	s.moved("pump-1", 2)
	last := s.actuations("pump-1")[1]
	var explained int
	for _, e := range s.timeline(i.Seq) {
		if e.What == "processed" && e.Token == last.Cause && e.To == succeeded {
			explained++
		}
	}
	if explained != 1 {
		t.Errorf("%d entries explain the level, set by %s: %q", explained, last.Cause, whats(s.timeline(i.Seq)))
	}
}
