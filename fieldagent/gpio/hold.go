package gpio

import (
	"errors"
	"fmt"
	"maps"
	"slices"
)

// pin returns the open pin and opens it, or opens it again in another mode, if
// need be. Looking is possible in any mode.
func (o *Owner) pin(key string, mode Mode) (*openPin, error) {
	if p := o.open[key]; p != nil {
		if p.mode == mode || mode == Look {
			return p, nil
		}
		if err := o.release(p); err != nil {
			return nil, err
		}
	}
	r := Request{Mode: mode, Consumer: Consumer}
	if c, ok := o.pins.Load().byKey[key]; ok {
		r = c.Request(CauseReopen)
	}
	return o.take(key, r)
}

// take opens a pin.
func (o *Owner) take(key string, r Request) (*openPin, error) {
	p, err := o.board.Open(key, r)
	if err != nil {
		return nil, err
	}
	opened := &openPin{Pin: p, key: key, mode: r.Mode, commanded: r.Initial}
	o.open[key] = opened
	return opened, nil
}

// release closes a pin; whoever watches it is told by the end of the channel.
func (o *Owner) release(p *openPin) error {
	delete(o.open, p.key)
	o.forget(p.key)
	return errors.Join(o.endWatch(p), p.Close())
}

// openMapped opens every pin of the map and returns all errors.
func (o *Owner) openMapped() error {
	var errs []error
	m := o.pins.Load()
	for _, key := range m.keys() {
		c := m.byKey[key]
		if _, err := o.take(key, c.Request(CauseStart)); err != nil {
			errs = append(errs, fmt.Errorf("pin %q: %w", c.Name, err))
		}
	}
	return errors.Join(errs...)
}

// drive sets an output and remembers it.
func (o *Owner) drive(p *openPin, level Level, cause string) error {
	if err := p.Set(level, cause); err != nil {
		return errors.Join(err, o.dropIfGone(p, err))
	}
	p.commanded = &level
	o.forget(p.key)
	return nil
}

// dropIfGone closes a line whose chip has disappeared, so that the next request
// opens it again if it has come back.
func (o *Owner) dropIfGone(p *openPin, err error) error {
	if !errors.Is(err, ErrGone) {
		return nil
	}
	return o.release(p)
}

// withSafe lists the pins that have a safe level.
func (o *Owner) withSafe() []string {
	m := o.pins.Load()
	return slices.DeleteFunc(m.keys(), func(key string) bool { return m.byKey[key].Safe == nil })
}

// safe drives one pin to its safe level.
func (o *Owner) safe(key, cause string) error {
	p, err := o.pin(key, Output)
	if err == nil {
		err = o.drive(p, *o.pins.Load().byKey[key].Safe, cause)
	}
	return err
}

// panicSafe drives the safe levels while a panic is going on. One pin that
// panics again does not keep the others from it, and its error has nowhere to
// go: the panic itself says what broke.
func (o *Owner) panicSafe() {
	for _, key := range o.withSafe() {
		func() {
			defer func() { _ = recover() }()
			_ = o.safe(key, CausePanic)
		}()
	}
}

func (o *Owner) closeAll() error {
	var errs []error
	for _, key := range slices.Sorted(maps.Keys(o.open)) {
		errs = append(errs, o.release(o.open[key]))
	}
	return errors.Join(errs...)
}
