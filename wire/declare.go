package wire

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Holding says which lines an execution holds, so that nothing else begins on them.
type Holding uint8

// The ways. What is not said holds everything: closed by default.
const (
	HoldsBoard   Holding = 0 // all lines of the board
	HoldsPins    Holding = 1 // those of the pins that its arguments name
	HoldsNothing Holding = 2
)

// Undo says what takes back what an intent has done.
type Undo uint8

// The ways. What is not said can't be taken back.
const (
	UndoNothing Undo = 0
	UndoLevel   Undo = 1 // its pin is set to the level that it had before
	UndoRelease Undo = 2 // its hold is released
)

// Traits are what everybody must know of an intent: doors, engine, agent, tools and
// documents read them here and nowhere else. The zero value is the most careful: it
// moves something, holds the whole board, and is never done again by itself.
type Traits struct {
	// Still says that it changes nothing at the board: it is done while the LOCAL
	// switch is on, has no place in the order at a line, and is not held by a gpio.safe.
	Still bool
	Holds Holding
	// Repeatable says that twice has the effect of once, so that an unknown outcome
	// may be cured by another attempt without asking anybody (C6).
	Repeatable bool
	// Watch says that it only waits for what happens: it takes no worker.
	Watch bool
	// Reboots says that the board boots, which takes the agent with it: how it went
	// is known at the next start (D6).
	Reboots bool
	// Safe says that it drives safe levels, whatever they are: always towards safe.
	Safe bool
	// Release says that it ends the hold of a gpio.safe.
	Release bool
	// Pulse says that it drives its level for as long as it lasts, and the other one
	// after that.
	Pulse bool
	// Leases says that it may leave an output away from its safe level when it is done.
	// The owner of the pins ends that by itself, and that is told.
	Leases bool
	// Undo says what takes it back. What sets a level or leases an output says one; only a
	// pulse ends by itself.
	Undo Undo
}

// Careful takes the word of an agent that an intent moves something (Hello.Actuating):
// it can only make an intent more careful than it is declared.
func (t Traits) Careful(actuates bool) Traits {
	if actuates && t.Still {
		return Traits{Reboots: t.Reboots}
	}
	return t
}

// Declaration is one intent, whole: what is not here is nowhere. One without Traits is
// taken to move something and to hold the whole board.
type Declaration struct {
	Name string
	// Text says in a few words what it does.
	Text string
	Traits
	// Arguments are in the order of the documents. They are parsed, written in their
	// canonical form and understood by what stands here, so that none can be forgotten.
	Arguments []Argument

	parse func(map[string]any) (Args, error)
	act   func(Args) Act
}

// Act is what an instruction does with its lines, as far as its own arguments tell.
type Act struct {
	Traits
	// Pins are those that it names; empty with HoldsPins means all outputs that have
	// a safe level.
	Pins []string
	// Sets says that it drives Level first. With Pulse it ends at the other level.
	Sets, Level bool
	// Lasts is how long it takes by itself: its time limit must leave room for that.
	Lasts time.Duration
	// MaxOn is the time after which the level falls back, 0 for what the pin map says.
	MaxOn time.Duration
}

// Moves reports whether it may change something at the board.
func (a Act) Moves() bool { return !a.Still }

// Towards reports whether it only brings lines to their safe levels: it waits for
// nothing then. safe returns the safe level of a pin, and false if it has none or is
// not known. A pulse moves away from one level and back, so it never is; nor is what names
// no level and is not declared Safe, as one that inverts a pin, whatever it turns out to do.
func (a Act) Towards(safe func(pin string) (level, ok bool)) bool {
	if a.Still || a.Holds != HoldsPins {
		return false
	}
	if a.Traits.Safe {
		return true
	}
	if !a.Sets || a.Pulse || len(a.Pins) == 0 {
		return false
	}
	for _, p := range a.Pins {
		if level, ok := safe(p); !ok || level != a.Level {
			return false
		}
	}
	return true
}

// Args is the checked argument set of a built-in intent, in its own type: GPIOWrite,
// GPIORead and so on, each beside its declaration.
type Args interface {
	// Map is the canonical form, which ParseArgs reads back to the same value.
	Map() map[string]any
}

// intent is a declaration together with the type of its arguments.
type intent[A Args] struct {
	name      string
	arguments []argument[A]
}

// declared is the table. Each file intent_*.go adds its own while the package is
// initialised, so that no list has to name it, and nothing ever changes it afterwards.
var declared = map[string]*Declaration{}

// declare adds an intent to the table.
func declare[A Args](name, text string, t Traits, arguments ...argument[A]) *intent[A] {
	if declared[name] != nil {
		panic("bug: " + name + " is declared twice")
	}
	in := &intent[A]{name, arguments}
	d := &Declaration{Name: name, Text: text, Traits: t, parse: in.parse, act: in.act}
	for _, a := range arguments {
		d.Arguments = append(d.Arguments, a.Argument)
	}
	declared[name] = d
	return in
}

func (in *intent[A]) parse(m map[string]any) (Args, error) {
	var a A
	for _, arg := range in.arguments {
		if err := arg.read(m, &a); err != nil {
			return nil, err
		}
	}
	return a, nil
}

// canonical is the map of an argument set, nil for an empty one.
func (in *intent[A]) canonical(a A) map[string]any {
	var m map[string]any
	for _, arg := range in.arguments {
		if v := arg.value(&a); v != nil {
			if m == nil {
				m = map[string]any{}
			}
			m[arg.Canonical] = v
		}
	}
	return m
}

// act is what arguments mean for lines and time; the most careful act if they are those
// of another intent.
func (in *intent[A]) act(args Args) Act {
	a, ok := args.(A)
	if !ok {
		return Act{}
	}
	act := Act{Traits: declared[in.name].Traits}
	for _, arg := range in.arguments {
		if arg.means != nil {
			arg.means(&a, &act)
		}
	}
	// "On for ten minutes" would begin anew.
	act.Repeatable = act.Repeatable && act.MaxOn == 0
	return act
}

// Declarations lists the built-in intents in the order of the documents: by name.
func Declarations() []Declaration {
	list := make([]Declaration, 0, len(declared))
	for _, d := range declared {
		list = append(list, *d)
	}
	slices.SortFunc(list, func(a, b Declaration) int { return strings.Compare(a.Name, b.Name) })
	return list
}

// Declared returns the declaration of a built-in intent.
func Declared(intent string) (Declaration, bool) {
	d, ok := declared[intent]
	if !ok {
		return Declaration{}, false
	}
	return *d, true
}

// TraitsOf returns the traits of any intent: the most careful ones of one that is not
// built in.
func TraitsOf(intent string) Traits {
	d, ok := declared[intent]
	if !ok {
		return Traits{}
	}
	return d.Traits
}

// BuiltIn reports whether ParseArgs knows the intent's arguments.
func BuiltIn(intent string) bool { return declared[intent] != nil }

// ParseArgs checks the arguments of a built-in intent. Values are those of JSON
// and CBOR decoders: nil, bool, int64, uint64, float64, string, []any,
// map[string]any. The same rules hold at every entry point, so that a command
// means the same over MQTT, HTTP, the command line and on the wire. The error is
// an *ArgError.
func ParseArgs(intent string, m map[string]any) (Args, error) {
	d := declared[intent]
	if d == nil {
		return nil, &ArgError{Field: "", Problem: fmt.Sprintf("%q is not a built-in intent", clip(intent))}
	}
	if err := d.onlyKnown(m); err != nil {
		return nil, err
	}
	return d.parse(m)
}

// onlyKnown refuses an argument that the intent does not have.
func (d *Declaration) onlyKnown(m map[string]any) error {
	var known, unknown []string
	for _, a := range d.Arguments {
		known = append(known, a.Names()...)
	}
	for k := range m {
		if !slices.Contains(known, k) {
			unknown = append(unknown, k)
		}
	}
	if len(unknown) == 0 {
		return nil
	}
	slices.Sort(unknown)
	hint := d.Name + " takes no arguments"
	if len(known) > 0 {
		hint = d.Name + " takes " + strings.Join(known, ", ")
	}
	return &ArgError{clip(unknown[0]), "unknown argument", hint}
}

// Example are arguments as a person would write them: all of them, or those that are
// needed.
func (d Declaration) Example(all bool) map[string]any {
	m := map[string]any{}
	for _, a := range d.Arguments {
		if all || !a.Optional {
			m[a.Name] = a.Example
		}
	}
	return m
}

// ActOf is what checked arguments mean. nil is for the arguments of an intent that is
// not built in; of one that is built in nobody knows then what it does.
func ActOf(intent string, args Args) Act {
	d := declared[intent]
	if d == nil || args == nil {
		return Act{}
	}
	return d.act(args)
}

// ParseAct reads encoded arguments and says what they mean. Those of an intent that is
// not built in are not looked at. What can't be read gives the most careful act, and
// the reason.
func ParseAct(intent string, encoded RawMap) (Act, error) {
	if !BuiltIn(intent) {
		return Act{}, nil
	}
	m, err := DecodeMap(encoded)
	if err != nil {
		return Act{}, err
	}
	args, err := ParseArgs(intent, m)
	if err != nil {
		return Act{}, err
	}
	return ActOf(intent, args), nil
}
