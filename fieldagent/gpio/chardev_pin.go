package gpio

import (
	"errors"
	"fmt"
	"os"
	"time"
	"unsafe"
)

// kernelEdges is how many edges the kernel keeps for a line until we read them;
// then it drops the oldest.
const kernelEdges = 256

// request asks the kernel for a line. d is its chip.
func (b *Chardev) request(d device, p place, name string, r Request) (Pin, error) {
	info, err := lineInfo(d, p.offset)
	if err != nil {
		return nil, b.explain(d, p, name, fmt.Errorf("look at the line: %w", err))
	}
	if own := text(info.name); own != p.chip.lines[p.offset] {
		return nil, fmt.Errorf("open %s: %w: line %s is now called %q and was %q: restart the agent", name, ErrGone, p.exact(), own, p.chip.lines[p.offset])
	}
	pin := &charPin{k: b.k, name: name, r: r, directed: r.Mode == Input || r.Initial != nil && r.Mode == Output}
	req := abiRequest{lines: 1, eventBuffer: kernelEdges, config: pin.config(0, Low)}
	if pin.directed && r.Mode == Output {
		req.config = pin.config(0, *r.Initial)
		pin.commanded = r.Initial
	}
	req.offsets[0] = uint32(p.offset)
	copy(req.consumer[:nameLen-1], r.Consumer)
	if err := d.ioctl(ioGetLine, unsafe.Pointer(&req)); err != nil {
		return nil, b.explain(d, p, name, err)
	}
	if pin.d, err = b.k.adopt(req.fd); err != nil {
		return nil, fmt.Errorf("open %s: %w: %w", name, ErrIO, err)
	}
	return pin, nil
}

// charPin is a requested line.
type charPin struct {
	k    kernel
	d    device
	name string
	r    Request
	// directed is false as long as the line is only held: its direction and level
	// are still what they were.
	directed  bool
	commanded *Level
	seq       uint32 // of the last edge that was read; belongs to the reader while there is one
}

// config is how the line is to be, with the level of an output. Without a
// direction the kernel leaves everything as it is.
func (p *charPin) config(edges uint64, level Level) abiConfig {
	var c abiConfig
	c.flags = edges
	if p.r.ActiveLow {
		c.flags |= flagActiveLow
	}
	if !p.directed {
		return c
	}
	switch p.r.Bias {
	case NoPull:
		c.flags |= flagNoPull
	case PullUp:
		c.flags |= flagPullUp
	case PullDown:
		c.flags |= flagPullDown
	}
	if p.r.Mode == Output {
		c.flags |= flagOutput
		c.add(attrOutputValues, level64(level))
		return c
	}
	c.flags |= flagInput
	if p.r.Debounce > 0 {
		c.addMicros(attrDebounce, p.r.Debounce)
	}
	return c
}

// Set implements Pin. The first level of a line that was only held is given
// together with the direction.
func (p *charPin) Set(level Level, _ string) error {
	if p.r.Mode != Output {
		return fmt.Errorf("set %s: %w: it is open as %s", p.name, ErrUnsupported, p.r.Mode)
	}
	var err error
	if p.directed {
		v := abiValues{bits: level64(level), mask: 1}
		err = p.d.ioctl(ioSetValues, unsafe.Pointer(&v))
	} else {
		p.directed = true
		c := p.config(0, level)
		if err = p.d.ioctl(ioSetConfig, unsafe.Pointer(&c)); err != nil {
			p.directed = false
		}
	}
	if err != nil {
		return pinError("set "+p.name, err)
	}
	p.commanded = &level
	return nil
}

// Get implements Pin.
func (p *charPin) Get() (Level, error) {
	if p.r.Mode != Output {
		return p.Actual()
	}
	if p.commanded == nil {
		return Low, fmt.Errorf("get %s: %w", p.name, ErrNoLevel)
	}
	return *p.commanded, nil
}

// Actual implements ActualPin: the kernel reads the line, whatever its direction.
func (p *charPin) Actual() (Level, error) {
	v := abiValues{mask: 1}
	if err := p.d.ioctl(ioGetValues, unsafe.Pointer(&v)); err != nil {
		return Low, pinError("get "+p.name, err)
	}
	return v.bits&1 == 1, nil
}

// Close implements Pin: the kernel takes the line back.
func (p *charPin) Close() error {
	if err := p.d.Close(); err != nil {
		return fmt.Errorf("close %s: %w: %w", p.name, ErrIO, err)
	}
	return nil
}

// Edges implements EdgePin.
func (p *charPin) Edges(to chan<- Edge) (func() error, error) {
	if p.r.Mode != Input {
		return nil, fmt.Errorf("watch %s: %w: it is open as %s", p.name, ErrUnsupported, p.r.Mode)
	}
	if err := p.d.SetReadDeadline(time.Time{}); err != nil {
		// Without deadlines the reader could never be ended.
		return nil, fmt.Errorf("watch %s: %w: the system can't wait for its events: %w", p.name, ErrUnsupported, err)
	}
	from, err := p.Actual()
	if err != nil {
		return nil, err
	}
	since := p.k.now()
	c := p.config(flagRising|flagFalling, Low)
	if err := p.d.ioctl(ioSetConfig, unsafe.Pointer(&c)); err != nil {
		return nil, edgeError(p.name, err)
	}
	r := &edgeReader{p: p, to: to, since: since, from: &from, quit: make(chan struct{}), done: make(chan struct{})}
	go r.run()
	return r.stop, nil
}

// edgeReader reads the events of a line until it is stopped.
type edgeReader struct {
	p  *charPin
	to chan<- Edge
	// since is when edge detection was turned on. What the kernel has kept from an
	// earlier time is of no use any more.
	since time.Duration
	// from is the level before edge detection was turned on, until the first edge.
	// Some chips keep an edge that came while it was off and report it when it is
	// turned on: it shows by leading to the level that the line had already.
	from *Level
	quit chan struct{}
	done chan struct{}
}

// stop ends the reader and turns edge detection off.
func (r *edgeReader) stop() error {
	close(r.quit)
	err := r.p.d.SetReadDeadline(time.Unix(1, 0)) // in the past
	if err != nil {
		// Closing ends a read as well; then the line is gone, which its user sees.
		err = errors.Join(err, r.p.d.Close())
	}
	<-r.done
	if err != nil {
		return err
	}
	c := r.p.config(0, Low)
	if err := r.p.d.ioctl(ioSetConfig, unsafe.Pointer(&c)); err != nil {
		return pinError("end watching "+r.p.name, err)
	}
	return nil
}

func (r *edgeReader) run() {
	defer close(r.done)
	var buf [16 * eventBytes]byte
	for {
		n, err := r.p.d.Read(buf[:])
		for at := 0; at+eventBytes <= n; at += eventBytes {
			e, fresh := r.edge(parseEvent(buf[at:]))
			if fresh && !r.send(e) {
				return
			}
		}
		if err == nil && n >= eventBytes {
			continue
		}
		if errors.Is(err, os.ErrDeadlineExceeded) {
			return // stopped
		}
		if err == nil {
			err = fmt.Errorf("%w: an event of %d bytes", ErrIO, n)
		}
		r.send(Edge{Pin: r.p.name, broken: pinError("watch "+r.p.name, err)})
		return
	}
}

// send reports whether the edge was taken before the reader was stopped.
func (r *edgeReader) send(e Edge) bool {
	select {
	case r.to <- e:
		return true
	case <-r.quit:
		return false
	}
}

// edge adds what the kernel does not say: the wall clock time, and what is
// missing since the edge that was read before.
func (r *edgeReader) edge(e lineEvent) (out Edge, fresh bool) {
	at := time.Duration(e.nanos)
	out = Edge{Pin: r.p.name, Level: Level(e.rising), Kernel: at, At: time.Now().Add(at - r.p.k.now()),
		Missed: uint64(e.seq - r.p.seq - 1)} // in 32 bits, which wrap around
	r.p.seq = e.seq
	if at < r.since {
		return out, false
	}
	kept := r.from != nil && *r.from == out.Level
	r.from = nil
	return out, !kept
}
