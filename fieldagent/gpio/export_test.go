package gpio

import "log/slog"

// NewPeriphWithoutDrivers returns the board with what a test has registered.
func NewPeriphWithoutDrivers(log *slog.Logger) *Periph { return newPeriph(log) }

// CheckDevices looks for devices in dev.
func CheckDevices(dev string) error { return checkDevices(dev) }
