package e2e

import (
	"errors"
	"net"
	"sync"
	"testing"
)

// proxy stands between an agent and a listener of the gateway and is the line
// that can be cut or go dead.
type proxy struct {
	addr   string
	target string
	l      net.Listener
	done   sync.WaitGroup

	mu     sync.Mutex
	closed bool
	refuse bool
	keep   bool // the gateway's side outlives the agent's
	lines  map[*line]bool
}

// direction is one way on a line.
type direction int

const (
	up   direction = 0 // from the agent to the gateway
	down direction = 1
)

// line is one connection through a proxy.
type line struct {
	agent, gateway net.Conn
	gates          [2]*gate
}

// gate lets bytes through, or holds them. What it holds is not lost, as on a TCP
// connection whose packets are: it arrives when the gate opens.
type gate struct {
	mu   sync.Mutex
	cond *sync.Cond
	shut bool
	end  bool
}

func newGate() *gate {
	g := &gate{}
	g.cond = sync.NewCond(&g.mu)
	return g
}

func (g *gate) set(shut, end bool) {
	g.mu.Lock()
	g.shut, g.end = shut, g.end || end
	g.mu.Unlock()
	g.cond.Broadcast()
}

// pass waits while the gate is shut and reports whether the line still stands.
func (g *gate) pass() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	for g.shut && !g.end {
		g.cond.Wait()
	}
	return !g.end
}

func newProxy(t *testing.T, target string) *proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{addr: l.Addr().String(), target: target, l: l, lines: map[*line]bool{}}
	p.done.Go(func() {
		for {
			c, err := l.Accept()
			if errors.Is(err, net.ErrClosed) {
				return
			}
			if err == nil {
				p.done.Go(func() { p.serve(c) })
			}
		}
	})
	t.Cleanup(func() {
		p.mu.Lock()
		p.closed = true
		p.mu.Unlock()
		_ = l.Close()
		p.cut()
		p.done.Wait()
	})
	return p
}

func (p *proxy) serve(agent net.Conn) {
	gw, err := net.Dial("tcp", p.target)
	if err != nil {
		_ = agent.Close()
		return
	}
	n := &line{agent, gw, [2]*gate{newGate(), newGate()}}
	p.mu.Lock()
	if p.closed || p.refuse {
		p.mu.Unlock()
		n.cut()
		return
	}
	p.lines[n] = true
	p.mu.Unlock()
	var both sync.WaitGroup
	both.Go(func() { p.pump(n, agent, gw, n.gates[up]) })
	both.Go(func() { p.pump(n, gw, agent, n.gates[down]) })
	both.Wait()
	p.mu.Lock()
	delete(p.lines, n)
	p.mu.Unlock()
	n.cut()
}

// pump copies one direction until one side ends; then it ends the other, unless
// the proxy is to keep the gateway's side.
func (p *proxy) pump(n *line, from, to net.Conn, g *gate) {
	buf := make([]byte, 32<<10)
	for {
		k, err := from.Read(buf)
		if !g.pass() {
			return
		}
		p.mu.Lock()
		keep := p.keep
		p.mu.Unlock()
		if k > 0 {
			_, werr := to.Write(buf[:k])
			if werr != nil && err == nil && !(keep && from == n.gateway) {
				err = werr
			}
		}
		if err == nil {
			continue
		}
		if keep && from == n.agent {
			return
		}
		n.cut()
		return
	}
}

// cut ends a connection at once on both sides.
func (n *line) cut() {
	for _, g := range n.gates {
		g.set(false, true)
	}
	_ = n.agent.Close()
	_ = n.gateway.Close()
}

func (p *proxy) all() []*line {
	p.mu.Lock()
	defer p.mu.Unlock()
	list := make([]*line, 0, len(p.lines))
	for n := range p.lines {
		list = append(list, n)
	}
	return list
}

// cut ends every connection.
func (p *proxy) cut() {
	for _, n := range p.all() {
		n.cut()
	}
}

// sever ends every connection and lets none in until mend.
func (p *proxy) sever() {
	p.mu.Lock()
	p.refuse = true
	p.mu.Unlock()
	p.cut()
}

// mend ends what sever and hold began.
func (p *proxy) mend() {
	p.mu.Lock()
	p.refuse = false
	p.mu.Unlock()
	for _, n := range p.all() {
		for _, g := range n.gates {
			g.set(false, false)
		}
	}
}

// hold makes one direction of the present connections dead. They stay open.
func (p *proxy) hold(d direction) {
	for _, n := range p.all() {
		n.gates[d].set(true, false)
	}
}

// halfOpen makes the gateway's side of a connection outlive the agent's, as when
// a board loses its power.
func (p *proxy) halfOpen() {
	p.mu.Lock()
	p.keep = true
	p.mu.Unlock()
}
