package executor_test

import (
	"math"
	"testing"
	"time"

	"github.com/apollo-11/apollo11/fieldagent/executor"
	"github.com/apollo-11/apollo11/wire"
)

// A6: the record of a start takes a slow card so long that the autonomy window ends
// meanwhile. The work is not begun, waits again, and is begun when the gateway offers it
// again.
func TestA6_NothingStartsAfterTheAutonomyWindow(t *testing.T) {
	cfg := config(1)
	cfg.Autonomy = time.Minute
	b := newBench(t, cfg)
	b.welcome(0)
	b.deliver(1, "a")
	b.deliver(2, "b")
	b.step(executor.Disconnected{})
	b.mono = 59 * time.Second
	out := b.finish(1, wire.CodeOK)
	if len(out.Start) != 1 || b.core.TooLate(b.at(), token(2)) {
		t.Fatalf("starts %v", out.Start)
	}
	b.mono = 149 * time.Second
	if !b.core.TooLate(b.at(), token(2)) {
		t.Fatal("89 s after the end of the autonomy window new work begins")
	}
	if out = b.step(executor.Unstarted{Tokens: []wire.Token{token(2)}}); len(out.Start) != 0 || len(ends(out)) != 0 {
		t.Errorf("%+v", out)
	}
	journal := b.journal
	if out = b.welcome(0); len(out.Start) != 0 {
		t.Errorf("nobody has offered it in this session: starts %v", out.Start)
	}
	if out = b.receive(b.instruction(2, "b")); len(out.Start) != 1 || out.Start[0].Seq != 2 || b.core.TooLate(b.at(), token(2)) {
		t.Errorf("starts %v", out.Start)
	}
	// And so it is for who reads the journal.
	b.journal = journal
	b.start()
	b.session++
	b.step(executor.Connected{Session: b.session})
	if out = b.greet(&wire.Welcome{}); len(out.Start) != 1 || out.Start[0].Seq != 2 {
		t.Errorf("after a restart: starts %v, told %v", out.Start, ends(out))
	}
}

// A12: the gateway's clock is set back. What it sends then is not refused as expired by
// a time that can't be right; the agent asks, and begins it when it has been told.
func TestA12_NothingIsRefusedAsExpiredInDoubt(t *testing.T) {
	b := newBench(t, config(2))
	b.gateway += time.Hour.Milliseconds() // ahead at first
	b.welcome(0)
	b.gateway -= time.Hour.Milliseconds() // set right
	for n := uint64(1); n <= 2; n++ {
		b.mono += 10 * time.Second
		in := b.instruction(n, "")
		in.NotAfter = in.SentAt + 600_000
		out := b.receive(in)
		if len(ends(out)) != 0 || len(out.Start) != 0 {
			t.Errorf("in doubt: starts %v, told %v", out.Start, ends(out))
		}
		if said[*wire.Hello](out) == nil {
			t.Error("it does not ask at once")
		}
	}
	b.mono += 100 * time.Millisecond
	if out := b.greet(&wire.Welcome{Rules: 1}); len(out.Start) != 2 {
		t.Errorf("told the time: starts %v, told %v", out.Start, ends(out))
	}
}

// A12: of two bounds of the time neither refuses early nor begins late.
func TestA12_BetweenTheBoundsItWaits(t *testing.T) {
	b := newBench(t, config(1))
	b.cfg.Check = check
	b.session = 1
	b.step(executor.Connected{Session: 1})
	b.mono = 4 * time.Second // under way in one direction or the other
	b.step(executor.Received{Message: &wire.Welcome{Session: 1, Epoch: 1, Rules: 1, HeartbeatMs: 5000, Now: wallAtStart + time.Hour.Milliseconds()}})
	at := wallAtStart + time.Hour.Milliseconds() // the gateway's time is between this and 4 s later
	in := b.instruction(1, "")
	in.SentAt, in.NotAfter = at, at+1000
	out := b.receive(in)
	if len(out.Start) != 0 || len(ends(out)) != 0 {
		t.Fatalf("between: starts %v, told %v", out.Start, ends(out))
	}
	b.mono += 1001 * time.Millisecond
	if out = b.step(executor.Tick{}); ends(out)[1] != wire.CodeExpired {
		t.Errorf("late for certain: %v", ends(out))
	}
}

// A14: a gateway that refuses the node can't command its outputs: it is as good as gone.
func TestA14_ARefusalIsNoContact(t *testing.T) {
	cfg := config(1)
	cfg.Autonomy = time.Minute
	b := newBench(t, cfg)
	if out := b.welcome(0); !out.Contact {
		t.Error("a welcome is no contact")
	}
	b.step(executor.NarrowbandUp{})
	b.session++
	b.step(executor.Connected{Session: b.session})
	b.greet(&wire.Welcome{Refused: "another board"})
	for b.mono = time.Second; b.mono < time.Hour; b.mono += 5 * time.Second {
		if out := b.greet(&wire.Welcome{Refused: "another board"}); out.Contact {
			t.Fatalf("a refusal after %v is contact", b.mono)
		}
	}
	if out := b.greet(&wire.Welcome{Rules: 1}); !out.Contact {
		t.Error("it is welcome again, and that is no contact")
	}
}

// The timer of the owner of the pins is fed often enough as long as the gateway is
// there, on either path, and not a moment longer.
func TestContactIsSaidInTime(t *testing.T) {
	cfg := config(1)
	cfg.Autonomy = 10 * time.Second
	b := newBench(t, cfg)
	b.session = 1
	b.step(executor.Connected{Session: 1})
	out := b.receive(&wire.Welcome{Session: 1, Epoch: 1, Now: wallAtStart, HeartbeatMs: 600_000})
	last := b.mono
	pass := func(until time.Duration) {
		for out.Deadline < until {
			if b.mono = out.Deadline; out.Contact {
				if b.mono-last > cfg.Autonomy/2 {
					t.Errorf("nothing for %v", b.mono-last)
				}
				last = b.mono
			}
			out = b.step(executor.Tick{})
		}
		b.mono = until
	}
	pass(time.Minute)
	b.step(executor.NarrowbandUp{})
	out = b.step(executor.Disconnected{})
	pass(2 * time.Minute)
	if out = b.step(executor.NarrowbandDown{}); out.Contact {
		t.Error("nobody is there, and it is contact")
	}
}

// A17: moments and times at the end of what their fields can hold, from whoever sends
// them, do not overflow into "at once, for ever" or "long ago".
func TestA17_FarMomentsAreBounded(t *testing.T) {
	for _, limit := range []int64{math.MaxInt64, math.MaxInt64 / 1000, 253402300799000 /* the year 9999 */, 7258118400000 /* 2200 */} {
		b := newBench(t, config(1))
		b.welcome(0)
		for n := uint64(1); n <= 2; n++ { // the second one waits for a worker
			in := b.instruction(n, "")
			in.NotAfter = limit
			if out := b.receive(in); len(ends(out)) > 0 {
				t.Errorf("not_after %d: %v", limit, ends(out))
			}
		}
		b.mono = time.Second
		out := b.step(executor.Tick{})
		for ticks := 0; out.Deadline <= b.mono; ticks++ {
			if ticks > 100 {
				t.Fatalf("not_after %d: it wants to be woken at once, for ever", limit)
			}
			out = b.step(executor.Tick{})
		}
	}
	for _, now := range []int64{1, math.MaxInt64} {
		b := newBench(t, config(1))
		b.session = 1
		b.step(executor.Connected{Session: 1})
		out := b.receive(&wire.Welcome{Session: 1, Epoch: 1, Now: now, HeartbeatMs: math.MaxUint32})
		in := b.instruction(1, "")
		in.SentAt, in.NotAfter, in.TimeoutMs = now, 1, math.MaxUint32
		out = b.receive(in)
		if out.Deadline < 0 {
			t.Errorf("deadline %v", out.Deadline)
		}
		b.step(executor.LeaseEnded{Token: token(1), Ago: math.MaxInt64})
	}
}

// ClockView is what the owner of the pins asks right before it drives.
func TestClockViewJudgesAsTheCoreDoes(t *testing.T) {
	b := newBench(t, config(1))
	if v := b.core.Clock(); !v.Late(b.at(), 1, false) || v.Late(b.at(), 1, true) || v.Late(b.at(), 0, false) {
		t.Error("before the first welcome the time is in doubt")
	}
	b.welcome(0)
	v, soon := b.core.Clock(), b.gateway+1000
	for _, after := range []time.Duration{0, time.Second, 1001 * time.Millisecond} {
		b.mono = after
		if late := after > time.Second; v.Late(b.at(), soon, false) != late || v.Late(b.at(), soon, true) != late {
			t.Errorf("after %v", after)
		}
	}
}

// A lease that has to end by a time of the gateway's is no longer than what is left until
// then for certain: nothing while the time is in doubt.
func TestClockViewLeavesWhatIsLeftForCertain(t *testing.T) {
	b := newBench(t, config(1))
	if v := b.core.Clock(); v.Left(b.at(), b.gateway+1000, time.Minute) != 0 || v.Left(b.at(), 0, time.Minute) != time.Minute {
		t.Error("before the first welcome the time is in doubt")
	}
	b.welcome(0)
	v, by := b.core.Clock(), b.gateway+60_000
	for _, c := range []struct{ after, length, left time.Duration }{
		{0, time.Hour, time.Minute}, {0, time.Second, time.Second}, {40 * time.Second, time.Minute, 20 * time.Second}, {2 * time.Minute, time.Minute, 0},
	} {
		b.mono = c.after
		if left := v.Left(b.at(), by, c.length); left != c.left {
			t.Errorf("after %v of %v: %v", c.after, c.length, left)
		}
	}
}
