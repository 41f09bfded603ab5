package intent_test

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/apollo-11/apollo11/fieldagent/gpio"
	"github.com/apollo-11/apollo11/fieldagent/intent"
	"github.com/apollo-11/apollo11/wire"
)

// watched notes what an executor asks of the owner.
type watched struct {
	*gpio.Owner
	drives []gpio.Drive
	safes  []gpio.Safe
}

func (w *watched) Do(ctx context.Context, d gpio.Drive) error {
	w.drives = append(w.drives, d)
	return w.Owner.Do(ctx, d)
}
func (w *watched) Pulse(ctx context.Context, d gpio.Drive, width time.Duration) (gpio.PulseEnd, error) {
	w.drives = append(w.drives, d)
	return w.Owner.Pulse(ctx, d, width)
}
func (w *watched) Safe(ctx context.Context, s gpio.Safe) (gpio.SafeDone, error) {
	w.safes = append(w.safes, s)
	return w.Owner.Safe(ctx, s)
}

// TestA19_ExecutorsDoWhatIsDeclared: what a declaration says is what the executor does, so
// that an intent that is declared wrongly, not only one that is declared in part, is
// noticed. A new intent brings an example here.
func TestA19_ExecutorsDoWhatIsDeclared(t *testing.T) {
	examples := map[string]args{
		"gpio.write": {"pin": "GPIO17", "level": 1}, "gpio.read": {"pin": "GPIO17"}, "gpio.pulse": {"pin": "GPIO17", "width": "1s"},
		"gpio.watch": {"pin": "GPIO4", "for": "1s"}, "gpio.safe": {}, "gpio.release": {}, "collect_metrics": {},
	}
	for _, d := range wire.Declarations() {
		a, ok := examples[d.Name]
		if !ok {
			if !d.Reboots {
				t.Errorf("%s has no example here", d.Name)
			}
			continue
		}
		t.Run(d.Name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { fits(t, d, a) })
		})
	}
}

// fits plays an example and holds what it does against its declaration.
func fits(t *testing.T, d wire.Declaration, a args) {
	b := newBench(t, valves()...)
	w := &watched{Owner: b.owner}
	b.r = newRegistry(t, intent.BuiltIn(intent.Board{Pins: w}))
	raw, err := wire.EncodeMap(a, wire.MaxArgsBytes)
	must(t, err)
	act, err := wire.ParseAct(d.Name, raw)
	must(t, err)
	decoded, err := wire.DecodeMap(raw)
	must(t, err)
	parsed, err := wire.ParseArgs(d.Name, decoded)
	must(t, err)
	again, err := wire.ParseArgs(d.Name, parsed.Map())
	if err != nil || again != parsed {
		t.Errorf("%s: the canonical form %v reads back as %v, %v", d.Name, parsed.Map(), again, err)
	}
	p, _ := b.request(d.Name, a, intent.Request{Cause: "t", Order: 7, Check: func() error { return nil }})
	if p.Code != wire.CodeOK {
		t.Fatalf("%s: %+v", d.Name, p)
	}
	if moved := len(w.drives)+len(w.safes) > 0; moved != act.Moves() {
		t.Errorf("%s moves: %v, declared %v", d.Name, moved, act.Moves())
	}
	for _, x := range w.drives {
		if act.Holds != wire.HoldsPins || !slices.Contains(act.Pins, x.Pin) {
			t.Errorf("%s drives %s and is declared to hold %v of %v", d.Name, x.Pin, act.Holds, act.Pins)
		}
		if x.Order != 7 || x.Check == nil {
			t.Errorf("%s drives without number or question: %+v", d.Name, x)
		}
	}
	if len(w.drives) > 0 && w.drives[0].Level != gpio.Level(act.Level) && act.Sets {
		t.Errorf("%s drives %v first, declared %v", d.Name, w.drives[0].Level, act.Level)
	}
	once := b.board.Level("GPIO17")
	if once == gpio.High && p.Lease == nil {
		t.Errorf("%s leaves GPIO17 away from safe and its end is not told", d.Name)
	}
	if act.Sets && !act.Pulse { // from either level
		b.request(d.Name, a, intent.Request{Cause: "t2", Order: 7})
		if l := b.board.Level("GPIO17"); l != gpio.Level(act.Level) {
			t.Errorf("%s is declared to set %v and sets %v", d.Name, act.Level, l)
		}
	}
	if act.Repeatable || !act.Moves() {
		b.request(d.Name, a, intent.Request{Cause: "t3", Order: 7})
		if b.board.Level("GPIO17") != once {
			t.Errorf("%s is declared repeatable, and twice is not once", d.Name)
		}
	}
}
