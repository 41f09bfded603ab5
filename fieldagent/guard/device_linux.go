package guard

import (
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// Device is a hardware watchdog, by the interface of Linux (watchdog-api): once
// open, it resets the board unless it hears something in time.
type Device struct {
	f       *os.File
	timeout time.Duration
}

// OpenDevice opens a watchdog such as /dev/watchdog and asks for a timeout, whole
// seconds. The hardware may round it; Timeout tells.
func OpenDevice(path string, timeout time.Duration) (*Device, error) {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	switch {
	case errors.Is(err, unix.EBUSY):
		return nil, fmt.Errorf("hardware watchdog %s is in use, perhaps by systemd (RuntimeWatchdogSec in system.conf): leave it to one of the two", path)
	case err != nil:
		return nil, fmt.Errorf("hardware watchdog: %w: the agent's user needs write permission for it", err)
	}
	d := &Device{f: f, timeout: timeout}
	if err := unix.IoctlSetPointerInt(int(f.Fd()), unix.WDIOC_SETTIMEOUT, int(timeout/time.Second)); err != nil && !errors.Is(err, unix.EOPNOTSUPP) && !errors.Is(err, unix.ENOTTY) {
		return nil, errors.Join(fmt.Errorf("hardware watchdog %s: set %v: %w", path, timeout, err), d.Disarm())
	}
	if s, err := unix.IoctlGetInt(int(f.Fd()), unix.WDIOC_GETTIMEOUT); err == nil && s > 0 {
		d.timeout = time.Duration(s) * time.Second
	}
	return d, nil
}

// Timeout is how long the hardware bears silence.
func (d *Device) Timeout() time.Duration { return d.timeout }

// Alive puts the reset off.
func (d *Device) Alive() error {
	_, err := d.f.Write([]byte{0})
	return err
}

// Disarm switches the watchdog off, if the kernel allows that (it does not with
// nowayout), and gives it back.
func (d *Device) Disarm() error {
	_, err := d.f.Write([]byte{'V'}) // the "magic close" character
	return errors.Join(err, d.f.Close())
}

// Leave gives the watchdog back armed: the board is reset unless another agent
// takes it over in time.
func (d *Device) Leave() error { return d.f.Close() }
