package fieldagent_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"path/filepath"
	"sync"
	"testing"
	"time"

	mochi "github.com/mochi-mqtt/server/v2"
	"github.com/mochi-mqtt/server/v2/listeners"
	"github.com/mochi-mqtt/server/v2/packets"

	"github.com/apollo-11/apollo11/fieldagent"
	"github.com/apollo-11/apollo11/fieldagent/gpio"
	"github.com/apollo-11/apollo11/wire"
)

// gateway is as much of a gateway as an agent needs: a broker for both paths, and
// somebody who welcomes, acknowledges and remembers.
type gateway struct {
	t      *testing.T
	broker *mochi.Server
	tcp    net.Listener
	topics wire.Topics

	mu      sync.Mutex
	changed chan struct{} // closed and replaced at every change
	mute    bool          // do not answer anything
	phases  wire.Phase    // the highest that it knows
	local   bool          // by the latest heartbeat, as the next
	foreign []wire.Foreign
	deaf    bool // do not take events
	hellos  []*wire.Hello
	events  []*wire.Event // accepted, in order
	raw     int           // events that arrived, accepted or not
	last    uint64
	beats   int
	reports []*wire.Report
	byes    []*wire.Goodbye
	compact []wire.CompactAck
	digests []*wire.Digest
}

const node = "pump-1"

// allow lets everybody do everything.
type allow struct{ mochi.HookBase }

func (*allow) ID() string { return "allow" }
func (*allow) Provides(b byte) bool {
	return b == mochi.OnConnectAuthenticate || b == mochi.OnACLCheck
}
func (*allow) OnConnectAuthenticate(*mochi.Client, packets.Packet) bool { return true }
func (*allow) OnACLCheck(*mochi.Client, string, bool) bool              { return true }

// newGateway listens at address, or anywhere if it is empty.
func newGateway(t *testing.T, address string) *gateway {
	t.Helper()
	if address == "" {
		address = "127.0.0.1:0"
	}
	topics, err := wire.NewTopics("default")
	must(t, err)
	g := &gateway{t: t, topics: topics, changed: make(chan struct{}), phases: wire.MaxPhase}
	g.broker = mochi.New(&mochi.Options{InlineClient: true, SysTopicResendInterval: 1 << 30, Logger: slog.New(slog.NewTextHandler(io.Discard, nil))})
	must(t, g.broker.AddHook(new(allow), nil))
	g.tcp, err = net.Listen("tcp", address)
	must(t, err)
	must(t, g.broker.AddListener(listeners.NewNet("tcp", g.tcp)))
	must(t, g.broker.Subscribe("apollo/default/evt/+", 1, g.uplink))
	must(t, g.broker.Subscribe("n/+", 2, g.narrow))
	go func() { _ = g.broker.Serve() }()
	t.Cleanup(g.close)
	return g
}

func (g *gateway) close() {
	g.mu.Lock()
	b := g.broker
	g.broker = nil
	g.mu.Unlock()
	if b != nil {
		_ = b.Close()
	}
}

func (g *gateway) url() string { return "tcp://" + g.tcp.Addr().String() }

func (g *gateway) change() {
	close(g.changed)
	g.changed = make(chan struct{})
}

func (g *gateway) uplink(_ *mochi.Client, _ packets.Subscription, p packets.Packet) {
	m, err := wire.DecodeUplink(p.Payload)
	g.mu.Lock()
	defer g.mu.Unlock()
	defer g.change()
	if err != nil {
		g.t.Errorf("the agent sent nonsense: %v", err)
		return
	}
	switch m := m.(type) {
	case *wire.Hello:
		g.hellos = append(g.hellos, m)
		if g.last < m.First-1 {
			g.last = m.First - 1
		}
		g.answer(&wire.Welcome{Session: m.Session, Epoch: 1, Now: time.Now().UnixMilli(), HeartbeatMs: 200, Phases: g.phases, Through: g.last})
	case *wire.Event:
		g.raw++
		switch {
		case g.deaf:
		case m.Number == g.last+1:
			g.last++
			g.events = append(g.events, m)
			g.answer(&wire.EventAck{Through: g.last})
		default:
			g.answer(&wire.EventAck{Through: g.last, Gap: m.Number > g.last})
		}
	case *wire.Heartbeat:
		g.beats++
		g.local, g.foreign = m.Local, m.Foreign
	case *wire.Report:
		g.reports = append(g.reports, m)
	case *wire.Digest:
		g.digests = append(g.digests, m)
	case *wire.Goodbye:
		g.byes = append(g.byes, m)
	}
}

func (g *gateway) narrow(_ *mochi.Client, _ packets.Subscription, p packets.Packet) {
	f, err := wire.DecodeCompact(p.Payload)
	g.mu.Lock()
	defer g.mu.Unlock()
	defer g.change()
	a, ok := f.(wire.CompactAck)
	if err != nil || !ok {
		g.t.Errorf("the agent sent %T on the narrowband path: %v", f, err)
		return
	}
	g.compact = append(g.compact, a)
}

// answer is called with the lock held, and publishes on a goroutine of its own
// since the broker calls us from a client's.
func (g *gateway) answer(m wire.Message) {
	if g.mute || g.broker == nil {
		return
	}
	b, err := wire.Encode(m)
	if err != nil {
		g.t.Error(err)
		return
	}
	if err := g.broker.Publish(g.topics.Cmd(node), b, false, 0); err != nil {
		g.t.Error(err)
	}
}

func (g *gateway) send(m wire.Message) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.answer(m)
}

func (g *gateway) set(f func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	f()
	g.change()
}

// until waits until cond, which is called with the lock held, is true.
func (g *gateway) until(what string, cond func() bool) {
	g.t.Helper()
	limit := time.NewTimer(15 * time.Second)
	defer limit.Stop()
	for {
		g.mu.Lock()
		ok, changed := cond(), g.changed
		g.mu.Unlock()
		if ok {
			return
		}
		select {
		case <-changed:
		case <-limit.C:
			g.t.Fatalf("still not true: %s", what)
		}
	}
}

// got is results for callers without the lock.
func (g *gateway) got(seq uint64) []*wire.Event {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.results(seq)
}

// results returns the processed events of an instruction.
func (g *gateway) results(seq uint64) (found []*wire.Event) {
	for _, e := range g.events {
		if e.Seq == seq && e.Phase == wire.PhaseProcessed {
			found = append(found, e)
		}
	}
	return found
}

// ends returns how the leases of an instruction ended, for callers with the lock.
func (g *gateway) ends(seq uint64) (found []string) {
	for _, e := range g.events {
		if e.Seq == seq && e.Phase == wire.PhaseLease {
			found = append(found, e.Lease.String())
		}
	}
	return found
}

// instruction makes attempt 1 of instruction seq.
func instruction(t *testing.T, seq uint64, intent string, args map[string]any) *wire.Instruction {
	t.Helper()
	raw, err := wire.EncodeMap(args, wire.MaxArgsBytes)
	must(t, err)
	now := time.Now().UnixMilli()
	return &wire.Instruction{
		Seq: seq, Key: wire.Key{Site: "default", Millis: now, Seq: seq}.String(),
		Token: wire.Token{Shard: 1, Seq: seq, Rand: 7}, Attempt: 1, Intent: intent, Args: raw,
		NotAfter: now + 60_000, Trace: wire.NewTrace(seq, 1), SentAt: now,
	}
}

func write(t *testing.T, seq uint64, pin string, level uint64) *wire.Instruction {
	t.Helper()
	return instruction(t, seq, wire.IntentGPIOWrite, map[string]any{"pin": pin, "level": level})
}

// board is an agent under test and its files.
type board struct {
	t      *testing.T
	cfg    fieldagent.Config
	cancel context.CancelFunc
	done   chan error
}

func newBoard(t *testing.T, primary, narrowband string) *board {
	t.Helper()
	dir := t.TempDir()
	cfg := fieldagent.DefaultConfig()
	cfg.Gateway, cfg.Narrowband, cfg.Node = primary, narrowband, node
	cfg.GPIO, cfg.GPIOTrace, cfg.Data = gpio.BoardSim, filepath.Join(dir, "trace"), filepath.Join(dir, "data")
	b := &board{t: t, cfg: cfg}
	t.Cleanup(b.stop)
	return b
}

func (b *board) start() {
	b.t.Helper()
	a, err := fieldagent.New(b.cfg, "test", slog.New(slog.NewTextHandler(testWriter{b.t}, &slog.HandlerOptions{Level: slog.LevelDebug})))
	must(b.t, err)
	ctx, cancel := context.WithCancel(context.Background())
	b.cancel, b.done = cancel, make(chan error, 1)
	go func() { b.done <- a.Run(ctx) }()
}

func (b *board) stop() {
	if b.cancel == nil {
		return
	}
	b.cancel()
	b.cancel = nil
	select {
	case err := <-b.done:
		if err != nil {
			b.t.Errorf("agent: %v", err)
		}
	case <-time.After(15 * time.Second):
		b.t.Errorf("the agent does not stop")
	}
}

// moves returns how often each token moved a pin.
func (b *board) moves() map[string]int {
	b.t.Helper()
	acts, err := gpio.ReadTrace(b.cfg.GPIOTrace)
	must(b.t, err)
	n := map[string]int{}
	for _, a := range acts {
		n[a.Cause]++
	}
	return n
}

type testWriter struct{ t *testing.T }

func (w testWriter) Write(p []byte) (int, error) {
	w.t.Log(string(p))
	return len(p), nil
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func describe(e *wire.Event) string {
	return fmt.Sprintf("%s %s %q", e.Phase, e.Code, e.Detail)
}
