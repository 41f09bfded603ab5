package gpio

import (
	"time"
	"unsafe"
)

// devices is where the kernel's device files are.
const devices = "/dev"

// kernel is what the character device back end needs of the system. Errors are
// those of the system calls, with their errno.
type kernel interface {
	// chips lists the device files of the gpio chips.
	chips() ([]string, error)
	open(path string) (device, error)
	// adopt makes a device of a descriptor that an ioctl has returned. Its Read
	// ends when a deadline passes.
	adopt(fd int32) (device, error)
	// now is the time on CLOCK_MONOTONIC, which the kernel's events carry.
	now() time.Duration
}

// device is an open chip or a requested line.
type device interface {
	ioctl(number uint, arg unsafe.Pointer) error
	Read([]byte) (int, error)
	SetReadDeadline(time.Time) error
	Close() error
}
