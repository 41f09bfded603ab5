package gpio

import (
	"fmt"
	"slices"
	"sync"
	"time"
)

// SimOptions are the settings of the simulated board. The zero value is a board
// with GPIO0 to GPIO27, which go by their places on the header too (GPIO17 is P1_11),
// and no files.
type SimOptions struct {
	Names  []string // lines, by default GPIO0 to GPIO27 as on a 40-pin header
	Trace  string   // file that gets a line for every Set, empty for none
	Levels string   // file that holds the levels of now, empty for none
	// Any makes every name but a bare number a line, so that the pin map of a real
	// board can be tried out.
	Any bool
}

// header is where the lines of a 40-pin header are on it, by their number.
var header = [simPins]int{27, 28, 3, 5, 7, 29, 31, 26, 24, 21, 19, 23, 32, 33, 8, 10, 36, 11, 12, 35, 38, 40, 15, 16, 18, 22, 37, 13}

const (
	simPins = 28
	// maxRecorded bounds the actuations kept in memory; older ones are dropped.
	// The trace file has them all.
	maxRecorded = 1 << 16
)

// Sim is a simulated board. Beside Board it has what tests need: it records what
// was done to it, moves lines from outside, and fails on demand. It is safe for
// use by several goroutines.
//
// Level, Drive and the levels file speak of the lines themselves; actuations and
// the trace file of what was commanded, which with an active-low pin is the
// reverse.
type Sim struct {
	opts    SimOptions
	started time.Time
	aliases map[string]string // further names of lines

	mu     sync.Mutex // guards the fields below; a Sim has no I/O but its own files
	names  []string
	levels map[string]Level // of the lines
	flips  map[string]int
	open   map[string]*simPin
	done   []Actuation
	fault  func(pin string, level Level) error
	held   map[string]string // lines that another program has, and its name
}

var _ Board = (*Sim)(nil)

// NewSim returns a simulated board. All lines are low, or as the levels file says.
func NewSim(o SimOptions) (*Sim, error) {
	s := &Sim{opts: o, started: time.Now(), names: slices.Clone(o.Names), levels: map[string]Level{}, flips: map[string]int{},
		open: map[string]*simPin{}, held: map[string]string{}, aliases: map[string]string{}}
	if s.names == nil {
		for i := range simPins {
			s.names = append(s.names, fmt.Sprintf("GPIO%d", i))
			s.aliases[fmt.Sprintf("P1_%d", header[i])] = s.names[i]
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
	if o.Any {
		for n, level := range kept {
			s.levels[n] = level
		}
	}
	return s, nil
}

// Names implements Board.
func (s *Sim) Names() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.names)
}

// Resolve implements Board.
func (s *Sim) Resolve(name string) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if line := s.aliases[name]; line != "" {
		return line, nil
	}
	if s.opts.Any && name != "" && !bareNumber(name) || slices.Contains(s.names, name) {
		return name, nil
	}
	return "", noSuchPin(name, s.names)
}

// Open implements Board.
func (s *Sim) Open(name string, r Request) (Pin, error) {
	name, err := s.Resolve(name)
	if err != nil {
		return nil, err
	}
	p := &simPin{s: s, name: name, r: r}
	if err := s.take(p); err != nil {
		return nil, err
	}
	if r.Mode == Output && r.Initial != nil {
		if err := p.Set(*r.Initial, r.Cause); err != nil {
			_ = p.Close() // it has no error
			return nil, err
		}
	}
	return p, nil
}

func (s *Sim) take(p *simPin) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if who, ok := s.held[p.name]; ok {
		return fmt.Errorf("open %s: %w by %q", p.name, ErrBusy, who)
	}
	if s.open[p.name] != nil {
		return fmt.Errorf("open %s: %w by this process", p.name, ErrBusy)
	}
	s.open[p.name] = p
	return nil
}

// Hold gives a line to another program, which keeps it from being opened. An
// empty name frees it.
func (s *Sim) Hold(pin, by string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if by == "" {
		delete(s.held, pin)
		return
	}
	s.held[pin] = by
}

// Level returns the level of a line, whoever set it.
func (s *Sim) Level(pin string) Level {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.levels[pin]
}

// Flips returns how often a line has changed its level, whoever did it.
func (s *Sim) Flips(pin string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.flips[pin]
}

// Drive sets a line from outside, as a button or another program would. It is no
// actuation. An input that is watched reports the edge; an output differs from
// then on from what was commanded.
func (s *Sim) Drive(pin string, level Level) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.move(pin, level) {
		if p := s.open[pin]; p != nil && p.edges != nil {
			p.edges.add(p.logical(level))
		}
	}
}

// move reports whether the line has changed. mu is held.
func (s *Sim) move(pin string, level Level) bool {
	if s.levels[pin] == level {
		return false
	}
	s.levels[pin] = level
	s.flips[pin]++
	return true
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

// actuate carries a Set out: first the trace, then the line and the levels file.
func (s *Sim) actuate(a Actuation, line Level) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := appendTrace(s.opts.Trace, a); err != nil {
		return fmt.Errorf("%w: %w", ErrIO, err)
	}
	if len(s.done) == maxRecorded {
		s.done = slices.Delete(s.done, 0, maxRecorded/2)
	}
	s.done = append(s.done, a)
	s.move(a.Pin, line)
	if err := writeLevels(s.opts.Levels, s.levels); err != nil {
		return fmt.Errorf("%w: %w", ErrUnknown, err)
	}
	return nil
}
