package broker

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"
)

// Names of the listeners, in Submission.Listener, Broker.Addr and logs.
const (
	mqttListener       = "mqtt"
	wsListener         = "ws"
	narrowbandListener = "narrowband"
)

const (
	// acceptPause is the first pause after a failed accept, doubled up to
	// acceptPauseMax. Out of descriptors is the usual cause and passes.
	acceptPause    = 5 * time.Millisecond
	acceptPauseMax = time.Second

	// TCP keepalive finds a dead peer in about two minutes even when the
	// client asked for no MQTT keepalive.
	probeIdle     = 30 * time.Second
	probeInterval = 15 * time.Second
	probeCount    = 6
)

// listenTCP opens a TCP socket whose connections probe idle peers.
func listenTCP(network, address string) (net.Listener, error) {
	lc := net.ListenConfig{KeepAliveConfig: net.KeepAliveConfig{
		Enable: true, Idle: probeIdle, Interval: probeInterval, Count: probeCount,
	}}
	return lc.Listen(context.Background(), network, address)
}

// gate admits sockets: it counts them, numbers the connections, starts their
// writers and can close them all. It owns all goroutines of connections.
type gate struct {
	limits Limits
	stats  *stats
	log    *slog.Logger
	next   atomic.Uint64
	work   sync.WaitGroup // readers, writers and accept loops

	mu      sync.Mutex
	sockets int
	conns   map[*conn]struct{}
	shut    bool
}

func newGate(l Limits, s *stats, log *slog.Logger) *gate {
	return &gate{limits: l, stats: s, log: log, conns: make(map[*conn]struct{})}
}

// socket is a counted socket.
type socket struct {
	net.Conn
	gate *gate
	once sync.Once
}

// Close gives the place back.
func (s *socket) Close() error {
	s.once.Do(s.gate.release)
	return s.Conn.Close()
}

// CloseWrite tells the peer that nothing follows.
func (s *socket) CloseWrite() error {
	if half, ok := s.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return errors.ErrUnsupported
}

func (g *gate) release() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.sockets--
}

// reserve counts a new socket; false means that the broker is full or closing.
func (g *gate) reserve() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.shut || g.sockets >= g.limits.Connections {
		return false
	}
	g.sockets++
	return true
}

// admit turns a socket into a connection with a running writer; nil if the
// broker is closing.
func (g *gate) admit(raw net.Conn, listener string) *conn {
	c := newConn(raw, listener, g.next.Add(1), g.limits)
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.shut || raw.SetReadDeadline(time.Now().Add(g.limits.ConnectTimeout)) != nil {
		_ = raw.Close()
		return nil
	}
	g.conns[c] = struct{}{}
	g.work.Go(func() {
		c.run()
		g.mu.Lock()
		defer g.mu.Unlock()
		delete(g.conns, c)
	})
	return c
}

// close stops admission and returns the connections that are open.
func (g *gate) close() []*conn {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.shut = true
	open := make([]*conn, 0, len(g.conns))
	for c := range g.conns {
		open = append(open, c)
	}
	return open
}

// acceptor accepts sockets for ever: an error of Accept is a pause, not an end.
type acceptor struct {
	net.Listener
	gate   *gate
	log    *slog.Logger
	closed chan struct{}
	once   sync.Once
}

func newAcceptor(l net.Listener, g *gate, log *slog.Logger) *acceptor {
	return &acceptor{Listener: l, gate: g, log: log, closed: make(chan struct{})}
}

// Accept returns the next counted socket, or net.ErrClosed after Close.
func (a *acceptor) Accept() (net.Conn, error) {
	pause := acceptPause
	for {
		raw, err := a.Listener.Accept()
		select {
		case <-a.closed:
			if err == nil {
				_ = raw.Close()
			}
			return nil, net.ErrClosed
		default:
		}
		if err != nil {
			a.gate.stats.acceptErrors.Add(1)
			a.log.Warn("accept failed, trying again", "address", a.Addr().String(), "err", err, "pause", pause)
			select {
			case <-a.closed:
				return nil, net.ErrClosed
			case <-time.After(pause):
			}
			pause = min(2*pause, acceptPauseMax)
			continue
		}
		if !a.gate.reserve() {
			a.gate.stats.turnedAway.Add(1)
			_ = raw.Close()
			continue
		}
		return &socket{Conn: raw, gate: a.gate}, nil
	}
}

// Close ends Accept.
func (a *acceptor) Close() error {
	var err error
	a.once.Do(func() {
		close(a.closed)
		err = a.Listener.Close()
	})
	return err
}

// source yields connections: from an acceptor or from a WebSocket server.
type source interface {
	next() (*conn, error)
	address() net.Addr
	Close() error
}

// tcpSource yields the connections of a plain listener.
type tcpSource struct {
	*acceptor
	name string
}

func (t tcpSource) next() (*conn, error) {
	for {
		raw, err := t.Accept()
		if err != nil {
			return nil, err
		}
		if c := t.gate.admit(raw, t.name); c != nil {
			return c, nil
		}
	}
}

func (t tcpSource) address() net.Addr { return t.Addr() }

// door runs the clients of one listener, each on a goroutine that the gate
// waits for and that survives a panic in the protocol engine.
type door struct {
	name      string
	source    source
	gate      *gate
	establish func(listener string, c net.Conn) error // runs one client to its end
	ended     func(c *conn, panicked bool, err error)
	log       *slog.Logger
}

// run takes connections until the source is closed.
func (d *door) run() {
	for {
		c, err := d.source.next()
		if err != nil {
			return
		}
		d.gate.work.Go(func() { d.serve(c) })
	}
}

func (d *door) serve(c *conn) {
	var err error
	panicked := true
	defer func() {
		if panicked {
			// Hostile bytes can panic Mochi's decoder (a SUBSCRIBE of MQTT 5
			// that ends inside a filter does). It costs that client its
			// connection and nobody else anything.
			d.gate.stats.panics.Add(1)
			d.log.Error("connection ended by a panic in the protocol engine",
				"remote", c.RemoteAddr().String(), "panic", recover(), "stack", string(debug.Stack()))
		}
		_ = c.Close()
		d.ended(c, panicked, err)
	}()
	err = d.establish(d.name, c)
	panicked = false
	d.log.Debug("connection ended", "listener", d.name, "remote", c.RemoteAddr().String(), "err", err)
}
