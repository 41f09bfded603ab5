package gpio

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/apollo-11/apollo11/fieldagent/lines"
	"github.com/apollo-11/apollo11/wire"
)

// Reload replaces the pin map, all of it or nothing. Lines that stay as they are
// are not touched, whatever becomes of the others, and neither are those whose
// name, safe level or limits change. New lines are opened at their safe levels;
// lines that leave the map are driven to their safe levels and given back; lines
// that are to be used in another way (direction, polarity, bias, debounce) are
// closed and opened anew. An error means that the old map is still in force.
//
// An owner that was started without a map can't be given one, nor the reverse.
func (o *Owner) Reload(ctx context.Context, pins []PinConfig) error {
	m, err := resolveMap(o.board, pins)
	if err != nil {
		return err
	}
	if m.mapped() != o.Mapped() {
		return errors.New("pins: to begin or to end using a pin map restart the agent")
	}
	if c := m.byName[o.opts.Local]; o.opts.Local != "" && c.Mode != Input {
		return fmt.Errorf("pins: the LOCAL switch %q must stay an input of the map", o.opts.Local)
	}
	_, err = o.ask(ctx, o.requests, "reload the pin map", func() (Level, error) { return Low, o.reload(m) })
	return err
}

// reload changes over to a new map.
func (o *Owner) reload(m *pinMap) error {
	old := o.pins.Load()
	var added, changed, gone []string
	for _, key := range m.keys() {
		switch c, ok := old.byKey[key]; {
		case !ok:
			added = append(added, key)
		case !c.sameLine(m.byKey[key]):
			changed = append(changed, key)
		}
	}
	for _, key := range old.keys() {
		if _, ok := m.byKey[key]; !ok {
			gone = append(gone, key)
		}
	}
	if err := o.keepsSafe(m, old); err != nil {
		return err
	}
	// First what is most likely to be refused: lines that somebody else may hold.
	if err := o.swap(m, added); err != nil {
		return err
	}
	// What leaves or is closed goes to its old safe level first: nobody would look
	// after it any more. It must work, otherwise a load might be left on.
	err := o.quiet(old, slices.Concat(gone, changed))
	if err == nil {
		err = o.swap(m, changed)
	}
	if err != nil {
		return errors.Join(err, o.restore(added))
	}
	var errs []error
	for _, key := range gone {
		if p := o.open[key]; p != nil {
			errs = append(errs, o.release(p))
		}
	}
	o.remap(m, slices.Concat(added, changed))
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("the new pin map is in force, but a line was not given back: %w", err)
	}
	return nil
}

// remap puts a map into force. What runs stays at its line.
func (o *Owner) remap(m *pinMap, fresh []string) {
	in := lines.Remap{Lines: m.lines()}
	for _, key := range fresh {
		in.Fresh = append(in.Fresh, wire.LineOf(key))
	}
	o.pins.Store(m)
	o.step(in)
	o.readHands()
	o.moved = true
	o.signal()
}

// quiet drives lines that are about to be closed to their safe levels. What does not
// work is tried again.
func (o *Owner) quiet(m *pinMap, keys []string) error {
	var errs []error
	for _, key := range keys {
		if o.missing[key] != nil {
			continue // somebody else has it
		}
		o.driveErr = nil
		o.step(lines.Quiet{Lines: []wire.LineKey{wire.LineOf(key)}})
		if o.driveErr != nil {
			errs = append(errs, fmt.Errorf("pin %q can't be set to its safe level before it is closed: %w", m.byKey[key].Name, o.driveErr))
		}
	}
	return errors.Join(errs...)
}

// keepsSafe refuses a map that takes the safe level from a pin that still has to
// go there.
func (o *Owner) keepsSafe(m, old *pinMap) error {
	var errs []error
	open := o.core.Unsettled()
	for _, key := range m.keys() {
		c, was := m.byKey[key], old.byKey[key]
		if due, ok := open[wire.LineOf(key)]; ok && c.Safe == nil && was.Safe != nil && c.sameLine(was) {
			errs = append(errs, fmt.Errorf("pin %q is on until %s and then goes to its safe level: set it to that level, then take it out of the map",
				c.Name, time.Now().Add(due-o.now()).Format(time.RFC3339)))
		}
	}
	return errors.Join(errs...)
}

// swap opens lines that are new or used in another way. If one can't be had it
// undoes the others.
func (o *Owner) swap(m *pinMap, keys []string) error {
	var errs []error
	for _, key := range keys {
		if p := o.open[key]; p != nil {
			if err := o.release(p); err != nil {
				errs = append(errs, fmt.Errorf("close pin %q: %w", m.byKey[key].Name, err))
			}
		}
		if _, err := o.hold(key, m.byKey[key].Request(CauseReload)); err != nil {
			errs = append(errs, fmt.Errorf("pin %q: %w", m.byKey[key].Name, err))
		}
	}
	if len(errs) > 0 {
		errs = append(errs, o.restore(keys))
	}
	return errors.Join(errs...)
}

// restore brings lines back to what they are in the map that is in force.
func (o *Owner) restore(keys []string) error {
	var errs []error
	for _, key := range keys {
		if p := o.open[key]; p != nil {
			errs = append(errs, o.release(p))
		}
		if c, ok := o.pins.Load().byKey[key]; ok {
			if _, err := o.hold(key, c.Request(CauseReload)); err != nil {
				errs = append(errs, fmt.Errorf("pin %q, back to what it was: %w", c.Name, err))
			}
		}
	}
	return errors.Join(errs...)
}
