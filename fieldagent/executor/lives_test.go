package executor_test

import (
	"strings"
	"testing"
	"time"

	"github.com/apollo-11/apollo11/fieldagent/executor"
	"github.com/apollo-11/apollo11/fieldagent/journal"
	"github.com/apollo-11/apollo11/wire"
)

// A10: a snapshot changes nothing. The rewrite that it is made for may find no room,
// and the old file stays in use, also for a new life.
func TestA10_AFailedRewriteLeavesAJournal(t *testing.T) {
	for _, fails := range []bool{false, true} {
		b := newBench(t, config(1))
		b.welcome(0)
		for n := uint64(1); n <= 3; n++ {
			b.deliver(n, "")
			b.finish(n, wire.CodeOK)
		}
		b.cfg.Incarnation++
		b.start()
		b.welcome(0)
		b.mono = time.Second
		b.receive(&wire.EventAck{Through: 2}) // no record: it rides with the next
		if fails {
			b.core.Snapshot()
		}
		b.mono = 10 * time.Second
		b.welcome(40) // the gateway has more of this agent: the card is an old copy
		b.mono = 11 * time.Second
		b.welcome(0)
		b.deliver(9, "")
		b.finish(9, wire.CodeOK)
		b.cfg.Incarnation++
		if err := executor.Sense(b.journal); err != nil {
			t.Errorf("rewrite failed before: %v: %v", fails, err)
		}
		b.start()
	}
}

// A16: what one step writes may be more than one append takes. With any number of its
// first records the journal is one to begin from: nothing of an old copy, of another
// log, or of before a stop begins, and nothing is told twice.
func TestA16_EveryPrefixOfABigStepIsSafe(t *testing.T) {
	full := func() *bench {
		b := newBench(t, config(1))
		b.cfg.MaxQueue = 40
		b.start()
		b.welcome(0)
		b.deliver(1, "z")
		for n := uint64(2); n <= 30; n++ {
			b.deliver(n, name(n))
		}
		b.mono = time.Second
		b.step(executor.Tick{})
		b.cfg.Incarnation++
		b.start()
		return b
	}
	for what, big := range map[string]func(b *bench) executor.Output{
		"an old copy": func(b *bench) executor.Output { return b.welcome(5000) },
		"another log": func(b *bench) executor.Output {
			b.session++
			b.step(executor.Connected{Session: b.session})
			return b.greet(&wire.Welcome{Rules: 1, Epoch: 2})
		},
		"a hello": func(b *bench) executor.Output {
			b.welcome(0)
			for n := uint64(31); n <= 35; n++ {
				b.deliver(n, name(n))
			}
			return b.step(executor.Connected{Session: 99})
		},
	} {
		b := full()
		out := big(b)
		whole := b.journal[:len(b.journal)-len(out.Records)]
		if len(out.Records) < 8 {
			t.Fatalf("%s: %d records", what, len(out.Records))
		}
		for n := range len(out.Records) + 1 {
			c := newBench(t, b.cfg)
			c.journal = append(whole[:len(whole):len(whole)], out.Records[:n]...)
			c.cfg.Incarnation++
			c.start()
			old := what == "an old copy" && n < len(out.Records)
			var got executor.Output
			if c.session = 100; old {
				c.step(executor.Connected{Session: 100})
				c.greet(&wire.Welcome{Rules: 1, Through: 5000})
				c.step(executor.Connected{Session: 101})
				c.session = 101
			} else {
				c.step(executor.Connected{Session: 100})
			}
			got = c.greet(&wire.Welcome{Rules: 1, Epoch: 2})
			for n := uint64(2); n <= 35; n++ { // and nobody offers anything
				if len(got.Start) > 0 {
					t.Fatalf("%s, %d records: %d begins", what, n, got.Start[0].Seq)
				}
			}
			if err := executor.Sense(c.journal); err != nil {
				t.Fatalf("%s, %d records: %v", what, n, err)
			}
		}
	}
}

// B27: a level without a time limit that the board has ended by itself is told; that a
// later instruction has replaced it is not.
func TestB27_EndsOfPlainLevelsAreTold(t *testing.T) {
	b := newBench(t, config(1))
	b.welcome(0)
	high := true
	set := func(seq uint64, pin string) {
		b.deliver(seq, pin)
		b.step(executor.Finished{Token: token(seq), Result: executor.Result{Code: wire.CodeOK, Lease: &executor.Lease{Pin: pin, Plain: true}}})
	}
	end := func(out executor.Output) string {
		for _, p := range out.Primary {
			if e, ok := p.(*wire.Event); ok && e.Phase == wire.PhaseLease {
				m, _ := wire.DecodeMap(e.Payload)
				s := e.Lease.String()
				if level, ok := m["level"]; ok {
					s += map[any]string{uint64(0): " low", uint64(1): " high"}[level]
				}
				return s
			}
		}
		return ""
	}
	set(1, "a")
	if got := end(b.step(executor.LeaseEnded{Token: token(1), Why: wire.LeaseReplaced})); got != "" || b.core.Leases() != 0 {
		t.Errorf("replaced: told %q, %d open", got, b.core.Leases())
	}
	set(2, "a")
	if got := end(b.step(executor.LeaseEnded{Token: token(2), Why: wire.LeaseLoss, Level: &high})); got != "loss high" {
		t.Errorf("loss: told %q", got) // A13: the level that was driven, not the one that was meant at the start
	}
	set(3, "a")
	if got := end(b.step(executor.LeaseEnded{Token: token(3), Why: wire.LeaseHand})); got != "hand" {
		t.Errorf("hand: told %q", got)
	}
	set(4, "a")
	set(5, "b")
	set(6, "b") // the owner's word about 5 is lost with the process
	b.journal = b.core.Snapshot()
	b.start()
	out := b.welcome(0)
	told := map[uint64]wire.LeaseEnd{}
	for _, p := range out.Primary {
		if e, ok := p.(*wire.Event); ok && e.Phase == wire.PhaseLease && e.Seq > 3 {
			told[e.Seq] = e.Lease
		}
	}
	if len(told) != 2 || told[4] != wire.LeaseRestart || told[6] != wire.LeaseRestart {
		t.Errorf("restart: told %v", told)
	}
}

// docs/safety.md 11: a cancel of what has succeeded ends its own living lease, also when
// the attempt is forgotten, and not that of a newer instruction.
func TestCancelEndsItsOwnLivingLease(t *testing.T) {
	cfg := config(1)
	cfg.MaxQueue, cfg.MaxKnown = 1, 1
	b := newBench(t, cfg)
	b.welcome(0)
	lease := func(seq uint64, plain bool) {
		b.deliver(seq, "a")
		b.step(executor.Finished{Token: token(seq), Result: executor.Result{Code: wire.CodeOK, Lease: &executor.Lease{Pin: "a", Plain: plain}}})
	}
	ended := func(seq uint64) int {
		return len(b.receive(&wire.Cancel{Seq: seq, Token: token(seq)}).EndLease)
	}
	lease(1, false)
	for range 2 {
		if ended(1) != 1 {
			t.Error("its lease goes on")
		}
	}
	b.step(executor.LeaseEnded{Token: token(1), Why: wire.LeaseCancelled})
	b.ack()
	lease(2, false)
	b.ack()
	lease(3, true)
	if ended(2) != 0 || ended(3) != 0 {
		t.Error("the level of another one is ended, or one that has no time limit")
	}
	b.ack()
	lease(4, false)
	b.ack()
	b.deliver(5, "b") // 4 is forgotten
	if out := b.step(executor.ReceivedCompact{Frame: wire.CompactCancel{Seq: 5, Attempt: 1}}); len(out.Abort) != 1 {
		t.Errorf("%+v", out)
	}
	if ended(4) != 1 {
		t.Error("the lease of a forgotten attempt goes on")
	}
}

// D2: what a stop gives back unstarted is forgotten in the journal as well, and not
// begun by the next process before it comes again.
func TestD2_WhatAStopGivesBackIsForgotten(t *testing.T) {
	b := newBench(t, config(1))
	b.session = 1
	b.step(executor.Connected{Session: 1})
	b.greet(&wire.Welcome{})
	b.deliver(1, "z")
	b.deliver(2, "a")
	b.mono = time.Second
	b.step(executor.Tick{})
	b.step(executor.Stop{})
	b.start()
	b.session = 2
	b.step(executor.Connected{Session: 2})
	if out := b.greet(&wire.Welcome{}); len(out.Start) != 0 {
		t.Errorf("starts %v", out.Start)
	}
	r := said[*wire.Report](b.receive(&wire.Query{Refs: []wire.Ref{{Seq: 2, Token: token(2)}}}))
	if r == nil || r.States[0].Status != wire.StatusNever {
		t.Errorf("%+v", r)
	}
}

// C7: room for a late copy of an older attempt may be made by forgetting the newer one.
// It is not run for that.
func TestC7_RoomForACopyIsNoReasonToRunIt(t *testing.T) {
	cfg := config(1)
	cfg.MaxQueue, cfg.MaxKnown = 1, 1
	b := newBench(t, cfg)
	b.welcome(0)
	first := b.instruction(1, "")
	second := *first
	second.Attempt, second.Token = 2, token(2)
	b.receive(&second)
	b.step(executor.Finished{Token: second.Token, Result: executor.Result{Code: wire.CodeOK}})
	b.ack()
	if out := b.receive(first); len(out.Start) != 0 || ends(out)[1] != wire.CodeUnknown {
		t.Errorf("starts %v, told %v", out.Start, ends(out))
	}
}

// A token that was cancelled before it came is not run when that is forgotten.
func TestC7_ACancelledTokenIsForgottenWithAMark(t *testing.T) {
	cfg := config(1)
	cfg.MaxQueue, cfg.MaxKnown = 1, 1
	b := newBench(t, cfg)
	b.welcome(0)
	in := b.instruction(1, "")
	b.mono = time.Second
	b.receive(&wire.Cancel{Seq: 1, Token: token(1)})
	b.ack()
	b.deliver(2, "") // makes it forgotten
	b.finish(2, wire.CodeOK)
	b.ack()
	if out := b.receive(in); len(out.Start) != 0 || ends(out)[1] != wire.CodeUnknown {
		t.Errorf("starts %v, told %v", out.Start, ends(out))
	}
}

// D6: the largest state that an agent may come to fits its journal with room: it could
// not go on otherwise. Each part is measured in a snapshot of one and counted as often
// as it may be there.
func TestD6_TheLargestJournalFits(t *testing.T) {
	size := func(b *bench) (n int) {
		for _, r := range b.core.Snapshot() {
			n += len(r) + 4 // what the journal adds to each
		}
		return n
	}
	long := strings.Repeat("x", wire.MaxDetailBytes)
	intent := strings.Repeat("i", wire.MaxIntentLen)
	cfg := config(1)
	cfg.Check = func(string, wire.RawMap) executor.Verdict { return executor.Verdict{} }
	b := newBench(t, cfg)
	b.welcome(0)
	big := func(seq uint64, args int) *wire.Instruction {
		in := b.instruction(1<<34+seq, "")
		in.Intent, in.Args = intent, nil
		for i := range in.Trace {
			in.Trace[i] = 0xff
		}
		if args > 0 {
			in.Args = encodeMap(t, map[string]any{"a": strings.Repeat("x", args)})
		}
		return in
	}
	empty := size(b)
	b.receive(big(1, 0)) // takes the worker
	one := size(b)
	b.receive(big(2, wire.MaxArgsBytes-16))
	b.mono = time.Second
	b.step(executor.Tick{})
	queued := size(b) - one
	b = newBench(t, cfg)
	b.welcome(0)
	b.receive(big(1, 0))
	b.step(executor.Finished{Token: token(1<<34 + 1), Result: executor.Result{Code: wire.CodeInternal, Detail: long}})
	both := size(b) - empty // an end and its event, which has the sentence
	b.ack()
	end := size(b) - empty
	event := both - end + 200 - len(long) // without its sentence
	const mib = 1 << 20
	total := executor.DefaultMaxQueue*queued + executor.DefaultMaxKnown*end + 50_000*event + 16*mib
	t.Logf("queued %d, end %d, event %d bytes: %d MiB in all", queued, end, event, total/mib)
	if total > journal.DefaultMaxBytes-2*mib {
		t.Errorf("%d MiB, a journal takes %d", total/mib, journal.DefaultMaxBytes/mib)
	}
}

// A newer agent's journal is told apart from one that makes no sense.
func TestA10_NewerIsNotNonsense(t *testing.T) {
	records := lived(t)
	rec := func(m map[uint64]any) []byte {
		r, err := wire.EncodeRecord(m)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	if err := executor.Sense(records); err != nil {
		t.Error(err)
	}
	for name, c := range map[string]struct {
		record []byte
		want   error
	}{
		"newer kind":    {rec(map[uint64]any{0: 99}), executor.ErrNewer},
		"newer version": {nil, executor.ErrNewer},
		"garbage":       {[]byte{0xff}, executor.ErrNonsense},
		"two heads":     {records[0], executor.ErrNonsense},
	} {
		list := append(records[:len(records):len(records)], c.record)
		if name == "newer version" {
			list = [][]byte{rec(map[uint64]any{0: 1, 1: 2, 2: 7, 3: 1})}
		}
		if err := executor.Sense(list); err == nil || !strings.Contains(err.Error(), c.want.Error()) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
}

// A1: a reload may exchange the lines of two names. What holds a line over time is of the
// line: the same name in a later result does not mean that it was replaced.
func TestA1_LeaseIsOfItsLine(t *testing.T) {
	b := newBench(t, config(1))
	b.welcome(0)
	begin := func(seq uint64, line, pin string) executor.Output {
		b.deliver(seq, line)
		return b.step(executor.Finished{Token: token(seq), Result: executor.Result{Code: wire.CodeOK, Lease: &executor.Lease{Pin: pin}}})
	}
	begin(1, "line-a", "valve")
	told := 0
	for _, m := range begin(2, "line-b", "valve").Primary { // the name means another line by now
		if e, ok := m.(*wire.Event); ok && e.Phase == wire.PhaseLease {
			told++
		}
	}
	if told != 0 || b.core.Leases() != 2 {
		t.Errorf("told %d ends, %d leases are open", told, b.core.Leases())
	}
	begin(3, "line-a", "lamp")
	if b.core.Leases() != 2 {
		t.Errorf("%d leases are open, of two lines", b.core.Leases())
	}
}

// B9, B28: a board starts with an older copy of its card, the gateway refuses it for a
// while, and sends it what is towards safe. What waits in the copy has run since: nobody
// may be told that it was superseded and did not begin.
func TestABoardThatIsNotWelcomeYetDoesNotSayThatSomethingNeverBegan(t *testing.T) {
	b := newBench(t, config(1))
	b.welcome(0)
	b.deliver(1, "b")
	b.deliver(2, "a")
	b.step(executor.Disconnected{})
	b.session++
	b.step(executor.Connected{Session: b.session}) // the hello speaks of what waits
	b.start()
	b.session++
	b.step(executor.Connected{Session: b.session})
	b.greet(&wire.Welcome{Refused: "another agent, with a newer copy of this journal, was heard just now"})
	if out := b.deliver(3, "a", "safe"); len(out.Urgent) != 1 {
		t.Fatalf("drives %+v", out.Urgent)
	}
	b.step(executor.Finished{Token: token(3), Again: true, Result: executor.Result{Code: wire.CodeOK}})
	if e := ends(b.welcome(0)); e[2] != wire.CodeUnknown {
		t.Errorf("told %v", e)
	}
}
