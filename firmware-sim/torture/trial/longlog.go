package trial

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"time"

	"github.com/apollo-11/apollo11/firmware-sim/fleet"
	"github.com/apollo-11/apollo11/gateway/engine"
	"github.com/apollo-11/apollo11/gateway/ledger"
	"github.com/apollo-11/apollo11/gateway/round"
	"github.com/apollo-11/apollo11/storage"
	"github.com/apollo-11/apollo11/wire"
)

const (
	// logNodes is how many nodes a made log knows; its work is spread over them.
	logNodes = 20
	// logBatch is how many instructions go into one batch of the log.
	logBatch = 500
	// logCapacity is above any log that is made here.
	logCapacity = 10_000_000
)

// LogSize says how long a made log is.
type LogSize struct {
	Finished   int `json:"finished"`
	Unfinished int `json:"unfinished"` // queued for nodes that are away, a few sent and not confirmed
}

// Seat is what the first node of a made log must say to go on where it left.
type Seat struct {
	Node        string
	Incarnation uint64
	Next        uint64 // its next event
}

// maker runs the real engine and ledger over a store, as fast as they go, with
// nodes that answer at once.
type maker struct {
	eng     *engine.Engine
	log     round.Log
	store   ledger.Store
	now     engine.Now
	next    [logNodes]uint64 // event numbers
	sent    []engine.Send    // by the latest flush
	pending []round.Pending  // at most a few
	args    wire.RawMap
}

// MakeLog writes a log into a gateway's data directory, as it would be after that
// many instructions.
func MakeLog(ctx context.Context, data string, size LogSize) (seat Seat, err error) {
	if err := os.MkdirAll(data, 0o700); err != nil {
		return seat, err
	}
	s, err := storage.Open(ctx, storage.Options{Dir: filepath.Join(data, "log"), Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return seat, err
	}
	defer func() {
		if cerr := s.Close(); err == nil {
			err = cerr
		}
	}()
	return FillLog(ctx, ledger.OnDisk(s), size)
}

// FillLog is MakeLog on any store.
func FillLog(ctx context.Context, store ledger.Store, size LogSize) (Seat, error) {
	l := ledger.Over(store)
	m := &maker{log: round.OnDisk(l), store: store, now: engine.Now{Mono: time.Second, Wall: time.Now().UnixMilli()}}
	var err error
	if m.args, err = wire.EncodeMap(wire.GPIOWrite{Pin: "GPIO17", Level: true}.Map(), wire.MaxArgsBytes); err != nil {
		return Seat{}, err
	}
	m.eng, err = l.Recover(m.now, engine.Config{Capacity: logCapacity}, rand.New(rand.NewPCG(1, 11)))
	if err != nil {
		return Seat{}, err
	}
	for k := range m.next {
		m.next[k] = 1
		m.eng.Step(m.now, &engine.Uplink{Node: fleet.Name(k), Msg: m.hello(k)})
	}
	if err := m.finished(ctx, size.Finished); err != nil {
		return Seat{}, err
	}
	if err := m.unfinished(ctx, size.Unfinished); err != nil {
		return Seat{}, err
	}
	return Seat{fleet.Name(0), incarnation(0), m.next[0]}, m.store.Barrier(ctx)
}

func incarnation(node int) uint64 { return uint64(node) + 1 }

func (m *maker) hello(k int) *wire.Hello {
	return &wire.Hello{Session: 1, Incarnation: incarnation(k), Version: "fleet", Short: wire.Short(fleet.Name(k)), First: m.next[k],
		Next: m.next[k], Clock: m.now.Wall, ClockSet: true, Board: "fleet"}
}

// submit submits instructions, each a task of its own, in turn to all nodes.
func (m *maker) submit(n int) error {
	for k := range n {
		in := &engine.Submit{Spec: engine.Spec{Intent: wire.IntentGPIOWrite, Args: m.args, Nodes: []string{fleet.Name(k % logNodes)}},
			Source: engine.Source{Via: "http", Actor: "torture"}, Path: engine.PathHTTP}
		if err := round.Step(m.eng, m.log, m.now, in); err != nil {
			return err
		}
	}
	return nil
}

// flush ends a round and waits for the disk now and then.
func (m *maker) flush() error {
	m.now.Mono += time.Millisecond
	m.now.Wall++
	r := m.eng.Ready(m.now)
	m.sent = r.Effects.Sends
	if r.Records.Empty() {
		return nil
	}
	p, err := m.log.Apply(&r.Records)
	if err != nil {
		return err
	}
	m.pending = append(m.pending, p)
	if len(m.pending) < 8 {
		return nil
	}
	return m.wait()
}

func (m *maker) wait() error {
	for _, p := range m.pending {
		if err := p.Wait(); err != nil {
			return err
		}
	}
	m.pending = m.pending[:0]
	return nil
}

// finished adds instructions and lets the nodes execute them.
func (m *maker) finished(ctx context.Context, n int) error {
	for left := n; left > 0 && ctx.Err() == nil; left -= logBatch {
		if err := m.submit(min(left, logBatch)); err != nil {
			return err
		}
		for more := true; more; {
			if err := m.flush(); err != nil {
				return err
			}
			more = false
			for _, s := range m.sent {
				i, ok := s.Msg.(*wire.Instruction)
				if !ok {
					continue
				}
				more = true
				if err := m.executed(s.Node, i); err != nil {
					return err
				}
			}
		}
	}
	if m.eng.Open() != 0 && ctx.Err() == nil {
		return fmt.Errorf("bug: %d of %d instructions are unfinished", m.eng.Open(), n)
	}
	return ctx.Err()
}

// executed is a node's event that it has executed an instruction.
func (m *maker) executed(node string, i *wire.Instruction) error {
	var k int
	if _, err := fmt.Sscanf(node, "fleet-%d", &k); err != nil {
		return err
	}
	e := &wire.Event{Number: m.next[k], Seq: i.Seq, Token: i.Token, Attempt: i.Attempt, Phase: wire.PhaseProcessed,
		ReceivedAt: m.now.Wall, StartedAt: m.now.Wall, FinishedAt: m.now.Wall, Code: wire.CodeOK}
	m.next[k]++
	return round.Step(m.eng, m.log, m.now, &engine.Uplink{Node: node, Msg: e})
}

// unfinished adds instructions that the nodes do not answer, and lets the nodes
// go.
func (m *maker) unfinished(ctx context.Context, n int) error {
	for left := n; left > 0 && ctx.Err() == nil; left -= logBatch {
		if err := m.submit(min(left, logBatch)); err != nil {
			return err
		}
		if err := m.flush(); err != nil {
			return err
		}
	}
	for k := range m.next {
		m.eng.Step(m.now, &engine.NodeGone{Node: fleet.Name(k), Session: 1, Reason: "the gateway was stopped"})
	}
	if err := m.flush(); err != nil {
		return err
	}
	if err := m.wait(); err != nil {
		return err
	}
	if m.eng.Open() != n && ctx.Err() == nil {
		return fmt.Errorf("bug: %d instructions are unfinished, want %d", m.eng.Open(), n)
	}
	return ctx.Err()
}
