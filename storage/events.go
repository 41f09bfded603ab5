package storage

import (
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

const (
	// noteQueue is how many notes may wait for the log writer. The engine can
	// produce 160 background errors a second on a full disk; what does not fit is
	// counted, not logged.
	noteQueue = 64
	// noteEvery is the shortest time between two log lines of one kind.
	noteEvery = 10 * time.Second
	// slowDisk is how long one disk operation may take before it is reported.
	slowDisk = 5 * time.Second
)

// noteKind is a kind of event, each logged at its own pace.
type noteKind int

const (
	noteBackgroundError noteKind = iota
	noteStallBegin
	noteStallEnd
	noteDiskSlow
	noteLowSpace
	noteCorruption
	noteEngineError
	noteDiskFull
	noteSidecar
	noteKinds // how many there are
)

// text is the constant message of a kind.
func (k noteKind) text() string {
	return [noteKinds]string{
		"store: background work failed, will be tried again",
		"store: writes are stalled, is the disk full?",
		"store: writes go on",
		"store: disk is slow",
		"store: file system is getting full",
		"store: damaged data found on disk",
		"store: engine reports an error",
		"store: disk full, reserve given up",
		"store: sidecar not written, will be tried again",
	}[k]
}

type note struct {
	kind   noteKind
	detail string
}

// events counts what the engine reports and hands it to a goroutine that logs.
// Its methods are called with the engine's locks held: they never block, do no
// I/O and never touch the database.
type events struct {
	log    *slog.Logger
	counts [noteKinds]atomic.Uint64
	// layout counts changes of the engine's set of files.
	layout    atomic.Uint64
	stalled   atomic.Bool
	lastError atomic.Pointer[string] // newest background error

	queue chan note
	stop  chan struct{}
	once  sync.Once
	done  sync.WaitGroup
}

// newEvents starts the log goroutine; close ends it.
func newEvents(log *slog.Logger) *events {
	e := &events{log: log, queue: make(chan note, noteQueue), stop: make(chan struct{})}
	e.done.Go(e.run)
	return e
}

// close logs what is still queued and waits for the goroutine. An Open that was
// given up and then succeeds closes a second time.
func (e *events) close() {
	e.once.Do(func() { close(e.stop) })
	e.done.Wait()
}

// tell counts a note and queues it for the log if there is room.
func (e *events) tell(kind noteKind, detail string) {
	e.counts[kind].Add(1)
	select {
	case e.queue <- note{kind, detail}:
	default:
	}
}

func (e *events) count(kind noteKind) uint64 { return e.counts[kind].Load() }

// run logs notes, each kind at most once in noteEvery, with the count so far.
func (e *events) run() {
	var last [noteKinds]time.Time
	write := func(n note) {
		if now := time.Now(); last[n.kind].IsZero() || now.Sub(last[n.kind]) >= noteEvery {
			last[n.kind] = now
			e.log.Warn(n.kind.text(), "detail", n.detail, "count", e.count(n.kind))
		}
	}
	for {
		select {
		case n := <-e.queue:
			write(n)
			continue
		case <-e.stop:
		}
		for {
			select {
			case n := <-e.queue:
				write(n)
			default:
				return
			}
		}
	}
}

// listener connects the engine's events.
func (e *events) listener() *pebble.EventListener {
	changed := func() { e.layout.Add(1) }
	return &pebble.EventListener{
		BackgroundError: func(err error) {
			s := err.Error()
			e.lastError.Store(&s)
			e.tell(noteBackgroundError, s)
		},
		WriteStallBegin: func(i pebble.WriteStallBeginInfo) {
			e.stalled.Store(true)
			e.tell(noteStallBegin, i.Reason)
		},
		WriteStallEnd: func() {
			e.stalled.Store(false)
			e.tell(noteStallEnd, "")
		},
		LowDiskSpace: func(i pebble.LowDiskSpaceInfo) { e.tell(noteLowSpace, i.String()) },
		// The engine's own handler would end the process on a read. The reader
		// gets the error anyway; here it is counted.
		DataCorruption:  func(i pebble.DataCorruptionInfo) { e.tell(noteCorruption, i.Path+": "+i.Details.Error()) },
		FlushEnd:        func(pebble.FlushInfo) { changed() },
		CompactionEnd:   func(pebble.CompactionInfo) { changed() },
		ManifestCreated: func(pebble.ManifestCreateInfo) { changed() },
		DiskSlow:        e.slow,
	}
}

// slow is called by the disk watcher.
func (e *events) slow(i vfs.DiskSlowInfo) { e.tell(noteDiskSlow, i.String()) }

// engineLogger is the engine's logger. Its progress messages are dropped: what
// matters comes as events.
type engineLogger struct {
	events *events
	death  *death
}

func (l engineLogger) Infof(string, ...any) {}

func (l engineLogger) Errorf(format string, args ...any) {
	l.events.tell(noteEngineError, fmt.Sprintf(format, args...))
}

// Fatalf never returns, see death.stop.
func (l engineLogger) Fatalf(format string, args ...any) {
	l.death.stop(causeOf(format, args))
}

// causeOf keeps an error among the arguments reachable for errors.Is.
func causeOf(format string, args []any) error {
	text := fmt.Sprintf(format, args...)
	for _, a := range args {
		if err, ok := a.(error); ok {
			return &engineError{text, err}
		}
	}
	return errors.New(text)
}

type engineError struct {
	text  string
	cause error
}

func (e *engineError) Error() string { return e.text }
func (e *engineError) Unwrap() error { return e.cause }
