package ledger_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/apollo-11/apollo11/gateway/engine"
	"github.com/apollo-11/apollo11/gateway/ledger"
	"github.com/apollo-11/apollo11/storage"
	"github.com/apollo-11/apollo11/wire"
)

// patience bounds every wait of these tests; it is never waited out when all is
// well.
const patience = 60 * time.Second

// start is the wall clock of these tests, Unix ms.
const start = int64(1_700_000_000_000)

func ctx(t testing.TB) context.Context {
	c, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	return c
}

// openStore opens a store in memory. It is closed with the test.
func openStore(t testing.TB, fs vfs.FS) *storage.Store {
	t.Helper()
	s, err := storage.Open(ctx(t), storage.Options{Dir: "/log", FS: fs, BallastBytes: -1, HeadInterval: time.Hour,
		OnFatal: func(err error) { t.Errorf("unexpected OnFatal: %v", err) }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// apply writes records and waits until they are on disk.
func apply(t testing.TB, l *ledger.Ledger, r *engine.Records) {
	t.Helper()
	p, err := l.Apply(r)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Wait(); err != nil {
		t.Fatal(err)
	}
}

func recoverEngine(t testing.TB, l *ledger.Ledger, now engine.Now) *engine.Engine {
	t.Helper()
	e, err := l.Recover(now, engine.Config{Window: 2, Reserve: -1}, rand.New(steady{}))
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// steady is a source that always gives the same: engines that have drawn
// different amounts from it still agree.
type steady struct{}

func (steady) Uint64() uint64 { return 0x5eed }

// gateway is an engine on a ledger: the loop in its plainest form.
type gateway struct {
	t   testing.TB
	l   *ledger.Ledger
	eng *engine.Engine
	now engine.Now
}

func newGateway(t testing.TB, l *ledger.Ledger, now engine.Now) *gateway {
	return &gateway{t: t, l: l, eng: recoverEngine(t, l, now), now: now}
}

// step is one round with these inputs.
func (g *gateway) step(inputs ...engine.Input) engine.Ready {
	g.t.Helper()
	for _, in := range inputs {
		g.lookup(in)
		g.eng.Step(g.now, in)
	}
	r := g.eng.Ready(g.now)
	apply(g.t, g.l, &r.Records)
	return r
}

// lookup loads what the engine wants before an input.
func (g *gateway) lookup(in engine.Input) {
	g.t.Helper()
	w := g.eng.Wants(in)
	id := w.TaskID
	if w.Seq != 0 {
		i, ok, err := g.l.Instruction(w.Seq)
		if err != nil {
			g.t.Fatal(err)
		}
		if ok {
			id = i.Task
		}
	}
	first, ok, err := g.l.First(id)
	if err != nil || id == "" || !ok {
		if err != nil {
			g.t.Fatal(err)
		}
		return
	}
	s, _, err := g.l.Load(first)
	if err != nil {
		g.t.Fatal(err)
	}
	open, err := g.l.Open(first)
	if err != nil {
		g.t.Fatal(err)
	}
	g.eng.Adopt(g.now, s.Task, s.Instructions, open)
}

func submit(id string, nodes ...string) *engine.Submit {
	return &engine.Submit{Spec: engine.Spec{TaskID: id, Intent: wire.IntentGPIOWrite, Nodes: nodes},
		Source: engine.Source{Via: "http", Actor: "ops"}, Path: engine.PathHTTP, Reply: "caller"}
}

func hello(node string, session, first, next uint64) *engine.Uplink {
	return &engine.Uplink{Node: node, Msg: &wire.Hello{Session: session, Incarnation: 1, Short: wire.Short(node), First: first, Next: next}}
}

func processed(node string, number uint64, i engine.Instruction, code wire.Code) *engine.Uplink {
	return &engine.Uplink{Node: node, Msg: &wire.Event{Number: number, Seq: i.Seq, Token: i.Token, Attempt: max(1, i.Attempt),
		Phase: wire.PhaseProcessed, Code: code}}
}

// fill sets every field below v to something that is not zero, each different.
func fill(v reflect.Value, n *int) {
	*n++
	switch v.Interface().(type) {
	case wire.RawMap:
		v.Set(reflect.ValueOf(wire.RawMap{0xa1, 0x61, 'k', byte(*n % 24)}))
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		for k := range v.NumField() {
			if v.Type().Field(k).IsExported() {
				fill(v.Field(k), n)
			}
		}
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), n)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		fill(v.Index(0), n)
		fill(v.Index(1), n)
	case reflect.Array:
		for k := range v.Len() {
			fill(v.Index(k), n)
		}
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		for range 2 {
			key, val := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
			fill(key, n)
			fill(val, n)
			v.SetMapIndex(key, val)
		}
	case reflect.String:
		v.SetString(fmt.Sprintf("text-%d", *n))
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int64:
		v.SetInt(start + int64(*n))
	case reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		v.SetUint(uint64(*n%200 + 1))
	default:
		panic("bug: no value for " + v.Type().String())
	}
}

// full is a T with every field set.
func full[T any](n *int) T {
	var x T
	fill(reflect.ValueOf(&x).Elem(), n)
	return x
}

// gatedSyncs holds back the syncs of the log while a test wants it.
type gatedSyncs struct {
	vfs.FS
	gate sync.RWMutex
}

func newGatedSyncs(inner vfs.FS) *gatedSyncs {
	s := &gatedSyncs{}
	s.FS = errorfs.Wrap(inner, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if strings.HasSuffix(op.Path, ".log") && (op.Kind == errorfs.OpFileSync || op.Kind == errorfs.OpFileSyncData || op.Kind == errorfs.OpFileSyncTo) {
			s.gate.RLock()
			defer s.gate.RUnlock()
		}
		return nil
	}))
	return s
}
