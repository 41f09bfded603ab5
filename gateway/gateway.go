package gateway

import (
	"context"
	crand "crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/apollo-11/apollo11/broker"
	"github.com/apollo-11/apollo11/gateway/api"
	"github.com/apollo-11/apollo11/gateway/engine"
	"github.com/apollo-11/apollo11/gateway/ledger"
	"github.com/apollo-11/apollo11/gateway/round"
	"github.com/apollo-11/apollo11/storage"
	"github.com/apollo-11/apollo11/wire"
)

// Gateway is a gateway with its log open. Run serves until its context ends.
type Gateway struct {
	cfg    Config
	log    *slog.Logger
	start  time.Time
	store  *storage.Store
	ledger *ledger.Ledger
	loop   *loop
	broker *broker.Broker
	boxes  *outboxes
	board  *board
	intake *intake
	steps  stepLog
	m      *metrics
	epoch  uint64

	ctx     context.Context // of Run, for what is delivered
	online  map[string]bool // owned by the committer
	http    net.Listener
	ready   chan struct{}
	stopped chan struct{}
	open    atomic.Int64
}

// Open opens the log, recovers from it, and binds the listeners' addresses. A
// Gateway that is not Run must be Closed.
func Open(ctx context.Context, cfg Config, log *slog.Logger) (*Gateway, error) {
	cfg = cfg.withDefaults()
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	topics, err := wire.NewTopics(cfg.Site)
	if err != nil {
		return nil, err
	}
	start := time.Now()
	store, err := storage.Open(ctx, storage.Options{Dir: filepath.Join(cfg.Data, "log"), Logger: log,
		OnFatal: cfg.OnFatal, FS: cfg.FS})
	if err != nil {
		return nil, err
	}
	g := &Gateway{cfg: cfg, log: log, start: start, store: store, ledger: ledger.New(store), m: newMetrics(),
		steps: stepLog{log, cfg.Site}, online: map[string]bool{}, ready: make(chan struct{}), stopped: make(chan struct{})}
	if err := g.build(topics); err != nil {
		return nil, errors.Join(err, g.Close())
	}
	return g, nil
}

func (g *Gateway) build(topics wire.Topics) error {
	rnd, err := seeded()
	if err != nil {
		return err
	}
	now := engine.Now{Mono: time.Since(g.start), Wall: time.Now().UnixMilli()}
	eng, err := g.ledger.Recover(now, g.cfg.engine(), rnd)
	if err != nil {
		return fmt.Errorf("recover from %s: %w", g.cfg.Data, err)
	}
	g.epoch = eng.Epoch()
	g.open.Store(int64(eng.Open()))
	g.log.Info("log recovered", "data", g.cfg.Data, "unfinished", eng.Open(), "nodes", len(eng.Nodes()),
		"took", time.Since(g.start).Round(time.Millisecond).String())
	lg := round.OnDisk(g.ledger)
	if g.cfg.Log != nil {
		lg = g.cfg.Log
	}
	g.loop = newLoop(eng, lg, g.start, g.deliver, g.deliverUrgent)
	return g.doors(topics)
}

// seeded is the engine's source of randomness, seeded by the operating system.
func seeded() (*rand.Rand, error) {
	var b [32]byte
	if _, err := crand.Read(b[:]); err != nil {
		return nil, fmt.Errorf("no randomness: %w", err)
	}
	return rand.New(rand.NewPCG(binary.LittleEndian.Uint64(b[:8]), binary.LittleEndian.Uint64(b[8:16]))), nil
}

// doors makes the broker and binds the HTTP address.
func (g *Gateway) doors(topics wire.Topics) error {
	bcfg, err := g.cfg.broker()
	if err != nil {
		return err
	}
	g.intake = &intake{topics: topics, loop: g.loop, m: g.m, log: g.log}
	b, err := broker.New(bcfg, g.intake, g.log)
	if err != nil {
		return err
	}
	g.broker = b
	g.boxes = newOutboxes(topics, b, g.log)
	g.board = newBoard(topics, b, g.log)
	g.m.gauges(g.store, b, g.boxes, g.cfg.LogLost)
	if g.http, err = net.Listen("tcp", g.cfg.HTTP); err != nil {
		return fmt.Errorf("listen for HTTP on %s: %w; is another gateway running? choose another address with --http", g.cfg.HTTP, err)
	}
	if g.cfg.AllowRemote && !loopback(g.cfg.HTTP) {
		g.log.Warn("the HTTP API is open to everybody on the network: anyone who reaches it can move outputs", "address", g.cfg.HTTP)
	}
	return nil
}

// Run serves until ctx ends, or until the gateway can no longer keep its
// promises, and then closes everything.
func (g *Gateway) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	g.ctx, g.intake.ctx = ctx, ctx
	var group sync.WaitGroup
	spawn := func(what string, f func() error) {
		group.Add(1)
		go func() {
			defer group.Done()
			if err := f(); err != nil && ctx.Err() == nil {
				cancel(fmt.Errorf("%s: %w", what, err))
			}
		}()
	}
	spawn("log", g.loop.commit)
	spawn("loop", func() error { return g.loop.run(ctx) })
	spawn("board", func() error { g.board.run(ctx); return nil })
	spawn("broker", func() error {
		err := g.broker.Run(ctx)
		if errors.Is(err, syscall.EADDRINUSE) {
			err = fmt.Errorf("%w; is another gateway running? choose other addresses with --mqtt, --ws and --narrowband", err)
		}
		return err
	})
	spawn("http", func() error { return g.serveHTTP(ctx) })
	spawn("greeting", func() error { return g.greet(ctx) })
	<-ctx.Done()
	close(g.stopped)
	group.Wait()
	g.boxes.wait()
	err := g.Close()
	if cause := context.Cause(ctx); !errors.Is(cause, context.Canceled) {
		err = errors.Join(cause, err)
	}
	return err
}

// Close releases the log and the HTTP address of a gateway that does not run.
func (g *Gateway) Close() error {
	var err error
	if g.http != nil {
		if cerr := g.http.Close(); cerr != nil && !errors.Is(cerr, net.ErrClosed) {
			err = cerr
		}
	}
	return errors.Join(err, g.store.Close())
}

// deliver lets out the effects of a durable round, on the committer's goroutine.
func (g *Gateway) deliver(j *round.Job) {
	e := &j.Effects
	for _, r := range e.Replies {
		if f, ok := r.To.(func(engine.Reply)); ok {
			f(r)
		}
	}
	for _, s := range e.Sends {
		g.boxes.put(g.ctx, s.Node, s.Msg)
	}
	for _, c := range e.Compacts {
		g.boxes.putCompact(g.ctx, c)
	}
	g.open.Store(int64(j.Open))
	g.board.show(e)
	g.m.add(e)
	if j.Written() {
		g.m.batches.Inc()
		g.m.records.Add(float64(len(j.Writes)))
	}
	for k := range j.Writes {
		g.steps.write(&j.Writes[k])
	}
	for _, n := range e.Nodes {
		g.nodeChanged(n)
	}
	for _, a := range e.Alarms {
		g.log.Warn("alarm", "kind", a.Kind, "subject", a.Subject, "raised", a.Raised, "text", a.Text)
	}
}

// deliverUrgent lets out what may leave before its record, on the loop's goroutine.
func (g *Gateway) deliverUrgent(list []engine.Urgent) {
	for _, u := range list {
		g.boxes.put(g.ctx, u.Node, u.Msg)
		g.log.Warn("driven to safe before its record is on disk: the disk is slow", "node", u.Node, "instruction", u.Msg.Seq)
	}
}

func (g *Gateway) nodeChanged(n engine.NodeState) {
	if n.Online {
		g.online[n.Node.ID] = true
		g.m.online.Set(float64(len(g.online)))
		g.log.Info("node online", "node", n.Node.ID, "short", n.Node.Short, "version", n.Node.Version, "board", n.Node.Board, "queued", n.Queued)
		return
	}
	delete(g.online, n.Node.ID)
	g.m.online.Set(float64(len(g.online)))
	g.log.Info("node offline", "node", n.Node.ID, "reason", n.Reason, "queued", n.Queued, "running", n.Running)
}

// greet publishes what retained topics must show after a restart: every node
// offline until it says hello, every unfinished task.
func (g *Gateway) greet(ctx context.Context) error {
	select {
	case <-g.broker.Ready():
	case <-ctx.Done():
		return nil
	}
	var e engine.Effects
	err := g.loop.ask(ctx, func(eng *engine.Engine) {
		e.Nodes = eng.Nodes()
		e.Statuses = eng.Unfinished()
	})
	if err != nil {
		return nil // stopping
	}
	g.board.show(&e)
	close(g.ready)
	return nil
}

// Ready is closed when all doors are open.
func (g *Gateway) Ready() <-chan struct{} { return g.ready }

// doorNames are the names of the doors, as Addr takes them.
var doorNames = [...]string{"mqtt", "ws", "narrowband", "http"}

// Addr is the address of a door: mqtt, ws, narrowband or http; nil if it is not
// open.
func (g *Gateway) Addr(door string) net.Addr {
	if door == "http" {
		return g.http.Addr()
	}
	return g.broker.Addr(door)
}

func (g *Gateway) serveHTTP(ctx context.Context) error {
	handler := api.New(g, g.ledger.Reader(), api.Options{
		Metrics: promhttp.HandlerFor(g.m.reg, promhttp.HandlerOpts{}),
		Site:    g.cfg.Site, Log: g.log, AllowRemote: g.cfg.AllowRemote,
	})
	srv := api.NewServer(handler, g.log)
	done := make(chan error, 1)
	go func() { done <- srv.Serve(g.http) }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
	}
	grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
	defer cancel()
	err := srv.Shutdown(grace)
	if serr := <-done; serr != nil && !errors.Is(serr, http.ErrServerClosed) {
		err = errors.Join(err, serr)
	}
	return err
}
