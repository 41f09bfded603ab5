package gpio

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// linux is the real kernel.
type linux struct{ dev string }

func thisKernel() kernel { return linux{devices} }

func (l linux) chips() ([]string, error) { return filepath.Glob(filepath.Join(l.dev, "gpiochip*")) }

func (l linux) open(path string) (device, error) {
	// Reading is enough for everything that is done with a chip.
	f, err := os.OpenFile(path, os.O_RDONLY, 0)
	if err != nil {
		return nil, err
	}
	return file{f}, nil
}

// adopt makes the descriptor non-blocking, so that the runtime's poller waits for
// events and no read holds a thread or outlives its deadline.
func (l linux) adopt(fd int32) (device, error) {
	unix.CloseOnExec(int(fd))
	if err := unix.SetNonblock(int(fd), true); err != nil {
		return nil, errors.Join(err, unix.Close(int(fd)))
	}
	f := os.NewFile(uintptr(fd), "gpio line")
	if f == nil {
		return nil, fmt.Errorf("descriptor %d: %w", fd, unix.EBADF)
	}
	return file{f}, nil
}

func (l linux) now() time.Duration {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts); err != nil {
		return 0 // it has always been there
	}
	return time.Duration(ts.Nano())
}

// file is a device of the real kernel.
type file struct{ *os.File }

func (f file) ioctl(number uint, arg unsafe.Pointer) error {
	raw, err := f.SyscallConn()
	if err != nil {
		return err
	}
	var errno unix.Errno
	err = raw.Control(func(fd uintptr) {
		for {
			_, _, errno = unix.Syscall(unix.SYS_IOCTL, fd, uintptr(number), uintptr(arg))
			if errno != unix.EINTR {
				return
			}
		}
	})
	if err == nil && errno != 0 {
		err = errno
	}
	return err
}

// release is the name of the running kernel.
func release() string {
	var u unix.Utsname
	if err := unix.Uname(&u); err != nil {
		return "unknown"
	}
	return unix.ByteSliceToString(u.Release[:])
}
