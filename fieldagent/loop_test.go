package fieldagent

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/apollo-11/apollo11/fieldagent/executor"
	"github.com/apollo-11/apollo11/fieldagent/journal"
	"github.com/apollo-11/apollo11/fieldagent/journal/journaltest"
	"github.com/apollo-11/apollo11/wire"
)

// hands are intents that do as they are told: "quick" ends well at once, "long"
// takes an hour unless it is stopped, "deaf" does not heed that.
type hands struct {
	mu   sync.Mutex
	runs map[uint64]int
}

func (h *hands) Check(string, wire.RawMap) executor.Verdict { return executor.Verdict{} }

func (h *hands) Run(ctx context.Context, w executor.Work, tell Tell) executor.Result {
	h.mu.Lock()
	h.runs[w.Seq]++
	h.mu.Unlock()
	tell(50, nil)
	switch w.Intent {
	case "long":
		select {
		case <-time.After(time.Hour):
		case <-ctx.Done():
			code := wire.CodeCancelled
			if errors.Is(ctx.Err(), context.DeadlineExceeded) {
				code = wire.CodeTimeout
			}
			return executor.Result{Code: code}
		}
	case "deaf":
		time.Sleep(time.Hour)
	}
	return executor.Result{Code: wire.CodeOK}
}

// bench is a loop on a disk in memory, in a bubble of virtual time.
type bench struct {
	t       *testing.T
	disk    *journaltest.Disk
	journal *journal.Journal
	loop    *loop
	hands   *hands
	workers int
	cancel  context.CancelFunc
	done    chan error

	mu   sync.Mutex
	sent []string
	last uint64 // newest event
}

func newBench(t *testing.T, o journal.Options) *bench {
	t.Helper()
	b := &bench{t: t, disk: journaltest.New(), hands: &hands{runs: map[uint64]int{}}, workers: 2}
	b.open(o)
	return b
}

func (b *bench) open(o journal.Options) {
	b.t.Helper()
	j, records, err := journal.Open(b.disk, "/data", o)
	if err != nil {
		b.t.Fatal(err)
	}
	start := time.Now()
	l := newLoop()
	l.journal, l.intents, l.log = j, b.hands, slog.New(slog.NewTextHandler(io.Discard, nil))
	l.now = func() executor.Now {
		return executor.Now{Mono: time.Since(start), Wall: time.Now().UnixMilli(), WallOK: true}
	}
	l.rewriteAt = 8 << 10
	l.primary, l.narrowband = b.primary, func([]byte) bool { return true }
	core, out, err := executor.New(executor.Config{Hello: wire.Hello{Short: "abcdef"}, Incarnation: 1, Check: b.hands.Check, Workers: b.workers}, records, l.now())
	if err != nil {
		b.t.Fatal(err)
	}
	l.core = core
	b.loop, b.journal, b.done = l, j, make(chan error, 1)
	var ctx context.Context
	ctx, b.cancel = context.WithCancel(context.Background())
	go func() { b.done <- l.run(ctx, out) }()
	l.inputs <- executor.Connected{Session: 9}
	l.inputs <- executor.Received{Message: &wire.Welcome{Session: 9, Epoch: 1, Now: time.Now().UnixMilli(), HeartbeatMs: 600_000}}
	synctest.Wait()
}

func (b *bench) primary(p []byte) bool {
	m, err := wire.DecodeUplink(p)
	if err != nil {
		b.t.Error(err)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	switch m := m.(type) {
	case *wire.Event:
		b.last = m.Number
		b.sent = append(b.sent, strings.TrimSpace(fmt.Sprintf("%d %s %s", m.Seq, m.Phase, m.Code)))
	case *wire.Goodbye:
		b.sent = append(b.sent, "goodbye")
	}
	return true
}

func (b *bench) deliver(seq uint64, intent string, timeout time.Duration) {
	now := time.Now().UnixMilli()
	b.loop.inputs <- executor.Received{Message: &wire.Instruction{
		Seq: seq, Key: wire.Key{Site: "s", Millis: now, Seq: seq}.String(), Token: wire.Token{Seq: seq}, Attempt: 1,
		Intent: intent, TimeoutMs: uint32(timeout.Milliseconds()), SentAt: now,
	}}
}

// stop ends the loop and returns its error.
func (b *bench) stop() error {
	b.t.Helper()
	b.cancel()
	err := <-b.done
	if cerr := b.journal.Close(); err == nil {
		err = cerr
	}
	return err
}

func (b *bench) said() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return strings.Join(b.sent, ", ")
}

func TestC12_NothingIsDoneThatCouldNotBeWrittenDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, journal.Options{})
		b.disk.Inject(func(op journaltest.Op) *journaltest.Fault {
			if op.Kind == journaltest.OpSync {
				return &journaltest.Fault{Err: syscall.EIO}
			}
			return nil
		})
		b.deliver(1, "quick", 0)
		err := <-b.done
		if !errors.Is(err, journal.ErrDead) || !strings.Contains(err.Error(), "can't write down") {
			t.Errorf("ended with %v", err)
		}
		if len(b.hands.runs) != 0 || b.said() != "" {
			t.Errorf("did %v and said %q", b.hands.runs, b.said())
		}
	})
}

func TestInputsThatWaitShareOneSync(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, journal.Options{})
		if err := b.stop(); err != nil {
			t.Fatal(err)
		}
		b.workers = 50
		b.open(journal.Options{})
		syncs := 0
		b.disk.Inject(func(op journaltest.Op) *journaltest.Fault {
			if op.Kind == journaltest.OpSync {
				syncs++
				time.Sleep(10 * time.Millisecond) // a card
			}
			return nil
		})
		const n = 50
		for seq := range uint64(n) {
			b.deliver(seq+1, "quick", 0)
		}
		time.Sleep(time.Second)
		synctest.Wait()
		// Two records an instruction.
		if got := strings.Count(b.said(), "processed ok"); got != n || syncs > n/2 {
			t.Errorf("%d results with %d syncs", got, syncs)
		}
		if err := b.stop(); err != nil {
			t.Error(err)
		}
	})
}

// The journal is shortened when it has grown, and when it is full: either way
// nothing is lost that matters.
func TestJournalStaysSmall(t *testing.T) {
	for name, o := range map[string]journal.Options{"grown": {}, "full": {MaxBytes: 16 << 10}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, o)
				var biggest int64
				for seq := range uint64(1000) {
					b.deliver(seq%50+1, "quick", 0) // resends, mostly
					synctest.Wait()
					b.loop.inputs <- executor.Received{Message: &wire.EventAck{Through: b.last}}
					synctest.Wait()
					biggest = max(biggest, b.journal.Size())
				}
				if biggest > 20<<10 {
					t.Errorf("grew to %d bytes", biggest)
				}
				if err := b.stop(); err != nil {
					t.Fatal(err)
				}
				b.open(o)
				b.deliver(7, "quick", 0)
				synctest.Wait()
				if n := b.hands.runs[7]; n != 1 {
					t.Errorf("instruction 7 ran %d times", n)
				}
				if err := b.stop(); err != nil {
					t.Fatal(err)
				}
			})
		})
	}
}

func TestStopEndsWorkAndSaysGoodbye(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, journal.Options{})
		b.deliver(1, "long", 2*time.Hour)
		time.Sleep(time.Second)
		began := time.Now()
		if err := b.stop(); err != nil {
			t.Fatal(err)
		}
		if d := time.Since(began); d > time.Second {
			t.Errorf("took %v", d)
		}
		if got := b.said(); got != "1 started none, 1 processed interrupted, goodbye" {
			t.Errorf("said %q", got)
		}
	})
}

// C1, C6: with nothing to wait for, the goodbye is out in no time at all.
func TestC1_C6_StopOfAnIdleAgentTakesNoTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, journal.Options{})
		b.deliver(1, "quick", 0)
		synctest.Wait()
		began := time.Now()
		if err := b.stop(); err != nil {
			t.Fatal(err)
		}
		if d := time.Since(began); d > 0 {
			t.Errorf("took %v", d)
		}
		if got := b.said(); got != "1 processed ok, goodbye" {
			t.Errorf("said %q", got)
		}
	})
}

// An agent runs for months: nothing may be left of work that has ended.
func TestEndedWorkLeavesNothingBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, journal.Options{})
		for seq := range uint64(100) {
			b.deliver(seq+1, "quick", 0)
			synctest.Wait()
			b.loop.inputs <- executor.Received{Message: &wire.EventAck{Through: b.last}}
		}
		b.deliver(101, "long", time.Second)
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if got := strings.Count(b.said(), "processed"); got != 101 {
			t.Errorf("%d results", got)
		}
		if err := b.stop(); err != nil {
			t.Fatal(err)
		}
		if n := len(b.loop.cancels); n != 0 {
			t.Errorf("%d works are still there", n)
		}
	})
}

func TestStopDoesNotWaitForEverForWorkThatDoesNotHeedIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, journal.Options{})
		b.deliver(1, "deaf", 2*time.Hour)
		time.Sleep(time.Second)
		began := time.Now()
		if err := b.stop(); err != nil {
			t.Fatal(err)
		}
		if d := time.Since(began); d > executor.StopLimit+workLimit {
			t.Errorf("took %v", d)
		}
		// C6: the next start says what became of it.
		b.open(journal.Options{})
		if got := b.said(); !strings.HasSuffix(got, "1 processed interrupted") {
			t.Errorf("said %q", got)
		}
		if err := b.stop(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Hour) // let the deaf one end
	})
}

func TestE7_TimeLimitEndsWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, journal.Options{})
		b.deliver(1, "long", 10*time.Second)
		b.deliver(2, "deaf", 10*time.Second)
		b.deliver(3, "long", 10*time.Second)
		b.deliver(4, "quick", 0)
		time.Sleep(30 * time.Second)
		synctest.Wait()
		for _, want := range []string{"1 processed timeout", "2 processed unknown", "3 processed timeout", "4 processed ok"} {
			if !strings.Contains(b.said(), want) {
				t.Errorf("not said: %s; but %s", want, b.said())
			}
		}
		if err := b.stop(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Hour) // let the deaf one end
	})
}
