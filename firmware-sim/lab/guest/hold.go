//go:build linux

package main

import (
	"fmt"
	"sync"

	"golang.org/x/sys/unix"
)

// holds are lines that the init holds as another program would.
type holds struct {
	mu   sync.Mutex
	list map[string]int // descriptors of lines by consumer
}

// take requests a line as an input, under a consumer's name.
func (h *holds) take(consumer, chip string, line uint32) error {
	return fmt.Errorf("not yet")
}

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
