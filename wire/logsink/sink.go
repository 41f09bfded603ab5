package logsink

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// Limit bounds the bytes that wait for a reader, some 3,000 lines: what a node
	// that comes back with a full journal makes at debug level. The owner takes what
	// waits as a whole, so that twice as much may be allocated.
	Limit = 512 << 10
	// FlushLimit is for Close at the end of a program: ages for whoever reads, and
	// little for a service manager that waits.
	FlushLimit = 2 * time.Second
	// pieceLimit bounds one write, except for a longer line. Up to PIPE_BUF, which is
	// this on Linux, several programs share a pipe without mixing their lines.
	pieceLimit = 4096
)

// Sink takes lines and writes them when their reader has time. It may be used by
// several goroutines.
type Sink struct {
	to     io.Writer
	asJSON atomic.Bool
	lost   atomic.Uint64
	wake   chan struct{} // holds one
	done   chan struct{} // closed when the owner has ended

	mu      sync.Mutex
	queue   []byte
	taken   int    // bytes that the owner has taken and not yet written
	dropped uint64 // lines that would stand behind the queue
	closed  bool
}

// New starts a sink that writes to w. It must be closed.
func New(w io.Writer) *Sink {
	s := &Sink{to: w, wake: make(chan struct{}, 1), done: make(chan struct{})}
	go s.own()
	return s
}

// Logger returns a logger that writes into the sink, and makes it tell of lost
// lines in the same format.
func (s *Sink) Logger(level slog.Level, asJSON bool) *slog.Logger {
	s.asJSON.Store(asJSON)
	return slog.New(handler(s, level, asJSON))
}

func handler(w io.Writer, level slog.Level, asJSON bool) slog.Handler {
	o := &slog.HandlerOptions{Level: level}
	if asJSON {
		return slog.NewJSONHandler(w, o)
	}
	return slog.NewTextHandler(w, o)
}

// Write takes whole lines, all of them or none. It never waits and never fails:
// what has no room is counted.
func (s *Sink) Write(p []byte) (int, error) {
	s.mu.Lock()
	// Once a line is lost all are, until the owner has noted where: so every hole has
	// one note, in its place.
	if s.closed || s.dropped > 0 || s.taken+len(s.queue)+len(p) > Limit {
		n := lines(p)
		s.dropped += n
		s.lost.Add(n)
	} else {
		s.queue = append(s.queue, p...)
	}
	s.mu.Unlock()
	s.rouse()
	return len(p), nil
}

// Lost is how many lines were not written, because nobody read them in time or
// because writing failed.
func (s *Sink) Lost() uint64 { return s.lost.Load() }

// Close has what waits written, and reports whether all of it was within limit. A
// write that hangs is left behind, with its goroutine: the program is about to
// end. What is written into the sink afterwards is lost.
func (s *Sink) Close(limit time.Duration) bool {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.rouse()
	t := time.NewTimer(limit)
	defer t.Stop()
	select {
	case <-s.done:
		return true
	case <-t.C:
		return false
	}
}

func (s *Sink) rouse() {
	select {
	case s.wake <- struct{}{}:
	default: // it will look
	}
}

// own is the goroutine that writes.
func (s *Sink) own() {
	defer close(s.done)
	o := owner{s: s}
	var batch []byte
	for {
		var dropped uint64
		var closed bool
		batch, dropped, closed = s.take(batch)
		switch {
		case len(batch) > 0 || dropped > 0:
			o.write(batch)
			o.unsaid += dropped
			o.note() // even if nothing follows
		case closed:
			return
		default:
			<-s.wake
		}
	}
}

// take exchanges what waits for an empty buffer.
func (s *Sink) take(empty []byte) (batch []byte, dropped uint64, closed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	batch, s.queue = s.queue, empty[:0]
	dropped, s.dropped = s.dropped, 0
	s.taken = len(batch)
	return batch, dropped, s.closed
}

func (s *Sink) written(n int) {
	s.mu.Lock()
	s.taken -= n
	s.mu.Unlock()
}

// owner is what the goroutine that writes remembers.
type owner struct {
	s      *Sink
	unsaid uint64 // lines lost and not yet told of
	torn   bool   // the last line was cut
}

// write writes lines. After an error it gives up the rest: whoever has gone may be
// back, or the disk have room, when there is more to say.
func (o *owner) write(batch []byte) {
	for len(batch) > 0 {
		n := piece(batch)
		rest := batch
		if o.note() {
			if wrote, err := o.s.to.Write(batch[:n]); err == nil {
				o.s.written(n)
				batch = batch[n:]
				continue
			} else if wrote > 0 && wrote <= n {
				o.torn = batch[wrote-1] != '\n'
				rest = batch[wrote:]
			}
		}
		lost := lines(rest)
		o.unsaid += lost
		o.s.lost.Add(lost)
		o.s.written(len(batch))
		return
	}
}

// note tells of lines that were lost, and reports whether there are none left that
// it has not told of.
func (o *owner) note() bool {
	if o.unsaid == 0 {
		return true
	}
	var b bytes.Buffer
	if o.torn {
		b.WriteByte('\n')
	}
	r := slog.NewRecord(time.Now(), slog.LevelWarn, "log lines were lost: nobody read them in time, or they could not be written", 0)
	r.AddAttrs(slog.Uint64("lines", o.unsaid))
	if err := handler(&b, slog.LevelWarn, o.s.asJSON.Load()).Handle(context.Background(), r); err != nil {
		panic("bug: a buffer does not take a line: " + err.Error())
	}
	if n, err := o.s.to.Write(b.Bytes()); err != nil {
		o.torn = o.torn || n > 0
		return false
	}
	o.unsaid, o.torn = 0, false
	return true
}

// piece is how much is written at once: whole lines.
func piece(b []byte) int {
	if len(b) <= pieceLimit {
		return len(b)
	}
	if end := bytes.LastIndexByte(b[:pieceLimit], '\n'); end >= 0 {
		return end + 1
	}
	if end := bytes.IndexByte(b, '\n'); end >= 0 {
		return end + 1
	}
	return len(b)
}

// lines counts the lines of a text, the last one also if it has no end.
func lines(p []byte) uint64 {
	n := bytes.Count(p, []byte("\n"))
	if len(p) > 0 && p[len(p)-1] != '\n' {
		n++
	}
	return uint64(n)
}
