package gpio

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"
)

// The back ends that OpenBoard knows.
const (
	BoardSim     = "sim"     // simulated pins
	BoardPeriph  = "periph"  // periph.io: memory-mapped pins of a Raspberry Pi 0 to 4
	BoardChardev = "chardev" // the kernel's character devices, Linux 5.10 or later
)

// BoardOptions are the settings of all back ends.
type BoardOptions struct {
	Log *slog.Logger // must not be nil
	// Pins are the pin map, if there is one: its lines are waited for right after
	// boot.
	Pins []PinConfig
	Sim  SimOptions
}

// Right after boot the device files may not be there yet, or udev may not have
// given them to their group.
const (
	bootWait  = 10 * time.Second // longer than udev takes on the slowest boards
	bootPause = 250 * time.Millisecond
)

// OpenBoard opens the back end with this name. Nothing is guessed: an empty or
// unknown name is an error, and so is a board without pins. If device files that
// are needed are missing or may not be opened it waits for them for up to 10 s or
// until ctx ends, and then says which files and which group.
func OpenBoard(ctx context.Context, kind string, o BoardOptions) (Board, error) {
	switch kind {
	case BoardSim:
		return NewSim(o.Sim)
	case BoardPeriph:
		return openWaiting(ctx, o, func() (Board, error) {
			if err := checkDevices(devices); err != nil {
				return nil, err // the drivers load only once: not before they can
			}
			return OpenPeriph(o.Log)
		})
	case BoardChardev:
		return openWaiting(ctx, o, func() (Board, error) { return OpenChardev() })
	}
	return nil, fmt.Errorf("gpio back end %q is not known: say %q for simulated pins, %q for the kernel's gpio devices or %q for the memory-mapped pins of a Raspberry Pi",
		kind, BoardSim, BoardChardev, BoardPeriph)
}

// errNotYet marks errors that time may heal shortly after boot.
var errNotYet = errors.New("device files")

// openWaiting tries until it works, until the error is one that waiting does not
// heal, or until it has waited long enough.
func openWaiting(ctx context.Context, o BoardOptions, open func() (Board, error)) (Board, error) {
	for waited := time.Duration(0); ; waited += bootPause {
		b, err := open()
		missing := err
		if err == nil {
			missing = lacks(b, o.Pins)
		}
		if !errors.Is(missing, errNotYet) || waited >= bootWait {
			return b, err // whoever resolves the lines that are missing is told of them
		}
		if waited == 0 {
			o.Log.Info("gpio devices are not ready; waiting for them", "limit", bootWait, "err", missing)
		}
		pause := time.NewTimer(bootPause)
		select {
		case <-pause.C:
		case <-ctx.Done():
			pause.Stop()
			return nil, errors.Join(missing, ctx.Err())
		}
	}
}

// lacks returns the first line of a pin map that may still come.
func lacks(b Board, pins []PinConfig) error {
	for _, c := range pins {
		if _, err := b.Resolve(c.line()); errors.Is(err, errNotYet) {
			return err
		}
	}
	return nil
}
