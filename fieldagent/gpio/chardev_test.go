package gpio_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/apollo-11/apollo11/fieldagent/gpio"
	"github.com/apollo-11/apollo11/wire"
)

// lines makes the lines of a chip, by name.
func lines(names ...string) (all []*gpio.FakeLine) {
	for _, n := range names {
		all = append(all, &gpio.FakeLine{Name: n})
	}
	return all
}

// pi is a board with two chips; some lines have no name, two have the same.
func pi() (*gpio.FakeKernel, *gpio.FakeChip) {
	main := &gpio.FakeChip{Label: "pinctrl-bcm2835", Lines: lines("ID_SDA", "-", "GPIO2", "", "RELAY", "STATUS")}
	return gpio.NewFakeKernel(main, &gpio.FakeChip{Label: "expander", Lines: lines("STATUS", "7")}), main
}

func boardOn(t *testing.T, k *gpio.FakeKernel) *gpio.Chardev {
	t.Helper()
	b, err := k.Board()
	must(t, err)
	return b
}

func ptr(l gpio.Level) *gpio.Level { return &l }

func TestI10_LinesAreNamedByChipAndOffsetOrByTheirOwnName(t *testing.T) {
	k, main := pi()
	k.Link("/dev/gpiochip4", main) // another path of the same chip, as on a Pi 5
	b := boardOn(t, k)
	want := "expander:0 expander:1 ID_SDA pinctrl-bcm2835:1 GPIO2 pinctrl-bcm2835:3 RELAY pinctrl-bcm2835:5"
	if got := strings.Join(b.Names(), " "); got != want {
		t.Errorf("names\n%s\nwant\n%s", got, want)
	}
	for name, is := range map[string]string{"GPIO2": "GPIO2", "pinctrl-bcm2835:2": "GPIO2", "pinctrl-bcm2835:3": "pinctrl-bcm2835:3", "expander:0": "expander:0"} {
		if got, err := b.Resolve(name); got != is || err != nil {
			t.Errorf("%s: %q, %v, want %q", name, got, err, is)
		}
	}
	for name, says := range map[string]string{
		"17":                 "a bare number means different pins",
		"7":                  "a bare number",
		"":                   "there are",
		"-":                  "there are",
		"gpio2":              `did you mean "GPIO2"?`,
		"P1_11":              "there are expander:0 to expander:1, ID_SDA, GPIO2, RELAY, pinctrl-bcm2835:0 to pinctrl-bcm2835:5",
		"STATUS":             "2 lines have this name: write expander:0 or pinctrl-bcm2835:5",
		"pinctrl-bcm2835:6":  "the chip has the lines 0 to 5",
		"pinctrl-bcm2835:02": "there are",
		"pinctrl-bcm2711:2":  `no chip "pinctrl-bcm2711"; there are the chips expander (lines 0 to 1), pinctrl-bcm2835 (lines 0 to 5)`,
		"gpiochip0:2":        "may change at the next boot: write pinctrl-bcm2835:2",
	} {
		if _, err := b.Resolve(name); !errors.Is(err, gpio.ErrNoSuchPin) || !strings.Contains(err.Error(), says) {
			t.Errorf("%q: %v\nwant ErrNoSuchPin with %q", name, err, says)
		}
	}
}

func TestI10_ChipsWithTheSameLabelAreAmbiguous(t *testing.T) {
	k := gpio.NewFakeKernel(&gpio.FakeChip{Label: "pcf8574", Lines: lines("A0")}, &gpio.FakeChip{Label: "pcf8574", Lines: lines("B0")})
	b := boardOn(t, k)
	if _, err := b.Resolve("pcf8574:0"); err == nil || !strings.Contains(err.Error(), "gpiochip0, gpiochip1 have the same label: use the line's own name") {
		t.Errorf("%v", err)
	}
	p, err := b.Open("B0", gpio.Request{Mode: gpio.Output, Initial: ptr(gpio.High)})
	must(t, err)
	must(t, p.Close())
}

// I8: an active-low relay that is off when the agent comes and goes sees no edge
// at all, and one that is left on sees one: to its safe level.
func TestI8_NoEdgeAtStartAndRestartOfAnActiveLowOutput(t *testing.T) {
	k, main := pi()
	relay := main.Lines[4]
	k.Probe(relay, true) // its pull-up holds it off
	flips := k.Look(relay).Flips
	c := gpio.PinConfig{Name: "valve", Line: "RELAY", Mode: gpio.Output, ActiveLow: true, Safe: ptr(gpio.Low)}
	for range 5 {
		_, stop := run(t, boardOn(t, k), c)
		must(t, stop())
	}
	if l := k.Look(relay); l.Flips != flips || !l.Output || !l.Driven {
		t.Errorf("%d edges, line %+v", l.Flips-flips, l)
	}
	o, stop := run(t, boardOn(t, k), c)
	must(t, o.Set(t.Context(), "valve", gpio.High, "t1"))
	if l := k.Look(relay); l.Driven || l.Flips != flips+1 {
		t.Errorf("on: line %+v", l)
	}
	must(t, stop())
	if l := k.Look(relay); !l.Driven || l.Flips != flips+2 {
		t.Errorf("stopped: line %+v", l)
	}
}

// An output without a safe level is held, so that nobody else gets it, but not
// moved, whatever it was; its first level comes together with the direction.
func TestI8_OutputWithoutSafeLevelIsOnlyHeld(t *testing.T) {
	for _, activeLow := range []bool{false, true} {
		k, main := pi()
		line := main.Lines[4]
		k.Probe(line, activeLow)
		flips := k.Look(line).Flips
		o, stop := run(t, boardOn(t, k), gpio.PinConfig{Name: "RELAY", Mode: gpio.Output, ActiveLow: activeLow, Bias: gpio.PullUp})
		if _, err := o.Get(t.Context(), "RELAY"); !errors.Is(err, gpio.ErrNoLevel) {
			t.Errorf("level before the first command: %v", err)
		}
		if l := k.Look(line); l.Flips != flips || l.Output || k.Open() != 1 {
			t.Errorf("held line %+v", l)
		}
		must(t, o.Set(t.Context(), "RELAY", gpio.High, "t"))
		if l := k.Look(line); l.Flips != flips+1 || !l.Output || l.Driven == activeLow || l.Flags&(1<<8) == 0 {
			t.Errorf("set line %+v", l)
		}
		if level, err := o.Get(t.Context(), "RELAY"); level != gpio.High || err != nil {
			t.Errorf("get: %v, %v", level, err)
		}
		must(t, stop())
		if k.Open() != 0 {
			t.Error("the line was not given back")
		}
	}
}

func TestLookingAtALineChangesNothing(t *testing.T) {
	k, main := pi()
	line := main.Lines[2]
	line.Output, line.Driven = true, true // an earlier process has left it so
	o, _ := run(t, boardOn(t, k))
	if level, err := o.Get(t.Context(), "GPIO2"); level != gpio.High || err != nil {
		t.Errorf("get: %v, %v", level, err)
	}
	if l := k.Look(line); !l.Output || !l.Driven || l.Flips != 0 || l.Flags != 0 {
		t.Errorf("line %+v", l)
	}
}

func TestInputIsRequestedAsConfigured(t *testing.T) {
	k, main := pi()
	line := main.Lines[2]
	o, _ := run(t, boardOn(t, k), gpio.PinConfig{Name: "door", Line: "GPIO2", Mode: gpio.Input, ActiveLow: true, Bias: gpio.PullDown, Debounce: 20_000_000})
	if l := k.Look(line); l.Flags != 1<<1|1<<2|1<<9 || l.Micros != 20_000 {
		t.Errorf("flags %b, debounce %d µs", l.Flags, l.Micros)
	}
	if level, err := o.Get(t.Context(), "door"); level != gpio.High || err != nil {
		t.Errorf("a line that is low: %v, %v", level, err)
	}
}

// I6, A9: a line that somebody else has is named with who it is, keeps nobody else
// down, and is taken at its safe level when it is free. Where nothing is left to serve
// the start is refused, all faults at once.
func TestI6_A9_LineInUseIsReportedWithItsHolder(t *testing.T) {
	k, main := pi()
	main.Lines[0].Used = true
	main.Lines[2].Holder = "gpio-keys"
	main.Lines[3].Holder = "apollo-agent"
	taken := []gpio.PinConfig{
		{Name: "a", Line: "ID_SDA", Mode: gpio.Input}, {Name: "b", Line: "GPIO2", Mode: gpio.Output, Safe: ptr(gpio.High)},
		{Name: "c", Line: "pinctrl-bcm2835:3", Mode: gpio.Output, Safe: ptr(gpio.Low)},
	}
	o, err := gpio.NewOwner(boardOn(t, k), taken, gpio.OwnerOptions{})
	must(t, err)
	err = o.Run(t.Context())
	for _, want := range []string{`pin "a": open ID_SDA: pin in use: pinctrl-bcm2835:0 is taken without a name, so by the kernel`,
		`pin "b": open GPIO2: pin in use: pinctrl-bcm2835:2 is taken by "gpio-keys"`, "gpioinfo",
		`pin "c"`, "another agent on this board: stop it (systemctl stop apollo-agent)"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v\nwant %q in it", err, want)
		}
	}
	if !errors.Is(err, gpio.ErrBusy) || !errors.Is(err, syscall.EBUSY) {
		t.Errorf("error %v, want ErrBusy and EBUSY in it", err)
	}
	select {
	case <-o.Started():
		t.Error("it says that it has started")
	default:
	}
	if k.Open() != 0 {
		t.Errorf("%d lines are still held", k.Open())
	}
	// With one that is free the others are waited for.
	o, stop := run(t, boardOn(t, k), append(taken, gpio.PinConfig{Name: "d", Line: "RELAY", Mode: gpio.Output})...)
	if m := o.Missing(); len(m) != 3 || m["b"] == nil || !strings.Contains(m["b"].Error(), `taken by "gpio-keys"`) {
		t.Errorf("missing %v", m)
	}
	if err := o.Set(t.Context(), "b", gpio.Low, "t"); !errors.Is(err, gpio.ErrBusy) {
		t.Errorf("set: %v", err)
	}
	must(t, o.Set(t.Context(), "d", gpio.High, "t"))
	must(t, stop())
}

// A9: what was taken at the start is had, at its safe level, once it is free.
func TestA9_LineIsTakenWhenItIsFree(t *testing.T) {
	inBubble(t, func(t *testing.T, b *gpio.Sim, start time.Time) {
		b.Hold("GPIO2", "gpio-keys")
		o, _ := run(t, b, valve, gpio.PinConfig{Name: "lamp", Line: "GPIO3", Mode: gpio.Output})
		if o.Levels()["valve"] != wire.LevelUnknown {
			t.Errorf("levels %v", o.Levels())
		}
		time.Sleep(10 * time.Second)
		b.Hold("GPIO2", "")
		time.Sleep(2 * time.Second)
		if len(o.Missing()) != 0 || o.Levels()["valve"] != wire.LevelLow || b.Level("GPIO2") != gpio.High { // active low
			t.Errorf("missing %v, levels %v", o.Missing(), o.Levels())
		}
		must(t, o.Set(t.Context(), "valve", gpio.High, "t"))
	})
}

func TestI3_MissingPermissionNamesFileGroupAndCommand(t *testing.T) {
	chip := &gpio.FakeChip{Label: "x", Lines: lines("A")}
	k := gpio.NewFakeKernel()
	file := filepath.Join(t.TempDir(), "gpiochip0")
	must(t, os.WriteFile(file, nil, 0o660))
	must(t, os.Chmod(file, 0o660))
	k.Link(file, chip)
	k.Fail("open", syscall.EACCES)
	_, err := k.Board()
	for _, want := range []string{file, "it belongs to the group", "usermod -aG"} {
		if !errors.Is(err, gpio.ErrNotPermitted) || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want ErrNotPermitted with %q", err, want)
		}
	}
	must(t, os.Chmod(file, 0o600))
	if _, err := k.Board(); err == nil || !strings.Contains(err.Error(), "udev rule") {
		t.Errorf("file of nobody's group: %v", err)
	}
	if _, err := gpio.NewFakeKernel().Board(); !errors.Is(err, gpio.ErrUnsupported) || !strings.Contains(err.Error(), "no /dev/gpiochip*") {
		t.Errorf("no devices: %v", err)
	}
}

func TestKernelThatIsTooOldIsNamed(t *testing.T) {
	k, _ := pi()
	k.Fail("lineinfo", syscall.EINVAL)
	_, err := k.Board()
	for _, want := range []string{"Linux 5.10 or later", "this kernel (", "gpio: periph"} {
		if !errors.Is(err, gpio.ErrUnsupported) || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
	k.Fail("lineinfo", nil)
	k.Fail("chipinfo", syscall.ENOTTY)
	if _, err := k.Board(); !errors.Is(err, gpio.ErrUnsupported) || !strings.Contains(err.Error(), "is no gpio chip") {
		t.Errorf("not a chip: %v", err)
	}
}

func TestErrnoKeepsItsMeaning(t *testing.T) {
	for _, c := range []struct {
		operation string
		errno     syscall.Errno
		want      error
	}{
		{"request", syscall.EINVAL, gpio.ErrUnsupported},
		{"request", syscall.EPERM, gpio.ErrNotPermitted},
		{"request", syscall.EIO, gpio.ErrIO},
		{"request", syscall.Errno(524), gpio.ErrUnsupported},
		{"adopt", syscall.EMFILE, gpio.ErrIO},
		{"set", syscall.EIO, gpio.ErrIO},
		{"set", syscall.ENOMEM, gpio.ErrIO},
		{"set", syscall.ENODEV, gpio.ErrGone},
		{"set", syscall.EPERM, gpio.ErrNotPermitted},
	} {
		k, _ := pi()
		b := boardOn(t, k)
		k.Fail(c.operation, c.errno)
		p, err := b.Open("RELAY", gpio.Request{Mode: gpio.Output, Initial: ptr(gpio.Low)})
		if err == nil {
			err = p.Set(gpio.High, "x")
		}
		if !errors.Is(err, c.want) || !errors.Is(err, c.errno) || !strings.Contains(err.Error(), "RELAY") {
			t.Errorf("%s with %v: %v, want %v", c.operation, c.errno, err, c.want)
		}
	}
}

// A chip that goes and comes back, perhaps under another number, does not need a
// restart; while it is away the error says so, and the safe level comes first.
func TestChipThatComesBackIsOpenedAgain(t *testing.T) {
	k, _ := pi()
	usb := &gpio.FakeChip{Name: "gpiochip2", Label: "usb", Lines: lines("U0")}
	k.Plug("/dev/gpiochip2", usb)
	o, _ := run(t, boardOn(t, k), gpio.PinConfig{Name: "pump", Line: "usb:0", Mode: gpio.Output, Safe: ptr(gpio.Low)})
	ctx := t.Context()
	must(t, o.Set(ctx, "pump", gpio.High, "t1"))
	k.Unplug("/dev/gpiochip2")
	for range 2 {
		if err := o.Set(ctx, "pump", gpio.High, "t2"); !errors.Is(err, gpio.ErrGone) || !errors.Is(err, gpio.ErrIO) {
			t.Errorf("without the chip: %v", err)
		}
	}
	usb.Name = "gpiochip5"
	k.Plug("/dev/gpiochip5", usb)
	must(t, o.Set(ctx, "pump", gpio.High, "t3"))
	if l := k.Look(usb.Lines[0]); !l.Driven {
		t.Errorf("line %+v", l)
	}
	// Another chip of that name is not taken for it.
	k.Unplug("/dev/gpiochip5")
	k.Plug("/dev/gpiochip5", &gpio.FakeChip{Name: "gpiochip5", Label: "usb", Lines: lines("OTHER")})
	for range 2 {
		if err := o.Set(ctx, "pump", gpio.High, "t4"); !errors.Is(err, gpio.ErrGone) {
			t.Errorf("another chip: %v", err)
		}
	}
}

// I7: released and taken again many times, by a reload each.
func TestI7_PinIsReleasedAndTakenAgainFiftyTimes(t *testing.T) {
	k, main := pi()
	stays := gpio.PinConfig{Name: "stays", Line: "RELAY", Mode: gpio.Output, ActiveLow: true, Safe: ptr(gpio.Low)}
	comes := gpio.PinConfig{Name: "comes", Line: "GPIO2", Mode: gpio.Output, Safe: ptr(gpio.Low)}
	o, stop := run(t, boardOn(t, k), stays)
	ctx := t.Context()
	must(t, o.Set(ctx, "stays", gpio.High, "t"))
	flips := k.Look(main.Lines[4]).Flips
	for range 50 {
		must(t, o.Reload(ctx, []gpio.PinConfig{stays, comes}))
		must(t, o.Set(ctx, "comes", gpio.High, "t"))
		must(t, o.Reload(ctx, []gpio.PinConfig{stays}))
		if err := o.Set(ctx, "comes", gpio.High, "t"); !errors.Is(err, gpio.ErrNoSuchPin) {
			t.Fatalf("a pin that was taken out: %v", err)
		}
		if l := k.Look(main.Lines[2]); l.Driven || k.Open() != 1 {
			t.Fatalf("line that was taken out %+v, %d lines held", l, k.Open())
		}
	}
	// I8: the pin that stays has seen nothing of it.
	if l := k.Look(main.Lines[4]); l.Flips != flips || l.Driven {
		t.Errorf("line that stays %+v", l)
	}
	must(t, stop())
	if k.Open() != 0 {
		t.Errorf("%d lines are still held", k.Open())
	}
}

func TestEdgesHaveLevelKernelTimeAndGaps(t *testing.T) {
	k, main := pi()
	line := main.Lines[2]
	line.Latches = true // as the PL061 does
	b := boardOn(t, k)
	p, err := b.Open("GPIO2", gpio.Request{Mode: gpio.Input, ActiveLow: true})
	must(t, err)
	to := make(chan gpio.Edge)
	for round := range 3 { // it can be turned off and on
		stop, err := p.(gpio.EdgePin).Edges(to)
		must(t, err)
		k.Probe(line, true)
		k.Probe(line, false)
		first, second := <-to, <-to
		if first.Level != gpio.Low || second.Level != gpio.High || first.Pin != "GPIO2" || second.Kernel-first.Kernel != 1_000_000 || first.At.IsZero() || second.Missed != 0 {
			t.Errorf("round %d: edges %+v, %+v", round, first, second)
		}
		must(t, stop())
		k.Probe(line, true) // nobody watches
		k.Probe(line, false)
		if l := k.Look(line); l.Flags&(3<<4) != 0 {
			t.Errorf("edge detection is still on: %b", l.Flags)
		}
	}
	must(t, p.Close())
}

// More edges than anybody keeps: the gap is counted, and what is left over is not
// told to a later watch.
func TestEdgesThatNobodyTakesAreCounted(t *testing.T) {
	k, main := pi()
	line := main.Lines[2]
	p, err := boardOn(t, k).Open("GPIO2", gpio.Request{Mode: gpio.Input, ActiveLow: true})
	must(t, err)
	to := make(chan gpio.Edge)
	stop, err := p.(gpio.EdgePin).Edges(to)
	must(t, err)
	const flood = 2000
	for i := range flood {
		k.Probe(line, i%2 == 0)
	}
	seen, missed := 0, uint64(0)
	for seen+int(missed) < flood {
		e := <-to
		seen++
		missed += e.Missed
	}
	if seen+int(missed) != flood || missed == 0 {
		t.Errorf("%d edges seen, %d missed, want %d together", seen, missed, flood)
	}
	// The reader is at it and nobody takes it.
	k.Probe(line, true)
	k.Probe(line, false)
	must(t, stop())
	stop, err = p.(gpio.EdgePin).Edges(to)
	must(t, err)
	k.Probe(line, true)
	if e := <-to; e.Level != gpio.Low || e.Kernel != k.Now()-time.Millisecond {
		t.Errorf("an edge of another time: %+v, it is %v", e, k.Now())
	}
	must(t, stop())
	must(t, p.Close())
}

func TestLineWithoutInterruptSaysSo(t *testing.T) {
	k, _ := pi()
	o, _ := run(t, boardOn(t, k), gpio.PinConfig{Name: "door", Line: "GPIO2", Mode: gpio.Input}, gpio.PinConfig{Name: "lamp", Line: "RELAY", Mode: gpio.Output})
	k.Fail("config", syscall.ENXIO)
	if _, err := o.Watch(t.Context(), "door"); !errors.Is(err, gpio.ErrUnsupported) || !strings.Contains(err.Error(), "has no interrupt") {
		t.Errorf("watch: %v", err)
	}
	if _, err := o.Watch(t.Context(), "lamp"); !errors.Is(err, gpio.ErrUnsupported) {
		t.Errorf("watch of an output: %v", err)
	}
	k.Fail("config", nil)
	if level, err := o.Get(t.Context(), "door"); level != gpio.Low || err != nil {
		t.Errorf("get: %v, %v", level, err)
	}
}

func TestWatchEndsWhenTheChipGoes(t *testing.T) {
	k, _ := pi()
	k.Plug("/dev/gpiochip2", &gpio.FakeChip{Name: "gpiochip2", Label: "usb", Lines: lines("U0")})
	o, _ := run(t, boardOn(t, k), gpio.PinConfig{Name: "door", Line: "usb:0", Mode: gpio.Input})
	edges, err := o.Watch(t.Context(), "door")
	must(t, err)
	k.Unplug("/dev/gpiochip2")
	if e, ok := <-edges; ok {
		t.Errorf("edge %+v", e)
	}
}

func TestConfigurationFaultsOfAMapAreReportedTogether(t *testing.T) {
	k, _ := pi()
	_, err := gpio.NewOwner(boardOn(t, k), []gpio.PinConfig{
		{Name: "a", Line: "RELAY", Mode: gpio.Output}, {Name: "b", Line: "pinctrl-bcm2835:4", Mode: gpio.Input},
		{Name: "c", Line: "STATUS", Mode: gpio.Input}, {Name: "d", Line: "4", Mode: gpio.Input},
		{Name: "e", Line: "GPIO2", Mode: gpio.Output, MaxOn: 1, OnLoss: gpio.FallSafe, Debounce: 1},
		{Name: "f", Line: "expander:9", Mode: gpio.Input, Safe: ptr(gpio.Low), MaxOn: 1, OnLoss: gpio.FallSafe, Debounce: 1, Bias: 9},
	}, gpio.OwnerOptions{})
	all := fmt.Sprint(err)
	for _, want := range []string{`"b" is the same line as "a"`, `"c": line: no such pin "STATUS": 2 lines`, `"d": line: no such pin "4": a bare number`,
		`"e": max_on and on_loss need a safe level`, `"e": max_on 1ns is out of range`, `"e": only an input can be debounced`,
		`"f": an input can't have a safe level`, `"f": an input can't have max_on`, `"f": an input can't have on_loss`, `"f": debounce 1ns`, `"f": bias 9`, "lines 0 to 1"} {
		if !strings.Contains(all, want) {
			t.Errorf("no %q in\n%s", want, all)
		}
	}
	if !slices.Contains(boardOn(t, k).Names(), "RELAY") || k.Open() != 0 {
		t.Error("something was opened")
	}
}
