package gpio

import (
	"errors"
	"os"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The same, against what another library has taken from the kernel's header.
func TestLayoutsAreThoseOfTheSystemLibrary(t *testing.T) {
	for name, n := range map[string][2]uintptr{
		"chip info": {unsafe.Sizeof(abiChipInfo{}), unsafe.Sizeof(unix.GPIOChipInfo{})},
		"line info": {unsafe.Sizeof(abiLineInfo{}), unsafe.Sizeof(unix.GPIOV2LineInfo{})},
		"request":   {unsafe.Sizeof(abiRequest{}), unsafe.Sizeof(unix.GPIOV2LineRequest{})},
		"config":    {unsafe.Sizeof(abiConfig{}), unsafe.Sizeof(unix.GPIOV2LineConfig{})},
		"event":     {eventBytes, unsafe.Sizeof(unix.GPIOV2LineEvent{})},
	} {
		if n[0] != n[1] {
			t.Errorf("%s: %d, want %d", name, n[0], n[1])
		}
	}
	for ours, theirs := range map[uint]uint{ioLineInfo: unix.GPIO_V2_GET_LINEINFO_IOCTL, ioGetLine: unix.GPIO_V2_GET_LINE_IOCTL,
		ioGetValues: unix.GPIO_V2_LINE_GET_VALUES_IOCTL, ioSetValues: unix.GPIO_V2_LINE_SET_VALUES_IOCTL} {
		if ours != theirs {
			t.Errorf("ioctl %#x, want %#x", ours, theirs)
		}
	}
	e := unix.GPIOV2LineEvent{Timestamp_ns: 7, Id: unix.GPIO_V2_LINE_EVENT_RISING_EDGE, Seqno: 8, Line_seqno: 9}
	got := parseEvent((*[eventBytes]byte)(unsafe.Pointer(&e))[:])
	if got != (lineEvent{nanos: 7, rising: true, seq: 9}) {
		t.Errorf("event %+v", got)
	}
}

// A read of the real kernel's descriptors ends at once when its deadline passes,
// and an ioctl keeps its errno. A pipe stands in for a line.
func TestReadOfADescriptorCanBeEnded(t *testing.T) {
	var fds [2]int
	if err := unix.Pipe2(fds[:], unix.O_CLOEXEC); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := unix.Close(fds[1]); err != nil {
			t.Error(err)
		}
	}()
	k := thisKernel()
	d, err := k.adopt(int32(fds[0]))
	if err != nil {
		t.Fatal(err)
	}
	if err := d.SetReadDeadline(time.Time{}); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() {
		_, err := d.Read(make([]byte, 8))
		ended <- err
	}()
	if err := d.SetReadDeadline(time.Unix(1, 0)); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("read: %v, want ErrDeadlineExceeded", err)
	}
	var v abiValues
	// User-mode emulation says ENOSYS for a number that it does not know.
	if err := d.ioctl(ioGetValues, unsafe.Pointer(&v)); !errors.Is(err, syscall.ENOTTY) && !errors.Is(err, syscall.ENOSYS) {
		t.Errorf("ioctl of a pipe: %v, want ENOTTY", err)
	}
	if a, b := k.now(), k.now(); a <= 0 || b < a {
		t.Errorf("clock %v, then %v", a, b)
	}
	if err := d.Close(); err != nil {
		t.Error(err)
	}
}
