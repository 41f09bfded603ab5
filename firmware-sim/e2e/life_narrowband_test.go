package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/apollo-11/apollo11/gateway/scada"
)

// entryTime is the gateway's time of the first entry of a kind.
func entryTime(t *testing.T, entries []scada.EntryView, what string) time.Time {
	t.Helper()
	for _, e := range entries {
		if e.What == what {
			at, err := time.Parse(time.RFC3339, e.Time)
			if err != nil {
				t.Fatal(err)
			}
			return at
		}
	}
	t.Fatalf("no %s in %q", what, whats(entries))
	return time.Time{}
}

// TestNarrowband_ConfirmsWhileThePrimaryIsDead: the agent's events do not get
// through, although the connection stands. The compact ack settles the
// instruction; when the primary path is back, on the same connection or on a new
// one, the full event joins it (B2, B3, B13).
func TestNarrowband_ConfirmsWhileThePrimaryIsDead(t *testing.T) {
	t.Parallel()
	for _, back := range []struct {
		name string
		mend func(*proxy)
	}{
		{"on the same connection", func(p *proxy) { p.mend() }},
		{"on a new connection", func(p *proxy) { p.sever(); p.mend() }},
	} {
		t.Run(back.name, func(t *testing.T) {
			s := newSite(t)
			primary := newProxy(t, s.mqtt)
			s.agentVia("pump-1", primary.addr, s.narrow)
			s.online("pump-1")
			s.publish(taskJSON("before", "gpio.read", "pump-1", `{"pin":"GPIO17"}`, "")) // both paths have worked
			s.done("before")
			sub := s.listen("apollo/default/task/+/status")

			primary.hold(up)
			s.publish(write("fill", "pump-1", "GPIO17", 1))
			i := s.done("fill")
			if i.Path != "narrowband" || i.Result != nil {
				t.Fatalf("path %s, result %v", i.Path, i.Result)
			}
			entries := s.timeline(i.Seq)
			t.Logf("sent but unknown for %v", entryTime(t, entries, "processed").Sub(entryTime(t, entries, "dispatched")))
			sub.heard("task/fill/status", `"state":"SUCCEEDED"`, `"path":"narrowband"`)

			back.mend(primary)
			within(t, 2*slow, "joined", func() (bool, string) {
				entries = s.timeline(i.Seq)
				return slices.ContainsFunc(entries, func(e scada.EntryView) bool { return e.What == "joined" }), whats(entries)
			})
			last := entries[len(entries)-1]
			if last.What != "joined" || last.Path != "primary" || last.From != succeeded || last.To != succeeded || last.EventID == "" {
				t.Errorf("last entry %+v", last)
			}
			after := s.done("fill")
			if after.Path != "narrowband" || fmt.Sprint(after.Result["level"]) != "1" || after.Finished == "" {
				t.Errorf("after the primary path was back: %+v", after)
			}
			s.moved("pump-1", 1)
			s.publish(write("next", "pump-1", "GPIO17", 0))
			if i := s.done("next"); i.Path != "primary" || strings.Contains(whats(s.timeline(i.Seq)), "joined") {
				t.Errorf("the next one took the path %s: %q", i.Path, whats(s.timeline(i.Seq)))
			}
		})
	}
}
