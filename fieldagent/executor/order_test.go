package executor_test

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/apollo-11/apollo11/fieldagent/executor"
	"github.com/apollo-11/apollo11/wire"
)

// A22: two workers, two long pulses, and an "off" for a third pin.
func TestA22_OffWaitsForNoWorker(t *testing.T) {
	b := newBench(t, config(2))
	b.welcome(0)
	b.deliver(1, "a", "pulse")
	b.deliver(2, "b", "pulse")
	out := b.deliver(3, "c", "safe")
	if len(out.Urgent) != 1 || out.Urgent[0].Seq != 3 || !out.Urgent[0].Towards {
		t.Errorf("%+v", out.Urgent)
	}
}

// B25: what is retried or resent runs behind newer commands that had no trouble.
func TestB25_AnOlderOneNeverRunsAfterANewerOne(t *testing.T) {
	b := newBench(t, config(2))
	b.welcome(0)
	b.deliver(1, "a")
	b.finish(1, wire.CodeBusy)
	b.deliver(2, "a")
	b.finish(2, wire.CodeOK)
	b.start()
	b.welcome(2)
	retry := b.instruction(1, "a")
	retry.Attempt, retry.Token = 2, token(30)
	if out := b.receive(retry); len(out.Start) != 0 || ends(out)[1] != wire.CodeSuperseded {
		t.Errorf("starts %v, told %v", out.Start, ends(out))
	}
}

// The marks outlive everything else that is known of what has begun.
func TestB25_MarksSurviveForgettingAndRewriting(t *testing.T) {
	cfg := config(1)
	cfg.MaxQueue, cfg.MaxKnown = 1, 1
	b := newBench(t, cfg)
	b.welcome(0)
	b.deliver(5, "a,b")
	b.finish(5, wire.CodeOK)
	b.receive(&wire.EventAck{Through: 1})
	for n := uint64(6); n < 9; n++ {
		b.deliver(n, "c")
		b.finish(n, wire.CodeOK)
		b.receive(&wire.EventAck{Through: n - 4})
	}
	b.journal = b.core.Snapshot()
	b.start()
	b.journal = b.core.Snapshot()
	b.start()
	want := map[wire.LineKey]uint64{wire.LineOf("a"): 5, wire.LineOf("b"): 5, wire.LineOf("c"): 8}
	if m := b.core.Marks(); !maps.Equal(m, want) {
		t.Errorf("marks %v, want %v", m, want)
	}
	b.welcome(4)
	in := b.instruction(4, "b")
	in.Token = token(40)
	if out := b.receive(in); ends(out)[4] != wire.CodeSuperseded {
		t.Errorf("told %v", ends(out))
	}
}

// A hello names the highest number that has begun, whatever sequence carried it: an older
// copy of the gateway's log goes on above it.
func TestB25_HelloNamesTheHighestNumber(t *testing.T) {
	b := newBench(t, config(1))
	b.welcome(0)
	in := b.instruction(1, "a")
	in.Order = 70
	b.receive(in)
	b.finish(1, wire.CodeOK)
	for _, again := range []string{"its journal", "a rewritten one"} {
		b.start()
		out := b.step(executor.Connected{Session: 99})
		h, ok := out.Primary[0].(*wire.Hello)
		if !ok || h.TopSeq != 70 {
			t.Errorf("from %s: %+v", again, out.Primary[0])
		}
		b.journal = b.core.Snapshot()
	}
}

// Marks are bounded. What finds no room counts for the whole board, which refuses too
// much rather than too little, but nothing that is towards safe.
func TestMarksAreBounded(t *testing.T) {
	cfg := config(1)
	b := newBench(t, cfg)
	b.welcome(0)
	const lines = 4*wire.MaxLines + 10
	for n := uint64(1); n <= lines; n++ {
		b.deliver(n*2, name(n))
		b.finish(n*2, wire.CodeOK)
		b.receive(&wire.EventAck{Through: n})
	}
	if n := len(b.core.Marks()); n > 4*wire.MaxLines {
		t.Errorf("%d marks", n)
	}
	if out := b.deliver(1, name(1)); ends(out)[1] != wire.CodeSuperseded {
		t.Errorf("told %v", ends(out))
	}
	if out := b.deliver(3, name(1), "safe"); len(out.Urgent) != 1 {
		t.Errorf("told %v", ends(out))
	}
}

func name(n uint64) string {
	return "line-" + string(rune('a'+n%26)) + string(rune('a'+n/26%26)) + string(rune('a'+n/676))
}

// What brings many lines to their safe levels does so where nothing newer has begun,
// and at the line that the gateway meant if the name has moved since.
func TestOffDrivesWhatItCan(t *testing.T) {
	cfg := config(2)
	cfg.Hello.Pins = []string{"a", "old"}
	cfg.Hello.Traits = []wire.PinTraits{{Line: wire.LineOf("a"), Flags: wire.PinOutput | wire.PinHasSafe}, {Line: wire.LineOf("old"), Flags: wire.PinOutput | wire.PinHasSafe}}
	b := newBench(t, cfg)
	b.welcome(0)
	b.deliver(9, "b")
	b.finish(9, wire.CodeOK)
	in := b.instruction(8, "a,b", "hold")
	in.Lines = []wire.LineKey{wire.LineOf("old"), wire.LineOf("b"), wire.LineOf("gone")}
	out := b.receive(in)
	want := []wire.LineKey{wire.LineOf("a"), wire.LineOf("old")}
	if len(out.Urgent) != 1 || !slices.Equal(out.Urgent[0].Lines, want) || out.Urgent[0].Order != 8 {
		t.Fatalf("%+v, want lines %v", out.Urgent, want)
	}
	b.finish(8, wire.CodeOK)
	if h, want := b.core.Holds(), (map[wire.LineKey]uint64{want[0]: 8, want[1]: 8}); !maps.Equal(h, want) {
		t.Errorf("holds %v, want %v", h, want)
	}
}

// B34: at none of its limits the agent turns an "off" away. Beyond the reserve it is
// driven and not remembered, its mark is kept, and the gateway is told that nothing is
// settled.
func TestB34_OffIsTakenWhenThereIsNoRoom(t *testing.T) {
	cfg := config(1)
	cfg.MaxQueue, cfg.MaxKnown = 2, 4
	b := newBench(t, cfg)
	b.welcome(0)
	for n := uint64(1); n <= 3; n++ {
		b.deliver(n, "a")
	}
	if r := said[*wire.Report](b.deliver(4, "a")); r == nil || r.States[0].Status != wire.StatusFull {
		t.Fatalf("a full queue is answered with %+v", r)
	}
	out := b.deliver(5, "a", "safe")
	if len(out.Urgent) != 1 || len(out.Abort) != 1 || len(ends(out)) != 2 {
		t.Fatalf("%+v", out)
	}
	n := uint64(6)
	for ; ; n++ { // nothing is acknowledged: the reserve is used up
		out = b.deliver(n, "b", "safe")
		if len(out.Urgent) != 1 {
			t.Fatalf("off %d is not driven", n)
		}
		if w := out.Urgent[0]; w.Again {
			if said[*wire.Report](out) != nil {
				t.Error("told as driven before it was")
			}
			if r := said[*wire.Report](b.step(executor.Finished{Token: w.Token, Again: true, Result: executor.Result{Code: wire.CodeIO}})); r != nil {
				t.Errorf("told as driven, and the pin did not move: %+v", r)
			}
			n++
			w = b.deliver(n, "b", "safe").Urgent[0]
			r := said[*wire.Report](b.step(executor.Finished{Token: w.Token, Again: true, Result: executor.Result{Code: wire.CodeOK}}))
			if r == nil || r.States[0].Seq != n || r.States[0].Status != wire.StatusDriven {
				t.Errorf("told %+v", r)
			}
			break
		}
		if n > 1000 {
			t.Fatal("no bound")
		}
	}
	b.start()
	if m := b.core.Marks()[wire.LineOf("b")]; m != n {
		t.Errorf("mark %d, driven was %d", m, n)
	}
}

// docs/safety.md 5: the older one is told as superseded only when that is written
// down, in the same records at the latest; and a restart does not bring it back.
func TestWithdrawalIsWrittenDownBeforeItIsTold(t *testing.T) {
	b := newBench(t, config(1))
	b.welcome(0)
	b.deliver(1, "z")
	b.deliver(2, "a")
	b.mono = 300 * time.Millisecond
	b.step(executor.Tick{})
	off := b.instruction(3, "a", "safe")
	off.NotAfter = 1 // it has expired, and ends the older one all the same
	out := b.receive(off)
	if e := ends(out); e[2] != wire.CodeSuperseded || e[3] != wire.CodeExpired {
		t.Fatalf("told %v", e)
	}
	b.finish(1, wire.CodeOK)
	b.start()
	b.session++
	b.step(executor.Connected{Session: b.session})
	out = b.greet(&wire.Welcome{Through: 2}) // a gateway without Rules offers nothing
	if len(out.Start) != 0 || ends(out)[2] != wire.CodeCancelled {
		t.Errorf("starts %v, told %v", out.Start, ends(out))
	}
}

// Time in doubt counts as not expired for what is towards safe, and as expired for the
// rest, which waits.
func TestOffIsNotHinderedByATimeInDoubt(t *testing.T) {
	b := newBench(t, config(2))
	b.welcome(0)
	b.gateway -= time.Hour.Milliseconds() // set back
	for seq, off := range map[uint64]bool{1: false, 2: true} {
		in := b.instruction(seq, name(seq))
		if off {
			in = b.instruction(seq, name(seq), "safe")
		}
		in.NotAfter = in.SentAt + 1000
		b.mono += 100 * time.Millisecond
		if out := b.receive(in); len(out.Urgent) > 0 != off || len(out.Start) > 0 || len(ends(out)) > 0 {
			t.Errorf("off %v: %+v", off, out)
		}
	}
}

// docs/safety.md 6: a hold lasts through restarts and rewritten journals, until a
// release that is newer than it.
func TestHoldsLastUntilTheyAreReleased(t *testing.T) {
	b := newBench(t, config(1))
	b.welcome(0)
	b.deliver(2, "a", "hold")
	b.finish(2, wire.CodeOK)
	for n := uint64(3); n < 6; n++ {
		if out := b.deliver(n, "a"); ends(out)[n] != wire.CodeHeldSafe {
			t.Errorf("instruction %d: %v", n, ends(out))
		}
		if n == 4 {
			b.journal = b.core.Snapshot()
		}
		b.start()
		b.welcome(b.newest)
	}
	release := func(seq, order uint64) wire.Code {
		in := b.instruction(seq, "")
		in.Intent, in.Order = "release", order
		if out := b.receive(in); len(out.Start) == 0 {
			return ends(out)[seq]
		}
		b.finish(seq, wire.CodeOK)
		return wire.CodeOK
	}
	if c := release(6, 1); c != wire.CodeSuperseded || len(b.core.Holds()) != 1 {
		t.Errorf("an older release: %v, holds %v", c, b.core.Holds())
	}
	if c := release(7, 0); c != wire.CodeOK || len(b.core.Holds()) != 0 {
		t.Errorf("release: %v, holds %v", c, b.core.Holds())
	}
	b.start()
	b.welcome(b.newest)
	if out := b.deliver(8, "a"); len(out.Start) != 1 {
		t.Errorf("released: %v", ends(out))
	}
}

// B26: a heartbeat tells how many more may wait.
func TestB26_HeartbeatTellsOfRoom(t *testing.T) {
	cfg := config(1)
	cfg.MaxQueue = 3
	b := newBench(t, cfg)
	b.welcome(0)
	for n := uint64(1); n <= 4; n++ {
		b.deliver(n, "a")
		b.mono += 5 * time.Second
		h := said[*wire.Heartbeat](b.step(executor.Tick{}))
		if h == nil || h.Room != uint32(3-max(n, 1)+1)+1 {
			t.Errorf("with %d: %+v", n, h)
		}
	}
}

// B28: what a gateway needs to know of a board stands in the hello: the process, the
// rules, the pins as they are now, and the switch.
func TestB28_HelloSaysWhoAndHow(t *testing.T) {
	cfg, moved := config(1), false
	cfg.Local = true
	cfg.Check = func(intent string, args wire.RawMap) executor.Verdict {
		v := check(intent, args)
		if moved && len(v.Lines) > 0 {
			v.Lines = lines("elsewhere")
		}
		return v
	}
	out := wire.PinOutput | wire.PinHasSafe
	cfg.Hello.Nonce, cfg.Hello.Pins = 4711, []string{"a", "b"}
	cfg.Hello.Traits = []wire.PinTraits{{Line: wire.LineOf("a"), Flags: out | wire.PinSafeHigh}, {Line: wire.LineOf("b"), Flags: out}}
	b := newBench(t, cfg)
	b.step(executor.Levels{Levels: wire.PackLevels([]wire.Level{wire.LevelHeld, wire.LevelHigh})})
	h := said[*wire.Hello](b.step(executor.Connected{Session: 1}))
	if h.Nonce != 4711 || h.Rules != wire.NewestRules || !h.Local || len(h.Traits) != 2 ||
		h.Traits[0].Flags != out|wire.PinSafeHigh|wire.PinCommanded|wire.PinHigh|wire.PinHeld || h.Traits[1].Flags != out|wire.PinCommanded|wire.PinHigh {
		t.Errorf("%+v", h)
	}
	if cfg.Hello.Traits[1].Flags != out {
		t.Error("the template was changed")
	}
	b.session = 1
	b.greet(&wire.Welcome{Rules: 1})
	// Another map, and what it makes of what waits.
	b.step(executor.Hand{})
	b.deliver(1, "z")
	in := b.instruction(2, "a")
	in.Lines = []wire.LineKey{wire.LineOf("a")}
	b.receive(in)
	b.deliver(3, "b")
	moved = true
	o := b.step(executor.Pins{Names: []string{"a"}, Traits: cfg.Hello.Traits[:1]})
	if h = said[*wire.Hello](o); h == nil || !slices.Equal(h.Pins, []string{"a"}) || len(h.Traits) != 1 || h.Traits[0].Flags&wire.PinCommanded != 0 {
		t.Errorf("%+v", h)
	}
	if e := ends(o); e[2] != wire.CodeMapChanged || len(e) != 1 {
		t.Errorf("of what waits it says %v", e)
	}
	b.step(executor.Levels{Levels: wire.PackLevels([]wire.Level{wire.LevelLow})})
	b.mono += 5 * time.Second
	if hb := said[*wire.Heartbeat](b.step(executor.Tick{})); hb == nil || wire.UnpackLevel(hb.Levels, 0) != wire.LevelLow {
		t.Errorf("%+v", hb)
	}
}

// B31: a pulse that the end of the agent has cut is known at the next start, once.
func TestB31_PulsesThatWereCutAreKnown(t *testing.T) {
	b := newBench(t, config(2))
	b.welcome(0)
	b.deliver(1, "a", "pulse")
	b.deliver(2, "b", "pulse")
	b.finish(2, wire.CodeOK)
	b.journal = b.core.Snapshot()
	b.start()
	want := []executor.Pulse{{Token: token(1), Pin: "a", Line: wire.LineOf("a")}}
	if p := b.core.Pulses(); !slices.Equal(p, want) {
		t.Errorf("%+v, want %+v", p, want)
	}
	b.start()
	if p := b.core.Pulses(); len(p) != 0 {
		t.Errorf("again %+v", p)
	}
}

// docs/safety.md 8: the agent says what became of work that its own end has ended, and
// does not do it again.
func TestInterruptedWorkIsNotBegunAgain(t *testing.T) {
	b := newBench(t, config(1))
	b.welcome(0)
	b.deliver(1, "a")
	b.start()
	if out := b.welcome(0); len(out.Start) != 0 || ends(out)[1] != wire.CodeInterrupted {
		t.Errorf("starts %v, told %v", out.Start, ends(out))
	}
}

// An agent of today and a gateway of yesterday: it reads what it knows.
func TestGatewayWithoutRulesReadsWhatItKnows(t *testing.T) {
	b := newBench(t, config(1))
	b.session = 1
	b.step(executor.Connected{Session: 1})
	b.step(executor.NarrowbandUp{})
	b.greet(&wire.Welcome{})
	b.deliver(2, "a", "hold")
	b.finish(2, wire.CodeOK)
	in := b.instruction(3, "b")
	in.Lines = []wire.LineKey{wire.LineOf("c")}
	told := []executor.Output{b.deliver(1, "a"), b.deliver(4, "a"), b.receive(in)}
	for i, want := range []wire.Code{wire.CodeCancelled, wire.CodeNotPermitted, wire.CodeNoSuchPin} {
		for seq, code := range ends(told[i]) {
			if code != want {
				t.Errorf("instruction %d: %v, want %v", seq, code, want)
			}
		}
	}
	r := said[*wire.Report](b.receive(&wire.Query{Refs: []wire.Ref{{Seq: 1, Token: token(1)}}}))
	if r == nil || r.States[0].Code != wire.CodeCancelled {
		t.Errorf("%+v", r)
	}
	if out := b.step(executor.ReceivedCompact{Frame: wire.CompactQuery{Seq: 4, Attempt: 1}}); len(out.Narrowband) != 1 || out.Narrowband[0].Code != wire.CodeNotPermitted {
		t.Errorf("%+v", out.Narrowband)
	}
	// To the next one with Rules the same events say what they mean.
	out := b.welcome(0)
	if e := ends(out); e[1] != wire.CodeSuperseded || e[3] != wire.CodeMapChanged || e[4] != wire.CodeHeldSafe {
		t.Errorf("%v", e)
	}
}

// A compact frame towards safe is for the owner of the pins: nobody has proved who sent
// it, so it ends no work here and leaves no mark.
func TestCompactSafeLeavesNoTraceInTheCore(t *testing.T) {
	b := newBench(t, config(1))
	b.welcome(0)
	b.deliver(1, "z")
	b.deliver(2, "a")
	b.step(executor.NarrowbandUp{})
	out := b.step(executor.ReceivedCompact{Frame: wire.CompactSafe{Seq: 9, Line: wire.LineOf("a").Hash()}})
	if len(out.Records)+len(out.Primary)+len(out.Narrowband)+len(out.Abort)+len(out.Urgent) != 0 {
		t.Errorf("%+v", out)
	}
}
