package ledger_test

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/apollo-11/apollo11/gateway/engine"
	"github.com/apollo-11/apollo11/gateway/ledger"
	"github.com/apollo-11/apollo11/storage"
	"github.com/apollo-11/apollo11/wire"
)

func TestAFreshLogGetsItsEpochOnce(t *testing.T) {
	l := ledger.New(openStore(t, vfs.NewMem()))
	e := recoverEngine(t, l, engine.Now{Wall: start})
	if e.Epoch() == 0 {
		t.Error("no epoch")
	}
	again, err := l.Recover(engine.Now{Wall: start}, engine.Config{}, rand.New(rand.NewPCG(1, 2)))
	if err != nil || again.Epoch() != e.Epoch() {
		t.Errorf("epoch %d, then %d (%v)", e.Epoch(), again.Epoch(), err)
	}
}

// site is a random history on three nodes, the last of which never connects.
type site struct {
	*gateway
	rnd      *rand.Rand
	tasks    int
	sessions uint64
	next     map[string]uint64 // next event number
	online   map[string]bool
}

func newSite(g *gateway, seed uint64) *site {
	return &site{gateway: g, rnd: rand.New(rand.NewPCG(seed, 5)), next: map[string]uint64{"a": 1, "b": 1}, online: map[string]bool{}}
}

func (s *site) act() {
	s.now.Mono += time.Duration(s.rnd.IntN(3000)) * time.Millisecond
	s.now.Wall = start + s.now.Mono.Milliseconds()
	node := []string{"a", "b"}[s.rnd.IntN(2)]
	open := s.eng.Unfinished()
	switch k := s.rnd.IntN(10); {
	case k < 3 || len(open) == 0:
		s.tasks++
		in := submit(fmt.Sprintf("task-%d", s.tasks), [][]string{{"a"}, {"b"}, {"a", "b"}, {"a", "c"}}[s.rnd.IntN(4)]...)
		in.Spec.Intent = []string{wire.IntentGPIOWrite, wire.IntentGPIOPulse}[s.rnd.IntN(2)]
		in.Spec.TTLMs = []int64{0, 5000, 60_000}[s.rnd.IntN(3)]
		in.Spec.Priority = wire.Priority(s.rnd.IntN(4))
		s.step(in)
	case k == 3:
		s.sessions++
		s.online[node] = true
		s.step(hello(node, s.sessions, s.next[node], s.next[node]))
	case k == 4:
		s.leave(node)
	case k == 5:
		s.step(&engine.Cancel{TaskID: open[s.rnd.IntN(len(open))].Task.ID, Actor: "ops", Reply: "caller"})
	default:
		list := open[s.rnd.IntN(len(open))].Instructions
		s.report(list[s.rnd.IntN(len(list))])
	}
}

// report lets a node speak of an instruction that it was sent.
func (s *site) report(i engine.Instruction) {
	if i.Attempt == 0 || !s.online[i.Node] {
		return
	}
	e := processed(i.Node, s.next[i.Node], i, []wire.Code{wire.CodeOK, wire.CodeBusy, wire.CodeFailed, wire.CodeInterrupted, wire.CodeCancelled}[s.rnd.IntN(5)])
	m := e.Msg.(*wire.Event)
	if p := wire.Phase(1 + s.rnd.IntN(5)); p < wire.PhaseProcessed {
		m.Phase, m.Code = p, wire.CodeNone
	}
	s.next[i.Node]++
	s.step(e)
}

func (s *site) leave(node string) {
	if s.online[node] {
		s.step(&engine.Uplink{Node: node, Msg: &wire.Goodbye{Session: s.sessionOf(node), Lost: true}})
		s.online[node] = false
	}
}

// sessionOf finds the session of a node: each hello takes the next number, so a
// goodbye of every number up to the latest ends whichever is current.
func (s *site) sessionOf(node string) uint64 {
	for n := uint64(1); n < s.sessions; n++ {
		s.eng.Step(s.now, &engine.Uplink{Node: node, Msg: &wire.Goodbye{Session: n, Lost: true}})
	}
	return s.sessions
}

// TestC5_TheRecoveredEngineGoesOnLikeTheOneThatWrote compares an engine whose
// nodes have just left with one that is built from its log: the same unfinished
// tasks, nodes and counts, and the same output for what comes next.
func TestC5_TheRecoveredEngineGoesOnLikeTheOneThatWrote(t *testing.T) {
	for seed := range uint64(8) {
		l := ledger.New(openStore(t, vfs.NewMem()))
		s := newSite(newGateway(t, l, engine.Now{Wall: start}), seed)
		for range 120 {
			s.act()
		}
		s.leave("a")
		s.leave("b")
		s.step()
		twin := recoverEngine(t, l, engine.Now{Wall: s.now.Wall})
		later := engine.Now{Mono: time.Millisecond, Wall: s.now.Wall} // what was due is due at once
		twin.Ready(later)
		if a, b := s.eng.Unfinished(), twin.Unfinished(); !reflect.DeepEqual(a, b) {
			t.Fatalf("seed %d: unfinished\n%+v\nafter the restart\n%+v", seed, a, b)
		}
		if a, b := known(s.eng), known(twin); !reflect.DeepEqual(a, b) || s.eng.Open() != twin.Open() {
			t.Fatalf("seed %d: nodes\n%+v (%d open)\nafter the restart\n%+v (%d open)", seed, a, s.eng.Open(), b, twin.Open())
		}
		for k, in := range s.whatComesNext() {
			s.lookup(in)
			s.eng.Step(s.now, in)
			a := s.eng.Ready(s.now)
			copyOf := &gateway{t: t, l: l, eng: twin, now: later}
			copyOf.lookup(in)
			twin.Step(copyOf.now, in)
			b := twin.Ready(copyOf.now)
			x, y := plain(a), plain(b)
			for n := range max(len(x), len(y)) {
				if n >= len(x) || n >= len(y) || !reflect.DeepEqual(x[n], y[n]) {
					t.Fatalf("seed %d, input %d (%T): the engine\n%+v\nits copy\n%+v", seed, k, in, x[min(n, len(x)):], y[min(n, len(y)):])
				}
			}
			apply(t, l, &a.Records)
		}
	}
}

// known is what an engine believes of its nodes, but for when they left.
func known(e *engine.Engine) []engine.NodeState {
	list := e.Nodes()
	for k := range list {
		list[k].Since, list[k].Reason = 0, ""
	}
	return list
}

// plain lists what a Ready holds, without what a restart may change: measured
// durations and counts for metrics.
func plain(r engine.Ready) []any {
	list := []any{r.Records.Opened, r.Records.Closed}
	if r.Records.Counters != nil {
		list = append(list, *r.Records.Counters)
	}
	for _, w := range r.Records.Instructions {
		for k := range w.Entries {
			w.Entries[k].DurationMs = 0
		}
		list = append(list, w)
	}
	list = append(list, r.Records.Tasks, r.Records.Nodes, r.Records.Cursors, r.Records.DeadLetters, r.Effects.Replies, r.Effects.Statuses)
	for _, s := range r.Effects.Sends {
		list = append(list, s.Node, s.Msg)
	}
	for _, n := range r.Effects.Nodes {
		n.Since = 0
		list = append(list, n)
	}
	return list
}

func (s *site) whatComesNext() []engine.Input {
	list := []engine.Input{submit("task-1", "a"), submit("fresh", "a", "b")}
	for _, node := range []string{"a", "b"} {
		s.sessions++
		list = append(list, hello(node, s.sessions, s.next[node], s.next[node]))
	}
	for _, t := range s.eng.Unfinished() {
		for _, i := range t.Instructions {
			if i.Attempt != 0 && i.Node != "c" {
				list = append(list, processed(i.Node, s.next[i.Node], i, wire.CodeOK))
				s.next[i.Node]++
			}
		}
	}
	return append(list, &engine.Cancel{TaskID: "fresh", Actor: "ops", Reply: "caller"}, &engine.Garbage{Kind: "task"})
}

// TestE1_AfterAPowerCutTheLogIsWhole cuts the power again and again while batches
// are on their way: what comes back is a prefix, with all of each batch.
func TestE1_AfterAPowerCutTheLogIsWhole(t *testing.T) {
	fs := vfs.NewCrashableMem()
	rnd := rand.New(rand.NewPCG(3, 4))
	l := ledger.New(openStore(t, fs))
	eng := recoverEngine(t, l, engine.Now{Wall: start})
	durable := 0
	var pending []*storage.Pending
	for n := range 30 {
		eng.Step(engine.Now{Wall: start}, submit(fmt.Sprintf("task-%d", n), "a", "b", "c"))
		r := eng.Ready(engine.Now{Wall: start})
		p, err := l.Apply(&r.Records)
		if err != nil {
			t.Fatal(err)
		}
		pending = append(pending, p)
		if rnd.IntN(3) == 0 {
			wait(t, pending)
			pending, durable = nil, n+1
		}
		after := fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: rnd.IntN(101), RNG: rand.New(rand.NewPCG(uint64(n), 1))})
		back := ledger.New(openStore(t, after))
		e := recoverEngine(t, back, engine.Now{Wall: start})
		tasks := e.Unfinished()
		if len(tasks) < durable || len(tasks) > n+1 {
			t.Fatalf("after cut %d: %d tasks, %d were durable", n, len(tasks), durable)
		}
		for k, s := range tasks {
			if s.Task.ID != fmt.Sprintf("task-%d", k) {
				t.Errorf("after cut %d: task %d is %s", n, k, s.Task.ID)
			}
			for _, i := range s.Instructions {
				if _, entries, ok, err := back.Reader().Timeline(ctx(t), i.Seq); len(entries) != 1 || !ok || err != nil {
					t.Errorf("after cut %d: instruction %d has %d entries (%v, %v)", n, i.Seq, len(entries), ok, err)
				}
			}
			if first, ok, err := back.First(s.Task.ID); first != s.Task.First || !ok || err != nil {
				t.Errorf("after cut %d: the index of %s says %d (%v, %v)", n, s.Task.ID, first, ok, err)
			}
		}
	}
	wait(t, pending)
}

func wait(t *testing.T, list []*storage.Pending) {
	t.Helper()
	for _, p := range list {
		if err := p.Wait(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestC5_RecoveryCostsWhatIsOpen counts the reads of a recovery from a cold store:
// they follow the number of unfinished tasks, not the length of the history.
func TestC5_RecoveryCostsWhatIsOpen(t *testing.T) {
	little, much := recoveryReads(t, 50, 10), recoveryReads(t, 2000, 10)
	scattered := recoveryReads(t, 2000, 200)
	t.Logf("reads to recover: 10 open after 50 finished %d, after 2000 finished %d; 200 open among 2000 %d", little, much, scattered)
	if much > 4*little+20 {
		t.Errorf("10 open tasks cost %d reads after 50 finished ones and %d after 2000", little, much)
	}
	if scattered < much {
		t.Errorf("200 open tasks cost %d reads, 10 cost %d: the count does not count", scattered, much)
	}
}

// recoveryReads builds a log with finished tasks and, spread evenly among them,
// unfinished ones, and counts the reads of the file system that Recover makes.
func recoveryReads(t *testing.T, finished, open int) int64 {
	mem := vfs.NewMem()
	write := func() {
		s, err := storage.Open(ctx(t), storage.Options{Dir: "/log", FS: mem, BallastBytes: -1, HeadInterval: time.Hour})
		if err != nil {
			t.Fatal(err)
		}
		l := ledger.New(s)
		for n := 1; n <= finished+open; n++ {
			seq := uint64(n)
			task := engine.Task{ID: fmt.Sprintf("task-%d", n), First: seq, Count: 1, Spec: engine.Spec{Intent: wire.IntentGPIOWrite, Nodes: []string{"a"}}}
			r := engine.Records{Tasks: []engine.Task{task}, Instructions: []engine.Write{{
				Instruction: engine.Instruction{Seq: seq, Version: 1, Task: task.ID, Node: "a", Intent: task.Spec.Intent, State: engine.StateSucceeded},
				Entries:     make([]engine.Entry, 6)}}}
			if every := (finished + open) / open; n%every == 0 && n/every <= open {
				r.Opened = []uint64{seq}
				r.Instructions[0].Instruction.State = engine.StatePending
			}
			if _, err := l.Apply(&r); err != nil {
				t.Fatal(err)
			}
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	write()
	var reads atomic.Int64
	counted := errorfs.Wrap(mem, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if op.Kind == errorfs.OpFileRead || op.Kind == errorfs.OpFileReadAt {
			reads.Add(1)
		}
		return nil
	}))
	l := ledger.New(openStore(t, counted))
	before := reads.Load()
	if e := recoverEngine(t, l, engine.Now{Wall: start}); e.Open() != open {
		t.Fatalf("%d tasks are open, want %d", e.Open(), open)
	}
	return reads.Load() - before
}
