package gpio

import (
	"fmt"
	"slices"
	"sync"
	"time"
)

// SimOptions are the settings of the simulated board. The zero value is a board
// with GPIO0 to GPIO27 and no files.
type SimOptions struct {
	Names  []string // pins, by default GPIO0 to GPIO27 as on a 40-pin header
	Trace  string   // file that gets a line for every Set, empty for none
	Levels string   // file that holds the levels of now, empty for none
}

const (
	simPins = 28
	// maxRecorded bounds the actuations kept in memory; older ones are dropped.
	// The trace file has them all.
	maxRecorded = 1 << 16
)

// Sim is a simulated board. Beside Board it has what tests need: it records what
// was done to it, moves inputs, and fails on demand. It is safe for use by
// several goroutines.
type Sim struct {
	names []string
	opts  SimOptions

	mu     sync.Mutex // guards the fields below; a Sim has no I/O but its own files
	levels map[string]Level
	open   map[string]bool
	done   []Actuation
	fault  func(pin string, level Level) error
}

var _ Board = (*Sim)(nil)

// NewSim returns a simulated board. All pins are low, or as the levels file says.
func NewSim(o SimOptions) (*Sim, error) {
	s := &Sim{names: slices.Clone(o.Names), opts: o, levels: map[string]Level{}, open: map[string]bool{}}
	if s.names == nil {
		for i := range simPins {
			s.names = append(s.names, fmt.Sprintf("GPIO%d", i))
		}
	}
	kept, err := readKeptLevels(o.Levels)
	if err != nil {
		return nil, err
	}
	for _, n := range s.names {
		if _, ok := s.levels[n]; ok {
			return nil, fmt.Errorf("simulated board: pin %q is named twice", n)
		}
		s.levels[n] = kept[n]
	}
	return s, nil
}

// Names implements Board.
func (s *Sim) Names() []string { return slices.Clone(s.names) }

// Resolve implements Board. Simulated pins have one name each.
func (s *Sim) Resolve(name string) (string, error) {
	if !slices.Contains(s.names, name) {
		return "", noSuchPin(name, s.names)
	}
	return name, nil
}

// Open implements Board.
func (s *Sim) Open(name string, mode Mode) (Pin, error) {
	if _, err := s.Resolve(name); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open[name] {
		return nil, fmt.Errorf("open %s: %w by this process", name, ErrBusy)
	}
	s.open[name] = true
	return &simPin{s: s, name: name, mode: mode}, nil
}

// Level returns the level of a pin, whoever set it.
func (s *Sim) Level(pin string) Level {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.levels[pin]
}

// Drive sets a pin from outside, as a button or a hand would. It is no actuation.
func (s *Sim) Drive(pin string, level Level) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.levels[pin] = level
}

// Actuations returns every Set so far, the oldest first, at most the last 65536.
func (s *Sim) Actuations() []Actuation {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.done)
}

// Fail sets a function that is asked before every Set; if it returns an error,
// Set does nothing and returns that. It may block. nil ends it.
func (s *Sim) Fail(f func(pin string, level Level) error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fault = f
}

type simPin struct {
	s         *Sim
	name      string
	mode      Mode
	set       bool
	commanded Level
}

// Set implements Pin: first the trace, then the level and the levels file.
func (p *simPin) Set(level Level, cause string) error {
	if p.mode != Output {
		return fmt.Errorf("set %s: %w: it is open as %s", p.name, ErrUnsupported, p.mode)
	}
	p.s.mu.Lock()
	fault := p.s.fault
	p.s.mu.Unlock()
	if fault != nil {
		if err := fault(p.name, level); err != nil {
			return fmt.Errorf("set %s: %w", p.name, err)
		}
	}
	if err := p.s.actuate(Actuation{At: time.Now().UnixNano(), Pin: p.name, Level: level, Cause: cause}); err != nil {
		return fmt.Errorf("set %s: %w", p.name, err)
	}
	p.set, p.commanded = true, level
	return nil
}

func (s *Sim) actuate(a Actuation) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := appendTrace(s.opts.Trace, a); err != nil {
		return fmt.Errorf("%w: %w", ErrIO, err)
	}
	if len(s.done) == maxRecorded {
		s.done = slices.Delete(s.done, 0, maxRecorded/2)
	}
	s.done = append(s.done, a)
	s.levels[a.Pin] = a.Level
	if err := writeLevels(s.opts.Levels, s.levels); err != nil {
		return fmt.Errorf("%w: %w", ErrUnknown, err)
	}
	return nil
}

// Get implements Pin.
func (p *simPin) Get() (Level, error) {
	if p.mode == Input {
		return p.s.Level(p.name), nil
	}
	if !p.set {
		return Low, fmt.Errorf("get %s: %w", p.name, ErrNoLevel)
	}
	return p.commanded, nil
}

// Close implements Pin.
func (p *simPin) Close() error {
	p.s.mu.Lock()
	defer p.s.mu.Unlock()
	delete(p.s.open, p.name)
	return nil
}
