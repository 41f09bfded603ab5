package lab

import (
	"testing"
	"time"

	"github.com/apollo-11/apollo11/firmware-sim/lab/board"
	"github.com/apollo-11/apollo11/firmware-sim/lab/disk"
)

// TestAgentOnBadDisk: a disk that stalls does not keep an output on beyond its
// limit; one that fails ends the agent with its outputs safe; and after a cut
// everything that was confirmed is known (C12, C13).
func TestAgentOnBadDisk(t *testing.T) {
	k := lab(t)
	l := levels[2]
	const limit, slack = 3 * time.Second, 2 * time.Second
	s := newSite(t, k)
	d, socket := newDisk(t, 64, seed(t))
	o := board.Options{Files: k.files(l), Disk: socket}
	s.switchOn(o)
	s.startUnit(l, relay(", max_on: 3s"))
	s.online(l.name)

	s.publish(write("stalled", l.name, "relay", 1))
	s.done(t, "stalled")
	s.seen(relayLine, false, patience) // active low: the relay is on
	edges := s.board.Lines().Edges(relayLine)
	on := edges[len(edges)-1].At
	d.Set(disk.Stalling)
	s.publish(write("waits", l.name, "out", 1)) // the journal waits for the disk
	off := s.rose(relayLine, limit+patience)
	t.Logf("on for %v with a stalling disk, the limit is %v", off.Sub(on).Round(time.Millisecond), limit)
	if took := off.Sub(on); took < limit-100*time.Millisecond || took > limit+slack {
		t.Errorf("the relay was on for %v, want %v", took, limit)
	}
	if high, err := s.board.Lines().High(l.out); err != nil || high {
		t.Errorf("a command moved a line before it was on disk: %v", err)
	}
	d.Set(disk.Honest)
	s.done(t, "waits")
	s.seen(l.out, true, patience)

	d.Set(disk.Failing)
	failed := time.Now()
	s.publish(write("fails", l.name, "relay", 1))
	off = s.fell(l.out, patience)
	t.Logf("safe %v after the disk failed", off.Sub(failed).Round(time.Millisecond))
	if off.Sub(failed) > maxOn {
		t.Errorf("the line was high for %v with a failed disk, its limit is %v", off.Sub(failed), maxOn)
	}
	s.must(s.board.Cut(func() { d.Cut() }))
	d.Set(disk.Honest)

	s.switchOn(o)
	s.startUnit(l, relay(", max_on: 3s"))
	s.online(l.name)
	i := s.settled(t, "fails")
	t.Logf("the command that met the failed disk: %s %s %s", i.State, i.Code, i.Detail)
	s.publish(write("works", l.name, "out", 1))
	s.done(t, "works")
	s.seen(l.out, true, patience)
	if bad := s.lossAlarms(t); len(bad) > 0 {
		t.Errorf("alarms: %q", bad)
	}
}

// rose waits until a line is high and returns when it went there.
func (s *site) rose(n int, limit time.Duration) time.Time {
	s.t.Helper()
	s.seen(n, true, limit)
	edges := s.board.Lines().Edges(n)
	return edges[len(edges)-1].At
}
