package gpio

import (
	"context"
	"errors"
	"fmt"
	"slices"
)

// Limits of watching.
const (
	// edgeBuffer is how many edges wait for the owner; the kernel has a buffer of
	// its own behind it.
	edgeBuffer = 64
	// watchBuffer is how many edges wait for one watcher before they are counted
	// as missed.
	watchBuffer = 256
	// maxWatchers is how many may watch one pin at a time.
	maxWatchers = 16
)

// watch is an input whose edges are wanted. It belongs to Run.
type watch struct {
	stop     func() error
	watchers []*watcher
}

// watcher is one who wants them.
type watcher struct {
	key    string
	to     chan Edge
	missed uint64
}

// Watch delivers the edges of an input from now on. The channel is closed when
// ctx ends, and also when the pin can't be watched any more: it was closed with
// the owner, taken out of the pin map, or its chip has gone. An edge that comes
// while the channel is full is counted in the Missed of the next one. Boards that
// can't report edges say so with ErrUnsupported.
func (o *Owner) Watch(ctx context.Context, name string) (<-chan Edge, error) {
	w := &watcher{to: make(chan Edge, watchBuffer)}
	_, err := o.ask(ctx, o.requests, "watch "+name, func() (Level, error) {
		m := o.pins.Load()
		_, key, err := m.resolve(o.board, name, Input)
		if err != nil {
			return Low, err
		}
		w.key = key
		return Low, o.join(w)
	})
	// Also after an error: if there was no answer in time it may be watching.
	context.AfterFunc(ctx, func() {
		select {
		case o.leaves <- w:
		case <-o.done:
		}
	})
	if err != nil {
		return nil, err
	}
	return w.to, nil
}

// join adds a watcher and turns edge detection on for the first one.
func (o *Owner) join(w *watcher) error {
	name := o.pins.Load().shown(w.key)
	if p := o.open[w.key]; p != nil && p.mode == Output {
		return fmt.Errorf("%s: %w: it is an output", name, ErrUnsupported)
	}
	if c, ok := o.pins.Load().byKey[w.key]; ok && c.Mode == Output {
		return fmt.Errorf("%s: %w: it is configured as an output", name, ErrUnsupported)
	}
	p, err := o.pin(w.key, Input)
	if err != nil {
		return err
	}
	if p.watch == nil {
		source, ok := p.Pin.(EdgePin)
		if !ok {
			return fmt.Errorf("%s: %w: this back end reports no edges: write gpio: %s", name, ErrUnsupported, BoardChardev)
		}
		stop, err := source.Edges(o.edges)
		if err != nil {
			return errors.Join(err, o.dropIfGone(p, err))
		}
		p.watch = &watch{stop: stop}
	}
	if len(p.watch.watchers) == maxWatchers {
		return fmt.Errorf("%s: %w: %d watch it already", name, ErrBusy, maxWatchers)
	}
	p.watch.watchers = append(p.watch.watchers, w)
	return nil
}

// leave removes a watcher, and turns edge detection off after the last one.
func (o *Owner) leave(w *watcher) {
	p := o.open[w.key]
	if p == nil || p.watch == nil {
		return
	}
	i := slices.Index(p.watch.watchers, w)
	if i < 0 {
		return // closed already
	}
	p.watch.watchers = slices.Delete(p.watch.watchers, i, i+1)
	close(w.to)
	if len(p.watch.watchers) == 0 {
		if err := o.endWatch(p); err != nil {
			// Edge detection may still be on. Opened anew, the line has none.
			_ = o.release(p)
		}
	}
}

// deliver hands an edge to all who watch the pin.
func (o *Owner) deliver(e Edge) {
	p := o.open[e.Pin]
	if p == nil || p.watch == nil {
		return // it has just been turned off
	}
	if e.broken != nil {
		_ = o.release(p) // the watchers see the end; the next request opens it anew
		return
	}
	e.Pin = o.pins.Load().shown(e.Pin)
	for _, w := range p.watch.watchers {
		own := e
		own.Missed += w.missed
		select {
		case w.to <- own:
			w.missed = 0
		default:
			w.missed = own.Missed + 1
		}
	}
}

// endWatch turns edge detection off and closes the channels of all watchers.
func (o *Owner) endWatch(p *openPin) error {
	if p.watch == nil {
		return nil
	}
	w := p.watch
	p.watch = nil
	w.close()
	return w.stop()
}

func (w *watch) close() {
	for _, one := range w.watchers {
		close(one.to)
	}
	w.watchers = nil
}
