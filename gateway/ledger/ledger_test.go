package ledger_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/apollo-11/apollo11/gateway/engine"
	"github.com/apollo-11/apollo11/gateway/ledger"
	"github.com/apollo-11/apollo11/storage"
	"github.com/apollo-11/apollo11/wire"
)

// TestEveryFieldOfEveryRecordComesBack writes one record of each kind with every
// field set, closes the store, and reads them all.
func TestEveryFieldOfEveryRecordComesBack(t *testing.T) {
	n := 0
	r := full[engine.Records](&n)
	task := &r.Tasks[0]
	task.First, task.Count = 10, 2
	r.Tasks = r.Tasks[:1]
	for k := range r.Instructions {
		i := &r.Instructions[k].Instruction
		i.Seq, i.Task = 10+uint64(k), task.ID
	}
	r.Opened, r.Closed = []uint64{10}, []uint64{11}
	for k := range r.Cursors {
		r.Cursors[k].Node = r.Nodes[k].ID
	}
	fs := vfs.NewMem()
	func() {
		s, err := storage.Open(ctx(t), storage.Options{Dir: "/log", FS: fs, BallastBytes: -1})
		if err != nil {
			t.Fatal(err)
		}
		apply(t, ledger.New(s), &r)
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}()
	l := ledger.New(openStore(t, fs))
	rd := l.Reader()

	same := func(what string, got, want any, err error) {
		t.Helper()
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got %+v, want %+v (%v)", what, got, want, err)
		}
	}
	c, _, err := l.Counters()
	same("counters", c, *r.Counters, err)
	s, ok, err := rd.Task(ctx(t), task.ID)
	same("task", s.Task, *task, err)
	same("instructions", s.Instructions, []engine.Instruction{r.Instructions[0].Instruction, r.Instructions[1].Instruction}, err)
	same("found", ok, true, nil)
	for k, w := range r.Instructions {
		i, entries, ok, err := rd.Timeline(ctx(t), w.Instruction.Seq)
		same("timeline's instruction", i, w.Instruction, err)
		same("timeline", entries, w.Entries, nil)
		same("found", ok, true, nil)
		open, err := l.Open(10 + uint64(k))
		same("open", open, k == 0, err)
	}
	dead, err := rd.DeadLetters(ctx(t), 0, 10)
	slices.SortFunc(r.DeadLetters, func(a, b engine.DeadLetter) int { return int(a.Number) - int(b.Number) })
	same("dead letters", dead, r.DeadLetters, err)
	for _, m := range r.Marks {
		got, err := l.Mark(m.Client, m.PacketID)
		same("mark", got, &m, err)
	}
	audits, err := rd.Audit(ctx(t), 0, 10)
	slices.SortFunc(r.Audits, func(a, b engine.Audit) int { return int(a.Number) - int(b.Number) })
	same("audit", audits, r.Audits, err)
	e := recoverEngine(t, l, engine.Now{Wall: start})
	same("quiet", e.Quiet(), *r.Quiet, nil)
	for k, n := range e.Nodes() {
		want := r.Nodes[slices.IndexFunc(r.Nodes, func(x engine.Node) bool { return x.ID == n.Node.ID })]
		same(fmt.Sprintf("node %d", k), n.Node, want, nil)
	}
	// A cursor shows in the welcome of the same incarnation.
	cur := r.Cursors[0]
	e.Step(engine.Now{Wall: start}, &engine.Uplink{Node: cur.Node, Msg: &wire.Hello{Session: 1, Incarnation: cur.Incarnation,
		Short: wire.Short(cur.Node), First: cur.Last + 1, Next: cur.Last + 1}})
	for _, s := range e.Ready(engine.Now{Wall: start}).Effects.Sends {
		if w, ok := s.Msg.(*wire.Welcome); ok {
			same("cursor", w.Through, cur.Last, nil)
		}
	}
}

func TestAbsentThingsAreNotFound(t *testing.T) {
	l := ledger.New(openStore(t, vfs.NewMem()))
	if _, ok, err := l.Counters(); ok || err != nil {
		t.Error(ok, err)
	}
	if _, ok, err := l.Reader().Task(ctx(t), "nothing"); ok || err != nil {
		t.Error(ok, err)
	}
	if _, ok, err := l.Load(1); ok || err != nil {
		t.Error(ok, err)
	}
	if _, _, ok, err := l.Reader().Timeline(ctx(t), 1); ok || err != nil {
		t.Error(ok, err)
	}
	if m, err := l.Mark("nobody", 1); m != nil || err != nil {
		t.Error(m, err)
	}
	if list, next, err := l.Reader().Tasks(ctx(t), 0, 10); len(list) != 0 || next != 0 || err != nil {
		t.Error(list, next, err)
	}
	if list, err := l.Reader().DeadLetters(ctx(t), 0, 10); len(list) != 0 || err != nil {
		t.Error(list, err)
	}
}

// TestTheLargestTaskComesBack: a thousand nodes, arguments as deep as a door lets
// through, and all the metadata that one lets through.
func TestTheLargestTaskComesBack(t *testing.T) {
	g := newGateway(t, ledger.New(openStore(t, vfs.NewMem())), engine.Now{Wall: start})
	args := map[string]any{"leaf": uint64(1)}
	for range 7 { // eight levels, the limit of the task document
		args = map[string]any{"down": args}
	}
	raw, err := wire.EncodeMap(args, wire.MaxArgsBytes)
	if err != nil {
		t.Fatal(err)
	}
	in := submit("large")
	in.Spec.Args, in.Spec.Metadata = raw, map[string]string{}
	for n := range engine.MaxNodesPerTask {
		in.Spec.Nodes = append(in.Spec.Nodes, fmt.Sprintf("node-%04d", n))
	}
	for n := range 64 {
		in.Spec.Metadata[fmt.Sprintf("key-%d", n)] = strings.Repeat("x", 100)
	}
	if r := g.step(in); len(r.Effects.Replies) != 1 || r.Effects.Replies[0].Accepted == nil {
		t.Fatalf("%+v", r.Effects.Replies)
	}
	s, ok, err := g.l.Reader().Task(ctx(t), "large")
	if err != nil || !ok || !reflect.DeepEqual(s.Task.Spec, in.Spec) || len(s.Instructions) != engine.MaxNodesPerTask {
		t.Fatalf("%v %v %d instructions", ok, err, len(s.Instructions))
	}
	if e := recoverEngine(t, g.l, g.now); e.Open() != engine.MaxNodesPerTask {
		t.Errorf("%d are open after a restart", e.Open())
	}
}

func TestTasksArePagedNewestFirst(t *testing.T) {
	g := newGateway(t, ledger.New(openStore(t, vfs.NewMem())), engine.Now{Wall: start})
	var want []string
	for n := range 23 {
		id := fmt.Sprintf("task-%02d", n)
		g.step(submit(id, "a", "b"))
		want = append([]string{id}, want...)
	}
	rd := g.l.Reader()
	for _, limit := range []int{-1, 1, 7, 22, 23, 24, 5000} {
		var got []string
		pages := 0
		for before := uint64(0); ; pages++ {
			list, next, err := rd.Tasks(ctx(t), before, limit)
			if err != nil {
				t.Fatal(err)
			}
			if len(list) > max(limit, 1) {
				t.Errorf("limit %d: a page of %d", limit, len(list))
			}
			for _, s := range list {
				got = append(got, s.Task.ID)
				if len(s.Instructions) != 2 {
					t.Errorf("task %s has %d instructions", s.Task.ID, len(s.Instructions))
				}
			}
			if before = next; next == 0 {
				break
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("limit %d: %v", limit, got)
		}
		if full := (len(want) - 1) / max(limit, 1); pages != full {
			t.Errorf("limit %d: %d pages after the first, want %d", limit, pages, full)
		}
	}
	// What comes in between does not shift the pages that follow.
	list, next, err := rd.Tasks(ctx(t), 0, 10)
	if err != nil {
		t.Fatal(err)
	}
	g.step(submit("newer", "a"))
	rest, _, err := rd.Tasks(ctx(t), next, 10)
	if err != nil || rest[0].Task.ID != want[10] || list[9].Task.ID != want[9] {
		t.Errorf("the second page begins with %v (%v)", rest[0].Task.ID, err)
	}
}

// TestTimelinesAreInOrder writes more versions than one byte counts, of
// instructions whose numbers are neighbours in every byte order.
func TestTimelinesAreInOrder(t *testing.T) {
	l := ledger.New(openStore(t, vfs.NewMem()))
	seqs := []uint64{1, 255, 256, 257, 1 << 16, 1 << 32, 1<<32 + 1}
	const versions = 600
	for v := uint32(1); v <= versions; v++ {
		r := &engine.Records{}
		for _, seq := range seqs {
			r.Instructions = append(r.Instructions, engine.Write{
				Instruction: engine.Instruction{Seq: seq, Version: v, Task: "t"},
				Entries:     []engine.Entry{{At: int64(2 * v), What: engine.WhatProgress, Event: seq}, {At: int64(2*v + 1), What: engine.WhatResent, Event: seq}}})
		}
		apply(t, l, r)
	}
	for _, seq := range seqs {
		i, entries, ok, err := l.Reader().Timeline(ctx(t), seq)
		if err != nil || !ok || i.Version != versions || len(entries) != 2*versions {
			t.Fatalf("instruction %d: %v %v, version %d, %d entries", seq, ok, err, i.Version, len(entries))
		}
		for k, e := range entries {
			if e.At != int64(k+2) || e.Event != seq {
				t.Fatalf("instruction %d: entry %d is %+v", seq, k, e)
			}
		}
	}
}

func TestB10_DeadLettersArePaged(t *testing.T) {
	g := newGateway(t, ledger.New(openStore(t, vfs.NewMem())), engine.Now{Wall: start})
	for n := range 12 {
		g.step(&engine.Garbage{Kind: "task", From: "hmi", Reason: fmt.Sprint(n), Raw: make([]byte, 2*engine.MaxDeadLetterBytes)})
	}
	var got []string
	for after := uint64(0); ; {
		list, err := g.l.Reader().DeadLetters(ctx(t), after, 5)
		if err != nil {
			t.Fatal(err)
		}
		if len(list) == 0 {
			break
		}
		for _, d := range list {
			got = append(got, d.Reason)
			if after = d.Number; len(d.Raw) != engine.MaxDeadLetterBytes {
				t.Errorf("dead letter %d keeps %d bytes", d.Number, len(d.Raw))
			}
		}
	}
	if s := strings.Join(got, " "); s != "0 1 2 3 4 5 6 7 8 9 10 11" {
		t.Error(s)
	}
}

// TestA3_NothingIsShownBeforeItIsDurable holds the disk's syncs back: what has
// been applied is visible to the engine's lookups, and to nobody outside.
func TestA3_NothingIsShownBeforeItIsDurable(t *testing.T) {
	fs := newGatedSyncs(vfs.NewMem())
	l := ledger.New(openStore(t, fs))
	g := newGateway(t, l, engine.Now{Wall: start})
	fs.gate.Lock()
	for _, in := range []engine.Input{submit("one", "a"), &engine.Garbage{Kind: "task", From: "hmi", Reason: "no"}} {
		g.eng.Step(g.now, in)
	}
	r := g.eng.Ready(g.now)
	p, err := l.Apply(&r.Records)
	if err != nil {
		t.Fatal(err)
	}
	if _, ok, err := l.Load(1); !ok || err != nil {
		t.Errorf("the engine's own lookup does not see it: %v %v", ok, err)
	}
	rd := l.Reader()
	reads := map[string]func(context.Context) error{
		"Task":        func(c context.Context) error { _, _, err := rd.Task(c, "one"); return err },
		"Tasks":       func(c context.Context) error { _, _, err := rd.Tasks(c, 0, 10); return err },
		"Timeline":    func(c context.Context) error { _, _, _, err := rd.Timeline(c, 1); return err },
		"DeadLetters": func(c context.Context) error { _, err := rd.DeadLetters(c, 0, 10); return err },
	}
	for name, read := range reads {
		short, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
		if err := read(short); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s answers before the disk: %v", name, err)
		}
		cancel()
	}
	fs.gate.Unlock()
	if err := p.Wait(); err != nil {
		t.Fatal(err)
	}
	for name, read := range reads {
		if err := read(ctx(t)); err != nil {
			t.Errorf("%s after the disk: %v", name, err)
		}
	}
}
