package storage

import (
	"fmt"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
)

// ExitCode is that of a process whose store has died, EX_SOFTWARE of sysexits.h: a
// supervisor sees that it stopped itself, and starts it again to recover from disk.
const ExitCode = 70

// death is the one-way switch from a living store to a dead one.
type death struct {
	onFatal func(error)
	release func(error)   // wakes those who wait for durability that will not come
	dead    chan struct{} // closed when the store dies
	// opening is true until Open succeeds, and stays so when it fails. Meanwhile a
	// death is Open's error and not a reason to end the process.
	opening atomic.Bool
	early   atomic.Bool // died while opening
	cause   atomic.Pointer[error]
	once    sync.Once
}

// err is nil while the store lives, afterwards ErrDead with the first cause.
func (d *death) err() error {
	if p := d.cause.Load(); p != nil {
		return *p
	}
	return nil
}

// declare kills the store. The first caller runs OnFatal, which in production
// does not return; others wait for it, so that no second message or panic
// overtakes it. It returns only where OnFatal does: in tests, and during Open.
func (d *death) declare(cause error) {
	err := fmt.Errorf("%w: %w", ErrDead, cause)
	d.cause.CompareAndSwap(nil, &err)
	d.once.Do(func() {
		early := d.opening.Load()
		d.early.Store(early)
		close(d.dead)
		d.release(d.err())
		if !early {
			d.onFatal(d.err())
		}
	})
}

// fate is err, told only when OnFatal is over: a caller that ends the process on
// ErrDead must not overtake the exit code of OnFatal.
func (d *death) fate() error {
	err := d.err()
	if err != nil {
		d.declare(err) // waits for the first one
	}
	return err
}

// stop is for the engine's Fatalf, which must not return: the engine goes on
// after one that does, and loses acknowledged records. It kills the store. If
// OnFatal returns, it panics with an engineStop, which Apply understands and
// which anywhere else ends the process. During Open it parks the goroutine
// instead, with whatever locks it holds; Open reports the cause.
func (d *death) stop(cause error) {
	d.declare(cause)
	if d.early.Load() {
		select {}
	}
	panic(engineStop{cause})
}

// exitProcess is the default OnFatal. It waits for whoever reads stderr; a program
// that must not sets its own.
func exitProcess(log *slog.Logger) func(error) {
	return func(err error) {
		log.Error("store stopped, ending the process", "error", err)
		// The logger may be a silent one, and this must be seen.
		fmt.Fprintf(os.Stderr, "storage: %v\n", err)
		os.Exit(ExitCode)
	}
}

// engineStop is what death.stop panics with.
type engineStop struct{ cause error }

func (e engineStop) Error() string { return "engine stopped: " + e.cause.Error() }
