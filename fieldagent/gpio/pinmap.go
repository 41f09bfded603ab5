package gpio

import (
	"errors"
	"fmt"
	"slices"

	"github.com/apollo-11/apollo11/fieldagent/lines"
	"github.com/apollo-11/apollo11/wire"
)

// pinMap is a resolved pin map. It never changes: a reload makes a new one.
type pinMap struct {
	names  []string             // in the order of the configuration
	byName map[string]PinConfig // by the name that instructions use
	key    map[string]string    // name to the board's one name of the line
	byKey  map[string]PinConfig
	byLine map[wire.LineKey]string // the key by what stands for it on the wire
}

// resolveMap checks a pin map against a board. The error has all faults.
func resolveMap(board Board, pins []PinConfig) (*pinMap, error) {
	m := &pinMap{byName: map[string]PinConfig{}, key: map[string]string{}, byKey: map[string]PinConfig{}, byLine: map[wire.LineKey]string{}}
	var errs []error
	if len(pins) > MaxPins {
		errs = append(errs, fmt.Errorf("%d pins are too many, the limit is %d", len(pins), MaxPins))
	}
	for _, c := range pins {
		if err := m.add(board, c); err != nil {
			errs = append(errs, err)
		}
	}
	if err := errors.Join(errs...); err != nil {
		return nil, fmt.Errorf("pins: %w", err)
	}
	return m, nil
}

func (m *pinMap) add(board Board, c PinConfig) error {
	err := c.Check()
	key, lineErr := board.Resolve(c.line())
	_, twice := m.byName[c.Name]
	switch {
	case twice:
		err = errors.Join(err, fmt.Errorf("pin %q is listed twice: give each pin a name of its own", c.Name))
	case lineErr != nil:
		err = errors.Join(err, fmt.Errorf("pin %q: line: %w", c.Name, lineErr))
	case m.byLine[wire.LineOf(key)] != "" && m.byLine[wire.LineOf(key)] != key:
		err = errors.Join(err, fmt.Errorf("pin %q and line %s have the same number on the wire: use another line", c.Name, m.byLine[wire.LineOf(key)]))
	case m.byKey[key].Name != "":
		err = errors.Join(err, fmt.Errorf("pin %q is the same line as %q: list it once", c.Name, m.byKey[key].Name))
	}
	if err != nil {
		return err
	}
	m.names = append(m.names, c.Name)
	m.byName[c.Name], m.key[c.Name], m.byKey[key], m.byLine[wire.LineOf(key)] = c, key, c, key
	return nil
}

// keys lists the lines in a fixed order.
func (m *pinMap) keys() []string {
	keys := make([]string, 0, len(m.names))
	for _, n := range m.names {
		keys = append(keys, m.key[n])
	}
	slices.Sort(keys)
	return keys
}

// mapped reports whether there is a pin map at all.
func (m *pinMap) mapped() bool { return len(m.names) > 0 }

// resolve returns the name that instructions use for a pin, and its key at the
// board, if it may be used in this mode.
func (m *pinMap) resolve(board Board, name string, mode Mode) (shown, key string, err error) {
	if !m.mapped() {
		key, err = board.Resolve(name)
		return key, key, err
	}
	c, ok := m.byName[name]
	if !ok {
		return "", "", fmt.Errorf("%w; only pins of the pin map may be used", noSuchPin(name, m.names))
	}
	if mode == Output && c.Mode != Output {
		return "", "", fmt.Errorf("%s: %w: it is configured as an input", name, ErrUnsupported)
	}
	return name, m.key[name], nil
}

// shown is the name of a pin as others know it.
func (m *pinMap) shown(key string) string {
	if c, ok := m.byKey[key]; ok {
		return c.Name
	}
	return key
}

// lines is the map as the core of the owner wants it.
func (m *pinMap) lines() []lines.Line {
	var list []lines.Line
	for _, key := range m.keys() {
		list = append(list, m.byKey[key].coreLine(key))
	}
	return list
}

func (c PinConfig) coreLine(key string) lines.Line {
	l := lines.Line{Key: wire.LineOf(key), Output: c.Mode == Output, OnLoss: c.OnLoss == FallSafe, MaxOn: c.MaxOn}
	if c.Safe != nil {
		l.HasSafe, l.Safe = true, bool(*c.Safe)
	}
	return l
}
