package gpio

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"unsafe"
)

// Chardev is the board as the kernel's character devices show it. A line is held
// exclusively while it is open, its first level comes together with its
// direction, and an output can be read without disturbing it.
//
// A line is named by the label of its chip and its offset (pinctrl-bcm2835:17) or
// by its own name (GPIO17). Which chip has which label is looked up at every
// opening, because chips may come and go and their files be numbered anew.
type Chardev struct {
	k kernel

	found  []chip
	closed error // chips that may not be opened, and why; nil if there are none
}

var _ Board = (*Chardev)(nil)

// chip is a gpio chip with what it says of itself.
type chip struct {
	path  string
	name  string // gpiochipN: not stable
	label string
	lines []string // the names of the lines, "" for none
}

// OpenChardev lists the lines of this machine. The error of a machine without any
// names the files and the group that are missing.
func OpenChardev() (*Chardev, error) { return openChardev(thisKernel()) }

func openChardev(k kernel) (*Chardev, error) {
	b := &Chardev{k: k}
	if err := b.scan(); err != nil {
		return nil, err
	}
	return b, nil
}

// scan reads what all chips say of themselves and their lines. One that can't be
// opened does not keep the others from being used.
func (b *Chardev) scan() error {
	paths, err := b.k.chips()
	if err != nil {
		return fmt.Errorf("list gpio chips: %w", err)
	}
	var all []chip
	var errs []error
	for _, path := range paths {
		c, err := b.readChip(path)
		switch {
		case err != nil:
			errs = append(errs, err)
		case !slices.ContainsFunc(all, func(o chip) bool { return o.name == c.name }): // not a link to one that is known
			all = append(all, c)
		}
	}
	b.closed = errors.Join(errs...)
	switch {
	case len(all) == 0 && b.closed != nil:
		return b.closed
	case len(all) == 0:
		return noChips(devices)
	}
	slices.SortFunc(all, func(a, b chip) int { return cmp.Or(cmp.Compare(a.label, b.label), cmp.Compare(a.name, b.name)) })
	b.found = all
	return nil
}

// readChip opens a chip and lists its lines.
func (b *Chardev) readChip(path string) (c chip, err error) {
	d, c, err := b.openChip(path)
	if err != nil {
		return c, err
	}
	defer func() { err = errors.Join(err, d.Close()) }()
	for i := range c.lines {
		info, err := lineInfo(d, i)
		if err != nil {
			return c, oldKernel(path, err)
		}
		c.lines[i] = text(info.name)
	}
	return c, nil
}

// openChip opens a device file and asks the chip for its name, label and number
// of lines.
func (b *Chardev) openChip(path string) (device, chip, error) {
	d, err := b.k.open(path)
	if err != nil {
		return nil, chip{}, cannotOpen(path, err)
	}
	var info abiChipInfo
	if err := d.ioctl(ioChipInfo, unsafe.Pointer(&info)); err != nil {
		return nil, chip{}, errors.Join(fmt.Errorf("%w: %s is no gpio chip: %w", ErrUnsupported, path, err), d.Close())
	}
	const most = 4096 // lines of the largest chips there are, many times over
	if info.lines > most {
		return nil, chip{}, errors.Join(fmt.Errorf("%w: %s claims to have %d lines", ErrUnsupported, path, info.lines), d.Close())
	}
	c := chip{path: path, name: text(info.name), label: text(info.label), lines: make([]string, info.lines)}
	if c.label == "" {
		c.label = c.name
	}
	return d, c, nil
}

func lineInfo(d device, offset int) (abiLineInfo, error) {
	info := abiLineInfo{offset: uint32(offset)}
	err := d.ioctl(ioLineInfo, unsafe.Pointer(&info))
	return info, err
}

// place is where a line is: a chip and its offset there.
type place struct {
	chip   chip
	offset int
}

// exact is the one spelling that every line has.
func (p place) exact() string { return p.chip.label + ":" + strconv.Itoa(p.offset) }

// Names implements Board: the lines by their names, those without one of their
// own as CHIP:OFFSET.
func (b *Chardev) Names() []string {
	chips := b.found
	var names []string
	for _, c := range chips {
		for i := range c.lines {
			names = append(names, shortest(chips, place{c, i}))
		}
	}
	return names
}

// Resolve implements Board.
func (b *Chardev) Resolve(name string) (string, error) {
	p, err := locate(b.found, name)
	if err != nil && b.closed != nil {
		return "", fmt.Errorf("%w; not all chips can be used: %w", err, b.closed)
	}
	if err != nil {
		return "", err
	}
	return shortest(b.found, p), nil
}

// shortest is the name that a line goes by: its own if no other has it.
func shortest(chips []chip, p place) string {
	own := p.chip.lines[p.offset]
	if usable(own) && len(named(chips, own)) == 1 {
		return own
	}
	return p.exact()
}

// usable reports whether a line's name is one: some boards name lines that are
// not connected "-" or "_", and a bare number would be taken for something else.
func usable(name string) bool { return strings.Trim(name, "-_") != "" && !bareNumber(name) }

func bareNumber(s string) bool { return s != "" && strings.Trim(s, "0123456789") == "" }

// named lists the lines with this name.
func named(chips []chip, name string) (all []place) {
	for _, c := range chips {
		for i, own := range c.lines {
			if own == name {
				all = append(all, place{c, i})
			}
		}
	}
	return all
}

// locate finds the one line that a name means.
func locate(chips []chip, name string) (place, error) {
	if usable(name) {
		switch found := named(chips, name); {
		case len(found) == 1:
			return found[0], nil
		case len(found) > 1:
			var which []string
			for _, p := range found {
				which = append(which, p.exact())
			}
			return place{}, fmt.Errorf("%w %q: %d lines have this name: write %s", ErrNoSuchPin, name, len(found), strings.Join(which, " or "))
		}
	}
	label, offset, ok := splitLine(name)
	if !ok {
		return place{}, noSuchPin(name, nameList(chips))
	}
	return locateOffset(chips, name, label, offset)
}

// splitLine takes CHIP:OFFSET apart. A label may hold colons.
func splitLine(name string) (label string, offset int, ok bool) {
	i := strings.LastIndexByte(name, ':')
	if i <= 0 {
		return "", 0, false
	}
	n, err := strconv.ParseUint(name[i+1:], 10, 16)
	if err != nil || strconv.FormatUint(n, 10) != name[i+1:] {
		return "", 0, false
	}
	return name[:i], int(n), true
}

func locateOffset(chips []chip, name, label string, offset int) (place, error) {
	var found []chip
	for _, c := range chips {
		if c.label == label {
			found = append(found, c)
		}
	}
	switch {
	case len(found) > 1:
		var which []string
		for _, c := range found {
			which = append(which, c.name)
		}
		return place{}, fmt.Errorf("%w %q: the chips %s have the same label: use the line's own name", ErrNoSuchPin, name, strings.Join(which, ", "))
	case len(found) == 0:
		for _, c := range chips {
			if c.name == label {
				return place{}, fmt.Errorf("%w %q: %s is a number that may change at the next boot: write %s:%d", ErrNoSuchPin, name, label, c.label, offset)
			}
		}
		return place{}, fmt.Errorf("%w %q: there is no chip %q; there are %s", ErrNoSuchPin, name, label, chipList(chips))
	case offset >= len(found[0].lines):
		return place{}, fmt.Errorf("%w %q: the chip has the lines 0 to %d", ErrNoSuchPin, name, len(found[0].lines)-1)
	}
	return place{found[0], offset}, nil
}

// Open implements Board.
func (b *Chardev) Open(name string, r Request) (Pin, error) {
	p, err := locate(b.found, name)
	if err != nil {
		return nil, err
	}
	d, err := b.findChip(p.chip)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", name, err)
	}
	pin, err := b.request(d, p, name, r)
	return pin, errors.Join(err, d.Close())
}

// findChip opens the chip again, wherever its file is now.
func (b *Chardev) findChip(want chip) (device, error) {
	paths, err := b.k.chips()
	if err != nil {
		return nil, err
	}
	// The file that it had first, then the others.
	slices.SortStableFunc(paths, func(x, y string) int {
		if x == want.path && y != want.path {
			return -1
		}
		if y == want.path && x != want.path {
			return 1
		}
		return 0
	})
	var errs []error
	for _, path := range paths {
		d, c, err := b.openChip(path)
		switch {
		case err != nil:
			errs = append(errs, err)
		case c.label == want.label && len(c.lines) == len(want.lines):
			return d, nil
		default:
			errs = append(errs, d.Close())
		}
	}
	if err := errors.Join(errs...); err != nil && !errors.Is(err, syscall.ENOENT) {
		return nil, err
	}
	return nil, fmt.Errorf("%w: chip %q is not there any more", ErrGone, want.label)
}
