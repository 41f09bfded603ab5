package order

// A board of three lines with four names. Lamp and light are one line, which has
// a safe level and falls when the gateway is lost; fan has a safe level; valve
// has none.
const (
	lines = 3
	names = 4
	// keys are what order is kept by: the lines, then the names, for a gateway
	// that no hello has told the lines yet.
	keys = lines + names

	orderWait  = 12 // ticks that a stuck one holds its line
	window     = 4  // places for what waits at the board
	queueMost  = 3  // what the board's queue takes
	workers    = 2
	block      = 8 // numbers reserved at a time
	jump       = 1000
	forged     = 1_000_000
	attempts   = 3
	lossAfter  = 8 // ticks without the gateway until it is lost
	resend     = 3
	repeat     = 6 // how often the state of received work is asked for
	pulseTicks = 2
	never      = -1000
)

var (
	lineOf   = [names]int{0, 0, 1, 2}
	nameOf   = [names]string{"lamp", "light", "fan", "valve"}
	hasSafe  = [keys]bool{true, true, false, true, true, true, false}
	fallsOff = [keys]bool{true, false, false, true, true, false, false}
)

// A command is what somebody asked for, and what the checker knows of it.
type command struct {
	id     int // never used twice, whatever is restored: the token
	sub    int // the order of submission, given when it becomes due
	born   int // the order in which people asked
	name   int
	line   int
	pulse  bool // on, off, on, off
	level  int
	hold   bool // apollo safe
	high   bool // priority
	due    int
	until  int  // the last tick at which it may begin, 0 for none
	maxOn  int  // ticks until the line falls by itself, 0 for none
	took   int  // the tick at which the gateway took it
	run    int  // the gateway's process that took it
	first  int  // its first place in the order
	keyed  bool // the gateway knew the lines
	early  int  // the number that it had before it was due (clause left out)
	retry  bool
	renews bool

	begun     int  // how often it began at the pin
	receipt   bool // its record was on the disk
	lost      bool // its record is lost: with a crash before it was written, or with a restored log
	void      bool // lost, and the board has forgotten it as well
	ended     bool // the person who asked was told why it ended
	cancelled bool
	explained bool // a towards safe that was not driven, and why was told
	drivenAt  int
	low       bool // heard last by a compact frame of a restored gateway before its hello
	untold    int  // ticks that its cancel was not sent
	blocks    int  // ticks that it has kept newer ones from being sent
	failedAt  int
	epoch     int  // of the log that took it
	cut       bool // ended by the owner of the pins or by a restart
}

func lineOfKey(key int) int {
	if key >= lines {
		return lineOf[key-lines]
	}
	return key
}

// safe says that the command is towards safe.
func (c *command) safe() bool { return c.level == 0 && !c.pulse && hasSafe[c.line] }

func (c *command) what() string {
	switch {
	case c.hold:
		return "safe!"
	case c.pulse:
		return "pulse"
	case c.level == 1:
		return "on"
	}
	return "off"
}

type state uint8

// The states of an item at the gateway. Those from succeeded on are settled.
const (
	pending state = iota
	handed
	received
	succeeded
	superseded
	cancelled
	expired
	refused
	failed
	unknown // TIMEOUT, in the operator queue
	held    // in the operator queue: not to be sent unless a person says so
)

var stateNames = [...]string{"pending", "handed", "received", "succeeded", "superseded", "cancelled", "expired", "refused", "failed", "TIMEOUT", "held for an operator"}

func (s state) String() string { return stateNames[s] }

type kind uint8

const (
	frame kind = iota // to the board: a command
	cancel
	holding // the state of a hold: the numbers of the last hold and of the last release
	ping
	welcome
	actHeard
	hello // to the gateway
	report
	holdingHeard
	actTold
)

type result uint8

// What a board reports of an attempt.
const (
	isReceived result = iota // in this session
	isWaiting                // in the queue, and not offered in this session
	isDriven                 // towards safe, not yet recorded
	isDone
	isSuperseded // by a number of the line
	isEnded      // by an act of the owner, or with its epoch
	isExpired
	isLocal
	isHeld
	isBusy
	isFailed
	isCut
	isCancelled
)

var resultNames = [...]string{"received", "waiting", "driven, unrecorded", "done", "superseded", "ended", "expired", "refused LOCAL", "refused held_safe", "busy", "failed, may pass", "cut", "cancelled"}

func (r result) String() string { return resultNames[r] }

// A message is on its way. What is compact has neither command nor session.
type message struct {
	kind    kind
	toBoard bool
	compact bool
	session int
	epoch   int
	c       *command
	n       int
	attempt int
	key     int
	by      int
	top     int
	tops    []process
	run     int // the gateway's process that gave the numbers
	result  result
	act     act
	fresh   bool     // sent before the hello of its run: it knows none of the numbers of the board
	truth   *command // what a compact frame is, for the checker alone
	hold    bool     // this towards safe holds its line
	card    int
	holds   [keys]int
	frees   [keys]int
}

// An act is something that the board did by itself and asks about: until the
// gateway has answered, nothing away from safe begins on its line.
type act struct {
	id    int
	key   int  // -1 for all: LOCAL
	n     int  // the number that a compact frame had
	drove bool // it was driven and not refused: the number is at the pin
}
