package gpio

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/apollo-11/apollo11/fieldagent/lines"
	"github.com/apollo-11/apollo11/wire"
	"github.com/apollo-11/apollo11/wire/mutant"
)

// pulseGrace is how long the end of a pulse is waited for beyond its time. The owner
// goes on trying; whoever waits says that nobody knows.
const pulseGrace = 10 * time.Second

// Drive is a level that an output is to have.
type Drive struct {
	Pin   string
	Level Level
	// Cause goes into the trace, and back to whoever waits for an end: a token.
	Cause string
	// Order is the number of the instruction in the order at its line, 0 for none.
	Order uint64
	// For is how long the level holds, then the pin goes to its safe level, which it
	// needs; 0 for as long as the pin map allows. The end comes at its time, whatever
	// becomes of whoever asked, unless a later command takes its place.
	For time.Duration
	// Check is asked by the owner right before the pin moves: an error keeps it where
	// it is. nil for no question.
	Check func() error
}

// Do drives a pin. The error wraps ErrNotDone if it is certain that nothing happened,
// and ErrUnknown if the pin did not answer in time; what is refused because of what
// goes on at the board says so (ErrSuperseded, ErrHeldSafe, ErrLocal, ErrLost,
// ErrBusy).
func (o *Owner) Do(ctx context.Context, d Drive) error {
	_, err := o.ask(ctx, o.requests, "set "+d.Pin, func() (Level, error) {
		return d.Level, o.want(d, lines.Want{For: d.For})
	})
	return err
}

// PulseEnd says how a pulse has ended.
type PulseEnd struct {
	Why   wire.LeaseEnd // LeaseExpired for its own time
	Level Level         // of the pin now
	Took  time.Duration
}

// Pulse sets a pin for a time, and then to the other level. It returns when the pulse
// has ended. If ctx is cancelled the pulse ends at once, at the safe level if the pin
// has one; a time limit of ctx does not cut it. ErrUnknown means that its end can't be
// driven: the owner goes on trying, and tells the end like that of a lease.
func (o *Owner) Pulse(ctx context.Context, d Drive, width time.Duration) (PulseEnd, error) {
	id := o.pulses.Add(1)
	ended := make(chan lines.End, 4)
	if _, err := o.ask(ctx, o.requests, "pulse "+d.Pin, func() (Level, error) {
		o.waiting[id] = ended
		err := o.want(d, lines.Want{Width: width, ID: id})
		if err != nil {
			delete(o.waiting, id)
		}
		return d.Level, err
	}); err != nil {
		o.notices.add(func() { delete(o.waiting, id) }) // if it has begun all the same
		return PulseEnd{}, err
	}
	begun := time.Now()
	limit := time.NewTimer(width + pulseGrace)
	defer limit.Stop()
	cancelled := ctx.Done()
	for {
		select {
		case e := <-ended:
			if e.Why != wire.LeaseFailed {
				return PulseEnd{Why: e.Why, Level: Level(e.Level), Took: time.Since(begun)}, nil
			}
		case <-cancelled:
			cancelled = nil
			if !errors.Is(ctx.Err(), context.DeadlineExceeded) {
				o.Cancel(d.Cause)
				limit.Reset(pulseGrace)
			}
		case <-limit.C:
			o.notices.add(func() { delete(o.waiting, id) })
			return PulseEnd{}, fmt.Errorf("end the pulse of %s: %w: go and look; it is tried on", d.Pin, ErrUnknown)
		case <-o.done:
			select {
			case e := <-ended: // it came before the end
				return PulseEnd{Why: e.Why, Level: Level(e.Level), Took: time.Since(begun)}, nil
			default:
				return PulseEnd{}, fmt.Errorf("end the pulse of %s: %w: the owner of the pins broke off", d.Pin, ErrUnknown)
			}
		}
	}
}

// want asks the core, and drives. d says what is common to all requests.
func (o *Owner) want(d Drive, w lines.Want) error {
	_, key, err := o.pins.Load().resolve(o.board, d.Pin, Output)
	if err != nil {
		return err
	}
	if w.For != 0 {
		if err := mayLease(o.pins.Load().byKey[key], d); err != nil {
			return err
		}
	}
	w.Line, w.Level, w.Order, w.Cause = wire.LineOf(key), bool(d.Level), d.Order, d.Cause
	return o.wantLine(key, w, d.Check)
}

// wantLine asks the core for a line.
func (o *Owner) wantLine(key string, w lines.Want, check func() error) error {
	o.readHands() // as it is now, not as it was a moment ago
	if check != nil && !mutant.On(mutant.LateAtPin) {
		if err := check(); err != nil {
			return fmt.Errorf("%w: %w", ErrNotDone, err)
		}
	}
	if !o.pins.Load().mapped() {
		o.unmapped[w.Line] = key
	}
	o.driveErr = nil
	out := o.step(w)
	if r := out.Refused; r.Reason != lines.NotRefused {
		return o.refused(r)
	}
	return o.driveErr
}

// mayLease refuses a lease that the pin map does not allow.
func mayLease(c PinConfig, d Drive) error {
	switch {
	case c.Safe == nil:
		return fmt.Errorf("%w: give pin %s a safe level in agent.yaml", ErrUnsupported, d.Pin)
	case d.For < MinHold || d.For > MaxHold:
		return fmt.Errorf("%w: a lease of %v is out of range: give it %v to %v", ErrUnsupported, d.For, MinHold, MaxHold)
	case c.MaxOn > 0 && d.For > c.MaxOn && d.Level != *c.Safe:
		return fmt.Errorf("%w: %w: %v is longer than max_on %v of pin %s", ErrUnsupported, ErrTooLong, d.For, c.MaxOn, d.Pin)
	}
	return nil
}

// refused is the error for a refusal of the core. Nothing was done then.
func (o *Owner) refused(r lines.Refusal) error {
	switch r.Reason {
	case lines.NotOutput:
		return fmt.Errorf("%w: it is configured as an input", ErrUnsupported)
	case lines.NoSafe:
		return fmt.Errorf("%w: it has no safe level in agent.yaml", ErrUnsupported)
	case lines.TooLong:
		return fmt.Errorf("%w: %w: at most %v", ErrUnsupported, ErrTooLong, r.Until)
	case lines.Superseded:
		return fmt.Errorf("%w: %w: number %d", ErrNotDone, ErrSuperseded, r.By)
	case lines.HeldSafe:
		return fmt.Errorf("%w: %w", ErrNotDone, ErrHeldSafe)
	case lines.ByHand:
		return fmt.Errorf("%w: %w: the LOCAL switch is on", ErrNotDone, ErrLocal)
	case lines.HandsDoubt:
		return fmt.Errorf("%w: %w, maybe: the LOCAL switch can't be read", ErrNotDone, ErrLocal)
	case lines.Lost:
		return fmt.Errorf("%w: %w", ErrNotDone, ErrLost)
	case lines.Busy:
		return fmt.Errorf("%w: it is in a pulse (token %s) for another %v: wait, or cancel that first", ErrBusy, r.Cause,
			(r.Until - o.now()).Round(time.Millisecond))
	case lines.Stopping:
		return fmt.Errorf("%w: the agent stops", ErrNotDone)
	case lines.NoLine:
		return fmt.Errorf("%w: the line has left the pin map", ErrNoSuchPin)
	}
	panic("bug: refused as " + r.Reason.String())
}

// Safe is what drives outputs to their safe levels: it waits for nothing but the pins.
type Safe struct {
	// Lines are those to drive, nil for all that have a safe level. One that the map
	// does not have is left out.
	Lines []wire.LineKey
	Cause string
	Order uint64
	// Unmarked says that it leaves no mark, Ahead what lines.Want says of it, Hold that
	// the lines are held afterwards.
	Unmarked, Ahead, Hold bool
	Check                 func() error
}

// SafeDone says what was driven, by name.
type SafeDone struct {
	Pins    []string // they have their safe levels
	Newer   []string // something newer has begun there: not touched
	Without []string // outputs without a safe level: not moved
}

// Safe drives outputs to their safe levels, all that it can. It is served before other
// requests. The error has those that did not work, or why nothing was done.
func (o *Owner) Safe(ctx context.Context, s Safe) (done SafeDone, err error) {
	result := make(chan SafeDone, 1)
	_, err = o.ask(ctx, o.urgent, "drive the safe levels", func() (Level, error) {
		d, err := o.safeNow(s)
		result <- d
		return Low, err
	})
	select {
	case done = <-result:
	default: // not done, or nobody knows
	}
	return done, err
}

func (o *Owner) safeNow(s Safe) (done SafeDone, err error) {
	m := o.pins.Load()
	keys := o.outputs()
	if s.Lines != nil {
		keys = slices.DeleteFunc(keys, func(key string) bool { return !slices.Contains(s.Lines, wire.LineOf(key)) })
	}
	if len(keys) == 0 {
		return done, fmt.Errorf("%w: the pin map has no such output", ErrNoSuchPin)
	}
	var errs, newer []error
	for _, key := range keys {
		name := m.shown(key)
		if m.byKey[key].Safe == nil {
			done.Without = append(done.Without, name)
			continue
		}
		err := o.wantLine(key, lines.Want{Line: wire.LineOf(key), Safe: true, Order: s.Order, Cause: s.Cause, Unmarked: s.Unmarked, Ahead: s.Ahead, Hold: s.Hold}, s.Check)
		switch {
		case err == nil:
			done.Pins = append(done.Pins, name)
		case errors.Is(err, ErrSuperseded):
			done.Newer = append(done.Newer, name)
			newer = append(newer, fmt.Errorf("%s: %w", name, err))
		default:
			errs = append(errs, fmt.Errorf("%s: %w", name, err))
		}
	}
	switch {
	case len(errs) > 0: // whatever is newer elsewhere, these must be driven
		return done, errors.Join(errs...)
	case len(done.Pins) > 0:
		return done, nil // what is newer there stands
	case len(newer) == 0:
		return done, fmt.Errorf("%w: no safe level in agent.yaml", ErrUnsupported)
	}
	return done, errors.Join(newer...)
}

// outputs lists the outputs of the map.
func (o *Owner) outputs() []string {
	m := o.pins.Load()
	return slices.DeleteFunc(m.keys(), func(key string) bool { return m.byKey[key].Mode != Output })
}

// Release lets lines be set again that are held at their safe levels, nil for all, but
// for those that something newer than order holds; 0 for whatever holds them. It says
// which were.
func (o *Owner) Release(ctx context.Context, keys []wire.LineKey, order uint64) (pins []string, err error) {
	result := make(chan []string, 1)
	_, err = o.ask(ctx, o.requests, "release", func() (Level, error) {
		var were []string
		m := o.pins.Load()
		held := slices.DeleteFunc(m.keys(), func(key string) bool { return !o.core.Held(wire.LineOf(key)) })
		o.step(lines.Release{Lines: keys, Order: order})
		for _, key := range held {
			if !o.core.Held(wire.LineOf(key)) {
				were = append(were, m.shown(key))
			}
		}
		o.moved = true
		result <- were
		return Low, nil
	})
	select {
	case pins = <-result:
	default:
	}
	return pins, err
}

// Stop drives all safe levels, ends pulses where there is none, and from then on
// refuses every other level: the agent stops.
func (o *Owner) Stop(ctx context.Context) error {
	_, err := o.ask(ctx, o.urgent, "drive the safe levels", func() (Level, error) {
		o.driveErr = nil
		o.step(lines.Stop{})
		return Low, o.driveErr
	})
	return err
}

// CutPulse is a pulse that the end of an earlier process has cut.
type CutPulse struct {
	Pin  string // as it was called then
	Line wire.LineKey
	Off  Level // that it should have ended at
}

// Seed is what an earlier process knew: marks, holds, releases, and pulses at outputs without a
// safe level that it has not ended. It is given before anything is driven.
func (o *Owner) Seed(ctx context.Context, known lines.Seed, pulses []CutPulse) error {
	_, err := o.ask(ctx, o.urgent, "take over what an earlier process knew", func() (Level, error) {
		o.driveErr = nil
		o.step(known)
		for _, p := range pulses {
			if !o.pins.Load().mapped() {
				// Nothing knows its line but the name that it went by.
				key, err := o.board.Resolve(p.Pin)
				if err != nil || wire.LineOf(key) != p.Line {
					continue
				}
				o.unmapped[p.Line] = key
			}
			o.step(lines.Leftover{Line: p.Line, Off: bool(p.Off)})
		}
		o.moved = true
		return Low, o.driveErr
	})
	return err
}
