//go:build !linux

package gpio

import (
	"errors"
	"time"
)

// none is a system without character devices for gpio.
type none struct{}

func thisKernel() kernel { return none{} }

func (none) chips() ([]string, error)    { return nil, nil }
func (none) open(string) (device, error) { return nil, errors.ErrUnsupported }
func (none) adopt(int32) (device, error) { return nil, errors.ErrUnsupported }
func (none) now() time.Duration          { return 0 }
func release() string                    { return "not Linux" }
