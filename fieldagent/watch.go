package fieldagent

import (
	"context"
	"errors"
	"os"
	"sync"
	"time"

	"github.com/apollo-11/apollo11/fieldagent/gpio"
	"github.com/apollo-11/apollo11/fieldagent/guard"
)

// How long the parts of the agent may be silent before the watchdogs are left
// without a sign of life.
const (
	// pinsPatience is for the goroutine that owns the pins: a request takes
	// microseconds, and what holds the pins must be able to let go.
	pinsPatience = 5 * time.Second
	// loopPatience is for everything else. It waits for the journal, and a worn
	// card may take half a minute over one sync; a restart would not mend that.
	loopPatience = 2 * time.Minute
	// deviceTimeout is asked of a hardware watchdog; the one of the Raspberry Pi
	// can't do more (bcm2835_wdt).
	deviceTimeout = 15 * time.Second
	// aliveMost is the longest time between two signs of life; a quarter of what the
	// most impatient watchdog bears is taken if that is shorter.
	aliveMost = 5 * time.Second
)

// watch tells the service manager that the agent is ready, and it and the hardware
// watchdog from then on that it lives, until end is called. stop says that the
// agent has been asked to stop.
func (a *Agent) watch(stop <-chan struct{}, l *loop, pins *gpio.Owner) (end func(failed bool), err error) {
	manager, err := guard.NewManager(os.Getenv)
	if err != nil {
		return nil, err
	}
	var watchers []guard.Watcher
	period := aliveMost
	if d := manager.Watchdog(); d > 0 {
		watchers, period = append(watchers, manager), min(period, d/4)
	}
	var device *guard.Device
	if a.cfg.HardwareWatchdog != "" {
		if device, err = guard.OpenDevice(a.cfg.HardwareWatchdog, deviceTimeout); err != nil {
			return nil, err
		}
		watchers, period = append(watchers, device), min(period, device.Timeout()/4)
		a.log.Info("hardware watchdog armed: the board is reset if the agent is silent", "device", a.cfg.HardwareWatchdog, "timeout", device.Timeout())
	}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() {
		if len(watchers) > 0 {
			guard.Keep(ctx, period, []guard.Part{
				{Name: "pins", Answer: pins.Answer, Patience: pinsPatience},
				{Name: "instructions", Answer: l.answer, Patience: loopPatience},
			}, watchers, a.log)
		}
	})
	running.Go(func() {
		a.logs("the service manager was not told that the agent is ready", errors.Join(pins.Answer(ctx), manager.Ready()))
		select {
		case <-stop:
		case <-ctx.Done():
		}
		a.logs("the service manager was not told that the agent stops", manager.Stopping())
	})
	return func(failed bool) {
		cancel()
		running.Wait()
		switch {
		case device == nil:
		case failed: // whoever starts the agent again takes it over; if nobody does, the board is reset
			a.logs("hardware watchdog", device.Leave())
		default:
			a.logs("hardware watchdog", device.Disarm())
		}
	}, nil
}

// logs notes an error that changes nothing.
func (a *Agent) logs(what string, err error) {
	if err != nil {
		a.log.Warn(what, "err", err)
	}
}
