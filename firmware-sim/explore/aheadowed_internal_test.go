package explore

import (
	"testing"
	"time"

	"github.com/apollo-11/apollo11/fieldagent/executor"
	"github.com/apollo-11/apollo11/fieldagent/lines"
	"github.com/apollo-11/apollo11/gateway/engine"
	"github.com/apollo-11/apollo11/wire"
)

// small is a calm site of one board with a plan of its own.
func small(t *testing.T, list ...step) *world {
	t.Helper()
	o, p, err := Options{Seed: 1, Nodes: 1, Profile: "calm", Span: 40 * time.Second}.fill()
	if err != nil {
		t.Fatal(err)
	}
	w := newWorld(o, p)
	w.plan = list
	return w
}

func anOff(t *testing.T, at time.Duration, pin string) step {
	t.Helper()
	args, err := wire.EncodeMap(map[string]any{"pin": pin, "level": uint64(0)}, wire.MaxArgsBytes)
	if err != nil {
		t.Fatal(err)
	}
	return step{at: at, kind: opSubmit, number: 1, spec: &engine.Spec{TaskID: "off", Intent: wire.IntentGPIOWrite, Nodes: []string{nodeName(0)}, Args: args}}
}

// What goes ahead of its record goes once. A board whose LOCAL switch is on does not
// drive it, and drives the instruction that comes with the record.
func TestWhatIsRefusedAheadOfItsRecordIsOwedWithIt(t *testing.T) {
	w := small(t, step{at: 5 * time.Second, kind: gatewayHang, long: 30 * time.Second},
		step{at: 6 * time.Second, kind: handLocal, long: 2 * time.Second}, anOff(t, 7*time.Second, "L0"))
	w.guarded()
	if w.violation != nil {
		t.Errorf("under LOCAL: %+v", w.violation)
	}
	if n := len(w.check.orders.ahead.refused); n != 1 {
		t.Errorf("%d were refused", n)
	}
}

// The same where the line that the gateway meant has no safe level since a reload.
func TestWhatIsForALineWithoutASafeLevelIsOwedWithItsRecord(t *testing.T) {
	p := 0.0
	for i := range 100 {
		if q := float64(i) / 100; drawExchange(q) == [2]string{"L2", "P0"} {
			p = q
		}
	}
	w := small(t, step{at: 5 * time.Second, kind: gatewayHang, long: 30 * time.Second}, anOff(t, 6*time.Second, "L2"),
		step{at: 6*time.Second + 100*time.Millisecond, kind: agentReload, p: p})
	w.reloads = true
	w.guarded()
	if w.violation != nil {
		t.Errorf("after a reload: %+v", w.violation)
	}
	if n := len(w.check.orders.ahead.refused); n != 1 {
		t.Errorf("%d were refused", n)
	}
}

// A pulse that found its level at the line and may have begun is ended at once, by which
// the line moves: what had set it before does not have its level any more.
func TestAPulseInDoubtLeavesNobodysLevel(t *testing.T) {
	w := small(t)
	w.guarded() // the board has been there
	a, c := w.agents[0], w.check
	p := a.pins.m.byName["L3"]
	f := c.line(a, p.line)
	f.newest, f.newestLevel = &run{seq: 1}, !p.safe
	x := &work{Work: executor.Work{Seq: 2, Order: 2}, act: wire.Act{Traits: wire.Traits{Pulse: true}, Level: !p.safe}}
	c.asked(a, x, lines.Drive{Line: p.line, Level: !p.safe}, false, false)
	if f.newest != nil {
		t.Error("instruction 1 still counts as the newest there")
	}
}

// What the map lets on for a while falls also where nobody has set it and its level is
// not known: then it may be there already.
func TestAFallToALevelThatIsThereEndsNothing(t *testing.T) {
	for _, at := range []bool{false, true} {
		w := small(t)
		w.guarded()
		a, c := w.agents[0], w.check
		p := a.pins.m.byName["L1"]
		f := c.line(a, p.line)
		f.by, f.level = wire.Token{Seq: 1, Rand: 1}, at != p.safe
		func() {
			defer func() { _ = recover() }()
			c.ownAct(a, lines.Drive{Line: p.line, Level: p.safe, Why: lines.WhyExpired})
		}()
		if fell := w.violation != nil && w.violation.Rule == "lease-fell"; fell != at {
			t.Errorf("away %v: %+v", at, w.violation)
		}
	}
}

// After a reload a board may end a work for something newer towards safe of which the
// gateway does not know that it is for the same line.
func TestANewerOffEndsAWorkByItsLine(t *testing.T) {
	w := small(t)
	a, c := w.agents[0], w.check
	old := &run{seq: 1, by: a, at: time.Second, aborted: true}
	c.runs[wire.Token{Seq: 1}] = old
	if w.reloads = true; c.endedByNewer(old) {
		t.Error("by nothing")
	}
	c.runs[wire.Token{Seq: 2}] = &run{seq: 2, by: a, at: 2 * time.Second, towards: true}
	if !c.endedByNewer(old) {
		t.Error("not by the newer one")
	}
	if w.reloads = false; c.endedByNewer(old) {
		t.Error("without a reload")
	}
}
