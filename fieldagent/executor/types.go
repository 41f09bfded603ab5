package executor

import (
	"time"

	"github.com/apollo-11/apollo11/wire"
)

// Now is the time as the shell sees it.
type Now struct {
	// Mono is time since the agent started; it never goes back or jumps.
	Mono time.Duration
	// Wall is the agent's own Unix time in ms.
	Wall int64
	// WallOK says that the agent has reason to trust Wall (it is synchronised).
	WallOK bool
	// Local says that the LOCAL switch is on, as the shell knows it. The Hand that
	// tells of it may still be on its way.
	Local bool
	// Throws is how often that switch has been thrown since the start. What was there
	// before and moves something away from its safe level ends with it, though the
	// switch may be off again by now (docs/safety.md 8).
	Throws uint64
	// Away is how long no connection to the gateway has been up that the core was told
	// of, 0 while one is. The Disconnected or NarrowbandDown that tells of it may still
	// be on its way.
	Away time.Duration
}

// Input is something that happened: one of the types below.
type Input interface{ input() }

type (
	// Connected says that the primary connection is up. Session is a random
	// number of this connection, not 0.
	Connected struct{ Session uint64 }
	// Disconnected says that the primary connection is gone.
	Disconnected struct{}
	// NarrowbandUp says that the narrowband connection is up.
	NarrowbandUp struct{}
	// NarrowbandDown says that the narrowband connection is gone.
	NarrowbandDown struct{}
	// Received is a message from the gateway: *wire.Instruction, *wire.Cancel,
	// *wire.Query, *wire.Welcome or *wire.EventAck. The core keeps it.
	Received struct{ Message wire.Message }
	// ReceivedCompact is a frame from the gateway on the narrowband path:
	// wire.CompactQuery, wire.CompactCancel or wire.CompactSafe. The last is for the
	// owner of the pins, to whom the shell gives it; the core only hears the gateway.
	ReceivedCompact struct{ Frame any }
	// Finished says that work has ended. Again is that of the Work.
	Finished struct {
		Token  wire.Token
		Result Result
		Again  bool
	}
	// Unstarted says that works of Output.Start were not begun, because TooLate
	// said so. It is the first input after that Output.
	Unstarted struct{ Tokens []wire.Token }
	// Progressed says how far work has come, 0 to 100, or with a Payload what it
	// has seen. The latter is told as it comes: whoever makes it keeps to a rate and
	// asks Roomy before.
	Progressed struct {
		Token   wire.Token
		Percent uint8
		Payload wire.RawMap // nil for none
	}
	// LeaseEnded says that the lease of an attempt has ended, Ago before now. Level is
	// what the owner of the pins has driven, nil if it does not know.
	LeaseEnded struct {
		Token wire.Token
		Why   wire.LeaseEnd
		Ago   time.Duration
		Level *bool
	}
	// Pins is the pin map after a reload: it takes the place of Config.Hello.Pins and
	// Traits, the gateway gets another hello, and what waits is judged anew.
	Pins struct {
		Names  []string
		Traits []wire.PinTraits // in the same order
	}
	// Levels is how the pins of the hello stand, in its order (wire.PackLevels),
	// whenever the level or the hold of an output changes.
	Levels struct{ Levels []byte }
	// Hand is what people do at the board, whenever that changes.
	Hand struct {
		Local   bool           // the LOCAL switch is on
		Foreign []wire.Foreign // outputs that somebody else has changed, by name
	}
	// Tick says that the Deadline has come, and that nothing else waits. It is never
	// wrong to send one.
	Tick struct{}
	// Stop asks the agent to end: no new work, what runs is stopped, goodbye.
	Stop struct{ Reason string }
)

func (Connected) input()       {}
func (Disconnected) input()    {}
func (NarrowbandUp) input()    {}
func (NarrowbandDown) input()  {}
func (Received) input()        {}
func (ReceivedCompact) input() {}
func (Finished) input()        {}
func (Unstarted) input()       {}
func (Progressed) input()      {}
func (LeaseEnded) input()      {}
func (Pins) input()            {}
func (Levels) input()          {}
func (Hand) input()            {}
func (Tick) input()            {}
func (Stop) input()            {}

// Result is how work ended.
type Result struct {
	Code    wire.Code   // a final one
	Detail  string      // a sentence for people
	Payload wire.RawMap // nil for none
	// Lease is an output that the work has set and that the board may end by itself,
	// nil for none.
	Lease *Lease
	// Ended says how a pulse was cut short, nil if it was not. What the board has done by
	// itself is told as an end of the attempt, beside its result.
	Ended *Ended
}

// Ended is how the level of an output has ended before its time.
type Ended struct {
	Pin   string
	Why   wire.LeaseEnd
	Level *bool // that the pin has now, nil if that is not known
}

// Lease is an output that an attempt has set away from its safe level. The owner of
// the pins ends it, whatever becomes of disk and link; the core remembers only that
// its end is still to be told.
type Lease struct {
	Pin   string
	Level bool // the pin has it when the lease has ended, if LeaseEnded does not say: its safe level
	// Plain says that it has no time limit: it ends when the board ends it (loss, stop,
	// start, reload). That a later instruction has replaced it is told nobody.
	Plain bool
}

// Pulse is what drives a line for a time and was under way when the agent ended.
type Pulse struct {
	Token wire.Token
	Pin   string
	Line  wire.LineKey
	Off   bool // the level at which it should have ended
}

// Work is one attempt to execute.
type Work struct {
	Token   wire.Token
	Seq     uint64
	Attempt uint8
	Key     string
	Trace   wire.Trace
	Intent  string
	Args    wire.RawMap
	// Parsed is what its Verdict has read in Args.
	Parsed wire.Args
	// Order is its number in the order at its lines, 0 for what has no place there.
	// The owner of the pins looks at it at every drive.
	Order uint64
	// Lines are what it holds. Towards safe they are what it drives, more or fewer than
	// its arguments name: the line that the gateway meant as well, if the name has moved
	// since, and none on which something newer has begun.
	Lines []wire.LineKey
	// Towards and Hold are those of its Verdict.
	Towards, Hold bool
	// Again says that it is driven and is no attempt: it has a stored answer, or there is
	// no room for one, or the gateway has not welcomed the agent. So says its Finished,
	// which settles nothing. Without Hold it holds nothing, whatever its intent is.
	Again bool
	// At is the Unix time in ms of the start, the gateway's if the agent's clock is
	// not set.
	At int64
	// NotAfter is the Unix time in ms by the gateway's clock after which it must not
	// begin, 0 for no limit. Whoever drives a pin asks ClockView.Late right before.
	NotAfter int64
	// Throws is how often the LOCAL switch had been thrown when it came (see Now).
	// Whoever drives a pin away from its safe level looks right before.
	Throws uint64
	// EndsBy is the Unix time in ms by the gateway's clock by which a lease that it
	// begins has ended, 0 for no limit beside its own length. Whoever drives a pin asks
	// ClockView.Left right before.
	EndsBy int64
	// Timeout bounds the execution. Work that has not ended OverdueAfter later is
	// given up.
	Timeout time.Duration
}

// Output is what the shell has to do, in this order.
type Output struct {
	// Contact says that the gateway works with this agent, as of this step: for the
	// timer of the owner of the pins that ends outputs when it is lost. While it lasts
	// it is said in every step, and there is a step in each quarter of the autonomy
	// window.
	Contact bool
	// Urgent is work towards safe. It is the one thing that is begun before it is
	// written down: neither the journal nor a worker nor anything else may hold it up.
	// The owner of the pins still looks at NotAfter, at the LOCAL switch and at the
	// numbers. It gives one Finished.
	Urgent []Work
	// Records are appended to the journal and synced before anything below.
	Records [][]byte
	// Start is work to begin, unless it is TooLate for it by now: then it goes into
	// the next Unstarted. Anything else gives one Finished.
	Start []Work
	// Abort is running work to stop, at the safe levels. It still gives its Finished.
	Abort []wire.Token
	// EndLease are attempts whose lease is to end now, at the safe level, because they
	// were cancelled. The owner of the pins decides by the token: a lease that a later
	// instruction has replaced is none of theirs. It is told by LeaseEnded.
	EndLease []wire.Token
	// Hold are lines that the gateway has held at their safe levels from now on, for
	// the owner of the pins. It does not drive them.
	Hold []wire.LineKey
	// Fall asks for outputs to be set to their safe levels. What comes of it is told
	// by LeaseEnded.
	Fall Fall
	// Primary are messages for evt/<node>. They may be lost.
	Primary []wire.Message
	// Narrowband are frames for n/<short>. They may be lost.
	Narrowband []wire.CompactAck
	// Notes are for the log.
	Notes []Note
	// Deadline is the Mono at which the core wants a Tick; NoDeadline for never.
	Deadline time.Duration
	// Stopped says that after this Output nothing is left to do.
	Stopped bool
	// Fatal, if not empty, says why the process must end now and be restarted.
	Fatal string
}

// Fall says which outputs go to their safe levels, and why.
type Fall uint8

const (
	FallNone Fall = 0
	FallLoss Fall = 1 // not said any more: the loss is a state of the owner of the pins
	FallStop Fall = 2 // the agent stops: all that have a safe level
)

// NoDeadline means that no Tick is wanted.
const NoDeadline = time.Duration(1<<63 - 1)

// Level says who needs a Note.
type Level uint8

const (
	LevelDebug Level = iota // for whoever looks for a fault
	LevelInfo               // an operator may act on it
	LevelWarn               // something is not as it should be
)

// Note is one line for the log. Text is constant; the rest varies.
type Note struct {
	Level  Level
	Text   string
	Detail string
	// The attempt that it is about, if any.
	Seq     uint64
	Token   wire.Token
	Attempt uint8
	Trace   wire.Trace
	Intent  string
	Code    wire.Code
}

// Verdict is what the board says to an instruction before it is executed.
type Verdict struct {
	// Code is CodeNone if the instruction can be executed, else the refusal.
	Code   wire.Code
	Detail string
	// Parsed are the arguments as they were read, for Work.
	Parsed wire.Args
	// Lasts is how long it takes by itself: see wire.Act.
	Lasts time.Duration
	// Lines are what the execution holds. Instructions that share one never overlap.
	// Those of a Release are what it releases; none for all that is held.
	Lines []wire.LineKey
	// Board says that it holds every line of the board instead.
	Board bool
	// Pulse is the end of a pulse, nil for none: its Pin, Line and Off. It is written
	// down with the start, so that the next start of the agent can drive the level.
	Pulse *Pulse
	// Towards says that it only brings its lines to their safe levels: it waits for
	// nothing and ends what runs there (docs/safety.md 5).
	Towards bool
	// Hold says that the lines stay at their safe levels until an instruction whose
	// verdict has Release ends that (docs/safety.md 6).
	Hold, Release bool
	// Safe says that all its lines are outputs with a safe level: what an end of the
	// agent has ended there is not tried again by itself.
	Safe bool
	// Map is the reason why its pins are not the lines that the gateway took them
	// for, empty if they are.
	Map string
	// Actuates says that the execution changes something at the board. It is refused
	// while the LOCAL switch is on.
	Actuates bool
	// Watch says that the execution only waits. It takes no worker; MaxWatches of
	// them may run or wait.
	Watch bool
	// Reboots says that the execution ends with a boot of the board, which takes
	// the agent with it: how it went is known at the next start (D6).
	Reboots bool
}

// Config says what the agent is and how it behaves. Zero values mean the
// defaults below.
type Config struct {
	// Hello is the template of the agent's introduction: Version, Labels, Short,
	// Intents, Actuating, Pins, Traits, Board, Nonce.
	Hello wire.Hello
	// Incarnation is a random number, used if the journal is empty. Not 0.
	Incarnation uint64
	// Boot stands for the boot that the agent runs in: the same number until the
	// board boots again. 0 if the system does not tell; nothing may reboot then.
	Boot uint64
	// Check judges an instruction. It must be pure and quick. Required.
	Check func(intent string, args wire.RawMap) Verdict
	// Workers is how many attempts run at a time, 1 to MaxWorkers.
	Workers int
	// MaxQueue bounds the attempts that wait to start; more are refused with
	// CodeResources, and the gateway tries again later.
	MaxQueue int
	// MaxKnown bounds the attempts remembered, about 400 bytes each.
	MaxKnown int
	// DefaultTimeout bounds work whose instruction names no time limit, as those of an
	// older gateway do. What takes a known time has that and some room.
	DefaultTimeout time.Duration
	// Autonomy is how long work goes on as usual without the gateway, 0 for ever
	// (C8).
	Autonomy time.Duration
	// Local says that the LOCAL switch is on at the start.
	Local bool
	// Safe returns the level to which a pin was set at the start, and false if it was
	// not; nil means that every lease says it. A pin map can change between starts.
	Safe func(pin string) (level, ok bool)
}

// Limits and intervals. They are fixed: both sides are tuned to them.
const (
	MaxWorkers        = 1024
	MaxWatches        = 64 // watches that run or wait
	DefaultWorkers    = 2
	DefaultMaxQueue   = 1000
	DefaultMaxKnown   = 50_000
	DefaultTimeout    = wire.DefaultTimeout
	ShortWork         = 250 * time.Millisecond // below it one event tells everything
	Window            = 64                     // events under way
	ResendAfter       = wire.ResendAfter       // without an acknowledgement, x1.5
	ResendMost        = time.Minute            // the longest such interval
	GapAgain          = 500 * time.Millisecond // the same gap is answered once in this time
	HedgeAfter        = 750 * time.Millisecond // then the narrowband path is used as well
	HedgeAgain        = 5 * time.Second        // between repetitions there, x1.5
	HedgeMost         = time.Minute            // the longest such interval
	NarrowbandGap     = time.Second / wire.NarrowbandRate
	HelloAgain        = 5 * time.Second        // a hello without welcome is repeated
	AskTimeAgain      = time.Minute            // between hellos that only ask for the time
	AskDoubtAgain     = time.Second            // between those that something waits for
	RefusedAgain      = 5 * time.Second        // so is one that was refused
	DigestEvery       = wire.DigestEvery       // between digests (B9)
	DigestWait        = 10 * time.Second       // so long one waits for events under way
	ProgressEvery     = 10 * time.Second       // between progress events of one attempt
	DefaultHeartbeat  = wire.HeartbeatEvery    // if the welcome names none
	ClockLimit        = 2 * time.Second        // own and gateway's clock may differ by this
	RememberFor       = 24 * time.Hour         // running time after the end of an attempt
	OverdueAfter      = 5 * time.Second        // after its time limit work is given up
	MaxLingering      = 16                     // works given up that have not ended; then the agent restarts
	AgeRank           = 10 * time.Second       // waiting this long is worth one priority
	StopGrace         = 500 * time.Millisecond // at a stop, before running work is aborted
	StopLimit         = 5 * time.Second        // at a stop, in all
	StopFallLimit     = time.Second            // at a stop, for the ends of leases
	MaxCancelledAhead = 1000                   // narrowband cancels of attempts that have not arrived
	AheadFor          = time.Hour              // so long they count: sequences may come again with another log
	// Events that wait for their acknowledgement; beyond either no new
	// instruction is taken. With a full table and a full queue of the largest
	// instructions a journal of 64 MiB still holds everything.
	maxUnacknowledged = 50_000
	maxUnackedBytes   = 16 << 20
	// Beyond either of these Roomy says no: the rest is for results.
	maxProgress      = 2000
	maxProgressBytes = 4 << 20
	eventOverhead    = 128 // bytes of an event beside its payload
	maxStoredDetail  = 200 // bytes kept of the sentence of an end that was acknowledged

	contactParts         = 4 // steps in an autonomy window that say that the gateway is there
	minContact           = 100 * time.Millisecond
	minHeartbeat         = 100 * time.Millisecond
	maxHeartbeat         = 10 * time.Minute
	resendNum, resendDen = 3, 2
	recordVersion        = 1
	firstEvent           = 1
	narrowbandBurst      = wire.NarrowbandRate
	answerBurst          = 10 // frames that answers there may take beyond what hedges may
)
