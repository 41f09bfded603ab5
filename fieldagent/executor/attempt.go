package executor

import (
	"fmt"
	"time"

	"github.com/apollo-11/apollo11/wire"
	"github.com/apollo-11/apollo11/wire/mutant"
)

// state is where an attempt stands. The drawing is in doc.go.
type state uint8

const (
	queued  state = 1
	running state = 2
	ended   state = 3
)

func (s state) String() string {
	switch s {
	case queued:
		return "queued"
	case running:
		return "running"
	case ended:
		return "ended"
	}
	return fmt.Sprintf("state_%d", uint8(s))
}

// attempt is all that the agent knows of one token.
type attempt struct {
	seq     uint64
	token   wire.Token
	attempt uint8
	made    int64 // creation time of the instruction, from its key: tells apart two logs that use the same sequences
	trace   wire.Trace
	intent  string
	older   *attempt // earlier attempt of the same instruction

	state   state
	work    *wire.Instruction // while queued or running
	parsed  wire.Args         // its arguments, while queued or running
	lines   []wire.LineKey    // while queued, running, or lingering
	stored  bool              // while queued: it is in the journal
	unfit   *Result           // while queued: this board can't do it
	cutBy   uint64            // the instruction that ended it early, 0 for none
	order   uint64            // its number at its lines
	place   uint64            // while queued: where it stands on them, see seat
	came    uint64            // counts the arrivals
	keeps   bool              // its lines are kept for a retry
	offered bool              // while queued: the gateway has handed it out in the latest session
	epoch   uint64            // while queued: the gateway's log that did, 0 if it is not known
	// See Verdict; while queued or running.
	actuates, watch, board, towards bool
	holdsSafe, releases             bool
	pulse                           *Pulse
	early                           []earlyEnd // of its lease, while running
	reboots                         bool       // see Verdict; while queued or running
	boot                            uint64     // while it runs and reboots: the boot that it began in

	arrivedMono time.Duration
	startedMono time.Duration
	timeout     time.Duration
	startTold   bool // by an event of its own
	aborted     bool // the work was asked to stop
	byStop      bool // because the agent stops
	percent     uint8
	percentTold uint8
	progressAt  time.Duration // when its progress was last told

	// Unix ms as in events; 0 when it has not happened.
	receivedAt, startedAt, finishedAt int64

	throws uint64 // of the LOCAL switch, when it came; see Now

	code   wire.Code // once ended
	detail string
	// first is the number of the event that first told of it, 0 for none.
	first uint64
	// last is the number of its newest event, 0 for none.
	last uint64
	// endedMono is when it ended, or when the agent started if that was before.
	endedMono time.Duration

	hedge hedge
}

// progress is what a compact ack says about the attempt.
func (a *attempt) progress() wire.Code {
	switch a.state {
	case queued:
		return wire.CodeReceived
	case running:
		return wire.CodeStarted
	}
	return a.code
}

// status is what a report says about the attempt.
func (c *Core) status(a *attempt) wire.State {
	s := wire.State{Seq: a.seq, Token: a.token}
	switch a.state {
	case queued:
		s.Status = wire.StatusQueued
	case running:
		s.Status = wire.StatusRunning
	default:
		s.Status, s.Code = wire.StatusDone, c.told(a.code)
	}
	return s
}

// table is the dedupe table.
type table struct {
	limit int
	known map[wire.Token]*attempt
	// newest is the newest attempt of each instruction sequence.
	newest map[uint64]*attempt
	ends   []*attempt      // ended ones, by their end
	marks  map[uint16]mark // by shard
	// The highest instruction sequence and token sequence ever seen.
	topSeq, topToken uint64
}

// mark stands for the forgotten attempts of one shard.
type mark struct {
	seq  uint64 // highest token sequence
	made int64  // youngest creation time, Unix ms
}

func newTable(limit int) table {
	return table{limit: limit, known: map[wire.Token]*attempt{}, newest: map[uint64]*attempt{}, marks: map[uint16]mark{}}
}

// add remembers a new attempt and links it to the earlier one of the same
// instruction, if there is one.
func (t *table) add(a *attempt) {
	if t.known[a.token] != nil {
		panic("bug: attempt " + a.token.String() + " added twice")
	}
	t.known[a.token] = a
	t.see(a.seq, a.token.Seq)
	before := t.newest[a.seq]
	switch {
	case before == nil || before.made != a.made:
		t.newest[a.seq] = a
	case a.staleAfter(before):
		for before.older != nil && a.staleAfter(before.older) {
			before = before.older
		}
		a.older, before.older = before.older, a
	default:
		a.older = before
		t.newest[a.seq] = a
	}
}

// see notes sequences that the gateway has given out.
func (t *table) see(seq, token uint64) {
	t.topSeq, t.topToken = max(t.topSeq, seq), max(t.topToken, token)
}

// attemptOf returns one attempt of the instruction, or nil.
func (t *table) attemptOf(seq uint64, attempt uint8) *attempt {
	for a := t.newest[seq]; a != nil; a = a.older {
		if a.attempt == attempt {
			return a
		}
	}
	return nil
}

// take notes what the board says of the attempt.
func (a *attempt) take(v Verdict) {
	a.parsed = v.Parsed
	a.lines, a.board, a.towards = v.Lines, v.Board, v.Towards
	a.actuates, a.watch, a.reboots = v.Actuates, v.Watch, v.Reboots
	a.holdsSafe, a.releases, a.pulse = v.Hold, v.Release, v.Pulse
}

// staleAfter reports whether b is a newer attempt of the same instruction.
func (a *attempt) staleAfter(b *attempt) bool {
	if b == nil || a.seq != b.seq || a.made != b.made || a.token == b.token {
		return false
	}
	return a.attempt < b.attempt || a.attempt == b.attempt && a.token.Shard == b.token.Shard && a.token.Seq < b.token.Seq
}

// succeeded returns the earlier attempt of the same instruction that ended well,
// or nil.
func (a *attempt) succeeded() *attempt {
	for o := a.older; o != nil; o = o.older {
		if o.state == ended && o.code == wire.CodeOK {
			return o
		}
	}
	return nil
}

// forget drops a token without leaving a mark.
func (t *table) forget(a *attempt) {
	delete(t.known, a.token)
	if t.newest[a.seq] != a {
		return
	}
	delete(t.newest, a.seq)
	if o := a.older; o != nil && t.known[o.token] == o {
		t.newest[a.seq] = o
	}
}

// forgotten reports whether an attempt that is not known may be one that was
// forgotten.
func (t *table) forgotten(token wire.Token, made int64) bool {
	m, ok := t.marks[token.Shard]
	return ok && token.Seq <= m.seq && made <= m.made
}

// room makes room for one more attempt and reports whether there is some. It
// forgets ended attempts that are old enough, and the oldest one if the table is
// full; never one whose last event is after through. more is how many it may
// have beyond its limit.
func (t *table) room(now time.Duration, through uint64, more int) bool {
	for len(t.ends) > 0 {
		a := t.ends[0]
		old := now-a.endedMono >= RememberFor
		full := len(t.known) >= t.limit
		if a.last > through || !old && !full {
			break
		}
		t.ends[0] = nil
		t.ends = t.ends[1:]
		m := t.marks[a.token.Shard]
		made := a.made
		if made == 0 { // of a cancel that was faster than its attempt: it was made before that came
			made = a.receivedAt + ClockLimit.Milliseconds()
		}
		if mutant.On(mutant.ForgetUnmarked) {
			t.forget(a)
			continue
		}
		t.marks[a.token.Shard] = mark{max(m.seq, a.token.Seq), max(m.made, made)}
		t.forget(a)
	}
	return len(t.known) < t.limit+more
}
