package rig

import (
	"errors"
	"net"
	"slices"
	"sync"
	"time"
)

// maxUnderWay is how many chunks are on a line at once.
const maxUnderWay = 256

// Direction is one way through a proxy.
type Direction int

// The two ways.
const (
	Up   Direction = 0 // from the agent to the gateway
	Down Direction = 1
)

// Proxy stands between an agent and a door of the gateway and is the line that
// goes dead: while a direction is held its bytes are taken and not passed on, and
// the connection stays open. What is held is not lost, as on a TCP connection
// whose packets are: it arrives when the line is mended.
type Proxy struct {
	target string
	delay  time.Duration // of each way
	l      net.Listener
	done   sync.WaitGroup

	mu     sync.Mutex
	cond   *sync.Cond
	held   [2]bool
	closed bool
	conns  map[net.Conn]bool
}

// NewProxy listens on a free loopback port. It must be closed.
func NewProxy(target string) (*Proxy, error) { return NewSlowProxy(target, 0) }

// NewSlowProxy is NewProxy for a line on which each way takes a time.
func NewSlowProxy(target string, delay time.Duration) (*Proxy, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	p := &Proxy{target: target, delay: delay, l: l, conns: map[net.Conn]bool{}}
	p.cond = sync.NewCond(&p.mu)
	p.done.Go(p.accept)
	return p, nil
}

// Addr is where the proxy listens.
func (p *Proxy) Addr() string { return p.l.Addr().String() }

// Hold makes directions dead.
func (p *Proxy) Hold(ways ...Direction) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, d := range ways {
		p.held[d] = true
	}
}

// Mend lets everything through again.
func (p *Proxy) Mend() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.held = [2]bool{}
	p.cond.Broadcast()
}

// Close ends every connection and waits for the proxy's goroutines.
func (p *Proxy) Close() {
	p.mu.Lock()
	p.closed = true
	for c := range p.conns {
		_ = c.Close() // both sides see an end
	}
	p.cond.Broadcast()
	p.mu.Unlock()
	_ = p.l.Close() // nothing was written to it
	p.done.Wait()
}

func (p *Proxy) accept() {
	for {
		agent, err := p.l.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err == nil {
			p.done.Go(func() { p.serve(agent) })
		}
	}
}

func (p *Proxy) serve(agent net.Conn) {
	defer func() { _ = agent.Close() }()
	gateway, err := net.DialTimeout("tcp", p.target, dialLimit)
	if err != nil {
		return
	}
	defer func() { _ = gateway.Close() }()
	if !p.know(agent, gateway) {
		return
	}
	var both sync.WaitGroup
	both.Go(func() { p.pump(gateway, agent, Up) })
	both.Go(func() { p.pump(agent, gateway, Down) })
	both.Wait()
	p.mu.Lock()
	delete(p.conns, agent)
	delete(p.conns, gateway)
	p.mu.Unlock()
}

func (p *Proxy) know(conns ...net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range conns {
		p.conns[c] = true
	}
	return !p.closed
}

// chunk is what was read at once.
type chunk struct {
	data []byte
	due  time.Time
}

// pump copies one direction until either side ends, and then ends both.
func (p *Proxy) pump(to, from net.Conn, d Direction) {
	under := make(chan chunk, maxUnderWay)
	var sender sync.WaitGroup
	sender.Go(func() {
		for c := range under {
			time.Sleep(time.Until(c.due)) // that is the line
			if _, err := to.Write(c.data); err != nil {
				_, _ = to.Close(), from.Close() // the reader ends
			}
		}
	})
	defer sender.Wait()
	defer close(under)
	buf := make([]byte, 32<<10)
	for {
		n, err := from.Read(buf)
		if !p.pass(d) {
			return
		}
		if n > 0 {
			under <- chunk{slices.Clone(buf[:n]), time.Now().Add(p.delay)}
		}
		if err != nil {
			_, _ = to.Close(), from.Close()
			return
		}
	}
}

// pass waits while a direction is held and reports whether the proxy is open.
func (p *Proxy) pass(d Direction) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for p.held[d] && !p.closed {
		p.cond.Wait()
	}
	return !p.closed
}
