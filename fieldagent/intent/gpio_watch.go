package intent

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/apollo-11/apollo11/fieldagent/gpio"
	"github.com/apollo-11/apollo11/wire"
)

const (
	// maxEdges is how many edges one report lists; the others are counted.
	maxEdges = 32
	// watchSlack is how much less than the watch the task's time limit may leave:
	// both are usually the same, and the way here takes its time.
	watchSlack = time.Second
)

// gpio.watch: for a time it reports the edges of a pin, at most one report in each
// interval, and at the end how many there were.
var _ = builtIn(func(b Board) Intent { return Typed(wire.IntentGPIOWatch, b.checkWatch, b.watch) })

func (b Board) checkWatch(a wire.GPIOWatch) *Result {
	pin, refused := b.resolve(a.Pin, gpio.Input)
	if refused != nil {
		return refused
	}
	if c, mapped := b.Pins.Config(pin); mapped && c.Mode != gpio.Input {
		return &Result{Code: wire.CodeUnsupported, Detail: fmt.Sprintf("%s is configured as an %s: only inputs can be watched", pin, c.Mode)}
	}
	return nil
}

func (b Board) watch(ctx context.Context, a wire.GPIOWatch, r Request) Result {
	if end, ok := ctx.Deadline(); ok && time.Until(end)+watchSlack < a.For {
		return *badArgs(fmt.Errorf("a watch of %v does not fit into the %v that the task has left: give it a longer timeout",
			a.For, max(0, time.Until(end)).Round(time.Millisecond)))
	}
	watching, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	edges, err := b.Pins.Watch(watching, a.Pin)
	if err != nil {
		return pinResult(err)
	}
	s := seen{pin: a.Pin, request: r}
	code, detail := s.follow(ctx, a, edges)
	return Result{Code: code, Detail: detail, Values: s.values()}
}

// seen is what a watch has seen.
type seen struct {
	pin     string
	request Request
	edges   []any // not told yet: level, kernel time in ns, Unix ms
	fresh   bool  // something is not told yet
	// Counts of the whole watch.
	total, unlisted, missed uint64
}

// follow takes edges until the watch is over, and says how it ended.
func (s *seen) follow(ctx context.Context, a wire.GPIOWatch, edges <-chan gpio.Edge) (wire.Code, string) {
	over := time.NewTimer(a.For)
	defer over.Stop()
	tell := time.NewTimer(0)
	defer tell.Stop()
	<-tell.C
	var next time.Time // when the next report may go
	waiting := false   // for tell
	for {
		select {
		case e, ok := <-edges:
			if !ok {
				return wire.CodeIO, fmt.Sprintf("%s can't be watched any more: the line or its configuration has gone", a.Pin)
			}
			if s.add(e, a.Edge); s.fresh && !waiting {
				waiting = true
				tell.Reset(max(0, time.Until(next)))
			}
		case <-tell.C:
			waiting = false
			next = time.Now().Add(a.Every)
			if !s.tell() {
				waiting = true
				tell.Reset(a.Every) // no room: with what comes until then
			}
		case <-over.C:
			return wire.CodeOK, ""
		case <-ctx.Done():
			if errors.Is(ctx.Err(), context.DeadlineExceeded) {
				return wire.CodeOK, "" // there was room for all but a moment of it
			}
			return wire.CodeCancelled, "the watch was stopped"
		}
	}
}

// add counts an edge and keeps it for the next report.
func (s *seen) add(e gpio.Edge, want wire.Edge) {
	s.missed += e.Missed
	s.fresh = s.fresh || e.Missed > 0
	if want == wire.EdgeRising && e.Level == gpio.Low || want == wire.EdgeFalling && e.Level == gpio.High {
		return
	}
	s.total++
	s.fresh = true
	if len(s.edges) == maxEdges {
		s.unlisted++
		return
	}
	ms := max(s.request.now()-max(time.Since(e.At), 0).Milliseconds(), 0)
	s.edges = append(s.edges, []any{levelNumber(e.Level), uint64(max(e.Kernel, 0)), uint64(ms)})
}

// tell reports what has not been told. It returns false if there is no room.
func (s *seen) tell() bool {
	if s.request.Tell == nil || !s.fresh {
		return true
	}
	if !s.request.Tell(s.values()) {
		return false
	}
	s.edges, s.fresh = nil, false
	return true
}

// values is a report.
func (s *seen) values() map[string]any {
	edges := s.edges
	if edges == nil {
		edges = []any{}
	}
	return map[string]any{"pin": s.pin, "edges": edges, "total": s.total, "unlisted": s.unlisted, "missed": s.missed}
}
