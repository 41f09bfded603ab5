//go:build !linux

package guard

import (
	"fmt"
	"runtime"
	"time"
)

// Device is a hardware watchdog; only Linux has one that this package knows.
type Device struct{}

// OpenDevice returns an error.
func OpenDevice(string, time.Duration) (*Device, error) {
	return nil, fmt.Errorf("hardware watchdog: not supported on %s: leave it out", runtime.GOOS)
}

// Timeout is how long the hardware bears silence.
func (d *Device) Timeout() time.Duration { return 0 }

// Alive puts the reset off.
func (d *Device) Alive() error { return nil }

// Disarm switches it off.
func (d *Device) Disarm() error { return nil }

// Leave gives it back armed.
func (d *Device) Leave() error { return nil }
