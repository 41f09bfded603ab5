package gpio_test

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/apollo-11/apollo11/fieldagent/gpio"
)

func TestBackEndIsNamedAndNeverGuessed(t *testing.T) {
	for _, kind := range []string{"", "SIM", "auto", "sysfs"} {
		_, err := gpio.OpenBoard(t.Context(), kind, gpio.BoardOptions{Log: slog.New(slog.DiscardHandler)})
		if err == nil || !strings.Contains(err.Error(), `say "sim"`) {
			t.Errorf("%q: %v", kind, err)
		}
	}
	b, err := gpio.OpenBoard(t.Context(), "sim", gpio.BoardOptions{Log: slog.New(slog.DiscardHandler)})
	must(t, err)
	if n := b.Names(); len(n) != 28 || n[0] != "GPIO0" || n[27] != "GPIO27" {
		t.Errorf("simulated pins: %v", n)
	}
}

func TestI10_NamesThatMeanNoPinAreRefusedWithWhatThereIs(t *testing.T) {
	b := newSim(t, gpio.SimOptions{Names: []string{"GPIO4", "RELAY1"}})
	for name, says := range map[string]string{
		"":       "there are GPIO4, RELAY1",
		"GPIO99": "there are GPIO4, RELAY1",
		"gpio4":  `did you mean "GPIO4"?`,
		"4":      "a bare number",
	} {
		_, err := b.Resolve(name)
		if !errors.Is(err, gpio.ErrNoSuchPin) || !strings.Contains(err.Error(), says) {
			t.Errorf("%q: %v, want ErrNoSuchPin with %q", name, err, says)
		}
	}
	if line, err := newSim(t, gpio.SimOptions{}).Resolve("P1_11"); err != nil || line != "GPIO17" {
		t.Errorf("P1_11 is %q, %v", line, err)
	}
	if _, err := gpio.NewSim(gpio.SimOptions{Names: []string{"A", "A"}}); err == nil {
		t.Error("a doubled name was accepted")
	}
}

func TestSetIsInTheTraceWhenItReturns(t *testing.T) {
	dir := t.TempDir()
	o := gpio.SimOptions{Trace: filepath.Join(dir, "trace"), Levels: filepath.Join(dir, "levels")}
	b := newSim(t, o)
	p, err := b.Open("GPIO17", gpio.Request{Mode: gpio.Output})
	must(t, err)
	for i, level := range []gpio.Level{gpio.High, gpio.High, gpio.Low, gpio.High} {
		must(t, p.Set(level, "token"))
		trace, err := gpio.ReadTrace(o.Trace)
		must(t, err)
		if len(trace) != i+1 || trace[i].Pin != "GPIO17" || trace[i].Level != level || trace[i].Cause != "token" || trace[i].At == 0 {
			t.Fatalf("trace %+v", trace)
		}
		levels, err := gpio.ReadLevels(o.Levels)
		must(t, err)
		if levels["GPIO17"] != level || len(levels) != 28 {
			t.Fatalf("levels %v", levels)
		}
		if b.Level("GPIO17") != level {
			t.Fatal("the pin itself did not move")
		}
	}
	data, err := os.ReadFile(o.Trace)
	must(t, err)
	if first, _, _ := strings.Cut(string(data), "\n"); !strings.HasPrefix(first, `{"t":`) || !strings.HasSuffix(first, `,"pin":"GPIO17","level":1,"cause":"token"}`) {
		t.Errorf("trace line %s", first)
	}
	// Another process: the pin kept its level, and the trace goes on.
	again := newSim(t, o)
	if again.Level("GPIO17") != gpio.High {
		t.Error("the level did not survive a restart")
	}
}

func TestTraceThatCannotBeWrittenKeepsThePinStill(t *testing.T) {
	b := newSim(t, gpio.SimOptions{Trace: filepath.Join(t.TempDir(), "missing", "trace")})
	p, err := b.Open("GPIO17", gpio.Request{Mode: gpio.Output})
	must(t, err)
	if err := p.Set(gpio.High, "x"); !errors.Is(err, gpio.ErrIO) {
		t.Errorf("set: %v, want ErrIO", err)
	}
	if b.Level("GPIO17") != gpio.Low || len(b.Actuations()) != 0 {
		t.Error("the pin moved without a trace")
	}
}

func TestReadTraceReportsWhatIsNotAnActuation(t *testing.T) {
	name := filepath.Join(t.TempDir(), "trace")
	trace, err := gpio.ReadTrace(name)
	if err != nil || trace != nil {
		t.Errorf("no file: %v, %v", trace, err)
	}
	const good = `{"t":1,"pin":"A","level":1,"cause":"c"}`
	for content, want := range map[string]string{
		good + "\n" + good:              "line 2: it is not finished",
		good + "\nnonsense\n":           "line 2",
		`{"pin":"A","level":2}` + "\n":  "neither 0 nor 1",
		`{"pin":"A","level":"1"` + "\n": "line 1",
	} {
		must(t, os.WriteFile(name, []byte(content), 0o600))
		if _, err := gpio.ReadTrace(name); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", content, err, want)
		}
	}
}

func TestSpoiledLevelsFileIsReported(t *testing.T) {
	name := filepath.Join(t.TempDir(), "levels")
	must(t, os.WriteFile(name, nil, 0o600))
	if _, err := gpio.NewSim(gpio.SimOptions{Levels: name}); err == nil || !strings.Contains(err.Error(), "delete it") {
		t.Errorf("error %v", err)
	}
}

// TestLevelsGoWhereALinkPoints: the levels are what pins keep by themselves, and no disk
// on which a board's data lie can hold them up.
func TestLevelsGoWhereALinkPoints(t *testing.T) {
	link, there := filepath.Join(t.TempDir(), "levels"), filepath.Join(t.TempDir(), "levels")
	must(t, os.Symlink(there, link))
	p, err := newSim(t, gpio.SimOptions{Levels: link}).Open("GPIO17", gpio.Request{Mode: gpio.Output})
	must(t, err)
	must(t, p.Set(gpio.High, "x"))
	if levels, err := gpio.ReadLevels(there); err != nil || levels["GPIO17"] != gpio.High {
		t.Errorf("where the link points: %v, %v", levels, err)
	}
	if to, err := os.Readlink(link); err != nil || to != there {
		t.Errorf("the link: %q, %v", to, err)
	}
}

func TestSimulatedPinKeepsToItsMode(t *testing.T) {
	b := newSim(t, gpio.SimOptions{})
	in, err := b.Open("GPIO5", gpio.Request{Mode: gpio.Input})
	must(t, err)
	if _, err := b.Open("GPIO5", gpio.Request{Mode: gpio.Output}); !errors.Is(err, gpio.ErrBusy) {
		t.Errorf("second open: %v, want ErrBusy", err)
	}
	if err := in.Set(gpio.High, ""); !errors.Is(err, gpio.ErrUnsupported) {
		t.Errorf("set of an input: %v", err)
	}
	b.Drive("GPIO5", gpio.High)
	if level, err := in.Get(); level != gpio.High || err != nil {
		t.Errorf("input reads %v, %v", level, err)
	}
	out, err := b.Open("GPIO6", gpio.Request{Mode: gpio.Output})
	must(t, err)
	if _, err := out.Get(); !errors.Is(err, gpio.ErrNoLevel) {
		t.Errorf("get before the first set: %v, want ErrNoLevel", err)
	}
	must(t, out.Set(gpio.High, ""))
	b.Drive("GPIO6", gpio.Low)
	if level, err := out.Get(); level != gpio.High || err != nil {
		t.Errorf("the commanded level is %v, %v", level, err)
	}
}

func newSim(t *testing.T, o gpio.SimOptions) *gpio.Sim {
	t.Helper()
	s, err := gpio.NewSim(o)
	must(t, err)
	return s
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
