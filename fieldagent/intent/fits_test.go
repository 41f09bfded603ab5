package intent_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/apollo-11/apollo11/fieldagent/gpio"
	"github.com/apollo-11/apollo11/fieldagent/intent"
	"github.com/apollo-11/apollo11/wire"
)

// TestA19_ExecutorsDoWhatIsDeclared: what a declaration says is what the executor does, so
// that an intent that is declared wrongly, not only one that is declared in part, is
// noticed. It plays the examples that its arguments declare, so a new one is played
// without being named here.
func TestA19_ExecutorsDoWhatIsDeclared(t *testing.T) {
	for _, d := range wire.Declarations() {
		for _, fault := range misfits(t, d, nil) {
			t.Errorf("%s: %s", d.Name, fault)
		}
	}
}

// TestA19_WrongDeclarationsAreNoticed: what the test above is for. What it can't see, the
// rules among traits see (package wire, TraitsFitEachOther).
func TestA19_WrongDeclarationsAreNoticed(t *testing.T) {
	wrong := map[string]map[string]func(*wire.Traits){
		wire.IntentGPIOWrite: {
			"still":              func(d *wire.Traits) { d.Still = true },
			"holds nothing":      func(d *wire.Traits) { d.Holds = wire.HoldsNothing },
			"leases nothing":     func(d *wire.Traits) { d.Leases = false },
			"a pulse":            func(d *wire.Traits) { d.Pulse = true },
			"a watch":            func(d *wire.Traits) { d.Watch = true },
			"a boot":             func(d *wire.Traits) { d.Reboots = true },
			"always safe":        func(d *wire.Traits) { d.Safe = true },
			"a release":          func(d *wire.Traits) { d.Release = true },
			"undone by releases": func(d *wire.Traits) { d.Undo = wire.UndoRelease },
			"undone by nothing":  func(d *wire.Traits) { d.Undo = wire.UndoNothing },
		},
		wire.IntentGPIORead: {
			"moving":       func(d *wire.Traits) { d.Still = false },
			"leasing":      func(d *wire.Traits) { d.Leases = true },
			"to be undone": func(d *wire.Traits) { d.Undo = wire.UndoLevel },
		},
		wire.IntentGPIOPulse: {
			"repeatable":     func(d *wire.Traits) { d.Repeatable = true },
			"leases nothing": func(d *wire.Traits) { d.Leases = false },
			"no pulse":       func(d *wire.Traits) { d.Pulse = false },
			"still":          func(d *wire.Traits) { d.Still = true },
		},
		wire.IntentGPIOWatch: {
			"no watch": func(d *wire.Traits) { d.Watch = false },
			"a pulse":  func(d *wire.Traits) { d.Pulse = true },
		},
		wire.IntentSafe: {
			"not always safe":      func(d *wire.Traits) { d.Safe = false },
			"leasing":              func(d *wire.Traits) { d.Leases = true },
			"undone by a level":    func(d *wire.Traits) { d.Undo = wire.UndoLevel },
			"still":                func(d *wire.Traits) { d.Still = true },
			"holds what it is not": func(d *wire.Traits) { d.Holds = wire.HoldsNothing },
		},
		wire.IntentRelease: {
			"no release": func(d *wire.Traits) { d.Release = false },
			"moving":     func(d *wire.Traits) { d.Still = false },
		},
		wire.IntentReboot: {"no boot": func(d *wire.Traits) { d.Reboots = false }},
	}
	for name, flips := range wrong {
		for what, flip := range flips {
			d, _ := wire.Declared(name)
			if flip(&d.Traits); len(misfits(t, d, nil)) == 0 {
				t.Errorf("%s was declared wrongly, as %s, and nobody noticed", name, what)
			}
		}
	}
}

// misfits plays the examples of an intent, from either level of its output, and says in
// what they are not as declared.
func misfits(t *testing.T, d wire.Declaration, wrong plant) []string {
	faults := map[string]bool{}
	some := trait{}
	for _, all := range []bool{true, false} {
		for _, before := range []gpio.Level{gpio.Low, gpio.High} {
			synctest.Test(t, func(t *testing.T) {
				p := newPlay(t, d, all, before, wrong)
				some = p.examine(some)
				for _, f := range p.faults {
					faults[f] = true
				}
			})
		}
	}
	if !d.Reboots {
		for what, c := range map[string]struct{ declared, seen bool }{
			"leases": {d.Leases, some.leases}, "moves": {!d.Still, some.moves}, "watches": {d.Watch, some.watches}, "pulses": {d.Pulse, some.pulses},
			"releases": {d.Release, some.releases}, "moves a pin that it holds": {!d.Still && d.Holds == wire.HoldsPins, some.flips},
			"leaves another level": {d.Undo != wire.UndoNothing || d.Pulse, some.leaves},
		} {
			if c.declared != c.seen {
				faults[fmt.Sprintf("%s: %v, declared %v", what, c.seen, c.declared)] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(faults))
}

// trait is what an intent has done in any of its plays.
type trait struct {
	leases, moves, watches, pulses, releases bool
	flips                                    bool // its line had another level meanwhile
	leaves                                   bool // its line has another level afterwards
}

// play is one execution of an example, on a board of its own.
type play struct {
	*bench
	d      wire.Declaration
	w      *watched
	args   args
	act    wire.Act
	before gpio.Level
	all    bool // its example has all arguments
	faults []string
}

func newPlay(t *testing.T, d wire.Declaration, all bool, before gpio.Level, wrong plant) *play {
	t.Helper()
	pins := valves()
	pins[0].MaxOn = 24 * time.Hour // longer than any play
	return playOn(t, d, all, before, wrong, pins)
}

// playOn plays it with a pin map of its own.
func playOn(t *testing.T, d wire.Declaration, all bool, before gpio.Level, wrong plant, pins []gpio.PinConfig) *play {
	t.Helper()
	b := newBench(t, pins...)
	p := &play{bench: b, d: d, w: &watched{Owner: b.owner}, args: d.Example(all), before: before, all: all}
	b.r = p.registry(wrong)
	parsed, err := wire.ParseArgs(d.Name, p.args)
	must(t, err)
	p.act = wire.ActOf(d.Name, parsed)
	p.act.Traits = d.Traits // a wrong one is played as well
	p.act.Repeatable = d.Repeatable && p.act.MaxOn == 0
	if before == gpio.High {
		must(t, b.owner.Do(t.Context(), gpio.Drive{Pin: valve, Level: gpio.High}))
	}
	return p
}

// valve is the output of the examples. Low is its safe level.
const valve = "GPIO17"

func (p *play) fault(holds bool, format string, a ...any) {
	if !holds {
		p.faults = append(p.faults, fmt.Sprintf(format, a...))
	}
}

// execute runs the example in the time that it has by its declaration.
func (p *play) execute(order uint64, check error) (intent.Processed, map[string]any) {
	ctx, cancel := context.WithTimeout(p.t.Context(), wire.TimeoutFor(p.act))
	defer cancel()
	raw, err := wire.EncodeMap(p.args, wire.MaxArgsBytes)
	must(p.t, err)
	r := p.r.Run(ctx, p.d.Name, raw, intent.Request{Cause: fmt.Sprint("t", order), Order: order, Hold: p.d.Safe, Check: func() error { return check }})
	m, err := wire.DecodeMap(r.Payload)
	must(p.t, err)
	return r, m
}

func (p *play) examine(seen trait) trait {
	has := slices.Contains(p.r.Names(), p.d.Name)
	if p.d.Reboots { // that is played where it can be: here nothing boots
		p.fault(!has, "it needs no program that boots the board, and is declared to boot it")
		return seen
	}
	if p.fault(has, "a board with pins does not have it"); !has {
		return seen
	}
	p.asks()
	began, flips := time.Now(), p.board.Flips(valve)
	r, m := p.execute(7, nil)
	p.fault(r.Code == wire.CodeOK, "its example %v ends %v: %s", p.args, r.Code, r.Detail)
	p.fault(time.Since(began) == p.act.Lasts, "it takes %v, declared %v", time.Since(began), p.act.Lasts)
	seen.flips = seen.flips || p.board.Flips(valve) > flips
	seen.leaves = seen.leaves || p.board.Level(valve) != p.before
	seen.leases = seen.leases || r.Lease != nil
	seen.moves = seen.moves || len(p.w.drives)+len(p.w.safes) > 0
	seen.watches = seen.watches || p.w.listening > 0
	seen.pulses = seen.pulses || p.w.pulses > 0
	seen.releases = seen.releases || len(p.w.released) > 0
	p.drives()
	if now := uint64(map[gpio.Level]int{gpio.High: 1}[p.board.Level(valve)]); !p.d.Still && len(p.act.Pins) == 1 && !p.d.Safe {
		p.fault(m["pin"] == valve && m["level"] == now, "its answer does not say that %s has the level %d: %v", valve, now, m)
	}
	p.leases(r, m)
	p.again()
	p.undo()
	return seen
}

// asks holds that a question that is answered with no keeps every pin where it is.
func (p *play) asks() {
	if p.d.Still {
		return
	}
	n := len(p.board.Actuations())
	r, _ := p.execute(6, gpio.ErrLate)
	p.fault(r.Code == wire.CodeExpired && len(p.board.Actuations()) == n, "it does not ask before it moves: %v", r.Code)
	p.w.drives, p.w.safes, p.w.pulses = nil, nil, 0
}

// drives looks at what it has asked of the owner of the pins.
func (p *play) drives() {
	for _, x := range p.w.drives {
		p.fault(p.act.Holds == wire.HoldsPins && slices.Contains(p.act.Pins, x.Pin), "it drives %s and is declared to hold %v of %v", x.Pin, p.act.Holds, p.act.Pins)
		p.fault(x.Order == 7 && x.Check != nil, "it drives without number or question: %+v", x)
	}
	for _, x := range p.w.safes {
		p.fault(x.Order == 7 && x.Check != nil, "it drives the safe level without number or question: %+v", x)
		p.fault(p.act.Holds == wire.HoldsPins && (x.Lines != nil || len(p.act.Pins) == 0), "it drives all safe levels and is declared to hold %v of %v", p.act.Holds, p.act.Pins)
		p.fault(!x.Hold || p.d.Safe, "it holds outputs at their safe levels and is not declared to be safe")
	}
	for _, order := range p.w.released {
		p.fault(order == 7, "it releases without its number")
	}
	p.fault(!p.d.Safe || len(p.w.drives) == 0 && len(p.w.safes) > 0, "it is declared always to be safe, and drives %v", p.w.drives)
	if p.act.Sets && len(p.w.drives) > 0 {
		p.fault(p.w.drives[0].Level == gpio.Level(p.act.Level), "it drives %v first, declared %v", p.w.drives[0].Level, p.act.Level)
	}
	if p.act.Sets {
		p.fault(p.board.Level(valve) == gpio.Level(p.act.Level != p.act.Pulse), "it leaves %v, declared to set %v, a pulse %v", p.board.Level(valve), p.act.Level, p.act.Pulse)
	}
}

// leases looks at what it says of an output that it leaves away from its safe level, and
// at what becomes of that.
func (p *play) leases(r intent.Processed, m map[string]any) {
	moved := len(p.w.drives) > 0
	away := moved && p.board.Level(valve) == gpio.High
	p.fault(!away || r.Lease != nil, "it leaves %s away from safe, and its end is not told", valve)
	p.fault(r.Lease == nil || p.d.Leases, "it leases an output and is declared not to")
	if p.act.MaxOn == 0 || !away {
		return
	}
	p.fault(m["pin"] == valve && m["max_on_ms"] == uint64(p.act.MaxOn.Milliseconds()) && m["until_ms"] != nil, "its answer does not say until when: %v", m)
	time.Sleep(p.act.MaxOn - time.Millisecond)
	p.fault(p.board.Level(valve) == gpio.High, "its lease ends before its time")
	time.Sleep(time.Second)
	p.fault(p.board.Level(valve) == gpio.Low, "max_on has passed and it is still on")
}

// again executes it twice.
func (p *play) again() {
	if p.act.MaxOn != 0 || p.d.Pulse {
		p.fault(!p.act.Repeatable, "it has a time and is declared repeatable")
		return
	}
	once := p.board.Level(valve)
	r, _ := p.execute(8, nil)
	p.fault(r.Code == wire.CodeOK && (!p.act.Repeatable || p.board.Level(valve) == once), "it is declared repeatable, and twice is not once")
}

// undo takes back what it did, as it is declared.
func (p *play) undo() {
	set := func(l gpio.Level) bool {
		r, _ := p.request(wire.IntentGPIOWrite, args{"pin": valve, "level": bool(l)}, intent.Request{Order: 10})
		return r.Code == wire.CodeOK && p.board.Level(valve) == l
	}
	switch p.d.Undo {
	case wire.UndoLevel:
		p.fault(!p.d.Still && set(p.before), "the level before does not take it back")
	case wire.UndoRelease:
		p.fault(!set(gpio.High), "nothing is held")
		_, _ = p.request(wire.IntentRelease, args{"pin": valve}, intent.Request{Order: 10})
		p.fault(set(gpio.High), "a release does not take it back")
	}
}

// Under LOCAL nothing moves that is declared to move something, and the rest is done.
func TestA19_LocalStopsWhatIsDeclaredToMove(t *testing.T) {
	for _, d := range wire.Declarations() {
		if d.Reboots {
			continue
		}
		synctest.Test(t, func(t *testing.T) {
			board, owner := localBench(t)
			r := newRegistry(t, intent.BuiltIn(intent.Board{Pins: owner}))
			raw, err := wire.EncodeMap(d.Example(true), wire.MaxArgsBytes)
			must(t, err)
			n := len(board.Actuations())
			p := r.Run(t.Context(), d.Name, raw, intent.Request{Cause: "t"})
			if want := map[bool]wire.Code{true: wire.CodeOK, false: wire.CodeLocal}[d.Still]; p.Code != want || len(board.Actuations()) != n {
				t.Errorf("%s under LOCAL: %+v, want %v", d.Name, p, want)
			}
		})
	}
}

// localBench is a board whose LOCAL switch is on.
func localBench(t *testing.T) (*gpio.Sim, *gpio.Owner) {
	t.Helper()
	board, err := gpio.NewSim(gpio.SimOptions{})
	must(t, err)
	key := gpio.PinConfig{Name: "key", Line: "GPIO9", Mode: gpio.Input}
	owner, err := gpio.NewOwner(board, append(valves(), key), gpio.OwnerOptions{Local: "key"})
	must(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- owner.Run(ctx) }()
	<-owner.Started()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil && !errors.Is(err, gpio.ErrLocal) && !strings.Contains(err.Error(), "LOCAL") {
			t.Error(err)
		}
	})
	board.Drive("GPIO9", gpio.High)
	time.Sleep(time.Second)
	return board, owner
}
