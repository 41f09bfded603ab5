package gpio

import "log/slog"

// NewPeriphWithoutDrivers returns the board with what a test has registered.
func NewPeriphWithoutDrivers(log *slog.Logger) *Periph { return newPeriph(log) }

// ExplainNoPins looks for devices in dev.
func ExplainNoPins(dev string) error { return explainNoPins(dev) }
