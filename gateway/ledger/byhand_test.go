package ledger_test

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/apollo-11/apollo11/gateway/engine"
	"github.com/apollo-11/apollo11/gateway/ledger"
	"github.com/apollo-11/apollo11/wire"
)

func quietOn(g *gateway, d time.Duration) *engine.Operate {
	return &engine.Operate{Action: engine.ActionQuietOn, Actor: "ann", Note: "valve 3", Until: g.now.Wall + d.Milliseconds(), Reply: "caller"}
}

// trail reads the whole audit trail and checks its chain.
func trail(t testing.TB, l *ledger.Ledger) []engine.Audit {
	t.Helper()
	list, err := l.Reader().Audit(ctx(t), 0, ledger.MaxPage)
	if err != nil {
		t.Fatal(err)
	}
	var tr engine.Trail
	for _, a := range list {
		if err := tr.Check(a); err != nil {
			t.Fatal(err)
		}
	}
	return list
}

// TestA8_B11_AQuietPeriodAndTheTrailSurviveARestart: what an operator did before is
// in force after it, and the next entry continues the chain. A period that ended
// meanwhile is ended by an entry of its own, behind all the others.
func TestA8_B11_AQuietPeriodAndTheTrailSurviveARestart(t *testing.T) {
	l := ledger.New(openStore(t, vfs.NewMem()))
	g := newGateway(t, l, engine.Now{Wall: start})
	g.step(quietOn(g, time.Hour))
	g.step(&engine.Operate{Action: engine.ActionQuietOff, Actor: "bob"})
	g.step(quietOn(g, time.Hour))
	want := g.eng.Quiet()

	g = newGateway(t, l, engine.Now{Wall: start + 60_000})
	if got := g.eng.Quiet(); got != want || !got.On {
		t.Errorf("after the restart: %+v, want %+v", got, want)
	}
	r := g.step()
	if len(r.Effects.Alarms) != 1 || r.Effects.Alarms[0].Kind != "quiet_period" {
		t.Errorf("the quiet period is not shown again: %+v", r.Effects.Alarms)
	}
	g.step(submit("t", "a"), &engine.Cancel{TaskID: "t", Actor: "ann"})
	if list := trail(t, l); len(list) != 4 || list[3].Action != engine.ActionCancel {
		t.Errorf("%+v", list)
	}

	g = newGateway(t, l, engine.Now{Wall: start + 2*3600_000})
	if r := g.step(); r.Records.Quiet == nil || r.Records.Quiet.On || g.eng.Quiet().On {
		t.Errorf("its time is over: %+v", g.eng.Quiet())
	}
	if list := trail(t, l); len(list) != 5 || list[4].Actor != "gateway" || list[4].Action != engine.ActionQuietOff {
		t.Errorf("%+v", list)
	}
	if again := newGateway(t, l, g.now); again.eng.Quiet().On {
		t.Error("it is back after another restart")
	}
}

// TestB11_TheTrailIsPaged reads it in pages of two, and from the middle.
func TestB11_TheTrailIsPaged(t *testing.T) {
	l := ledger.New(openStore(t, vfs.NewMem()))
	g := newGateway(t, l, engine.Now{Wall: start})
	for range 3 {
		g.step(quietOn(g, time.Hour), &engine.Operate{Action: engine.ActionQuietOff, Actor: "bob"})
	}
	all := trail(t, l)
	var got []engine.Audit
	for {
		page, err := l.Reader().Audit(ctx(t), uint64(len(got)), 2)
		if err != nil {
			t.Fatal(err)
		}
		if len(page) == 0 {
			break
		}
		if got = append(got, page...); len(page) > 2 {
			t.Fatalf("a page of %d", len(page))
		}
	}
	if len(all) != 6 || !reflect.DeepEqual(got, all) {
		t.Errorf("in pages: %d entries, at once: %d", len(got), len(all))
	}
}

// TestTheOperatorQueueIsPaged fills the queue, takes some out, and lists the rest in
// pages, also after a restart; MaxPage bounds a page.
func TestTheOperatorQueueIsPaged(t *testing.T) {
	l := ledger.New(openStore(t, vfs.NewMem()))
	g := newGateway(t, l, engine.Now{Wall: start})
	for n := range 7 {
		in := submit(fmt.Sprintf("task-%d", n), "a")
		in.Spec.TTLMs = 1
		g.step(in)
	}
	g.now = engine.Now{Mono: time.Second, Wall: start + 1000}
	g.step() // all have expired
	list := func(limit int) (seqs []uint64) {
		t.Helper()
		after := uint64(0)
		for pages := 0; ; pages++ {
			page, next, err := l.Reader().Queue(ctx(t), after, limit)
			if err != nil || len(page) > limit || pages > 10 {
				t.Fatalf("%v: %d on page %d", err, len(page), pages)
			}
			for _, i := range page {
				if !i.Operator || i.State != engine.StateTimeout {
					t.Errorf("in the queue: %+v", i)
				}
				seqs = append(seqs, i.Seq)
			}
			if next == 0 {
				return seqs
			}
			after = next
		}
	}
	if got := list(3); !reflect.DeepEqual(got, []uint64{1, 2, 3, 4, 5, 6, 7}) {
		t.Errorf("the queue: %v", got)
	}
	g = newGateway(t, l, g.now)
	g.step(&engine.Operate{Action: engine.ActionResolve, Seq: 1, Actor: "ann", Note: "by hand"}, &engine.Cancel{Seq: 4, Actor: "ann"})
	for _, limit := range []int{1, 2, 5, 100} {
		if got := list(limit); !reflect.DeepEqual(got, []uint64{2, 3, 5, 6, 7}) {
			t.Errorf("in pages of %d: %v", limit, got)
		}
	}
	if got, next, err := l.Reader().Queue(ctx(t), 7, 10); len(got) != 0 || next != 0 || err != nil {
		t.Error(got, next, err)
	}
}

// TestB10_ADroppedDeadLetterIsGone, for lists and by its number.
func TestB10_ADroppedDeadLetterIsGone(t *testing.T) {
	l := ledger.New(openStore(t, vfs.NewMem()))
	g := newGateway(t, l, engine.Now{Wall: start})
	g.step(&engine.Garbage{Kind: "task", From: "hmi", Raw: []byte("{")}, &engine.Garbage{Kind: "task", From: "hmi", Raw: []byte("[")})
	one, err := l.Reader().DeadLetter(ctx(t), 1)
	if err != nil || one == nil || string(one.Raw) != "{" {
		t.Fatalf("%+v, %v", one, err)
	}
	g.step(&engine.Operate{Action: engine.ActionDeadReplay, Dead: 1, Found: one, Actor: "ann"})
	if d, err := l.Reader().DeadLetter(ctx(t), 1); d != nil || err != nil {
		t.Errorf("%+v, %v", d, err)
	}
	if list, err := l.Reader().DeadLetters(ctx(t), 0, 10); len(list) != 1 || list[0].Number != 2 || err != nil {
		t.Errorf("%+v, %v", list, err)
	}
}

// TestB9_WhatAnOlderCopyHasLostIsRemembered: an agent tells of numbers that the log
// has not given out; after a restart another one's instruction is still not sent.
func TestB9_WhatAnOlderCopyHasLostIsRemembered(t *testing.T) {
	l := ledger.New(openStore(t, vfs.NewMem()))
	g := newGateway(t, l, engine.Now{Wall: start})
	g.step(submit("t", "a", "b"))
	knows := func(node string, seq, token uint64) *engine.Uplink {
		h := hello(node, 1, 1, 1)
		m := h.Msg.(*wire.Hello)
		m.TopSeq, m.TopToken = seq, token
		return h
	}
	g.step(knows("a", 9, 9))
	g = newGateway(t, l, engine.Now{Wall: start})
	r := g.step(knows("b", 8, 8))
	for _, s := range r.Effects.Sends {
		if _, ok := s.Msg.(*wire.Instruction); ok {
			t.Errorf("sent to b: %+v", s.Msg)
		}
	}
	if i, _, err := l.Instruction(2); err != nil || i.Reason != engine.ReasonRestored || !i.Operator {
		t.Errorf("%+v, %v", i, err)
	}
	if out := g.step(submit("fresh", "b")); !strings.Contains(fmt.Sprint(out.Effects.Replies[0].Accepted.Instructions), "-100010-") {
		t.Errorf("the numbers go on with %v", out.Effects.Replies[0].Accepted.Instructions)
	}
	// What the log has given to b by now, and has heard of it, is no news of the copy.
	g = newGateway(t, l, engine.Now{Wall: start})
	r = g.step(knows("b", 100010, 100010))
	for _, a := range r.Effects.Alarms {
		if a.Kind == "log_rolled_back" {
			t.Errorf("b knows what it was given: %+v", a)
		}
	}
	// How far the counters were moved is kept, or a restart would give all of it again.
	moved := func(n int) uint64 {
		r := g.step(knows(fmt.Sprintf("e%d", n), 400_000_000, 400_000_000))
		if r.Records.Moved == nil {
			return 0
		}
		return r.Records.Moved.Sum
	}
	moved(1)
	if first := moved(2); first < 399_000_000 {
		t.Fatalf("moved by %d", first)
	}
	g = newGateway(t, l, engine.Now{Wall: start})
	r = g.step(knows("f1", 1_200_000_000, 1_200_000_000))
	r = g.step(knows("f2", 1_200_000_000, 1_200_000_000))
	if r.Records.Moved != nil || r.Records.Counters != nil {
		t.Errorf("after a restart all of it is given once more: %+v", r.Records)
	}
}

// What gpio.safe holds is in the log, and forgotten when it is released; numbers that
// were set aside are not given out by the next process.
func TestHoldsAndReservedNumbersSurvive(t *testing.T) {
	l := ledger.New(openStore(t, vfs.NewMem()))
	g := newGateway(t, l, engine.Now{Wall: start})
	safe := submit("stop", "a")
	safe.Spec.Intent, safe.Spec.Args = wire.IntentSafe, nil
	g.step(safe)
	e, err := l.Recover(engine.Now{Wall: start}, engine.Config{Reserve: 7}, rand.New(rand.NewPCG(1, 2)))
	if err != nil {
		t.Fatal(err)
	}
	if h := e.Holds(); len(h) != 1 || h[0].Node != "a" || !h[0].All {
		t.Errorf("held: %+v", h)
	}
	release := submit("go", "a")
	release.Spec.Intent, release.Spec.Args = wire.IntentRelease, nil
	e.Step(engine.Now{Wall: start}, release)
	r := e.Ready(engine.Now{Wall: start})
	p, err := l.Apply(&r.Records)
	if err == nil {
		err = p.Wait()
	}
	if err != nil || r.Records.Reserved == nil {
		t.Fatalf("%v, reserved %v", err, r.Records.Reserved)
	}
	e, err = l.Recover(engine.Now{Wall: start}, engine.Config{}, rand.New(rand.NewPCG(1, 2)))
	if err != nil {
		t.Fatal(err)
	}
	if h := e.Holds(); len(h) != 0 {
		t.Errorf("held after the release: %+v", h)
	}
	e.Step(engine.Now{Wall: start}, submit("next", "a"))
	if r := e.Ready(engine.Now{Wall: start}); len(r.Records.Tasks) != 1 || r.Records.Tasks[0].First < 2+7 {
		t.Errorf("the next task: %+v", r.Records.Tasks)
	}
}
