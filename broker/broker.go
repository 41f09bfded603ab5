package broker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net"
	"strings"
	"sync/atomic"
	"time"

	mqtt "github.com/mochi-mqtt/server/v2"
	"github.com/mochi-mqtt/server/v2/packets"
)

// Broker is an MQTT broker with one writer: the gateway. Make one with New and
// serve it with Run, once.
type Broker struct {
	cfg      Config
	limits   Limits
	topics   topics
	handler  Handler
	log      *slog.Logger
	audit    *auditLog
	server   *mqtt.Server
	inline   *mqtt.Client
	stats    *stats
	gate     *gate
	registry *registry
	addrs    map[string]net.Addr // written before ready is closed
	ready    chan struct{}
	number   atomic.Int64 // of the last message published
	started  atomic.Bool
	down     atomic.Bool
}

// New returns a broker that is not yet listening. It reports all faults of the
// configuration at once.
func New(cfg Config, h Handler, log *slog.Logger) (*Broker, error) {
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, fmt.Errorf("broker configuration: %w", err)
	}
	names, err := newTopics(cfg.Site)
	if err != nil {
		return nil, fmt.Errorf("broker configuration: %w", err)
	}
	b := &Broker{
		cfg:      cfg,
		limits:   cfg.Limits,
		topics:   names,
		handler:  h,
		log:      log,
		audit:    newAuditLog(log, logRate, logBurst),
		stats:    new(stats),
		registry: newRegistry(),
		addrs:    make(map[string]net.Addr),
		ready:    make(chan struct{}),
	}
	b.gate = newGate(cfg.Limits, b.stats, log)
	b.server = mqtt.New(engineOptions(cfg.Limits, log))
	if err := b.server.AddHook(&hook{b: b}, nil); err != nil {
		return nil, fmt.Errorf("broker: %w", err)
	}
	inline, ok := b.server.Clients.Get(mqtt.InlineClientId)
	if !ok {
		return nil, errors.New("bug: the protocol engine has no inline client")
	}
	b.inline = inline
	return b, nil
}

// engineOptions are Mochi's settings. Its limits on what comes in are set out
// of the way where ours come first.
func engineOptions(l Limits, log *slog.Logger) *mqtt.Options {
	c := mqtt.NewDefaultServerCapabilities()
	c.MaximumClients = math.MaxInt64 // the gate counts sockets
	c.MaximumClientWritesPending = int32(l.Outbound)
	c.MaximumInflight = uint16(l.Outbound)
	c.MaximumPacketSize = uint32(max(l.PacketSize, maxConnect) + 1 + maxVarintBytes)
	c.ReceiveMaximum = uint16(l.Unacked)
	c.MaximumMessageExpiryInterval = 0              // what is kept does not age
	c.MaximumSessionExpiryInterval = foreverSession // the sweeper ends sessions
	c.TopicAliasMaximum = 0
	c.SharedSubAvailable = 0
	c.MinimumProtocolVersion = 4
	c.Compatibilities.NoInheritedPropertiesOnAck = true // else QoS 1 breaks MQTT.js
	return &mqtt.Options{
		Capabilities:           c,
		Logger:                 slog.New(engineLog{log}),
		SysTopicResendInterval: 1 << 30, // each one stops the world for memory statistics
		InlineClient:           true,
	}
}

// Warnings names what the configuration allows and should not. Run logs them.
func (b *Broker) Warnings() []string { return b.cfg.warnings() }

// Ready is closed when all listeners accept connections.
func (b *Broker) Ready() <-chan struct{} { return b.ready }

// Addr returns the address of a listener ("mqtt", "ws" or "narrowband"); nil
// before Ready or when it is off.
func (b *Broker) Addr(listener string) net.Addr {
	select {
	case <-b.ready:
		return b.addrs[listener]
	default:
		return nil
	}
}

// Stats returns the present counters.
func (b *Broker) Stats() Stats {
	s := b.stats.read()
	s.Sessions = b.registry.absent()
	return s
}

// Run listens and serves until ctx ends. When it returns all goroutines of
// connections have ended; done functions may still be called, without effect.
func (b *Broker) Run(ctx context.Context) error {
	if !b.started.CompareAndSwap(false, true) {
		return errors.New("bug: broker was run before")
	}
	doors, err := b.open()
	if err != nil {
		return err
	}
	if err := b.server.Serve(); err != nil { // no listeners: starts housekeeping
		b.shutdown(doors)
		return fmt.Errorf("broker: %w", err)
	}
	for _, w := range b.Warnings() {
		b.log.Warn(w)
	}
	work, stop := context.WithCancel(ctx)
	defer stop()
	b.gate.work.Go(func() { b.sweep(work) })
	for _, d := range doors {
		b.gate.work.Go(d.run)
		b.log.Info("listening", "listener", d.name, "address", d.source.address().String())
	}
	close(b.ready)
	<-ctx.Done()
	b.shutdown(doors)
	return nil
}

// open opens all listeners or none.
func (b *Broker) open() ([]*door, error) {
	var doors []*door
	for _, l := range []struct{ name, address string }{
		{mqttListener, b.cfg.MQTT}, {wsListener, b.cfg.WebSocket}, {narrowbandListener, b.cfg.Narrowband},
	} {
		if l.address == "" {
			continue
		}
		raw, err := b.cfg.Listen("tcp", l.address)
		if err != nil {
			for _, d := range doors {
				_ = d.source.Close()
			}
			b.gate.work.Wait()
			return nil, fmt.Errorf("listen for %s on %s: %w", l.name, l.address, err)
		}
		a := newAcceptor(raw, b.gate, b.log)
		var s source = tcpSource{a, l.name}
		if l.name == wsListener {
			s = newWSSource(a, b.cfg.Origins, b.log)
		}
		doors = append(doors, &door{
			name: l.name, source: s, gate: b.gate,
			establish: b.server.EstablishConnection, ended: b.ended, log: b.log,
		})
		b.addrs[l.name] = s.address()
	}
	return doors, nil
}

// shutdown ends everything: no new peers, a word to those that can hear it, and
// a bounded wait. Mochi's own Close would wait for peers that stay silent.
func (b *Broker) shutdown(doors []*door) {
	for _, d := range doors {
		if err := d.source.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
			b.log.Warn("close listener", "listener", d.name, "err", err)
		}
	}
	open := b.gate.close()
	for _, p := range b.registry.peers() {
		p.disconnect(packets.ErrServerShuttingDown, "the gateway stops", Shutdown)
	}
	for _, c := range open {
		c.end(Shutdown)
	}
	b.gate.work.Wait()
	b.down.Store(true)
	if err := b.server.Close(); err != nil {
		b.log.Warn("close protocol engine", "err", err)
	}
}

func (b *Broker) tellPresence(p *peer, connected bool, cause Cause) {
	if p.rights.role == Operator {
		return
	}
	ev := Presence{
		Path: p.path, ClientID: p.clientID, Remote: p.conn.RemoteAddr().String(),
		Conn: p.conn.number, Connected: connected, Cause: cause,
	}
	if p.path == Narrowband {
		ev.Short = p.node
	} else {
		ev.Node = p.node
	}
	b.handler.Presence(ev)
}

// isFilter reports whether s has a wildcard; topics of messages have none.
func isFilter(s string) bool { return strings.ContainsAny(s, "+#") }

func seconds(n uint32) time.Duration { return time.Duration(n) * time.Second }
