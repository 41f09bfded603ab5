package intent_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"testing/fstest"
	"testing/synctest"
	"time"

	"github.com/apollo-11/apollo11/fieldagent/gpio"
	"github.com/apollo-11/apollo11/fieldagent/intent"
	"github.com/apollo-11/apollo11/wire"
)

// request runs an intent with a request of the test's own.
func (b *bench) request(name string, a args, r intent.Request) (intent.Processed, map[string]any) {
	b.t.Helper()
	raw, err := wire.EncodeMap(a, wire.MaxArgsBytes)
	must(b.t, err)
	p := b.r.Run(b.t.Context(), name, raw, r)
	m, err := wire.DecodeMap(p.Payload)
	must(b.t, err)
	return p, m
}

// safety.md 5, 6: safe drives, says what it could not, and holds; release lets go.
func TestSafeAndRelease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, start := newBench(t, valves()...), time.Now()
		b.run(t.Context(), "gpio.write", "t1", args{"pin": "GPIO17", "level": 1})
		p, m := b.request("gpio.safe", nil, intent.Request{Cause: "t2", Order: 7, Hold: true})
		if r := wire.SafeReportOf(m); p.Code != wire.CodeOK || fmt.Sprint(r.Driven, r.Newer, r.NotMoved) != "[GPIO17 GPIO18] [] [GPIO27]" {
			t.Errorf("safe: %+v %v", p, m)
		}
		for _, c := range []struct {
			name string
			args args
			code wire.Code
		}{
			{"gpio.write", args{"pin": "GPIO17", "level": 1}, wire.CodeHeldSafe},
			{"gpio.pulse", args{"pin": "GPIO17", "width": "1s"}, wire.CodeHeldSafe},
			{"gpio.write", args{"pin": "GPIO17", "level": 0}, wire.CodeOK},
			{"gpio.write", args{"pin": "GPIO27", "level": 1}, wire.CodeOK}, // it can't be held
			{"gpio.safe", args{"pin": "GPIO27"}, wire.CodeUnsupported},
			{"gpio.safe", args{"pin": "GPIO4"}, wire.CodeUnsupported},
			{"gpio.safe", args{"pin": "GPIO5"}, wire.CodeNoSuchPin},
			{"gpio.release", args{"pin": "GPIO17"}, wire.CodeOK},
			{"gpio.write", args{"pin": "GPIO17", "level": 1}, wire.CodeOK},
			{"gpio.write", args{"pin": "GPIO18", "level": 0}, wire.CodeHeldSafe},
			{"gpio.release", nil, wire.CodeOK},
			{"gpio.write", args{"pin": "GPIO18", "level": 0}, wire.CodeOK},
		} {
			if p, _ := b.request(c.name, c.args, intent.Request{Cause: "t"}); p.Code != c.code {
				t.Errorf("%s %v: %+v, want %v", c.name, c.args, p, c.code)
			}
		}
		// An older one than what has begun is superseded, and moves nothing.
		n := len(b.board.Actuations())
		p, _ = b.request("gpio.safe", args{"pin": "GPIO17"}, intent.Request{Cause: "t", Order: 6})
		if w, _ := b.request("gpio.write", args{"pin": "GPIO18", "level": 1}, intent.Request{Cause: "t", Order: 6}); p.Code != wire.CodeSuperseded || w.Code != wire.CodeSuperseded {
			t.Errorf("%+v %+v", p, w)
		}
		if len(b.board.Actuations()) != n || time.Since(start) != 0 {
			t.Error("something moved")
		}
	})
}

// A copy of a safe that comes after its release drives once more, and holds nothing.
func TestARepeatedSafeHoldsNothing(t *testing.T) {
	b := newBench(t, valves()...)
	b.request("gpio.safe", nil, intent.Request{Cause: "t1", Order: 7, Hold: true})
	b.request("gpio.release", nil, intent.Request{Cause: "t2", Order: 8})
	if p, _ := b.request("gpio.safe", nil, intent.Request{Cause: "t1", Order: 7}); p.Code != wire.CodeOK {
		t.Errorf("the copy: %+v", p)
	}
	if p, _ := b.request("gpio.write", args{"pin": "GPIO17", "level": 1}, intent.Request{Cause: "t3", Order: 9}); p.Code != wire.CodeOK {
		t.Errorf("after it: %+v", p)
	}
}

// A release leaves alone what was held after it was given.
func TestAReleaseEndsNoNewerHold(t *testing.T) {
	b := newBench(t, valves()...)
	b.request("gpio.safe", args{"pin": "GPIO18"}, intent.Request{Cause: "t1", Order: 7, Hold: true})
	b.request("gpio.safe", args{"pin": "GPIO17"}, intent.Request{Cause: "t2", Order: 9, Hold: true})
	if p, m := b.request("gpio.release", nil, intent.Request{Cause: "t3", Order: 8}); p.Code != wire.CodeOK || fmt.Sprint(m["pins"]) != "[GPIO18]" {
		t.Errorf("release: %+v %v", p, m)
	}
	for pin, want := range map[string]wire.Code{"GPIO17": wire.CodeHeldSafe, "GPIO18": wire.CodeOK} {
		if p, _ := b.request("gpio.write", args{"pin": pin, "level": pin == "GPIO17"}, intent.Request{Cause: "t4", Order: 10}); p.Code != want {
			t.Errorf("%s: %+v, want %v", pin, p, want)
		}
	}
}

// What could not be driven is no end by something newer, whatever has begun elsewhere.
func TestSafeThatFailsIsNotSuperseded(t *testing.T) {
	b := newBench(t, valves()...)
	b.request("gpio.write", args{"pin": "GPIO17", "level": 1}, intent.Request{Cause: "t1", Order: 9})
	b.board.Fail(func(pin string, _ gpio.Level) error {
		if pin == "GPIO18" {
			return gpio.ErrIO
		}
		return nil
	})
	p, m := b.request("gpio.safe", nil, intent.Request{Cause: "t2", Order: 7, Hold: true})
	if r := wire.SafeReportOf(m); p.Code != wire.CodeIO || fmt.Sprint(r.Newer, r.NotMoved) != "[GPIO17] [GPIO27]" {
		t.Errorf("%+v %v", p, m)
	}
	b.board.Fail(nil)
}

// A15: what is asked before the pin moves is asked by whoever moves it.
func TestA15_CheckKeepsThePinWhereItIs(t *testing.T) {
	b := newBench(t, valves()...)
	n := len(b.board.Actuations())
	for name, a := range map[string]args{
		"gpio.write": {"pin": "GPIO17", "level": 1},
		"gpio.pulse": {"pin": "GPIO27", "width": "1s"},
		"gpio.safe":  {},
	} {
		p, _ := b.request(name, a, intent.Request{Cause: "t", Check: func() error { return gpio.ErrLate }})
		if p.Code != wire.CodeExpired {
			t.Errorf("%s: %+v", name, p)
		}
	}
	if len(b.board.Actuations()) != n {
		t.Error("something moved")
	}
}

// A1: a reload that exchanges the names of two lines, or renames one, does not move the
// end of a pulse to another line.
func TestA1_ReloadDuringAPulseEndsItAtItsLine(t *testing.T) {
	out := func(name, line string) gpio.PinConfig {
		return gpio.PinConfig{Name: name, Line: line, Mode: gpio.Output, Safe: level(gpio.Low)}
	}
	for name, after := range map[string][]gpio.PinConfig{
		"exchanged": {out("valve-1", "GPIO27"), out("valve-2", "GPIO17")},
		"renamed":   {out("inlet", "GPIO17"), out("valve-2", "GPIO27")},
		"taken out": {out("valve-2", "GPIO27")},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, out("valve-1", "GPIO17"), out("valve-2", "GPIO27"))
				start := time.Now()
				result := make(chan intent.Processed, 1)
				go func() {
					p, _ := b.request("gpio.pulse", args{"pin": "valve-1", "level": 1, "width": "5s"}, intent.Request{Cause: "p"})
					result <- p
				}()
				time.Sleep(time.Second)
				must(t, b.owner.Reload(t.Context(), after))
				p := <-result
				at := b.board.Actuations()
				if name == "taken out" {
					if p.Code != wire.CodeCancelled || !strings.Contains(p.Detail, "reloaded") || time.Since(start) != time.Second {
						t.Errorf("%+v", p)
					}
				} else if p.Code != wire.CodeOK || time.Since(start) != 5*time.Second || at[len(at)-1].Pin != "GPIO17" {
					t.Errorf("%+v after %v: %v", p, time.Since(start), at)
				}
				time.Sleep(24 * time.Hour)
				if b.board.Level("GPIO17") == gpio.High || b.board.Flips("GPIO27") != 0 {
					t.Errorf("at the pins: %s", b.trail(start))
				}
			})
		})
	}
}

// A8: a cancelled pulse towards the safe level ends there.
func TestA8_CancelledInversePulseStaysSafe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, valves()...)
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		p, m := b.full(ctx, "gpio.pulse", "t", args{"pin": "GPIO17", "level": 0, "width": "1m"})
		time.Sleep(time.Hour)
		if p.Code != wire.CodeCancelled || m["level"] != uint64(0) || p.Lease != nil || b.board.Flips("GPIO17") != 0 {
			t.Errorf("%+v %v", p, m)
		}
		// Its own end leads away from safe: that is a level like any other.
		p, m = b.full(t.Context(), "gpio.pulse", "t", args{"pin": "GPIO17", "level": 0, "width": "1m"})
		if p.Code != wire.CodeOK || m["level"] != uint64(1) || p.Lease == nil || p.Lease.Plain {
			t.Errorf("%+v %v", p, m)
		}
		if time.Sleep(11 * time.Minute); b.board.Level("GPIO17") != gpio.Low { // max_on
			t.Error("it stays on")
		}
	})
}

// A19: whatever the table of package wire declares has an executor here, and the other
// way round, and a line in the documents.
func TestA19_EveryDeclaredIntentIsHereAndDocumented(t *testing.T) {
	r := newRegistry(t, intent.BuiltIn(intent.Board{Pins: gone{}, Reboot: intent.RebootOptions{Command: []string{"true"},
		Root: fstest.MapFS{"proc/sys/kernel/random/boot_id": {Data: []byte("x")}}}}))
	docs, err := os.ReadFile("../../docs/operator.md")
	must(t, err)
	declared := map[string]bool{}
	for _, d := range wire.Declarations() {
		declared[d.Name] = true
		if _, refused := r.Check(d.Name, nil); refused != nil && refused.Code == wire.CodeUnknownIntent {
			t.Errorf("%s is declared in package wire and has no executor: add a file that adds it, see doc.go", d.Name)
		}
		if !strings.Contains(string(docs), "\n| `"+d.Name+"` |") {
			t.Errorf("%s has no line in the table of intents in docs/operator.md", d.Name)
		}
	}
	_, table, _ := strings.Cut(string(docs), "\n## What a board can do\n")
	table, _, _ = strings.Cut(table, "\n#")
	for line := range strings.Lines(table) {
		if name, row := strings.CutPrefix(line, "| `"); row {
			if name, _, _ = strings.Cut(name, "`"); !declared[name] {
				t.Errorf("docs/operator.md has a line for %s, which is not built in", name)
			}
		}
	}
	for _, name := range r.Names() {
		if !declared[name] {
			t.Errorf("%s has an executor and no declaration in package wire", name)
		}
	}
}

// What the owner of the pins says keeps its meaning: by the class the gateway decides
// whether it is done again without asking anybody.
func TestErrorsOfTheOwnerKeepTheirMeaning(t *testing.T) {
	table := []struct {
		err   error
		code  wire.Code
		class wire.Class
	}{
		{gpio.ErrUnknown, wire.CodeUnknown, wire.ClassUnknown},
		{gpio.ErrSuperseded, wire.CodeSuperseded, wire.ClassCancelled},
		{gpio.ErrHeldSafe, wire.CodeHeldSafe, wire.ClassRefused},
		{gpio.ErrLocal, wire.CodeLocal, wire.ClassRefused},
		{gpio.ErrLost, wire.CodeDependency, wire.ClassRetryable},
		{gpio.ErrLate, wire.CodeExpired, wire.ClassRefused},
		{gpio.ErrTimeDoubt, wire.CodeDependency, wire.ClassRetryable},
		{gpio.ErrMapChanged, wire.CodeMapChanged, wire.ClassRefused},
		{gpio.ErrNoSuchPin, wire.CodeNoSuchPin, wire.ClassRefused},
		{gpio.ErrNotPermitted, wire.CodeNotPermitted, wire.ClassRefused},
		{gpio.ErrUnsupported, wire.CodeUnsupported, wire.ClassRefused},
		{gpio.ErrNoLevel, wire.CodeUnsupported, wire.ClassRefused},
		{gpio.ErrBusy, wire.CodeBusy, wire.ClassRetryable},
		{gpio.ErrIO, wire.CodeIO, wire.ClassRetryable},
		{context.Canceled, wire.CodeCancelled, wire.ClassCancelled},
		{context.DeadlineExceeded, wire.CodeTimeout, wire.ClassRetryable},
		{gpio.ErrNotDone, wire.CodeDependency, wire.ClassRetryable},
		{errors.New("anything else"), wire.CodeFailed, wire.ClassPermanent},
	}
	known := map[error]bool{}
	for _, c := range table {
		known[c.err] = true
		r := newRegistry(t, intent.BuiltIn(intent.Board{Pins: refusing{err: fmt.Errorf("set a: %w", c.err)}}))
		raw, err := wire.EncodeMap(args{"pin": "a", "level": 1}, wire.MaxArgsBytes)
		must(t, err)
		if p := r.Run(t.Context(), "gpio.write", raw, intent.Request{}); p.Code != c.code || p.Code.Class() != c.class {
			t.Errorf("%v: %+v", c.err, p)
		}
		if both := intent.PinCode(fmt.Errorf("%w: %w", c.err, gpio.ErrUnknown)); both != wire.CodeUnknown {
			t.Errorf("%v, and nobody knows whether the pin has changed: %v", c.err, both)
		}
	}
	for _, err := range intent.PinErrors() {
		if !known[err] {
			t.Errorf("what %q means is not said here", err)
		}
	}
}

// An output that was never set has no level that could be read; waiting gives it none.
func TestReadOfAnOutputThatWasNeverSet(t *testing.T) {
	b := newBench(t, valves()...)
	p, _ := b.request("gpio.read", args{"pin": "GPIO27"}, intent.Request{})
	if p.Code != wire.CodeUnsupported || !strings.Contains(p.Detail, "has not been set yet: set it first, or give it a safe level in agent.yaml") {
		t.Errorf("%+v", p)
	}
	b.request("gpio.write", args{"pin": "GPIO27", "level": 1}, intent.Request{Cause: "t"})
	if p, m := b.request("gpio.read", args{"pin": "GPIO27"}, intent.Request{}); p.Code != wire.CodeOK || m["level"] != uint64(1) {
		t.Errorf("%+v %v", p, m)
	}
}

// refusing is a board whose owner refuses.
type refusing struct {
	gone
	err error
}

func (r refusing) Do(context.Context, gpio.Drive) error { return r.err }
