package explore

import (
	"slices"
	"strings"
	"testing"
)

// needing is a run that breaks a rule when both of two steps of its plan are
// played.
func needing(a, b int) Options {
	played := map[*world]bool{}
	return Options{Seed: 5, watch: func(w *world, k int) {
		played[w] = played[w] || k == a
		if k == b && played[w] {
			w.fail("planted", "steps %d and %d", a, b)
		}
	}}
}

func TestShrinkKeepsWhatIsNeeded(t *testing.T) {
	o := needing(11, 25)
	r, err := Run(o)
	if err != nil || r.Violation == nil {
		t.Fatal(err, r.Violation)
	}
	small, err := Shrink(r, 200)
	if err != nil || small.Violation == nil || small.Violation.Rule != "planted" {
		t.Fatal(err, small.Violation)
	}
	if len(small.Plan) != 2 || !strings.HasPrefix(small.Plan[0], "  11 ") || !strings.HasPrefix(small.Plan[1], "  25 ") {
		t.Errorf("left are %q", small.Plan)
	}
	if again, err := Run(small.Options); err != nil || again.Hash != small.Hash {
		t.Errorf("the small run differs when it is played again: %x, %x, %v", again.Hash, small.Hash, err)
	}
	if cmd := small.Replay(); !strings.Contains(cmd, "--seeds 5 ") || !strings.Contains(cmd, "--skip 0-10,12-24,26-") {
		t.Errorf("replayed by %s", cmd)
	}
}

func TestShrinkIsBounded(t *testing.T) {
	o := needing(3, 30)
	r, err := Run(o)
	if err != nil || r.Violation == nil {
		t.Fatal(err, r.Violation)
	}
	worlds := map[*world]bool{}
	inner := o.watch
	r.Options.watch = func(w *world, k int) {
		worlds[w] = true
		inner(w, k)
	}
	if _, err := Shrink(r, 7); err != nil || len(worlds) > 7 {
		t.Errorf("%d runs, %v", len(worlds), err)
	}
}

func TestQueueKeepsTheOrderOfEqualTimes(t *testing.T) {
	var q queue
	var got []int
	for n := range 200 {
		q.push(7, func() { got = append(got, n) })
	}
	q.push(1, func() { got = append(got, -1) })
	for len(q.list) > 0 {
		q.pop().do()
	}
	if got[0] != -1 || !slices.IsSorted(got) || len(got) != 201 {
		t.Errorf("order %v", got)
	}
}

func TestPanicIsABrokenRule(t *testing.T) {
	r, err := Run(Options{Seed: 1, watch: func(*world, int) { panic("bug: planted") }})
	if err != nil || r.Violation == nil || r.Violation.Rule != "panic" || !strings.Contains(r.Violation.Text, "bug: planted") {
		t.Errorf("%v %v", err, r.Violation)
	}
}

func TestSiteInWhichNoTimePassesIsABrokenRule(t *testing.T) {
	r, err := Run(Options{Seed: 1, watch: func(w *world, k int) {
		var again func()
		again = func() { w.after(0, again) }
		again()
	}})
	if err != nil || r.Violation == nil || r.Violation.Rule != "livelock" {
		t.Errorf("%v %v", err, r.Violation)
	}
}
