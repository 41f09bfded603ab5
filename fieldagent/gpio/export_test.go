package gpio

import (
	"context"
	"log/slog"
	"time"
)

// NewPeriphWithoutDrivers returns the board with what a test has registered.
func NewPeriphWithoutDrivers(log *slog.Logger) *Periph { return newPeriph(log) }

// CheckDevices looks for devices in dev.
func CheckDevices(dev string) error { return checkDevices(dev) }

// OpenWaiting opens the back end on this kernel as at a start.
func (k *FakeKernel) OpenWaiting(ctx context.Context, log *slog.Logger, pins ...PinConfig) (Board, error) {
	return openWaiting(ctx, BoardOptions{Log: log, Pins: pins}, func() (Board, error) { return openChardev(k) })
}

// Set and Lease are Do in the few words that most tests need.
func (o *Owner) Set(ctx context.Context, name string, level Level, cause string) error {
	return o.Do(ctx, Drive{Pin: name, Level: level, Cause: cause})
}

func (o *Owner) Lease(ctx context.Context, name string, level Level, hold time.Duration, cause string) error {
	return o.Do(ctx, Drive{Pin: name, Level: level, Cause: cause, For: hold})
}
