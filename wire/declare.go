package wire

import (
	"fmt"
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
}

// Careful takes the word of an agent that an intent moves something (Hello.Actuating):
// it can only make an intent more careful than it is declared.
func (t Traits) Careful(actuates bool) Traits {
	if actuates && t.Still {
		return Traits{Reboots: t.Reboots}
	}
	return t
}

// argument is a name and what it means, for people and tools.
type argument struct {
	name, text string
}

// Declaration is one intent, whole: what is not here is nowhere. One without Traits is
// taken to move something and to hold the whole board.
type Declaration struct {
	Name string
	// Text says in a few words what it does.
	Text string
	Traits
	// Arguments are their names and what they mean, in the order of the documents.
	arguments []argument
	parse     func(map[string]any) (Args, error)
	// act says what the arguments mean for lines and time; nil for nothing.
	act func(Args) Act
}

// Act is what an instruction does with its lines, as far as its own arguments tell.
type Act struct {
	Traits
	// Pins are those that it names; empty with HoldsPins means all outputs that have
	// a safe level.
	Pins []string
	// Sets says that it drives Level first. With Pulse it ends at the other level.
	Sets, Level, Pulse bool
	// Lasts is how long it takes by itself: its time limit must leave room for that.
	Lasts time.Duration
	// MaxOn is the time after which the level falls back, 0 for what the pin map says.
	MaxOn time.Duration
	// Release ends the hold of a gpio.safe.
	Release bool
}

// Moves reports whether it may change something at the board.
func (a Act) Moves() bool { return !a.Still }

// Towards reports whether it only brings lines to their safe levels: it waits for
// nothing then. safe returns the safe level of a pin, and false if it has none or is
// not known. A pulse moves away from one level and back, so it never is.
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

// declarations is the table. Its order is that of the documents.
var declarations = []Declaration{
	{
		Name: IntentGPIOWrite, Text: "set an output", Traits: Traits{Holds: HoldsPins, Repeatable: true},
		arguments: []argument{argPin, argLevel, {"max_on", "time after which the output goes to its safe level by itself"}},
		parse: func(m map[string]any) (Args, error) {
			pin, err := pinArg(m)
			if err != nil {
				return nil, err
			}
			level, err := levelArg(m, false)
			if err != nil {
				return nil, err
			}
			maxOn, err := leaseSpan.arg(m)
			if err != nil {
				return nil, err
			}
			return GPIOWrite{pin, level, maxOn}, nil
		},
		act: func(args Args) Act {
			a := args.(GPIOWrite)
			return Act{Pins: []string{a.Pin}, Sets: true, Level: a.Level, MaxOn: a.MaxOn}
		},
	},
	{
		Name: IntentGPIORead, Text: "read a pin", Traits: Traits{Still: true, Holds: HoldsPins, Repeatable: true},
		arguments: []argument{argPin},
		parse: func(m map[string]any) (Args, error) {
			pin, err := pinArg(m)
			if err != nil {
				return nil, err
			}
			return GPIORead{pin}, nil
		},
		act: func(args Args) Act { return Act{Pins: []string{args.(GPIORead).Pin}} },
	},
	{
		Name: IntentGPIOPulse, Text: "set an output for a time, timed by the agent", Traits: Traits{Holds: HoldsPins},
		arguments: []argument{argPin, {"level", "of the pulse, 1 if it is left out"}, {"width", "how long the pulse lasts"}},
		parse: func(m map[string]any) (Args, error) {
			pin, err := pinArg(m)
			if err != nil {
				return nil, err
			}
			level, err := levelArg(m, true)
			if err != nil {
				return nil, err
			}
			width, err := pulseSpan.arg(m)
			if err != nil {
				return nil, err
			}
			return GPIOPulse{pin, level, width}, nil
		},
		act: func(args Args) Act {
			a := args.(GPIOPulse)
			return Act{Pins: []string{a.Pin}, Sets: true, Level: a.Level, Pulse: true, Lasts: a.Width}
		},
	},
	{
		Name: IntentGPIOWatch, Text: "report the edges of an input for a time",
		Traits:    Traits{Still: true, Holds: HoldsNothing, Repeatable: true, Watch: true},
		arguments: []argument{argPin, {"edge", "rising, falling or both"}, {"for", "how long"}, {"every", "time between two reports"}},
		parse:     watchArgs,
		act: func(args Args) Act {
			a := args.(GPIOWatch)
			return Act{Pins: []string{a.Pin}, Lasts: a.For}
		},
	},
	{
		Name: IntentSafe, Text: "drive outputs to their safe levels and hold them there",
		Traits:    Traits{Holds: HoldsPins, Repeatable: true, Safe: true},
		arguments: []argument{argPinOrAll},
		parse: func(m map[string]any) (Args, error) {
			pin, err := pinOrAllArg(m)
			if err != nil {
				return nil, err
			}
			return GPIOSafe{pin}, nil
		},
		act: func(args Args) Act { return Act{Pins: onePin(args.(GPIOSafe).Pin)} },
	},
	{
		// It moves nothing and waits for no line, but it has a number all the same: a
		// hold that is younger than it (Order, or Seq) stays, and it ends superseded.
		Name: IntentRelease, Text: "let outputs that gpio.safe holds be set again",
		Traits:    Traits{Still: true, Holds: HoldsNothing, Repeatable: true},
		arguments: []argument{argPinOrAll},
		parse: func(m map[string]any) (Args, error) {
			pin, err := pinOrAllArg(m)
			if err != nil {
				return nil, err
			}
			return GPIORelease{pin}, nil
		},
		act: func(args Args) Act { return Act{Pins: onePin(args.(GPIORelease).Pin), Release: true} },
	},
	{
		Name: IntentCollectMetrics, Text: "report the board's health figures", Traits: Traits{Still: true, Holds: HoldsNothing, Repeatable: true},
		parse: func(map[string]any) (Args, error) { return CollectMetrics{}, nil },
	},
	{
		Name: IntentReboot, Text: "boot the board again, once", Traits: Traits{Holds: HoldsBoard, Reboots: true},
		parse: func(map[string]any) (Args, error) { return Reboot{}, nil },
	},
}

var (
	argPin      = argument{"pin", "name of the pin"}
	argPinOrAll = argument{"pin", "name of the pin; all outputs with a safe level if it is left out"}
	argLevel    = argument{"level", "1 or 0, true or false, on or off, high or low"}
)

var declared = func() map[string]*Declaration {
	m := map[string]*Declaration{}
	for i := range declarations {
		m[declarations[i].Name] = &declarations[i]
	}
	return m
}()

// Declarations lists the built-in intents in the order of the documents.
func Declarations() []Declaration { return append([]Declaration(nil), declarations...) }

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
	d, ok := Declared(intent)
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
	if err := onlyArgs(intent, m, d.known()...); err != nil {
		return nil, err
	}
	return d.parse(m)
}

// known are the names under which arguments may come: a duration also as a number
// of milliseconds.
func (d *Declaration) known() []string {
	var names []string
	for _, a := range d.arguments {
		names = append(names, a.name)
		if isSpan(a.name) {
			names = append(names, a.name+"_ms")
		}
	}
	return names
}

// Arguments lists the names of the arguments and what they mean, in pairs.
func (d Declaration) Arguments() [][2]string {
	var list [][2]string
	for _, a := range d.arguments {
		list = append(list, [2]string{a.name, a.text})
	}
	return list
}

// ActOf is what checked arguments mean. nil is for the arguments of an intent that is
// not built in; of one that is built in nobody knows then what it does.
func ActOf(intent string, args Args) Act {
	d := declared[intent]
	if d == nil || args == nil {
		return Act{}
	}
	var a Act
	if d.act != nil {
		a = d.act(args)
	}
	a.Traits = d.Traits
	// "On for ten minutes" would begin anew.
	a.Repeatable = a.Repeatable && a.MaxOn == 0
	return a
}

// ParseAct reads encoded arguments and says what they mean. Those of an intent that is
// not built in are not looked at. What can't be read gives the most careful act, and
// the reason.
func ParseAct(intent string, encoded RawMap) (Act, error) {
	if !BuiltIn(intent) {
		return ActOf(intent, nil), nil
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

func onePin(pin string) []string {
	if pin == "" {
		return nil
	}
	return []string{pin}
}

func pinOrAllArg(m map[string]any) (string, error) {
	if _, ok := m["pin"]; !ok {
		return "", nil
	}
	return pinArg(m)
}
