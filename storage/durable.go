package storage

import (
	"context"
	"sync"
)

// watermark is the number up to which everything is on disk, and those who wait
// for it to rise.
type watermark struct {
	mu      sync.Mutex
	head    uint64
	err     error // set once, by fail
	waiters []waiter
}

type waiter struct {
	head uint64
	done chan struct{} // closed when reached or failed
}

// raise says that everything up to head is on disk. Lower values are ignored.
func (w *watermark) raise(head uint64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if head <= w.head {
		return
	}
	w.head = head
	w.wake()
}

// fail releases everyone with err, now and later.
func (w *watermark) fail(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err == nil {
		w.err = err
	}
	w.wake()
}

// wake must be called with mu held.
func (w *watermark) wake() {
	kept := w.waiters[:0]
	for _, x := range w.waiters {
		if x.head <= w.head || w.err != nil {
			close(x.done)
		} else {
			kept = append(kept, x)
		}
	}
	clear(w.waiters[len(kept):])
	w.waiters = kept
}

// level is what is on disk now.
func (w *watermark) level() uint64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.head
}

// wait returns nil when head is on disk.
func (w *watermark) wait(ctx context.Context, head uint64) error {
	w.mu.Lock()
	if w.head >= head || w.err != nil {
		defer w.mu.Unlock()
		if w.head >= head {
			return nil
		}
		return w.err
	}
	x := waiter{head, make(chan struct{})}
	w.waiters = append(w.waiters, x)
	w.mu.Unlock()
	select {
	case <-x.done:
	case <-ctx.Done():
		w.forget(x)
		return ctx.Err()
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.head >= head {
		return nil
	}
	return w.err
}

// forget drops a waiter that gave up.
func (w *watermark) forget(gone waiter) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for i, x := range w.waiters {
		if x.done == gone.done {
			w.waiters = append(w.waiters[:i], w.waiters[i+1:]...)
			return
		}
	}
}

// gate counts the users of the engine, so that Close can wait for them: the
// engine panics when it is closed under a reader.
type gate struct {
	mu     sync.Mutex
	closed bool
	users  sync.WaitGroup
}

// enter returns false once the gate is closed. Each true needs one leave.
func (g *gate) enter() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return false
	}
	g.users.Add(1)
	return true
}

func (g *gate) leave() { g.users.Done() }

// shut closes the gate and says whether this call did it. It doesn't wait.
func (g *gate) shut() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	was := g.closed
	g.closed = true
	return !was
}
