package gpio

import (
	"fmt"
	"time"
)

// simPin is an open line of a simulated board.
type simPin struct {
	s         *Sim
	name      string
	r         Request
	commanded *Level

	edges *simEdges // guarded by s.mu
}

// logical translates between the line and what is said of it, either way.
func (p *simPin) logical(l Level) Level { return l != Level(p.r.ActiveLow) }

// Set implements Pin.
func (p *simPin) Set(level Level, cause string) error {
	if p.r.Mode != Output {
		return fmt.Errorf("set %s: %w: it is open as %s", p.name, ErrUnsupported, p.r.Mode)
	}
	p.s.mu.Lock()
	fault := p.s.fault
	p.s.mu.Unlock()
	if fault != nil {
		if err := fault(p.name, level); err != nil {
			return fmt.Errorf("set %s: %w", p.name, err)
		}
	}
	a := Actuation{At: time.Now().UnixNano(), Pin: p.name, Level: level, Cause: cause}
	if err := p.s.actuate(a, p.logical(level)); err != nil {
		return fmt.Errorf("set %s: %w", p.name, err)
	}
	p.commanded = &level
	return nil
}

// Get implements Pin.
func (p *simPin) Get() (Level, error) {
	if p.r.Mode != Output {
		return p.Actual()
	}
	if p.commanded == nil {
		return Low, fmt.Errorf("get %s: %w", p.name, ErrNoLevel)
	}
	return *p.commanded, nil
}

// Actual implements ActualPin.
func (p *simPin) Actual() (Level, error) { return p.logical(p.s.Level(p.name)), nil }

// Close implements Pin. The line keeps its level.
func (p *simPin) Close() error {
	p.s.mu.Lock()
	defer p.s.mu.Unlock()
	if p.s.open[p.name] == p {
		delete(p.s.open, p.name)
	}
	return nil
}

// Edges implements EdgePin. Debouncing is not simulated.
func (p *simPin) Edges(to chan<- Edge) (func() error, error) {
	if p.r.Mode != Input {
		return nil, fmt.Errorf("watch %s: %w: it is open as %s", p.name, ErrUnsupported, p.r.Mode)
	}
	e := &simEdges{p: p, to: to, wake: make(chan struct{}, 1), quit: make(chan struct{}), done: make(chan struct{})}
	p.s.mu.Lock()
	p.edges = e
	p.s.mu.Unlock()
	go e.run()
	return e.stop, nil
}

// simEdges keeps the edges of a line like the kernel: a bounded number of them,
// then the oldest are dropped and counted.
type simEdges struct {
	p    *simPin
	to   chan<- Edge
	wake chan struct{}
	quit chan struct{}
	done chan struct{}

	// guarded by s.mu
	waiting []Edge
	missed  uint64
}

// add notes an edge. s.mu is held.
func (e *simEdges) add(level Level) {
	now := time.Now()
	e.waiting = append(e.waiting, Edge{Pin: e.p.name, Level: level, Kernel: now.Sub(e.p.s.started), At: now})
	if len(e.waiting) > kernelEdges {
		e.missed += 1
		e.waiting = e.waiting[1:]
	}
	select {
	case e.wake <- struct{}{}:
	default:
	}
}

// take returns the oldest edge, if there is one.
func (e *simEdges) take() (Edge, bool) {
	e.p.s.mu.Lock()
	defer e.p.s.mu.Unlock()
	if len(e.waiting) == 0 {
		return Edge{}, false
	}
	first := e.waiting[0]
	first.Missed, e.missed = e.missed, 0
	e.waiting = e.waiting[1:]
	return first, true
}

func (e *simEdges) run() {
	defer close(e.done)
	for {
		next, ok := e.take()
		if !ok {
			select {
			case <-e.wake:
				continue
			case <-e.quit:
				return
			}
		}
		select {
		case e.to <- next:
		case <-e.quit:
			return
		}
	}
}

func (e *simEdges) stop() error {
	e.p.s.mu.Lock()
	e.p.edges = nil
	e.p.s.mu.Unlock()
	close(e.quit)
	<-e.done
	return nil
}
