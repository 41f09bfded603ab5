package gpio

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
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
	CauseStart = "safe:start"
	CauseStop  = "safe:stop"
)

// PinConfig fixes what a pin is used for. Pins need no configuration: those that
// have none become outputs when they are first set and inputs when they are
// first read, and have no safe level.
type PinConfig struct {
	Name string
	Mode Mode
	// Safe is the level to which an output is driven when the agent starts and
	// stops and when it is told to, nil for none.
	Safe *Level
}

// Owner is the only user of a board's pins.
type Owner struct {
	board    Board
	configs  map[string]PinConfig // by resolved name
	requests chan *request
	done     chan struct{} // closed when no request will be served any more

	pins map[string]*openPin // by resolved name; touched by Run only
}

type openPin struct {
	Pin
	mode Mode
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

// NewOwner checks the configured names and returns an owner that serves once Run
// is called.
func NewOwner(board Board, pins []PinConfig) (*Owner, error) {
	o := &Owner{board: board, configs: map[string]PinConfig{}, requests: make(chan *request),
		done: make(chan struct{}), pins: map[string]*openPin{}}
	var errs []error
	for _, c := range pins {
		name, err := board.Resolve(c.Name)
		switch {
		case err != nil:
		case c.Mode != Output && c.Mode != Input:
			err = fmt.Errorf("pin %q: it must be an output or an input", c.Name)
		case c.Mode == Input && c.Safe != nil:
			err = fmt.Errorf("pin %q: an input can't have a safe level", c.Name)
		case o.configs[name].Name != "":
			err = fmt.Errorf("pin %q is the same as %q: configure it once", c.Name, o.configs[name].Name)
		}
		if err != nil {
			errs = append(errs, err)
			continue
		}
		o.configs[name] = c
	}
	if err := errors.Join(errs...); err != nil {
		return nil, fmt.Errorf("pins: %w", err)
	}
	return o, nil
}

// Run drives the safe levels, serves requests until ctx ends, drives the safe
// levels again and closes all pins. It is called once. Callers of Set must be
// done before: a pulse that is cut off can't put its pin back.
func (o *Owner) Run(ctx context.Context) error {
	defer close(o.done)
	if err := o.driveSafe(CauseStart); err != nil {
		return errors.Join(fmt.Errorf("pins at start: %w", err), o.closeAll())
	}
	for {
		select {
		case r := <-o.requests:
			r.reply <- r.serve()
		case <-ctx.Done():
			var err error
			if err = o.driveSafe(CauseStop); err != nil {
				err = fmt.Errorf("pins at stop: %w", err)
			}
			return errors.Join(err, o.closeAll())
		}
	}
}

// serve does what was asked unless it is too late for it.
func (r *request) serve() reply {
	if err := r.ctx.Err(); err != nil {
		return reply{err: fmt.Errorf("%w: %w", ErrNotDone, err)}
	}
	level, err := r.do()
	return reply{level, err}
}

// Names lists the pins of the board.
func (o *Owner) Names() []string { return o.board.Names() }

// Resolve returns the one name of a pin if it may be used in this mode. It does
// not touch the pin and needs no Run.
func (o *Owner) Resolve(name string, mode Mode) (string, error) {
	resolved, err := o.board.Resolve(name)
	if err != nil {
		return "", err
	}
	if c, ok := o.configs[resolved]; ok && mode == Output && c.Mode == Input {
		return "", fmt.Errorf("%s: %w: it is configured as an input", name, ErrUnsupported)
	}
	return resolved, nil
}

// Set drives a pin and remembers its level. cause is written to the trace. The
// error wraps ErrNotDone if it is certain that nothing happened, and ErrUnknown
// if the pin did not answer in time.
func (o *Owner) Set(ctx context.Context, name string, level Level, cause string) error {
	name, err := o.Resolve(name, Output)
	if err != nil {
		return err
	}
	_, err = o.ask(ctx, "set "+name, func() (Level, error) {
		p, err := o.pin(name, Output)
		if err != nil {
			return Low, err
		}
		return level, p.Set(level, cause)
	})
	return err
}

// Get returns the commanded level of an output, or the level of an input.
func (o *Owner) Get(ctx context.Context, name string) (Level, error) {
	name, err := o.Resolve(name, Input)
	if err != nil {
		return Low, err
	}
	return o.ask(ctx, "get "+name, func() (Level, error) {
		if p := o.pins[name]; p != nil {
			return p.Get()
		}
		mode := Input
		if c, ok := o.configs[name]; ok {
			mode = c.Mode
		}
		p, err := o.pin(name, mode)
		if err != nil {
			return Low, err
		}
		return p.Get()
	})
}

// Safe drives every pin that has a safe level to it. It tries all of them and
// returns all errors.
func (o *Owner) Safe(ctx context.Context, cause string) error {
	_, err := o.ask(ctx, "drive the safe levels", func() (Level, error) { return Low, o.driveSafe(cause) })
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
		if a.err != nil {
			return Low, fmt.Errorf("%s: %w", what, a.err)
		}
		return a.level, nil
	case <-working.C:
		return Low, fmt.Errorf("%s: %w: no answer for %v: look at the pin, then restart the agent", what, ErrUnknown, answer)
	}
}

// pin returns the open pin and opens it, or opens it again in another mode, if
// need be.
func (o *Owner) pin(name string, mode Mode) (Pin, error) {
	p := o.pins[name]
	if p != nil && p.mode == mode {
		return p, nil
	}
	if p != nil {
		delete(o.pins, name)
		if err := p.Close(); err != nil {
			return nil, err
		}
	}
	opened, err := o.board.Open(name, mode)
	if err != nil {
		return nil, err
	}
	o.pins[name] = &openPin{opened, mode}
	return opened, nil
}

func (o *Owner) driveSafe(cause string) error {
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(o.configs)) {
		c := o.configs[name]
		if c.Safe == nil {
			continue
		}
		p, err := o.pin(name, Output)
		if err == nil {
			err = p.Set(*c.Safe, cause)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

func (o *Owner) closeAll() error {
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(o.pins)) {
		errs = append(errs, o.pins[name].Close())
	}
	clear(o.pins)
	return errors.Join(errs...)
}
