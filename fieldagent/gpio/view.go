package gpio

import (
	"maps"
	"slices"

	"github.com/apollo-11/apollo11/fieldagent/lines"
	"github.com/apollo-11/apollo11/wire"
)

// view is what others may know of the pins. It never changes: Run makes a new one.
type view struct {
	hands   lines.Hands
	throws  uint64                // of the LOCAL switch
	levels  map[string]wire.Level // by name
	missing map[string]error      // by name
}

// Changed is signalled when a level, a hold, the LOCAL switch or the pin map has
// changed. It holds one signal.
func (o *Owner) Changed() <-chan struct{} { return o.changed }

func (o *Owner) signal() {
	select {
	case o.changed <- struct{}{}:
	default:
	}
}

// look brings the view up to date.
func (o *Owner) look() {
	o.moved = false
	m := o.pins.Load()
	v := &view{levels: map[string]wire.Level{}, missing: map[string]error{}}
	for key, c := range m.byKey {
		if l := o.core.Level(wire.LineOf(key)); l != wire.LevelUnknown {
			v.levels[c.Name] = l
		}
	}
	if !m.mapped() {
		for key := range o.open {
			if l := o.core.Level(wire.LineOf(key)); l != wire.LevelUnknown {
				v.levels[key] = l
			}
		}
	}
	for key, err := range o.missing {
		v.missing[m.shown(key)] = err
	}
	old := o.view.Load()
	if old != nil {
		v.hands, v.throws = old.hands, old.throws
	}
	o.view.Store(v)
	if old == nil || !maps.Equal(old.levels, v.levels) || len(old.missing) != len(v.missing) {
		o.signal()
	}
}

// Levels are those of outputs whose level is known, by name.
func (o *Owner) Levels() map[string]wire.Level { return maps.Clone(o.view.Load().levels) }

// Missing are pins of the map that somebody else has, by name, and who. They are taken
// when they are free.
func (o *Owner) Missing() map[string]error { return maps.Clone(o.view.Load().missing) }

// Traits are what the gateway must know of some pins, in their order. Without a map
// every pin may become an output.
func (o *Owner) Traits(names []string) []wire.PinTraits {
	m, v := o.pins.Load(), o.view.Load()
	list := make([]wire.PinTraits, 0, len(names))
	for _, name := range names {
		var t wire.PinTraits
		if _, key, err := m.resolve(o.board, name, Look); err == nil {
			t.Line = wire.LineOf(key)
		}
		c := m.byName[name]
		level := v.levels[name]
		t.MaxOnMs = uint64(c.MaxOn.Milliseconds())
		for flag, set := range map[wire.PinFlags]bool{
			wire.PinOutput: c.Mode == Output || !m.mapped(), wire.PinHasSafe: c.Safe != nil,
			wire.PinSafeHigh: c.Safe != nil && *c.Safe == High, wire.PinOnLoss: c.OnLoss == FallSafe,
			wire.PinCommanded: level != wire.LevelUnknown, wire.PinHeld: level == wire.LevelHeld,
			wire.PinHigh: level == wire.LevelHigh || level == wire.LevelHeld && *c.Safe == High,
		} {
			if set {
				t.Flags |= flag
			}
		}
		list = append(list, t)
	}
	return list
}

// Without lists the outputs of the map that have no safe level: nothing lets go of
// them.
func (o *Owner) Without() []string {
	m := o.pins.Load()
	return slices.DeleteFunc(slices.Clone(m.names), func(n string) bool { return m.byName[n].Mode != Output || m.byName[n].Safe != nil })
}
