package gpio

import (
	"errors"
	"fmt"
	"slices"
	"syscall"

	"periph.io/x/conn/v3/gpio"
	"periph.io/x/conn/v3/pin"
	"periph.io/x/host/v3/gpioioctl"
)

// chipOf returns the chip on which a line can be requested by its name, or nil:
// the library finds the lines of a set by name only.
func chipOf(line *gpioioctl.GPIOLine) *gpioioctl.GPIOChip {
	if line.Name() == "" {
		return nil
	}
	for _, chip := range gpioioctl.Chips {
		if chip.ByName(line.Name()) == line {
			return chip
		}
	}
	return nil
}

// openLine requests a character device line as a set of one. An output without an
// initial level is requested at its first Set: the request would move it.
func (b *Periph) openLine(chip *gpioioctl.GPIOChip, line *gpioioctl.GPIOLine, r Request) (Pin, error) {
	p := &setPin{b: b, chip: chip, line: line, r: r}
	if r.Bias == NoPull {
		return nil, fmt.Errorf("open %s: %w: this back end can't turn a pull resistor off: write gpio: %s", line.Name(), ErrUnsupported, BoardChardev)
	}
	switch {
	case r.Mode != Output:
		if err := p.request(gpioioctl.LineInput); err != nil {
			return nil, err
		}
	case r.Initial != nil:
		if err := mayGlitch(line, r); err != nil {
			return nil, fmt.Errorf("open %s: %w", line.Name(), err)
		}
		if err := p.Set(*r.Initial, r.Cause); err != nil {
			return nil, errors.Join(err, p.Close())
		}
	}
	return p, nil
}

// setPin is a line set of one line.
type setPin struct {
	b    *Periph
	chip *gpioioctl.GPIOChip
	line *gpioioctl.GPIOLine
	r    Request

	set       *gpioioctl.LineSet // nil until the line is requested
	commanded *Level
}

func (p *setPin) request(dir gpioioctl.LineDir) error {
	if p.r.Mode == Look {
		dir = gpioioctl.LineDirNotSet // the kernel then leaves it as it is
	}
	set, err := p.chip.LineSetFromConfig(&gpioioctl.LineSetConfig{Lines: []string{p.line.Name()}, DefaultDirection: dir, DefaultPull: pulls[p.r.Bias]})
	if err != nil {
		return classify("open "+p.line.Name(), p.line, err)
	}
	p.set = set
	return nil
}

// bits translates between the line and what is said of it.
func (p *setPin) bits(l Level) gpio.GPIOValue {
	if l != Level(p.r.ActiveLow) {
		return 1
	}
	return 0
}

// Set implements Pin.
func (p *setPin) Set(level Level, _ string) error {
	if p.r.Mode != Output {
		return fmt.Errorf("set %s: %w: it is open as %s", p.line.Name(), ErrUnsupported, p.r.Mode)
	}
	if p.set == nil {
		if p.bits(level) == 1 {
			p.b.log.Warn("output is low for a moment when it is first set high; gpio: chardev does not do this", "pin", p.line.Name())
		}
		if err := p.request(gpioioctl.LineOutput); err != nil {
			return err
		}
	}
	if err := p.set.Out(p.bits(level), 1); err != nil {
		return classify("set "+p.line.Name(), p.line, err)
	}
	p.commanded = &level
	return nil
}

// Get implements Pin.
func (p *setPin) Get() (Level, error) {
	if p.r.Mode != Output {
		return p.Actual()
	}
	if p.commanded == nil {
		return Low, fmt.Errorf("get %s: %w", p.line.Name(), ErrNoLevel)
	}
	return *p.commanded, nil
}

// Actual implements ActualPin.
func (p *setPin) Actual() (Level, error) {
	v, err := p.set.Read(1)
	if err != nil {
		return Low, classify("get "+p.line.Name(), p.line, err)
	}
	return (v&1 == 1) != p.r.ActiveLow, nil
}

// Close implements Pin.
func (p *setPin) Close() error {
	if p.set == nil {
		return nil
	}
	if err := p.set.Close(); err != nil {
		return classify("close "+p.line.Name(), p.line, err)
	}
	return nil
}

// isOutput reports whether a pin is an output now. Asking is safe only while
// this process has not used the pin: an unused character device line says that
// it does not know, and the others look without touching.
func isOutput(p gpio.PinIO) bool {
	f, ok := p.(pin.PinFunc)
	return ok && slices.Contains([]pin.Func{gpio.OUT, gpio.OUT_LOW, gpio.OUT_HIGH}, f.Func())
}

// holdDescriptorZero fills descriptor 0 if something has closed it. A line whose
// descriptor were 0 would count as not open.
func holdDescriptorZero() error {
	var st syscall.Stat_t
	if err := syscall.Fstat(0, &st); !errors.Is(err, syscall.EBADF) {
		return err
	}
	fd, err := syscall.Open("/dev/null", syscall.O_RDONLY|syscall.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("open /dev/null as descriptor 0: %w", err)
	}
	if fd != 0 {
		// Somebody else was faster, which serves as well.
		return syscall.Close(fd)
	}
	return nil
}
