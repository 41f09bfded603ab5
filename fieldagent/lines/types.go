package lines

import (
	"fmt"
	"time"

	"github.com/apollo-11/apollo11/wire"
)

// Limits.
const (
	// FallAgain is the time between two tries to reach a level that did not work.
	FallAgain = 200 * time.Millisecond
	// endTries is how often the end of a pulse that leads away from the safe level is
	// tried before the line is driven safe instead.
	endTries = 5
	// MaxRemembered bounds the marks and holds of lines that the map does not have:
	// a board has at most 256 lines, and a line may come back with the next map.
	MaxRemembered = 1024
)

// Line is what the pin map says of a line.
type Line struct {
	Key     wire.LineKey
	Output  bool // an input otherwise, which nothing drives
	HasSafe bool
	Safe    bool          // its safe level
	OnLoss  bool          // it falls to the safe level when the gateway is lost
	MaxOn   time.Duration // longest time away from the safe level, 0 for no limit
}

// Config is what the core knows at the start. Every output with a safe level has it:
// whoever makes the core has just opened the lines so.
type Config struct {
	// Autonomy is how long the gateway may be unheard before it is lost, 0 for ever.
	Autonomy time.Duration
	Lines    []Line
	// Open says that there is no map: any line may be driven, none has a safe level.
	Open bool
	// NeverWith names the lines that must not be away from their safe levels when one goes
	// to its own: they are taken there first (docs/safety.md 12). It is pure, and nil
	// where nothing says so, as no pin map does yet.
	NeverWith func(wire.LineKey) []wire.LineKey
}

// Hands is the LOCAL switch.
type Hands uint8

// Its positions.
const (
	HandsOff     Hands = 0
	HandsOn      Hands = 1 // somebody works at the board
	HandsUnknown Hands = 2 // the switch can't be read
)

// Input is something that happened: one of the types below.
type Input interface{ input() }

type (
	// Want asks for a level of one line. The answer is Output.Refused, or a Drive.
	Want struct {
		Line wire.LineKey
		// Safe asks for the safe level, whatever it is; else Level.
		Safe, Level bool
		// Order is the number of the instruction, 0 for none. Unmarked says that it
		// leaves no mark: what came in a compact frame is not to be believed beyond
		// what it drives.
		Order    uint64
		Unmarked bool
		// Ahead says that the record of it is to follow: nothing older leads the line
		// away from its safe level any more, as long as this core lives. It is no mark:
		// what leads there too is not refused for it.
		Ahead bool
		// Cause names the instruction in Drives and Ends. Without one nobody waits for
		// an end.
		Cause string
		// For is how long the level holds, then the line falls to its safe level; 0 for
		// as long as the map allows.
		For time.Duration
		// Width, if not 0, makes it a pulse. ID comes back in its End.
		Width time.Duration
		ID    uint64
		// Hold keeps the line at its safe level until a Release; not if a newer one has
		// come already.
		Hold bool
	}
	// Driven says what became of a Drive.
	Driven struct {
		N    uint64
		Fate Fate
	}
	// Cancel ends the lease or the pulse that this cause has begun, if it lives.
	Cancel struct{ Cause string }
	// Hold and Release say which lines are held at their safe levels. Release of nil is
	// that of all, but for what a Want with a higher number than Order holds; 0 is above
	// all numbers.
	Hold    struct{ Lines []wire.LineKey }
	Release struct {
		Lines []wire.LineKey
		Order uint64
	}
	// Seed is what an earlier process knew.
	Seed struct {
		Marks map[wire.LineKey]uint64
		Holds map[wire.LineKey]uint64 // by whose number, 0 if that is not known
		// Released are the numbers of the newest releases; 0 is the whole board.
		Released map[wire.LineKey]uint64
	}
	// Leftover is a pulse that an earlier process has not ended, at an output without a
	// safe level: it is driven to its off level.
	Leftover struct {
		Line wire.LineKey
		Off  bool
	}
	// Heard says that the gateway was heard at this time, now or a moment ago.
	Heard struct{ At time.Duration }
	// Local says how the LOCAL switch stands. Read are the levels that outputs have
	// really, as far as the board can tell.
	Local struct {
		Hands Hands
		Read  map[wire.LineKey]bool
	}
	// Stop drives all safe levels. It may come again.
	Stop struct{}
	// Quiet drives lines that are about to be closed to their safe levels: the map is
	// being replaced.
	Quiet struct{ Lines []wire.LineKey }
	// Remap replaces the map. Fresh are lines that were opened for it, at their safe
	// levels if they have one.
	Remap struct {
		Lines []Line
		Fresh []wire.LineKey
	}
	// Reopened says that a line had gone and is there again, at its safe level if it
	// has one.
	Reopened struct{ Line wire.LineKey }
	// Gone says that a line is not there, or somebody else has it.
	Gone struct{ Line wire.LineKey }
	// Tick says that the Deadline has come. It is never wrong to send one.
	Tick struct{}
)

func (Want) input()     {}
func (Driven) input()   {}
func (Cancel) input()   {}
func (Hold) input()     {}
func (Release) input()  {}
func (Seed) input()     {}
func (Leftover) input() {}
func (Heard) input()    {}
func (Local) input()    {}
func (Stop) input()     {}
func (Quiet) input()    {}
func (Remap) input()    {}
func (Reopened) input() {}
func (Gone) input()     {}
func (Tick) input()     {}

// Fate is what became of a Drive.
type Fate uint8

// The fates.
const (
	Moved    Fate = 1 // the line has the level
	Unmoved  Fate = 2 // it is certain that nothing happened
	Doubtful Fate = 3 // it may have moved or not
)

// Why is why a line is driven, for the trace.
type Why uint8

// The reasons. The core's own acts are those with a LeaseEnd.
const (
	WhyWant    Why = iota // somebody asked for it
	WhyPulse              // the end of a pulse, at its time or because it was cancelled
	WhyExpired            // the end of a lease, or of max_on
	WhySafe               // again, because what somebody asked for did not work
	WhyLoss
	WhyLocal
	WhyStop
	WhyReload
	WhyStart   // a pulse that an earlier process had left
	WhyPartner // another line goes to its safe level, and never with this one away from its own
)

// Drive is a line to be driven now.
type Drive struct {
	N     uint64 // names it in the Driven that answers it
	Line  wire.LineKey
	Level bool
	Why   Why
	Cause string // of what asked for it, or of what it ends; empty for none
}

// End says that a level which somebody asked for has ended.
type End struct {
	Line  wire.LineKey
	Cause string
	ID    uint64 // of a pulse, as its Want gave it
	Why   wire.LeaseEnd
	// Level is what was really driven; with LeaseFailed what the line may still have,
	// and with LeaseHand what it was found to have.
	Level bool
	At    time.Duration
}

// Reason is why a Want was refused.
type Reason uint8

// The reasons.
const (
	NotRefused Reason = iota
	NoLine            // the map has no such line
	NotOutput         // it is an input
	NoSafe            // it has no safe level, and would need one
	TooLong           // the map allows less time
	Superseded        // something newer has begun there: By
	HeldSafe          // it is held at its safe level
	ByHand            // the LOCAL switch is on
	HandsDoubt        // the LOCAL switch can't be read
	Lost              // the gateway is lost, and the line has on_loss
	Busy              // a pulse runs there, until Until, of By
	Stopping          // the agent stops
)

// String is for errors and tests.
func (r Reason) String() string {
	names := [...]string{"not refused", "no line", "not an output", "no safe level", "too long", "superseded", "held safe",
		"by hand", "hands in doubt", "lost", "busy", "stopping"}
	if int(r) < len(names) {
		return names[r]
	}
	return fmt.Sprintf("reason %d", uint8(r))
}

// Refusal says why a Want was refused.
type Refusal struct {
	Reason Reason
	By     uint64        // Superseded: the number of what has begun
	Cause  string        // Busy: of the pulse
	Until  time.Duration // Busy: its end; TooLong: the most that is allowed, as a span
}

// Output is what the shell has to do, in this order.
type Output struct {
	// Drives are done at once, in this order; each is answered by a Driven.
	Drives []Drive
	// Refused answers a Want that drives nothing.
	Refused Refusal
	// Ends are told.
	Ends []End
	// Deadline is when the core wants a Tick; NoDeadline for never.
	Deadline time.Duration
}

// NoDeadline means that no Tick is wanted.
const NoDeadline = time.Duration(1<<63 - 1)

// Play steps the core for an input and for what its drives lead to. drive moves one
// line and says what became of it.
func Play(c *Core, now func() time.Duration, in Input, drive func(Drive) Fate) Output {
	all := c.Step(now(), in)
	for n := 0; n < len(all.Drives); n++ {
		d := all.Drives[n]
		fate := drive(d)
		out := c.Step(now(), Driven{d.N, fate})
		all.Drives = append(all.Drives, out.Drives...)
		all.Ends = append(all.Ends, out.Ends...)
		all.Deadline = out.Deadline
	}
	return all
}
