package gpio

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/apollo-11/apollo11/fieldagent/lines"
	"github.com/apollo-11/apollo11/wire"
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
	return o.hold(key, r)
}

// hold opens a pin.
func (o *Owner) hold(key string, r Request) (*openPin, error) {
	p, err := o.board.Open(key, r)
	if err != nil {
		return nil, err
	}
	opened := &openPin{Pin: p, key: key, mode: r.Mode, commanded: r.Initial}
	o.open[key] = opened
	if o.missing[key] != nil {
		delete(o.missing, key)
		o.moved = true
	}
	return opened, nil
}

// release closes a pin; whoever watches it is told by the end of the channel.
func (o *Owner) release(p *openPin) error {
	delete(o.open, p.key)
	o.forget(p.key)
	return errors.Join(o.endWatch(p), p.Close())
}

// openMapped opens every pin of the map and returns all errors. A line that somebody
// else has is no error as long as there are others to serve: it is not fought for, and
// keeps nobody down.
func (o *Owner) openMapped() error {
	var errs, taken []error
	m := o.pins.Load()
	for _, key := range m.keys() {
		c := m.byKey[key]
		_, err := o.hold(key, c.Request(CauseStart))
		switch {
		case errors.Is(err, ErrBusy):
			o.missing[key] = err
			taken = append(taken, fmt.Errorf("pin %q: %w", c.Name, err))
			o.step(lines.Gone{Line: wire.LineOf(key)})
		case err != nil:
			errs = append(errs, fmt.Errorf("pin %q: %w", c.Name, err))
		}
	}
	if len(taken) > 0 && len(taken) == len(m.names) {
		errs = append(errs, taken...) // all: that is another agent, or another board's map
	}
	return errors.Join(errs...)
}

// seek opens lines that somebody else had, if they are free by now.
func (o *Owner) seek() {
	for _, key := range slices.Sorted(maps.Keys(o.missing)) {
		c, ok := o.pins.Load().byKey[key]
		if !ok {
			delete(o.missing, key)
			o.moved = true
			continue
		}
		if _, err := o.hold(key, c.Request(CauseReopen)); err == nil {
			o.step(lines.Reopened{Line: wire.LineOf(key)})
		}
	}
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

// panicSafe drives the safe levels while a panic is going on. One pin that
// panics again does not keep the others from it, and its error has nowhere to
// go: the panic itself says what broke.
func (o *Owner) panicSafe() {
	rest := map[wire.LineKey]bool{}
	func() {
		defer func() { _ = recover() }()
		rest = o.core.Rest()
	}()
	for _, line := range slices.Sorted(maps.Keys(rest)) {
		func() {
			defer func() { _ = recover() }()
			if p, err := o.pin(o.keyOf(line), Output); err == nil {
				_ = o.drive(p, Level(rest[line]), CausePanic)
			}
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
