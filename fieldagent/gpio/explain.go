package gpio

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// errNotSupp is the kernel's own "not supported", which has no name outside of
// it and which some drivers let out.
const errNotSupp = syscall.Errno(524)

// explain says why the kernel refuses a line, and what to do about it. d is its
// chip.
func (b *Chardev) explain(d device, p place, name string, err error) error {
	doing := "open " + name
	switch {
	case errors.Is(err, syscall.EBUSY):
		return fmt.Errorf("%s: %w: %s: %w", doing, ErrBusy, holder(d, p), err)
	case errors.Is(err, syscall.EINVAL), errors.Is(err, syscall.ENOTSUP), errors.Is(err, errNotSupp):
		return fmt.Errorf("%s: %w: the kernel refuses this use of the line (direction, bias, debounce): leave out what is not needed: %w", doing, ErrUnsupported, err)
	}
	return pinError(doing, err)
}

// holder says who has a line that is taken, and whom to ask.
func holder(d device, p place) string {
	info, err := lineInfo(d, p.offset)
	who := text(info.consumer)
	switch {
	case err != nil:
		return fmt.Sprintf("%s is taken by somebody, who can't be told: %v", p.exact(), err)
	case who == "":
		return p.exact() + " is taken without a name, so by the kernel, for example for SPI, I2C or a serial port: turn that off in the device tree, or use another line"
	case who == Consumer:
		return p.exact() + fmt.Sprintf(" is taken by %q, another agent on this board: stop it (systemctl stop apollo-agent)", who)
	}
	return p.exact() + fmt.Sprintf(" is taken by %q: stop that program, or turn that driver off in the device tree, or use another line (gpioinfo lists who has what)", who)
}

// pinError gives an errno its meaning.
func pinError(doing string, err error) error {
	kind := ErrIO
	switch {
	case errors.Is(err, syscall.ENODEV), errors.Is(err, syscall.ENXIO), errors.Is(err, os.ErrClosed):
		kind = ErrGone
	case errors.Is(err, syscall.EPERM), errors.Is(err, syscall.EACCES):
		kind = ErrNotPermitted
	case errors.Is(err, syscall.EBUSY):
		kind = ErrBusy
	case errors.Is(err, syscall.EINVAL), errors.Is(err, syscall.ENOTSUP), errors.Is(err, errNotSupp):
		kind = ErrUnsupported
	}
	return fmt.Errorf("%s: %w: %w", doing, kind, err)
}

// edgeError explains why a line reports no edges. Without an interrupt the kernel
// says ENXIO, which for a line that is open does not mean that it has gone.
func edgeError(name string, err error) error {
	if errors.Is(err, syscall.ENXIO) || errors.Is(err, syscall.EINVAL) || errors.Is(err, syscall.ENOTSUP) || errors.Is(err, errNotSupp) {
		return fmt.Errorf("watch %s: %w: the line has no interrupt: read it from time to time, or use another line: %w", name, ErrUnsupported, err)
	}
	return pinError("watch "+name, err)
}

// oldKernel explains a chip that knows nothing of the interface that we use.
func oldKernel(path string, err error) error {
	if errors.Is(err, syscall.EINVAL) || errors.Is(err, syscall.ENOTTY) {
		return fmt.Errorf("%w: %s: this kernel (%s) does not have version 2 of the gpio interface: it takes Linux 5.10 or later; on a Raspberry Pi 0 to 4 write gpio: %s: %w",
			ErrUnsupported, path, release(), BoardPeriph, err)
	}
	return fmt.Errorf("%w: lines of %s: %w", ErrIO, path, err)
}

// cannotOpen explains a device file that can't be opened.
func cannotOpen(path string, err error) error {
	switch {
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("%w (%w): %s can't be opened by this user: %s", ErrNotPermitted, errNotYet, path, groupHint(path))
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%w (%w): %w", ErrGone, errNotYet, err)
	case errors.Is(err, syscall.ENODEV), errors.Is(err, syscall.ENXIO):
		return fmt.Errorf("%w: %s has no device behind it: %w", ErrGone, path, err)
	}
	return fmt.Errorf("%w: %w", ErrIO, err)
}

// noChips explains a machine without gpio chips.
func noChips(dev string) error {
	return fmt.Errorf("%w (%w): there is no %s/gpiochip*: the kernel has no gpio driver for this machine, or the container was not given the devices; use %q for simulated pins",
		ErrUnsupported, errNotYet, dev, BoardSim)
}

// checkDevices reports device files that are missing or may not be opened.
func checkDevices(dev string) error {
	var files []string
	for _, pattern := range []string{"gpiochip*", "gpiomem*"} {
		found, err := filepath.Glob(filepath.Join(dev, pattern))
		if err != nil {
			return err
		}
		files = append(files, found...)
	}
	if len(files) == 0 {
		return noChips(dev)
	}
	for _, name := range files {
		f, err := os.OpenFile(name, os.O_RDWR, 0)
		if err != nil {
			return cannotOpen(name, err)
		}
		if err := f.Close(); err != nil {
			return err
		}
	}
	return nil
}

// groupHint names the group that would give access to a file, and the command.
func groupHint(name string) string {
	info, err := os.Stat(name)
	if err != nil {
		return err.Error()
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok || info.Mode().Perm()&0o060 == 0 {
		return fmt.Sprintf("its mode is %v: a udev rule has to give it to a group, usually gpio", info.Mode().Perm())
	}
	group := strconv.FormatUint(uint64(st.Gid), 10)
	if g, err := user.LookupGroupId(group); err == nil {
		group = g.Name
	}
	who := "USER"
	if u, err := user.Current(); err == nil {
		who = u.Username
	}
	return fmt.Sprintf("it belongs to the group %s: usermod -aG %s %s, then start the agent again", group, group, who)
}

// chipList says which chips there are.
func chipList(chips []chip) string {
	var all []string
	for _, c := range chips {
		all = append(all, fmt.Sprintf("%s (lines 0 to %d)", c.label, len(c.lines)-1))
	}
	return "the chips " + strings.Join(all, ", ")
}

// nameList is what may be written for a line: the named ones, or else the chips.
func nameList(chips []chip) []string {
	var names []string
	for _, c := range chips {
		for i, own := range c.lines {
			if short := shortest(chips, place{c, i}); short == own {
				names = append(names, own)
			}
		}
		names = append(names, fmt.Sprintf("%s:0 to %s:%d", c.label, c.label, len(c.lines)-1))
	}
	return names
}
