package gpio

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"

	"periph.io/x/conn/v3/gpio"
	"periph.io/x/conn/v3/pin"
)

// isOutput reports whether a pin is an output now. Asking is safe only while
// this process has not used the pin: an unused character device line says that
// it does not know, and the others look without touching.
func isOutput(p gpio.PinIO) bool {
	f, ok := p.(pin.PinFunc)
	if !ok {
		return false
	}
	switch f.Func() {
	case gpio.OUT, gpio.OUT_LOW, gpio.OUT_HIGH:
		return true
	}
	return false
}

// holdDescriptorZero fills descriptor 0 if something has closed it. A line whose
// descriptor were 0 would count as not open.
func holdDescriptorZero() error {
	var st syscall.Stat_t
	if err := syscall.Fstat(0, &st); !errors.Is(err, syscall.EBADF) {
		return err
	}
	fd, err := syscall.Open(os.DevNull, syscall.O_RDONLY|syscall.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("open %s as descriptor 0: %w", os.DevNull, err)
	}
	if fd != 0 {
		// Somebody else was faster, which serves as well.
		return syscall.Close(fd)
	}
	return nil
}

// explainNoPins says why a board shows no pins: no devices, or no permission.
func explainNoPins(dev string) error {
	const sim = `use "sim" for simulated pins`
	var files []string
	for _, pattern := range []string{"gpiochip*", "gpiomem*"} {
		found, err := filepath.Glob(filepath.Join(dev, pattern))
		if err != nil {
			return err
		}
		files = append(files, found...)
	}
	if len(files) == 0 {
		return fmt.Errorf("%w: there is no %s/gpiochip*: the kernel has no gpio driver for this machine, or the container was not given the devices; %s",
			ErrUnsupported, dev, sim)
	}
	for _, name := range files {
		f, err := os.OpenFile(name, os.O_RDWR, 0)
		if errors.Is(err, fs.ErrPermission) {
			return fmt.Errorf("%w: %s can't be opened by this user: %s", ErrNotPermitted, name, groupHint(name))
		}
		if err != nil {
			return fmt.Errorf("%w: %w", ErrIO, err)
		}
		if err := f.Close(); err != nil {
			return err
		}
	}
	return fmt.Errorf("%w: %s can be opened but shows no lines that the drivers know (a kernel before 5.10 is too old); %s",
		ErrUnsupported, files[0], sim)
}

// groupHint names the group that would give access to a file.
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
	return fmt.Sprintf("add the agent's user to the group %s and start it again", group)
}
