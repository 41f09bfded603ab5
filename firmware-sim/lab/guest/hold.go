//go:build linux

package main

import (
	"fmt"
	"os"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"
)

// holds are lines that the init holds as another program would.
type holds struct {
	mu   sync.Mutex
	list map[string]int // descriptors of lines by consumer
}

// lineRequest is struct gpio_v2_line_request of linux/gpio.h.
type lineRequest struct {
	offsets  [64]uint32
	consumer [32]byte
	config   struct {
		flags    uint64
		attrs    uint32
		_        [5]uint32
		attrList [10]struct {
			id, _ uint32
			value uint64
			mask  uint64
		}
	}
	lines  uint32
	buffer uint32
	_      [5]uint32
	fd     int32
}

const (
	// getLine is GPIO_V2_GET_LINE_IOCTL.
	getLine = 3<<30 | 0xb4<<8 | 0x07 | uint(unsafe.Sizeof(lineRequest{}))<<16
	// lineInput is GPIO_V2_LINE_FLAG_INPUT: it drives nothing.
	lineInput = 1 << 2
)

// take requests a line as an input, under a consumer's name.
func (h *holds) take(consumer, chip string, line uint32) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if _, ok := h.list[consumer]; ok {
		return fmt.Errorf("%s holds a line already", consumer)
	}
	f, err := os.OpenFile(chip, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }() // the line has a descriptor of its own
	r := lineRequest{lines: 1}
	r.offsets[0] = line
	copy(r.consumer[:len(r.consumer)-1], consumer)
	r.config.flags = lineInput
	if _, _, errno := unix.Syscall(unix.SYS_IOCTL, f.Fd(), uintptr(getLine), uintptr(unsafe.Pointer(&r))); errno != 0 {
		return fmt.Errorf("take line %d of %s: %w", line, chip, errno)
	}
	h.list[consumer] = int(r.fd)
	return nil
}

// free gives a line back.
func (h *holds) free(consumer string) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	fd, ok := h.list[consumer]
	if !ok {
		return fmt.Errorf("%s holds no line", consumer)
	}
	delete(h.list, consumer)
	return unix.Close(fd)
}
