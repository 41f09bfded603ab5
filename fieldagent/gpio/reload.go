package gpio

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
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
	_, err = o.ask(ctx, "reload the pin map", func() (Level, error) { return Low, o.reload(m) })
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
	if err := keepsSafe(m, old, o.falls); err != nil {
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
	o.pins.Store(m)
	o.adopt(m)
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("the new pin map is in force, but a line was not given back: %w", err)
	}
	return nil
}

// quiet drives lines that are about to be closed to their safe levels.
func (o *Owner) quiet(m *pinMap, keys []string) error {
	var errs []error
	for _, key := range keys {
		c := m.byKey[key]
		if c.Safe == nil {
			continue
		}
		if err := o.safe(key, CauseReload); err != nil {
			errs = append(errs, fmt.Errorf("pin %q can't be set to its safe level before it is closed: %w", c.Name, err))
			continue
		}
		o.endFall(key, *c.Safe, EndReplaced)
	}
	return errors.Join(errs...)
}

// keepsSafe refuses a map that takes the safe level from a pin that still has to
// go there.
func keepsSafe(m, old *pinMap, falls map[string]*fall) error {
	var errs []error
	for _, key := range m.keys() {
		if c := m.byKey[key]; falls[key] != nil && c.Safe == nil && c.sameLine(old.byKey[key]) {
			errs = append(errs, fmt.Errorf("pin %q is on until %s and then goes to its safe level: set it to that level, then take it out of the map",
				c.Name, falls[key].due.Format(time.RFC3339)))
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
		if _, err := o.take(key, m.byKey[key].Request(CauseReload)); err != nil {
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
			if _, err := o.take(key, c.Request(CauseReload)); err != nil {
				errs = append(errs, fmt.Errorf("pin %q, back to what it was: %w", c.Name, err))
			}
		}
	}
	return errors.Join(errs...)
}

// adopt brings what falls back by itself in line with the new limits.
func (o *Owner) adopt(m *pinMap) {
	for _, key := range m.keys() {
		c, p, f := m.byKey[key], o.open[key], o.falls[key]
		if p == nil || p.commanded == nil || c.Safe == nil || *p.commanded == *c.Safe || c.MaxOn == 0 {
			continue
		}
		limit := time.Now().Add(c.MaxOn)
		switch {
		case f == nil:
			o.falls[key] = &fall{due: limit, level: *p.commanded, cause: CauseReload, trace: CauseLease + CauseReload, why: EndExpired}
		case f.due.After(limit):
			f.due = limit
		}
	}
}
