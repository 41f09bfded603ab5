package gpio_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/apollo-11/apollo11/fieldagent/gpio"
)

// I4: right after boot the device files are there and may not be opened yet, or
// are not there yet. A hundred starts, each at another moment.
func TestI4_RightAfterBootTheDevicesAreWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for i := range 100 {
			k, _ := pi()
			ready := time.Duration(i) * 99 * time.Millisecond
			k.Fail("open", syscall.EACCES)
			if i%2 == 0 {
				k.Fail("open", syscall.ENOENT) // the file is not there yet
			}
			begun := time.Now()
			time.AfterFunc(ready, func() { k.Fail("open", nil) })
			var log bytes.Buffer
			b, err := k.OpenWaiting(t.Context(), slog.New(slog.NewTextHandler(&log, nil)))
			if err != nil || len(b.Names()) == 0 {
				t.Fatalf("start %d: %v", i, err)
			}
			if took := time.Since(begun); took > ready+time.Second {
				t.Errorf("start %d took %v, the devices %v", i, took, ready)
			}
			if n := strings.Count(log.String(), "waiting for them"); n != 1 && i > 0 {
				t.Errorf("start %d: said %d times\n%s", i, n, log.String())
			}
		}
	})
}

func TestI4_WaitingEndsAfterTenSecondsAndWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k, _ := pi()
		k.Fail("open", syscall.EACCES)
		log := slog.New(slog.DiscardHandler)
		begun := time.Now()
		if _, err := k.OpenWaiting(t.Context(), log); !errors.Is(err, gpio.ErrNotPermitted) || time.Since(begun) != 10*time.Second {
			t.Errorf("after %v: %v", time.Since(begun), err)
		}
		if _, err := gpio.NewFakeKernel().OpenWaiting(t.Context(), log); !errors.Is(err, gpio.ErrUnsupported) {
			t.Errorf("no devices: %v", err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := k.OpenWaiting(ctx, log); !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, gpio.ErrNotPermitted) {
			t.Errorf("ended context: %v", err)
		}
		// What waiting does not heal is said at once.
		k.Fail("open", nil)
		k.Fail("lineinfo", syscall.EINVAL)
		begun = time.Now()
		if _, err := k.OpenWaiting(t.Context(), log); err == nil || time.Since(begun) != 0 {
			t.Errorf("old kernel: after %v: %v", time.Since(begun), err)
		}
	})
}

// One chip that may not be opened keeps nobody from the lines of the others; a
// line that may be on it is waited for.
func TestI4_OnlyTheChipsThatAreNeededAreWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k, _ := pi()
		k.Fail("open /dev/gpiochip1", syscall.EACCES)
		log := slog.New(slog.DiscardHandler)
		relay := gpio.PinConfig{Name: "relay", Line: "RELAY", Mode: gpio.Output}
		status := gpio.PinConfig{Name: "status", Line: "expander:0", Mode: gpio.Input}
		begun := time.Now()
		b, err := k.OpenWaiting(t.Context(), log, relay)
		must(t, err)
		if time.Since(begun) != 0 {
			t.Errorf("waited %v for a chip that is not needed", time.Since(begun))
		}
		_, err = gpio.NewOwner(b, []gpio.PinConfig{relay}, gpio.OwnerOptions{})
		must(t, err)

		b, err = k.OpenWaiting(t.Context(), log, relay, status)
		must(t, err)
		_, err = gpio.NewOwner(b, []gpio.PinConfig{relay, status}, gpio.OwnerOptions{})
		for _, want := range []string{`no chip "expander"`, "/dev/gpiochip1 can't be opened by this user"} {
			if !errors.Is(err, gpio.ErrNoSuchPin) || !strings.Contains(err.Error(), want) || time.Since(begun) != 10*time.Second {
				t.Errorf("after %v: %v, want %q", time.Since(begun), err, want)
			}
		}
		time.AfterFunc(time.Second, func() { k.Fail("open /dev/gpiochip1", nil) })
		b, err = k.OpenWaiting(t.Context(), log, relay, status)
		must(t, err)
		_, err = gpio.NewOwner(b, []gpio.PinConfig{relay, status}, gpio.OwnerOptions{})
		must(t, err)
	})
}
