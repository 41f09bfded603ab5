package formats

import (
	"maps"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/apollo-11/apollo11/fieldagent/executor"
	"github.com/apollo-11/apollo11/fieldagent/journal"
	"github.com/apollo-11/apollo11/gateway/engine"
	"github.com/apollo-11/apollo11/wire"
)

// board is a core of today on a recorded journal.
type board struct {
	t        *testing.T
	j        *journal.Journal
	core     *executor.Core
	now      executor.Now
	seqs     map[uint64]string             // tasks by their sequence
	sent     map[uint64]engine.Instruction // what the log has, by sequence
	told     map[string][]string           // what was told of a task, once each
	number   uint64                        // highest event that was told
	started  []string
	unreaped []wire.Token
}

// boot opens the journal of a node and starts a core on it, an hour after the
// recording.
func boot(t *testing.T, dir, node string) *board {
	t.Helper()
	b := &board{t: t, seqs: map[uint64]string{}, sent: map[uint64]engine.Instruction{}, told: map[string][]string{}}
	l := openLog(t, filepath.Join(dir, "gateway"))
	b.now = executor.Now{Wall: recordedAt(t, l) + time.Hour.Milliseconds(), WallOK: true}
	for _, r := range table(t) {
		if i, ok := instruction(t, l.Reader(), r.task, node); ok {
			b.seqs[i.Seq], b.sent[i.Seq] = r.task, i
		}
	}
	var records [][]byte
	var err error
	b.j, records, err = journal.Open(journal.OS(), filepath.Join(dir, "agent-"+node), journal.Options{
		OnTorn: func(torn journal.Torn) { t.Errorf("the journal of %s is cut: %+v", node, torn) }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.j.Close(); err != nil {
			t.Error(err)
		}
	})
	if len(records) < 3 {
		t.Fatalf("the journal of %s has only %d records", node, len(records))
	}
	core, out, err := executor.New(executor.Config{
		Hello: wire.Hello{Short: wire.Short(node)}, Incarnation: 1, Check: holdsItsPin, Workers: 2}, records, b.now)
	if err != nil {
		t.Fatalf("the journal of %s: %v", node, err)
	}
	b.core = core
	b.take(out)
	return b
}

// holdsItsPin allows everything; an instruction holds the pin that it names.
func holdsItsPin(_ string, args wire.RawMap) executor.Verdict {
	m, err := wire.DecodeMap(args)
	if err != nil {
		return executor.Verdict{Code: wire.CodeBadArgs, Detail: err.Error()}
	}
	pin, _ := m["pin"].(string)
	return executor.Verdict{Lines: []wire.LineKey{wire.LineOf(pin)}, Actuates: true}
}

func (b *board) step(in executor.Input) executor.Output {
	b.t.Helper()
	out := b.core.Step(b.now, in)
	b.take(out)
	return out
}

// take does what the core asks for, with a journal and without a board.
func (b *board) take(out executor.Output) {
	b.t.Helper()
	if out.Fatal != "" {
		b.t.Fatalf("the core gives up: %s", out.Fatal)
	}
	if err := b.j.Append(out.Records...); err != nil {
		b.t.Fatal(err)
	}
	for _, w := range out.Start {
		b.started = append(b.started, b.seqs[w.Seq])
		b.unreaped = append(b.unreaped, w.Token)
	}
	for _, m := range out.Primary {
		ev, ok := m.(*wire.Event)
		if !ok || ev.Number <= b.number {
			continue
		}
		b.number = ev.Number
		text := ev.Phase.String()
		switch ev.Phase {
		case wire.PhaseProcessed:
			text += " " + ev.Code.String()
		case wire.PhaseLease:
			text += " " + ev.Lease.String()
		}
		b.told[b.seqs[ev.Seq]] = append(b.told[b.seqs[ev.Seq]], text)
	}
}

// goOn connects, is welcomed and works until nothing is left.
func (b *board) goOn() {
	b.t.Helper()
	out := b.step(executor.Connected{Session: 7})
	k := slices.IndexFunc(out.Primary, func(m wire.Message) bool { _, ok := m.(*wire.Hello); return ok })
	if k < 0 {
		b.t.Fatalf("no hello in %+v", out.Primary)
	}
	if len(b.started) > 0 {
		b.t.Fatalf("%q began before the welcome", b.started)
	}
	hello := out.Primary[k].(*wire.Hello)
	b.step(executor.Received{Message: &wire.Welcome{Session: 7, Epoch: 5, Now: b.now.Wall, HeartbeatMs: 5000,
		Through: hello.First - 1, Phases: wire.MaxPhase}})
	for n := 0; len(b.unreaped) > 0; n++ {
		if n > 100 {
			b.t.Fatal("the work has no end")
		}
		token := b.unreaped[0]
		b.unreaped = b.unreaped[1:]
		b.now.Mono += time.Millisecond
		b.step(executor.Finished{Token: token, Result: executor.Result{Code: wire.CodeOK}})
	}
}

// again delivers what a task was sent as once more: it must not begin.
func (b *board) again(task string) {
	b.t.Helper()
	for seq, i := range b.sent {
		if b.seqs[seq] != task {
			continue
		}
		before := len(b.started)
		b.step(executor.Received{Message: &wire.Instruction{Seq: seq, Key: wire.Key{Site: "default", Millis: i.Created, Seq: seq}.String(),
			Token: i.Token, Attempt: i.Attempt, Intent: i.Intent, Args: i.Args, SentAt: b.now.Wall, Trace: i.Trace}})
		if len(b.started) > before {
			b.t.Errorf("%s began once more although its token is in the journal", task)
		}
		return
	}
	b.t.Fatalf("the log has no instruction of %s for this board", task)
}

func (b *board) wantTold(want map[string][]string) {
	b.t.Helper()
	for _, task := range slices.Sorted(maps.Keys(want)) {
		if !slices.Equal(b.told[task], want[task]) {
			b.t.Errorf("of %s was told %q, want %q", task, b.told[task], want[task])
		}
	}
	for _, task := range slices.Sorted(maps.Keys(b.told)) {
		if want[task] == nil {
			b.t.Errorf("of %s was told %q, want nothing", task, b.told[task])
		}
	}
}

// The latest acknowledgement is in a journal only when something was written after
// it, so that the last event before the kill is told once more.

// TestJournalWithUnacknowledgedEvents: what the gateway has not acknowledged is
// told; what has ended is remembered and not done again.
func TestJournalWithUnacknowledgedEvents(t *testing.T) {
	t.Parallel()
	b := boot(t, unpacked(t), "pump-1")
	b.goOn()
	b.wantTold(map[string][]string{"told-late": {"processed ok"}})
	for _, task := range []string{"done-write", "done-pulse", "unknown-outcome", "cancelled-running", "told-late"} {
		b.again(task)
	}
	if len(b.started) > 0 {
		t.Errorf("%q began", b.started)
	}
}

// TestJournalWithQueuedWork: what ran is interrupted, what waited behind it runs in
// its order, and not when its time limit is over.
func TestJournalWithQueuedWork(t *testing.T) {
	t.Parallel()
	b := boot(t, unpacked(t), "queue-1")
	b.goOn()
	b.wantTold(map[string][]string{
		"held-1": {"processed interrupted"}, "held-2": {"processed interrupted"},
		"behind-1": {"processed ok"}, "behind-2": {"processed ok"}, "behind-pulse": {"processed ok"},
		"behind-late": {"received", "processed expired"},
	})
	if want := []string{"behind-1", "behind-pulse", "behind-2"}; !slices.Equal(b.started, want) {
		t.Errorf("%q began in this order, want %q", b.started, want)
	}
	b.again("behind-1")
	b.again("held-1")
}

// TestJournalWithOpenLease: a lease that was open has ended by the restart.
func TestJournalWithOpenLease(t *testing.T) {
	t.Parallel()
	b := boot(t, unpacked(t), "valve-1")
	b.goOn()
	b.wantTold(map[string][]string{"lease-open": {"processed ok", "lease_ended restart"}})
	b.again("lease-open")
	b.again("lease-over")
}

// TestJournalOfFailedWork: nothing is open; the attempt that failed is not made
// again by the agent itself.
func TestJournalOfFailedWork(t *testing.T) {
	t.Parallel()
	b := boot(t, unpacked(t), "full-1")
	b.goOn()
	b.wantTold(map[string][]string{"retrying": {"processed io"}})
	b.again("retrying")
}
