//go:build linux

package main

import (
	"fmt"
	"sync"
	"syscall"

	"github.com/apollo-11/apollo11/firmware-sim/lab/talk"
)

type unit struct{}

type units struct {
	mu   sync.Mutex
	list map[string]*unit
}

func (u *units) find(name string) *unit {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.list[name]
}
func (u *units) start(name, text string) error { return fmt.Errorf("later") }
func (u *units) stop(name string) error        { return fmt.Errorf("later") }
func (u *units) status(name string) (r talk.Reply, err error) {
	return r, fmt.Errorf("later")
}
func (u *unit) signal(s syscall.Signal) error { return nil }
