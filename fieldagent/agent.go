package fieldagent

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/bits"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/apollo-11/apollo11/fieldagent/executor"
	"github.com/apollo-11/apollo11/fieldagent/gpio"
	"github.com/apollo-11/apollo11/fieldagent/intent"
	"github.com/apollo-11/apollo11/fieldagent/journal"
	"github.com/apollo-11/apollo11/fieldagent/lines"
	"github.com/apollo-11/apollo11/fieldagent/link"
	"github.com/apollo-11/apollo11/fieldagent/round"
	"github.com/apollo-11/apollo11/wire"
)

// Keepalives of the two connections. The primary one is short, so that a dead
// link is noticed in half a minute; on the narrowband one every byte is dear, see
// narrowbandEvery.
const (
	primaryKeepAlive    = 20 * time.Second
	narrowbandKeepAlive = time.Minute
	// maxPinsTold is how many pins a hello lists; a header has 28.
	maxPinsTold = 512
	// LevelsFile holds the levels of simulated pins, in the data directory.
	LevelsFile = "gpio-levels.json"
	// oldestTime is 2025-01-01 in Unix ms: a clock before it is not set, whatever
	// the kernel believes.
	oldestTime = 1735689600000
)

// Agent is one node.
type Agent struct {
	cfg     Config
	version string
	log     *slog.Logger
	topics  wire.Topics
	board   gpio.Board              // instead of the one that cfg names, for tests
	pins    atomic.Pointer[running] // while it runs

	reloading sync.Mutex // guards running.pins
}

// running is what an agent has while it runs.
type running struct {
	*gpio.Owner
	board gpio.Board
	pins  []gpio.PinConfig // in force; Reload's
}

// New checks the configuration.
func New(cfg Config, version string, log *slog.Logger) (*Agent, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	topics, err := wire.NewTopics(cfg.Site)
	if err != nil {
		return nil, err
	}
	return &Agent{cfg: cfg, version: version, log: log.With("node", cfg.Node), topics: topics}, nil
}

// Run works until ctx ends and then takes leave. It returns when everything that
// it started has ended, or an error if it could not start or must not go on.
func (a *Agent) Run(ctx context.Context) (err error) {
	// The journal comes first: its lock keeps a second agent from the pins.
	j, records, err := a.openJournal(journal.OS())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, j.Close()) }()
	board, err := a.openBoard(ctx)
	if err != nil {
		return err
	}
	pins, err := gpio.NewOwner(board, a.cfg.Pins, gpio.OwnerOptions{Autonomy: a.cfg.Autonomy, Local: a.cfg.LocalSwitch})
	if err != nil {
		return err
	}
	// Whoever lets go of the outputs of a dead agent must know them before they move.
	a.logs("the pin map in force was not written down: apollo-agent safe has to rely on agent.yaml", a.keepMap(board, a.cfg.Pins))
	// The pins outlive the work, and the work the wish to stop.
	pinCtx, stopPins := context.WithCancel(context.WithoutCancel(ctx))
	defer stopPins()
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	pinsDone := make(chan error, 1)
	go func() {
		defer stop() // without pins there is nothing to do
		pinsDone <- pins.Run(pinCtx)
	}()
	// Nothing is connected before the pins are safe.
	select {
	case <-pins.Started():
	case err := <-pinsDone:
		return err
	}
	a.pins.Store(&running{pins, board, a.cfg.Pins})
	defer a.pins.Store(nil)
	if without := pins.Without(); len(without) > 0 {
		a.log.Warn("these outputs have no safe level: nothing lets go of them", "pins", strings.Join(without, ", "))
	}
	w, err := newWorks(pins, a.version, a.cfg, a.log)
	if err == nil {
		err = a.run(ctx, j, records, w)
	}
	stopPins()
	return errors.Join(err, <-pinsDone)
}

// run is Run with a journal and pins that serve.
func (a *Agent) run(ctx context.Context, j *journal.Journal, records [][]byte, w *works) (err error) {
	l := newLoop()
	l.journal, l.intents, l.log = j, w, a.log
	o := &overseer{pins: w.pins, loop: l, log: a.log, told: tellPins(w.pins)}
	clock := a.clock()
	l.linked = &linked{mono: func() time.Duration { return clock().Mono }}
	l.now = l.linked.clock(o.clock(clock))
	w.late, w.left = l.late, l.left
	core, out, err := executor.New(a.coreConfig(w, o.told), records, l.now())
	if err != nil {
		return fmt.Errorf("%w; move %s away to start afresh, the gateway will settle what was open", err, a.cfg.Data)
	}
	if err := w.seed(ctx, core); err != nil {
		return err
	}
	l.core = core
	u := newUrgent(w, l, a.log)
	l.pins = w.pins
	links, err := a.links(l, u)
	if err != nil {
		return err
	}
	endWatch, err := a.watch(ctx.Done(), l, w.pins)
	if err != nil {
		return err
	}
	defer func() { endWatch(err != nil) }()
	linkCtx, stopLinks := context.WithCancel(context.WithoutCancel(ctx))
	var running sync.WaitGroup
	defer running.Wait()
	defer stopLinks()
	for _, k := range links {
		running.Go(func() { k.Run(linkCtx) })
	}
	running.Go(func() { o.watch(linkCtx) })
	running.Go(func() { o.ends(linkCtx) })
	running.Go(func() { u.run(linkCtx) })
	l.stopPins = func() { running.Go(func() { o.stop(linkCtx) }) }
	a.log.Info("agent started", "site", a.cfg.Site, "gateway", a.cfg.Gateway, "narrowband", a.cfg.Narrowband,
		"gpio", a.cfg.GPIO, "data", a.cfg.Data, "workers", a.cfg.Workers, "version", a.version)
	if a.cfg.Narrowband == "" {
		a.log.Warn("no narrowband path: while the primary one is down the gateway does not hear of results; set narrowband")
	}
	if err = l.run(ctx, out); err != nil {
		return err
	}
	a.log.Info("agent stopped")
	return nil
}

func (a *Agent) coreConfig(w *works, pins pinsTold) executor.Config {
	return executor.Config{
		Hello: wire.Hello{
			Version: a.version, Labels: a.cfg.Labels, Short: wire.Short(a.cfg.Node),
			Intents: w.registry.Names(), Actuating: w.registry.Actuating(), Pins: pins.names, Traits: pins.traits, Board: a.cfg.GPIO,
			Nonce: nonzero(), Rules: wire.NewestRules,
		},
		Incarnation: nonzero(), Check: w.Check, Workers: a.cfg.Workers, Boot: intent.Boot(a.cfg.root),
		Autonomy: a.cfg.Autonomy, Local: w.pins.Hands() == lines.HandsOn,
		Safe: func(pin string) (level, ok bool) {
			if c, mapped := w.pins.Config(pin); mapped && c.Safe != nil {
				return bool(*c.Safe), true
			}
			return false, false
		},
	}
}

// links builds the connections that feed the loop.
func (a *Agent) links(l *loop, u *urgent) ([]*link.Link, error) {
	password, err := readPassword(a.cfg.PasswordFile)
	if err != nil {
		return nil, err
	}
	l.narrowband = func([]byte) bool { return false }
	var bad, full limited
	take := func(in executor.Input) bool {
		taken := l.offer(in)
		if !taken {
			full.log(a.log, "too many messages at once; one was dropped and will be sent again", nil)
		}
		return taken
	}
	primary, err := link.New(link.Options{
		URL: a.cfg.Gateway, ClientID: "agent/" + a.cfg.Node, Username: a.cfg.Username, Password: password,
		Subscribe: a.topics.Cmd(a.cfg.Node), Publish: a.topics.Evt(a.cfg.Node), KeepAlive: primaryKeepAlive,
		Open: openPrimary, Jitter: rand.Float64, Log: a.log.With("path", "primary"),
		Up: func(ctx context.Context, session uint64) {
			l.linked.up(round.Primary)
			l.give(ctx, executor.Connected{Session: session})
		},
		Down: func(ctx context.Context) {
			l.linked.down(round.Primary)
			l.give(ctx, executor.Disconnected{})
		},
		Message: func(b []byte) bool {
			m, err := wire.DecodeDownlink(b)
			if err != nil {
				bad.log(a.log, "message not understood", err)
				return true
			}
			switch m := m.(type) {
			case *wire.Instruction:
				u.instruction(m) // whatever becomes of the loop
			case *wire.SafeNow:
				u.now(m)
				return true
			case *wire.Welcome:
				u.welcome(m)
			}
			return take(executor.Received{Message: m})
		},
	})
	if err != nil {
		return nil, err
	}
	l.primary = primary.Send
	if a.cfg.Narrowband == "" {
		return []*link.Link{primary}, nil
	}
	user := a.cfg.Username
	if a.cfg.NarrowbandUsername != "" {
		user = a.cfg.NarrowbandUsername
		if password, err = readPassword(a.cfg.NarrowbandPasswordFile); err != nil {
			return nil, err
		}
	}
	short := wire.Short(a.cfg.Node)
	narrow, err := link.New(link.Options{
		URL: a.cfg.Narrowband, ClientID: "nb/" + short, Username: user, Password: password,
		Subscribe: wire.NarrowbandDown(short), Publish: wire.NarrowbandUp(short), KeepAlive: a.cfg.narrowbandEvery(),
		Open: func() (uint64, []byte) { return 0, nil }, Jitter: rand.Float64, Log: a.log.With("path", "narrowband"),
		Up: func(ctx context.Context, _ uint64) {
			l.linked.up(round.Narrowband)
			l.give(ctx, executor.NarrowbandUp{})
		},
		Down: func(ctx context.Context) {
			l.linked.down(round.Narrowband)
			l.give(ctx, executor.NarrowbandDown{})
		},
		Message: func(b []byte) bool {
			f, err := wire.DecodeCompact(b)
			if err != nil {
				bad.log(a.log, "compact frame not understood", err)
				return true
			}
			if safe, ok := f.(wire.CompactSafe); ok {
				u.frame(safe)
			}
			return take(executor.ReceivedCompact{Frame: f})
		},
	})
	if err != nil {
		return nil, err
	}
	l.narrowband = narrow.Send
	return []*link.Link{primary, narrow}, nil
}

// openPrimary draws the number of a connection. Its last will carries the number,
// so that the gateway can tell an old will from a new one.
func openPrimary() (session uint64, will []byte) {
	session = nonzero()
	will, err := wire.Encode(&wire.Goodbye{Session: session, Lost: true, Reason: "connection lost"})
	if err != nil {
		panic("bug: last will: " + err.Error())
	}
	return session, will
}

func nonzero() uint64 {
	for {
		if n := rand.Uint64(); n != 0 {
			return n
		}
	}
}

// clock returns the time as the core wants it.
func (a *Agent) clock() func() executor.Now {
	start := time.Now()
	return func() executor.Now {
		t := time.Now()
		ms := t.UnixMilli()
		return executor.Now{Mono: t.Sub(start), Wall: ms, WallOK: ms > oldestTime && clockSynced()}
	}
}

func readPassword(file string) (string, error) {
	if file == "" {
		return "", nil
	}
	b, err := os.ReadFile(file)
	if err != nil {
		return "", fmt.Errorf("password file: %w", err)
	}
	p := strings.TrimRight(string(b), "\r\n")
	if p == "" {
		return "", fmt.Errorf("password file %s is empty", file)
	}
	return p, nil
}

// limited logs the 1st, 2nd, 4th, 8th ... of something that others can cause at
// will.
type limited struct{ n atomic.Uint64 }

func (b *limited) log(l *slog.Logger, text string, err error) {
	if n := b.n.Add(1); bits.OnesCount64(n) == 1 {
		args := []any{"times", n}
		if err != nil {
			args = append(args, "err", err)
		}
		l.Warn(text, args...)
	}
}
