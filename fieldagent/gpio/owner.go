package gpio

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"
)

// Limits of a request to the owner. A pin takes microseconds; these only bound
// what happens when a driver hangs.
const (
	// handOver is how long a request waits for the owner to take it, if its
	// context allows that much.
	handOver = 2 * time.Second
	// answer is how long a request that was taken is waited for.
	answer = 2 * time.Second
)

// Causes that the owner itself writes into the trace.
const (
	CauseStart  = "safe:start"
	CauseStop   = "safe:stop"
	CausePanic  = "safe:panic"
	CauseLoss   = "safe:loss"   // the gateway is lost, and the pin has on_loss: safe
	CauseReload = "safe:reload" // the pin has come into the pin map or has left it
	CauseReopen = "safe:reopen" // the line had gone and is there again
	// CauseLease comes before the cause of a lease that has ended.
	CauseLease = "safe:lease:"
)

// Owner is the only user of a board's pins.
type Owner struct {
	board    Board
	pins     atomic.Pointer[pinMap] // replaced by Run only
	requests chan *request
	leaves   chan *watcher
	edges    chan Edge     // from the open pins
	started  chan struct{} // closed when the pins are open and safe
	done     chan struct{} // closed when no request will be served any more
	ends     chan LeaseEnd
	foreign  atomic.Pointer[[]Foreign] // replaced by Run only

	// Touched by Run only.
	open   map[string]*openPin // by key
	falls  map[string]*fall    // by key: what goes back to its safe level by itself
	lookAt time.Time           // when outputs are read back next
}

// openPin is a pin in use. The key of a pin is its name at the board.
type openPin struct {
	Pin
	key       string
	mode      Mode
	commanded *Level // of an output, nil as long as it was never set
	watch     *watch // of an input, nil as long as nobody watches
}

// request is one thing to do with the pins. Run sends exactly one answer.
type request struct {
	ctx   context.Context
	do    func() (Level, error)
	reply chan reply // holds one, so that Run never waits for a caller
}

type reply struct {
	level Level
	err   error
}

// NewOwner resolves the pin map and returns an owner that serves once Run is
// called. The error names everything that is wrong with the map. Without a map
// any pin of the board may be used: it becomes an output when it is first set,
// is otherwise only looked at, and has no safe level.
func NewOwner(board Board, pins []PinConfig) (*Owner, error) {
	m, err := resolveMap(board, pins)
	if err != nil {
		return nil, err
	}
	o := &Owner{board: board, requests: make(chan *request), leaves: make(chan *watcher), edges: make(chan Edge, edgeBuffer),
		started: make(chan struct{}), done: make(chan struct{}), ends: make(chan LeaseEnd, maxEnds),
		open: map[string]*openPin{}, falls: map[string]*fall{}}
	o.pins.Store(m)
	o.foreign.Store(&[]Foreign{})
	return o, nil
}

// Run opens the pins of the map, those with a safe level at that level, serves
// requests until ctx ends, drives the safe levels and closes all pins. It is
// called once. If a pin of the map can't be had it returns at once, with all
// faults. A panic in it drives the safe levels before it goes on. Callers of Set
// must be done before ctx ends: a pulse that is cut off can't put its pin back.
func (o *Owner) Run(ctx context.Context) error {
	defer o.finish()
	defer func() {
		if r := recover(); r != nil {
			o.panicSafe()
			panic(r)
		}
	}()
	if err := o.openMapped(); err != nil {
		return errors.Join(fmt.Errorf("pins at start: %w", err), o.closeAll())
	}
	close(o.started)
	timer := time.NewTimer(o.next())
	defer timer.Stop()
	for {
		select {
		case r := <-o.requests:
			r.reply <- r.serve()
		case e := <-o.edges:
			o.deliver(e)
		case w := <-o.leaves:
			o.leave(w)
		case <-timer.C:
		case <-ctx.Done():
			var err error
			if err = o.stopSafe(); err != nil {
				err = fmt.Errorf("pins at stop: %w", err)
			}
			return errors.Join(err, o.closeAll())
		}
		// A stream of requests must not keep what is due from being done.
		o.due()
		timer.Reset(o.next())
	}
}

// finish lets everybody who waits for the owner go on.
func (o *Owner) finish() {
	close(o.done)
	for _, p := range o.open { // only after a panic
		if p.watch != nil {
			p.watch.close()
		}
	}
	close(o.ends)
}

// Started is closed when all pins of the map are open and at their safe levels.
// It stays open if Run could not start.
func (o *Owner) Started() <-chan struct{} { return o.started }

// serve does what was asked unless it is too late for it.
func (r *request) serve() reply {
	if err := r.ctx.Err(); err != nil {
		return reply{err: fmt.Errorf("%w: %w", ErrNotDone, err)}
	}
	level, err := r.do()
	return reply{level, err}
}

// Mapped reports whether there is a pin map, so that only its pins may be used.
func (o *Owner) Mapped() bool { return o.pins.Load().mapped() }

// Config returns the configuration of a pin of the map.
func (o *Owner) Config(name string) (PinConfig, bool) {
	c, ok := o.pins.Load().byName[name]
	return c, ok
}

// Names lists the pins that may be used: those of the map, or of the board.
func (o *Owner) Names() []string {
	if m := o.pins.Load(); m.mapped() {
		return append([]string(nil), m.names...)
	}
	return o.board.Names()
}

// Resolve returns the one name of a pin if it may be used in this mode. It does
// not touch the pin and needs no Run.
func (o *Owner) Resolve(name string, mode Mode) (string, error) {
	shown, _, err := o.pins.Load().resolve(o.board, name, mode)
	return shown, err
}

// Set drives a pin and remembers its level. cause is written to the trace. The
// error wraps ErrNotDone if it is certain that nothing happened, and ErrUnknown
// if the pin did not answer in time. A running lease of the pin is replaced; a
// pin with max_on gets its limit anew.
func (o *Owner) Set(ctx context.Context, name string, level Level, cause string) error {
	_, err := o.ask(ctx, "set "+name, func() (Level, error) {
		_, key, err := o.pins.Load().resolve(o.board, name, Output)
		if err != nil {
			return Low, err
		}
		return level, o.set(key, level, cause, o.limit(key, level), false)
	})
	return err
}

// Get returns the commanded level of an output, or the level of an input.
func (o *Owner) Get(ctx context.Context, name string) (Level, error) {
	return o.ask(ctx, "get "+name, func() (Level, error) {
		m := o.pins.Load()
		_, key, err := m.resolve(o.board, name, Look)
		if err != nil {
			return Low, err
		}
		mode := Look
		if c, ok := m.byKey[key]; ok {
			mode = c.Mode
		}
		p, err := o.pin(key, mode)
		if err != nil {
			return Low, err
		}
		level, err := p.Get()
		return level, errors.Join(err, o.dropIfGone(p, err))
	})
}

// Safe drives every pin that has a safe level to it. It tries all of them and
// returns all errors.
func (o *Owner) Safe(ctx context.Context, cause string) error {
	_, err := o.ask(ctx, "drive the safe levels", func() (Level, error) {
		return Low, o.fallBack(o.withSafe(), cause, EndReplaced)
	})
	return err
}

// Loss drives the pins that have on_loss: safe. What does not work is tried again
// until it does.
func (o *Owner) Loss(ctx context.Context) error {
	_, err := o.ask(ctx, "drive the safe levels after the loss of the gateway", func() (Level, error) {
		var keys []string
		for _, key := range o.withSafe() {
			if o.pins.Load().byKey[key].OnLoss == FallSafe {
				keys = append(keys, key)
			}
		}
		return Low, o.fallBack(keys, CauseLoss, EndLoss)
	})
	return err
}

// ask hands a request to Run and waits for the answer, both within limits.
func (o *Owner) ask(ctx context.Context, what string, do func() (Level, error)) (Level, error) {
	if err := ctx.Err(); err != nil {
		return Low, fmt.Errorf("%s: %w: %w", what, ErrNotDone, err)
	}
	r := &request{ctx: ctx, do: do, reply: make(chan reply, 1)}
	waiting := time.NewTimer(handOver)
	defer waiting.Stop()
	select {
	case o.requests <- r: // Run is at it now
	case <-o.done:
		return Low, fmt.Errorf("%s: %w: the pins are closed", what, ErrNotDone)
	case <-ctx.Done():
		return Low, fmt.Errorf("%s: %w: %w", what, ErrNotDone, ctx.Err())
	case <-waiting.C:
		return Low, fmt.Errorf("%s: %w: another pin has been stuck for %v: restart the agent", what, ErrNotDone, handOver)
	}
	// The context is not looked at any more: what was begun is known within
	// microseconds, and its outcome is worth the wait.
	working := time.NewTimer(answer)
	defer working.Stop()
	select {
	case a := <-r.reply:
		return a.named(what)
	case <-working.C:
		return Low, fmt.Errorf("%s: %w: no answer for %v: look at the pin, then restart the agent", what, ErrUnknown, answer)
	case <-o.done:
	}
	select {
	case a := <-r.reply: // it came before the end
		return a.named(what)
	default:
		return Low, fmt.Errorf("%s: %w: the owner of the pins broke off: look at the pin", what, ErrUnknown)
	}
}

// named adds what was asked for to an error.
func (r reply) named(what string) (Level, error) {
	if r.err != nil {
		return Low, fmt.Errorf("%s: %w", what, r.err)
	}
	return r.level, nil
}
