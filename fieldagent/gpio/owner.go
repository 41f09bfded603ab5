package gpio

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/apollo-11/apollo11/fieldagent/lines"
	"github.com/apollo-11/apollo11/wire"
)

// Limits of a request to the owner. A pin takes microseconds; these only bound
// what happens when a driver hangs.
const (
	// handOver is how long a request waits for the owner to take it, if its
	// context allows that much.
	handOver = 2 * time.Second
	// answer is how long a request that was taken is waited for.
	answer = 2 * time.Second
	// maxWait is the longest time without a look at what is due: timers stand still
	// while a board sleeps, and what is due by then must not wait for another night.
	maxWait = time.Second
)

// Causes that the owner itself writes into the trace.
const (
	CauseStart   = "safe:start"
	CauseStop    = "safe:stop"
	CausePanic   = "safe:panic"
	CauseLoss    = "safe:loss"    // the gateway is lost, and the pin has on_loss: safe
	CauseReload  = "safe:reload"  // the pin has come into the pin map or has left it
	CauseReopen  = "safe:reopen"  // the line had gone and is there again
	CauseLocal   = "safe:local"   // the LOCAL switch was thrown
	CausePartner = "safe:partner" // another output goes to its safe level, and never with this one away from its own
	CauseOwed    = "safe:owed"    // it should have this level and could not be driven before
	// CauseLease comes before the cause of a lease that has ended.
	CauseLease = "safe:lease:"
)

// OwnerOptions are the settings of an owner.
type OwnerOptions struct {
	// Autonomy is how long the gateway may be unheard (Heard) before pins with
	// on_loss: safe go to their safe levels, 0 for ever.
	Autonomy time.Duration
	// Local is the input of the pin map that is high while somebody works at the board
	// by hand, empty for none.
	Local string
}

// Owner is the only user of a board's pins.
type Owner struct {
	board    Board
	opts     OwnerOptions
	epoch    time.Time
	slept    time.Duration          // of the machine, at epoch
	pins     atomic.Pointer[pinMap] // replaced by Run only
	requests chan *request
	urgent   chan *request // served before those
	notices  notices       // what nobody waits for
	leaves   chan *watcher
	edges    chan Edge     // from the open pins
	started  chan struct{} // closed when the pins are open and safe
	done     chan struct{} // closed when no request will be served any more
	ends     chan LeaseEnd
	changed  chan struct{} // holds one: view has changed
	pulses   atomic.Uint64 // the number of the last one

	// Replaced by Run only.
	foreign atomic.Pointer[[]Foreign]
	view    atomic.Pointer[view]

	// Touched by Run only.
	core     *lines.Core
	deadline time.Duration       // of the core
	open     map[string]*openPin // by key
	missing  map[string]error    // by key: lines of the map that somebody else has
	waiting  map[uint64]chan lines.End
	unmapped map[wire.LineKey]string // keys of lines that were driven without a map
	lookAt   time.Time               // when outputs are read back next
	handAt   time.Time               // when the LOCAL switch is read next
	driveErr error                   // of the first drive of a request that failed
	moved    bool                    // view may be out of date
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
func NewOwner(board Board, pins []PinConfig, opts OwnerOptions) (*Owner, error) {
	m, err := resolveMap(board, pins)
	if err != nil {
		return nil, err
	}
	if c, ok := m.byName[opts.Local]; opts.Local != "" && (!ok || c.Mode != Input) {
		return nil, fmt.Errorf("the LOCAL switch %q is no input of the pin map", opts.Local)
	}
	o := &Owner{board: board, opts: opts, epoch: time.Now(), slept: slept(),
		requests: make(chan *request), urgent: make(chan *request), leaves: make(chan *watcher), edges: make(chan Edge, edgeBuffer),
		started: make(chan struct{}), done: make(chan struct{}), ends: make(chan LeaseEnd, maxEnds), changed: make(chan struct{}, 1),
		open: map[string]*openPin{}, missing: map[string]error{}, waiting: map[uint64]chan lines.End{}, unmapped: map[wire.LineKey]string{}}
	o.notices.wake = make(chan struct{}, 1)
	o.core = lines.New(lines.Config{Autonomy: opts.Autonomy, Lines: m.lines(), Open: !m.mapped()}, o.now())
	o.pins.Store(m)
	o.foreign.Store(&[]Foreign{})
	o.look()
	return o, nil
}

// now is the time of the core: it goes on while the machine sleeps.
func (o *Owner) now() time.Duration { return time.Since(o.epoch) + slept() - o.slept }

// Run opens the pins of the map, those with a safe level at that level, serves
// requests until ctx ends, drives the safe levels and closes all pins. It is
// called once. A line that somebody else has is left to them, and taken when it is
// free (Missing); if a pin can't be had for another reason it returns at once, with
// all faults. A panic in it drives the safe levels before it goes on.
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
	o.mindHands(time.Now())
	o.step(lines.Tick{})
	o.look()
	close(o.started)
	timer := time.NewTimer(o.next())
	defer timer.Stop()
	for ctx.Err() == nil {
		select { // what lets go of a load is served before anything else
		case r := <-o.urgent:
			r.reply <- r.serve()
		default:
			o.turn(ctx, timer.C)
		}
		// A stream of requests must not keep what is due from being done.
		o.due()
		timer.Reset(o.next())
	}
	err := o.stopSafe()
	o.look()
	return errors.Join(err, o.closeAll())
}

// turn waits for one thing to do, and does it.
func (o *Owner) turn(ctx context.Context, timer <-chan time.Time) {
	select {
	case r := <-o.urgent:
		r.reply <- r.serve()
	case r := <-o.requests:
		o.take()
		r.reply <- r.serve()
	case <-o.notices.wake:
	case e := <-o.edges:
		o.deliver(e)
	case w := <-o.leaves:
		o.leave(w)
	case <-timer:
	case <-ctx.Done():
	}
}

// due does what is due, and brings what is told up to date.
func (o *Owner) due() {
	o.take()
	now := time.Now()
	o.mindHands(now)
	if o.deadline <= o.now() {
		o.step(lines.Tick{})
	}
	o.lookBack(now)
	if o.moved {
		o.look()
	}
}

// next is the time until due has something to do.
func (o *Owner) next() time.Duration {
	now := time.Now()
	wait := time.Hour // once in a while does no harm
	if o.deadline != lines.NoDeadline {
		wait = min(maxWait, o.deadline-o.now())
	}
	if o.looks() {
		wait = min(wait, o.lookAt.Sub(now))
	}
	if o.opts.Local != "" {
		wait = min(wait, o.handAt.Sub(now))
	}
	return max(wait, 0)
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

// Started is closed when the pins of the map are open and at their safe levels.
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

// Line returns what stands for the line of a pin on the wire, whatever the line is
// called. It needs no Run.
func (o *Owner) Line(name string) (wire.LineKey, error) {
	_, key, err := o.pins.Load().resolve(o.board, name, Look)
	if err != nil {
		return 0, err
	}
	return wire.LineOf(key), nil
}

// Get returns the commanded level of an output, or the level of an input.
func (o *Owner) Get(ctx context.Context, name string) (Level, error) {
	return o.ask(ctx, o.requests, "get "+name, func() (Level, error) {
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

// ask hands a request to Run and waits for the answer, both within limits.
func (o *Owner) ask(ctx context.Context, to chan *request, what string, do func() (Level, error)) (Level, error) {
	if err := ctx.Err(); err != nil {
		return Low, fmt.Errorf("%s: %w: %w", what, ErrNotDone, err)
	}
	r := &request{ctx: ctx, do: do, reply: make(chan reply, 1)}
	waiting := time.NewTimer(handOver)
	defer waiting.Stop()
	select {
	case to <- r: // Run is at it now
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
