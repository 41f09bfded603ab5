package gpio_test

import (
	"errors"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	pgpio "periph.io/x/conn/v3/gpio"
	"periph.io/x/conn/v3/gpio/gpioreg"
	"periph.io/x/conn/v3/physic"
	"periph.io/x/conn/v3/pin"

	"github.com/apollo-11/apollo11/fieldagent/gpio"
)

// wired is a pin of periph.io that notes every call. Like the real character
// device lines it becomes an input when its level or function is asked for.
type wired struct {
	name  string
	calls []string
	out   bool
	level pgpio.Level
	err   error
}

func (w *wired) note(call string)           { w.calls = append(w.calls, call) }
func (w *wired) String() string             { return w.name }
func (w *wired) Halt() error                { return nil }
func (w *wired) Name() string               { return w.name }
func (w *wired) Number() int                { return 17 }
func (w *wired) Function() string           { return string(w.Func()) }
func (w *wired) SupportedFuncs() []pin.Func { return nil }
func (w *wired) SetFunc(pin.Func) error     { return nil }
func (w *wired) Pull() pgpio.Pull           { return pgpio.PullNoChange }
func (w *wired) DefaultPull() pgpio.Pull    { return pgpio.PullNoChange }
func (w *wired) WaitForEdge(time.Duration) bool {
	return false
}
func (w *wired) PWM(pgpio.Duty, physic.Frequency) error { return errors.New("no") }
func (w *wired) In(pgpio.Pull, pgpio.Edge) error {
	w.note("in")
	w.out = false
	return w.err
}
func (w *wired) Read() pgpio.Level {
	w.note("read")
	w.out = false
	return w.level
}
func (w *wired) Out(l pgpio.Level) error {
	w.note("out " + l.String())
	if w.err == nil {
		w.out, w.level = true, l
	}
	return w.err
}
func (w *wired) Func() pin.Func {
	w.note("func")
	if w.out {
		return pgpio.OUT_HIGH
	}
	return pin.FuncNone
}

// mapped is a memory-mapped pin: asking changes nothing.
type mapped struct{ wired }

func (m *mapped) FastRead() pgpio.Level {
	m.note("fastread")
	return m.level
}

func register(t *testing.T, p pgpio.PinIO, aliases ...string) *gpio.Periph {
	t.Helper()
	must(t, gpioreg.Register(p))
	for _, a := range aliases {
		must(t, gpioreg.RegisterAlias(a, p.Name()))
	}
	t.Cleanup(func() {
		for _, name := range append(aliases, p.Name()) {
			if err := gpioreg.Unregister(name); err != nil {
				t.Error(err)
			}
		}
	})
	return gpio.NewPeriphWithoutDrivers(slog.New(slog.DiscardHandler))
}

func TestOutputIsNeverReadBack(t *testing.T) {
	w := &wired{name: "GPIO17"}
	o, stop := run(t, register(t, w))
	ctx := t.Context()
	must(t, o.Set(ctx, "GPIO17", gpio.High, "x"))
	if level, err := o.Get(ctx, "GPIO17"); level != gpio.High || err != nil {
		t.Errorf("get: %v, %v", level, err)
	}
	must(t, stop())
	if got := strings.Join(w.calls, ", "); got != "out High" || !w.out {
		t.Errorf("calls: %s", got)
	}
}

func TestI10_AliasesMeanOnePin(t *testing.T) {
	w := &wired{name: "GPIO17"}
	b := register(t, w, "P1_11", "17")
	o, _ := run(t, b)
	must(t, o.Set(t.Context(), "P1_11", gpio.High, "x"))
	must(t, o.Set(t.Context(), "GPIO17", gpio.Low, "x"))
	if got := strings.Join(w.calls, ", "); got != "out High, out Low" {
		t.Errorf("calls: %s", got)
	}
	for name, says := range map[string]string{
		"17": "a bare number", "gpio17": `did you mean "GPIO17"?`, "chip:3": "there are GPIO17", "chip:03": "there are", "": "there are",
	} {
		if _, err := b.Resolve(name); !errors.Is(err, gpio.ErrNoSuchPin) || !strings.Contains(err.Error(), says) {
			t.Errorf("%q: %v, want ErrNoSuchPin with %q", name, err, says)
		}
	}
	if _, err := gpio.NewOwner(b, []gpio.PinConfig{{Name: "GPIO17", Mode: gpio.Output}, {Name: "P1_11", Mode: gpio.Output}}, gpio.OwnerOptions{}); err == nil {
		t.Error("one pin could be configured under two names")
	}
}

func TestInputIsConfiguredOnceAndRead(t *testing.T) {
	w := &wired{name: "GPIO4", level: pgpio.High}
	o, _ := run(t, register(t, w))
	for range 2 {
		if level, err := o.Get(t.Context(), "GPIO4"); level != gpio.High || err != nil {
			t.Errorf("get: %v, %v", level, err)
		}
	}
	if got := strings.Join(w.calls, ", "); got != "func, in, read, read" {
		t.Errorf("calls: %s", got)
	}
}

// A relay that an earlier process left on must not drop because it is looked at.
func TestReadingALeftOverOutputDoesNotReleaseIt(t *testing.T) {
	t.Run("memory mapped", func(t *testing.T) {
		m := &mapped{wired{name: "GPIO17", out: true, level: pgpio.High}}
		o, _ := run(t, register(t, m))
		if level, err := o.Get(t.Context(), "GPIO17"); level != gpio.High || err != nil {
			t.Errorf("get: %v, %v", level, err)
		}
		if got := strings.Join(m.calls, ", "); got != "func, fastread" || !m.out {
			t.Errorf("calls: %s", got)
		}
	})
	t.Run("no way to look", func(t *testing.T) {
		w := &wired{name: "GPIO17", out: true}
		o, _ := run(t, register(t, w))
		if _, err := o.Get(t.Context(), "GPIO17"); !errors.Is(err, gpio.ErrBusy) {
			t.Errorf("get: %v, want ErrBusy", err)
		}
		if got := strings.Join(w.calls, ", "); got != "func" || !w.out {
			t.Errorf("calls: %s", got)
		}
	})
}

func TestI3_I6_LibraryErrorsKeepTheirMeaning(t *testing.T) {
	for text, want := range map[string]error{
		"line_request ioctl: device or resource busy":                     gpio.ErrBusy,
		"open: permission denied":                                         gpio.ErrNotPermitted,
		"bcm283x-gpio: subsystem gpiomem not initialized and gpioioctl n": gpio.ErrNotPermitted,
		"invalid argument":                                                gpio.ErrUnsupported,
		"input/output error":                                              gpio.ErrIO,
		"something else":                                                  gpio.ErrIO,
	} {
		t.Run(text, func(t *testing.T) {
			b := register(t, &wired{name: "GPIO17", err: errors.New(text)})
			for _, mode := range []gpio.Mode{gpio.Input, gpio.Output} {
				p, err := b.Open("GPIO17", gpio.Request{Mode: mode})
				if err == nil {
					err = p.Set(gpio.High, "x")
				}
				if !errors.Is(err, want) || !strings.Contains(err.Error(), "GPIO17") {
					t.Errorf("%s: %v, want %v", mode, err, want)
				}
			}
		})
	}
}

func TestI3_MissingDevicesAndPermissionsAreNamed(t *testing.T) {
	dev := t.TempDir()
	err := gpio.CheckDevices(dev)
	if !errors.Is(err, gpio.ErrUnsupported) || !strings.Contains(err.Error(), "there is no "+dev+"/gpiochip*") || !strings.Contains(err.Error(), `"sim"`) {
		t.Errorf("no devices: %v", err)
	}
	chip := filepath.Join(dev, "gpiochip0")
	must(t, os.WriteFile(chip, nil, 0o600))
	if err := gpio.CheckDevices(dev); err != nil {
		t.Errorf("device that can be opened: %v", err)
	}
	if os.Geteuid() == 0 {
		t.Log("the superuser may open everything: the case without permission is not tried")
		return
	}
	must(t, os.Chmod(chip, 0o040))
	if err := gpio.CheckDevices(dev); !errors.Is(err, gpio.ErrNotPermitted) || !strings.Contains(err.Error(), chip) || !strings.Contains(err.Error(), "usermod -aG") {
		t.Errorf("no permission: %v", err)
	}
}

// On a machine without pins the real back end refuses to start; where there are
// some it lists them.
func TestPeriphWithoutPinsIsRefused(t *testing.T) {
	b, err := gpio.OpenPeriph(slog.New(slog.NewTextHandler(io.Discard, nil)))
	if err == nil {
		t.Logf("this machine has pins: %v", b.Names())
		return
	}
	if !errors.Is(err, gpio.ErrUnsupported) && !errors.Is(err, gpio.ErrNotPermitted) {
		t.Errorf("error %v", err)
	}
}
