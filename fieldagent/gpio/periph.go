package gpio

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"periph.io/x/conn/v3/gpio"
	"periph.io/x/conn/v3/gpio/gpioreg"
	"periph.io/x/host/v3"
	"periph.io/x/host/v3/gpioioctl"
)

// Periph is the board that periph.io finds. It is for the memory-mapped pins of a
// Raspberry Pi 0 to 4; everywhere else Chardev does the same better. What it must
// be handled with:
//
//   - Its own objects for character device lines turn an output into an input with
//     a pull-up when they are read, or only asked for their function. So a line is
//     requested as a set of one line of ours, which does not do that; lines without
//     a name can't be, and are never read while they are outputs.
//   - Character device lines are low for a moment when they become outputs that are
//     to be high. With an initial level that is refused, otherwise Set warns.
//   - Taking a pin as an input changes its direction. One that nobody has
//     configured is only looked at, where that can be done.
//   - There is no debouncing, and edges can't be told apart: both are refused.
type Periph struct {
	log *slog.Logger

	mu     sync.Mutex
	driven map[string]bool // pins that this process has made outputs
}

var _ Board = (*Periph)(nil)

// OpenPeriph loads the drivers. The error of a board without usable pins names
// the files and the group that are missing.
//
// Call it early and once: while the drivers load, a duplicate chip makes the
// library close descriptor 0, which is then filled with the null device.
func OpenPeriph(log *slog.Logger) (*Periph, error) {
	state, err := host.Init()
	if err := holdDescriptorZero(); err != nil {
		return nil, err
	}
	if err != nil {
		return nil, fmt.Errorf("load gpio drivers: %w", err)
	}
	for _, f := range state.Failed {
		log.Warn("gpio driver did not load", "driver", f.D.String(), "err", f.Err)
	}
	p := newPeriph(log)
	if len(p.Names()) == 0 {
		return nil, fmt.Errorf("%w: the gpio devices can be opened but show no lines that the drivers know (a kernel before 5.10 is too old); use %q for simulated pins",
			ErrUnsupported, BoardSim)
	}
	return p, nil
}

func newPeriph(log *slog.Logger) *Periph {
	return &Periph{log: log, driven: map[string]bool{}}
}

// Names implements Board: first the pins with a name, then the unnamed lines as
// CHIP:LINE.
func (b *Periph) Names() []string {
	var names []string
	for _, p := range gpioreg.All() {
		names = append(names, p.Name())
	}
	for _, chip := range gpioioctl.Chips {
		for _, line := range chip.Lines() {
			if gpioreg.ByName(line.Name()) == nil {
				names = append(names, lineName(chip, line.Number()))
			}
		}
	}
	return names
}

func lineName(chip *gpioioctl.GPIOChip, line int) string {
	return chip.Label() + ":" + strconv.Itoa(line)
}

// Resolve implements Board. A pin can be given by its name (GPIO17), by an alias
// (P1_11), or as the label of its chip and the number of its line
// (pinctrl-bcm2835:17).
func (b *Periph) Resolve(name string) (string, error) {
	p, resolved, err := find(name)
	if err != nil {
		return "", err
	}
	if p == nil {
		return "", noSuchPin(name, b.Names())
	}
	return resolved, nil
}

// find returns the pin with this name and the one name it goes by, or nil.
func find(name string) (gpio.PinIO, string, error) {
	if name == "" || strings.Trim(name, "0123456789") == "" {
		return nil, "", nil
	}
	if p := gpioreg.ByName(name); p != nil {
		if alias, ok := p.(gpio.RealPin); ok {
			p = alias.Real()
		}
		return p, p.Name(), nil
	}
	i := strings.LastIndexByte(name, ':')
	if i < 0 {
		return nil, "", nil
	}
	line, err := strconv.ParseUint(name[i+1:], 10, 16)
	if err != nil || strconv.FormatUint(line, 10) != name[i+1:] {
		return nil, "", nil
	}
	return findLine(name, name[:i], int(line))
}

// findLine returns a line of the one chip with this label. If another driver
// knows the line by its name, that pin is meant: it must not be opened twice.
func findLine(name, label string, number int) (gpio.PinIO, string, error) {
	var found *gpioioctl.GPIOChip
	for _, chip := range gpioioctl.Chips {
		if chip.Label() != label {
			continue
		}
		if found != nil {
			return nil, "", fmt.Errorf("%w %q: the chips %s and %s have the same label: use the name of the line",
				ErrNoSuchPin, name, found.Name(), chip.Name())
		}
		found = chip
	}
	if found == nil || number >= found.LineCount() {
		return nil, "", nil
	}
	line := found.ByNumber(number)
	if p := gpioreg.ByName(line.Name()); p != nil {
		return p, p.Name(), nil
	}
	return line, name, nil
}

// Open implements Board.
func (b *Periph) Open(name string, r Request) (Pin, error) {
	p, resolved, err := find(name)
	if err != nil {
		return nil, err
	}
	if p == nil {
		return nil, noSuchPin(name, b.Names())
	}
	if r.Debounce > 0 {
		return nil, fmt.Errorf("open %s: %w: this back end can't debounce: write gpio: %s", name, ErrUnsupported, BoardChardev)
	}
	if line, ok := p.(*gpioioctl.GPIOLine); ok {
		if chip := chipOf(line); chip != nil {
			return b.openLine(chip, line, r)
		}
	}
	pin := &periphPin{b: b, p: p, name: resolved, r: r}
	if r.Mode != Output {
		if err := pin.takeInput(); err != nil {
			return nil, errors.Join(err, pin.Close())
		}
		return pin, nil
	}
	if err := pin.takeOutput(); err != nil {
		return nil, errors.Join(err, pin.Close())
	}
	if fast, ok := p.(fastReader); ok {
		return fastPin{pin, fast}, nil
	}
	return pin, nil
}

// periphPin is an open pin of periph.io.
type periphPin struct {
	b    *Periph
	p    gpio.PinIO
	name string
	r    Request

	look      func() gpio.Level // reads an input
	commanded *Level
}

// fastReader is what memory-mapped pins have: it reads a register and changes
// nothing.
type fastReader interface{ FastRead() gpio.Level }

// fastPin is an open pin that can be read at any time.
type fastPin struct {
	*periphPin
	fast fastReader
}

// Actual implements ActualPin.
func (p fastPin) Actual() (Level, error) { return p.logical(p.fast.FastRead()), nil }

// logical translates between the line and what is said of it, either way.
func (p *periphPin) logical(l gpio.Level) Level { return Level(l) != Level(p.r.ActiveLow) }

// takeOutput gives an output its initial level. Memory-mapped pins get it before
// their direction, so that nothing clicks.
func (p *periphPin) takeOutput() error {
	if p.r.Bias != AsIs {
		return fmt.Errorf("open %s: %w: this back end can't give an output a pull resistor: write gpio: %s", p.name, ErrUnsupported, BoardChardev)
	}
	if p.r.Initial == nil {
		return nil
	}
	if err := mayGlitch(p.p, p.r); err != nil {
		return fmt.Errorf("open %s: %w", p.name, err)
	}
	return p.Set(*p.r.Initial, p.r.Cause)
}

// mayGlitch refuses an initial level that a character device line would only
// have after a moment of the other one.
func mayGlitch(p gpio.PinIO, r Request) error {
	if _, ok := p.(*gpioioctl.GPIOLine); ok && r.Initial != nil && *r.Initial != Level(r.ActiveLow) {
		return fmt.Errorf("%w: the line would be low for a moment before it is high: write gpio: %s", ErrUnsupported, BoardChardev)
	}
	return nil
}

// takeInput prepares a pin for reading. One that is only looked at keeps its
// direction if it is an output that an earlier process has left behind.
func (p *periphPin) takeInput() error {
	p.look = p.p.Read
	if p.r.Mode == Look && !p.b.wasDriven(p.name) && isOutput(p.p) {
		fast, ok := p.p.(fastReader)
		if !ok {
			return fmt.Errorf("read %s: %w: it is an output of another program: set it first, or free it", p.name, ErrBusy)
		}
		p.look = fast.FastRead
		return nil
	}
	if err := p.p.In(pulls[p.r.Bias], gpio.NoEdge); err != nil {
		return classify("read "+p.name, p.p, err)
	}
	return nil
}

// pulls are the library's words, by Bias.
var pulls = [...]gpio.Pull{AsIs: gpio.PullNoChange, NoPull: gpio.Float, PullUp: gpio.PullUp, PullDown: gpio.PullDown}

// Set implements Pin.
func (p *periphPin) Set(level Level, _ string) error {
	if p.r.Mode != Output {
		return fmt.Errorf("set %s: %w: it is open as %s", p.name, ErrUnsupported, p.r.Mode)
	}
	p.b.markDriven(p.name) // before the attempt: it may fail halfway
	if err := p.p.Out(gpio.Level(p.logical(gpio.Level(level)))); err != nil {
		return classify("set "+p.name, p.p, err)
	}
	p.commanded = &level
	return nil
}

// Get implements Pin.
func (p *periphPin) Get() (Level, error) {
	if p.r.Mode != Output {
		return p.logical(p.look()), nil
	}
	if p.commanded == nil {
		return Low, fmt.Errorf("get %s: %w", p.name, ErrNoLevel)
	}
	return *p.commanded, nil
}

// Close implements Pin. Only character device lines can be given back.
func (p *periphPin) Close() error {
	if line, ok := p.p.(*gpioioctl.GPIOLine); ok {
		line.Close()
	}
	return nil
}

func (b *Periph) wasDriven(name string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.driven[name]
}

func (b *Periph) markDriven(name string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.driven[name] = true
}

// classify turns a library error into one of ours. The library keeps only the
// text of the errno.
func classify(doing string, p gpio.PinIO, err error) error {
	is := func(errnos ...syscall.Errno) bool {
		return slices.ContainsFunc(errnos, func(e syscall.Errno) bool { return strings.Contains(err.Error(), e.Error()) })
	}
	kind := ErrIO
	switch {
	case is(syscall.EBUSY):
		kind = ErrBusy
		if line, ok := p.(*gpioioctl.GPIOLine); ok && line.Consumer() != "" {
			return fmt.Errorf("%s: %w by %q: %w", doing, kind, line.Consumer(), err)
		}
	case is(syscall.EPERM, syscall.EACCES), strings.Contains(err.Error(), "not initialized"):
		return fmt.Errorf("%s: %w: add the agent's user to the group that owns the gpio devices: %w", doing, ErrNotPermitted, err)
	case is(syscall.EINVAL, syscall.ENOTSUP, syscall.ENXIO):
		kind = ErrUnsupported
	}
	return fmt.Errorf("%s: %w: %w", doing, kind, err)
}
