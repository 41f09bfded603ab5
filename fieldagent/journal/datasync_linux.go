package journal

import (
	"errors"
	"os"
	"syscall"
)

// datasync flushes the content and, if it changed, the size of a file. A call
// that a signal interrupted has reported nothing yet, so asking it again is not
// the retry of a failed sync.
func datasync(f *os.File) error {
	for {
		err := syscall.Fdatasync(int(f.Fd()))
		if !errors.Is(err, syscall.EINTR) {
			return err
		}
	}
}
