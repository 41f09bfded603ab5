package ledger_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/apollo-11/apollo11/gateway/engine"
	"github.com/apollo-11/apollo11/gateway/ledger"
	"github.com/apollo-11/apollo11/storage"
	"github.com/apollo-11/apollo11/wire"
)

func num(tab string, n uint64) []byte { return binary.BigEndian.AppendUint64([]byte(tab), n) }

func text(tab, s string) []byte { return storage.AppendString([]byte(tab), s) }

// auditOne is an audit entry with the number 1, as it is stored.
func auditOne(t *testing.T) []byte {
	b, err := wire.EncodeRecord(&engine.Audit{Number: 1, Action: engine.ActionCancel})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestE5_ADamagedRecordIsNamed damages one record at a time. Who reads it gets an
// error that says which it is; nothing is skipped in silence.
func TestE5_ADamagedRecordIsNamed(t *testing.T) {
	recoverAll := func(l *ledger.Ledger) error {
		_, err := l.Recover(engine.Now{Wall: start}, engine.Config{}, rand.New(rand.NewPCG(1, 2)))
		return err
	}
	task := func(l *ledger.Ledger) error { _, _, err := l.Reader().Task(context.Background(), "one"); return err }
	list := func(l *ledger.Ledger) error {
		_, _, err := l.Reader().Tasks(context.Background(), 0, 10)
		return err
	}
	garbage := []byte{0xff, 0x00}
	for _, c := range []struct {
		name  string
		key   []byte
		value []byte // nil deletes
		read  func(*ledger.Ledger) error
		say   string
	}{
		{"counters", []byte("c"), garbage, recoverAll, "counters"},
		{"task", num("T", 1), garbage, task, fmt.Sprintf("%x", num("T", 1))},
		{"task in a list", num("T", 1), garbage, list, fmt.Sprintf("%x", num("T", 1))},
		{"task at recovery", num("T", 1), garbage, recoverAll, fmt.Sprintf("%x", num("T", 1))},
		{"task gone", num("T", 1), nil, recoverAll, "task 1"},
		{"index of a task", text("t", "one"), []byte{1, 2}, task, "one"},
		{"instruction", num("i", 2), garbage, task, fmt.Sprintf("%x, an instruction of task one", num("i", 2))},
		{"instruction gone", num("i", 2), nil, task, "task one"},
		{"instruction gone at recovery", num("i", 2), nil, recoverAll, "task one"},
		{"timeline", binary.BigEndian.AppendUint32(num("l", 1), 1), garbage,
			func(l *ledger.Ledger) error {
				_, _, _, err := l.Reader().Timeline(context.Background(), 1)
				return err
			}, "instruction 1"},
		{"instruction of a timeline", num("i", 1), garbage,
			func(l *ledger.Ledger) error {
				_, _, _, err := l.Reader().Timeline(context.Background(), 1)
				return err
			}, fmt.Sprintf("%x", num("i", 1))},
		{"node", text("n", "a"), garbage, recoverAll, fmt.Sprintf("%x", text("n", "a"))},
		{"cursor", text("e", "a"), garbage, recoverAll, fmt.Sprintf("%x", text("e", "a"))},
		{"mark", binary.BigEndian.AppendUint16(text("p", "hmi"), 7), garbage,
			func(l *ledger.Ledger) error { _, err := l.Mark("hmi", 7); return err }, fmt.Sprintf("%x", text("p", "hmi"))},
		{"dead letter", num("d", 1), garbage,
			func(l *ledger.Ledger) error {
				_, err := l.Reader().DeadLetters(context.Background(), 0, 10)
				return err
			}, fmt.Sprintf("%x", num("d", 1))},
		{"audit entry", num("a", 2), garbage,
			func(l *ledger.Ledger) error {
				_, err := l.Reader().Audit(context.Background(), 0, 10)
				return err
			}, fmt.Sprintf("%x, audit entry 2,", num("a", 2))},
		{"audit entry at recovery", num("a", 2), garbage, recoverAll, fmt.Sprintf("%x, audit entry 2,", num("a", 2))},
		{"audit entry in another's place", num("a", 2), auditOne(t), recoverAll, "entry 1 in the place of 2"},
		{"long key of an audit entry", append(num("a", 2), 0), garbage, recoverAll, fmt.Sprintf("%x", append(num("a", 2), 0))},
		{"quiet period", []byte("Q"), garbage, recoverAll, fmt.Sprintf("%x", "Q")},
		{"lost numbers", []byte("L"), garbage, recoverAll, fmt.Sprintf("%x", "L")},
		{"moved counters", []byte("J"), garbage, recoverAll, fmt.Sprintf("%x", "J")},
		{"one dead letter", num("d", 1), garbage,
			func(l *ledger.Ledger) error {
				_, err := l.Reader().DeadLetter(context.Background(), 1)
				return err
			}, fmt.Sprintf("%x", num("d", 1))},
		{"long key of the operator queue", append(num("q", 1), 0), []byte{},
			func(l *ledger.Ledger) error {
				_, _, err := l.Reader().Queue(context.Background(), 0, 10)
				return err
			}, fmt.Sprintf("%x", append(num("q", 1), 0))},
		{"instruction in the operator queue", num("i", 3), garbage,
			func(l *ledger.Ledger) error {
				_, _, err := l.Reader().Queue(context.Background(), 0, 10)
				return err
			}, fmt.Sprintf("%x", num("i", 3))},
		{"key of an unfinished task", []byte("ox"), []byte{}, recoverAll, fmt.Sprintf("%x", "ox")},
		{"long key of a task", append(num("T", 9), 0), []byte{}, list, fmt.Sprintf("%x", append(num("T", 9), 0))},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := openStore(t, vfs.NewMem())
			l := ledger.New(s)
			g := newGateway(t, l, engine.Now{Wall: start})
			in := submit("one", "a", "b")
			in.Mark = &engine.Mark{Client: "hmi", PacketID: 7}
			failing := submit("failing", "a")
			failing.Spec.Intent = wire.IntentGPIOPulse
			g.step(hello("a", 1, 1, 1), in, failing, &engine.Garbage{Kind: "task"}, quietOn(g, time.Hour), quietOn(g, time.Hour))
			three, _, err := l.Instruction(3)
			if err != nil {
				t.Fatal(err)
			}
			g.step(processed("a", 1, three, wire.CodeFailed))
			if err := c.read(l); err != nil {
				t.Fatalf("before the damage: %v", err)
			}
			b := s.NewBatch()
			defer b.Close()
			if c.value == nil {
				b.Delete(c.key)
			} else {
				b.Set(c.key, c.value)
			}
			if err := s.Commit(b); err != nil {
				t.Fatal(err)
			}
			if err := c.read(l); err == nil || !strings.Contains(err.Error(), c.say) {
				t.Errorf("error %q does not name %q", fmt.Sprint(err), c.say)
			}
		})
	}
}

// TestReadersRunBesideTheWriter reads from several goroutines while one writes: a
// task that is seen is seen whole.
func TestReadersRunBesideTheWriter(t *testing.T) {
	l := ledger.New(openStore(t, vfs.NewMem()))
	g := newGateway(t, l, engine.Now{Wall: start})
	stop := make(chan struct{})
	var wg sync.WaitGroup
	for range 3 {
		wg.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				list, _, err := l.Reader().Tasks(context.Background(), 0, 5)
				if err != nil {
					t.Error(err)
					return
				}
				for _, s := range list {
					if len(s.Instructions) != 3 {
						t.Errorf("task %s has %d instructions", s.Task.ID, len(s.Instructions))
					}
				}
			}
		})
	}
	g.step(hello("a", 1, 1, 1))
	for n := range 60 {
		r := g.step(submit(fmt.Sprintf("task-%d", n), "a", "b", "c"))
		for _, w := range r.Records.Instructions {
			if w.Instruction.Node == "a" && w.Instruction.Attempt != 0 {
				g.step(processed("a", uint64(n+1), w.Instruction, wire.CodeOK))
			}
		}
	}
	close(stop)
	wg.Wait()
}
