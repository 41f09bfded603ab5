package executor

import (
	"fmt"
	"maps"
	"slices"

	"github.com/apollo-11/apollo11/wire"
	"github.com/apollo-11/apollo11/wire/mutant"
)

// Journal records are CBOR maps by the rules of wire; key 0 is the kind. The
// first record of a journal is a head. Numbers are never reused.
type recordKind uint8

const (
	kindHead    recordKind = 1  // what the journal is
	kindQueued  recordKind = 2  // an instruction that waits
	kindStarted recordKind = 3  // an attempt that is about to run
	kindEvent   recordKind = 4  // an event; a processed one ends its attempt
	kindThrough recordKind = 5  // the gateway has these events
	kindEnded   recordKind = 6  // an attempt whose end is known (after a rewrite)
	kindMark    recordKind = 7  // attempts that were forgotten
	kindDropped recordKind = 8  // a waiting attempt that was given back unstarted
	kindAhead   recordKind = 9  // a cancel that came before its attempt
	kindReborn  recordKind = 10 // a new incarnation; events are numbered from 1 again
	kindMet     recordKind = 11 // the gateway has welcomed this process: events may be sent from here on
	kindLease   recordKind = 12 // a lease that is open; see leaseRecord
	kindMarks   recordKind = 13 // the highest numbers that have begun on lines, beside those of kindStarted
	kindHold    recordKind = 14 // lines that are held at their safe levels
	kindKeep    recordKind = 15 // lines that are kept for a retry
)

type headRecord struct {
	Kind        recordKind `cbor:"0,keyasint"`
	Version     uint8      `cbor:"1,keyasint"`
	Incarnation uint64     `cbor:"2,keyasint"`
	Next        uint64     `cbor:"3,keyasint"` // first event number not in use
	Through     uint64     `cbor:"4,keyasint,omitempty"`
	// The highest sequences ever seen; what carried them may be forgotten.
	TopSeq   uint64 `cbor:"5,keyasint,omitempty"`
	TopToken uint64 `cbor:"6,keyasint,omitempty"`
}

type queuedRecord struct {
	Kind        recordKind       `cbor:"0,keyasint"`
	Instruction wire.Instruction `cbor:"1,keyasint"`
	ReceivedAt  int64            `cbor:"2,keyasint"`
	First       uint64           `cbor:"3,keyasint,omitempty"` // number of its first event
	Epoch       uint64           `cbor:"4,keyasint,omitempty"` // of the log that handed it out
}

func (a *attempt) queuedRecord() queuedRecord {
	return queuedRecord{kindQueued, *a.work, a.receivedAt, a.first, a.epoch}
}

// attemptRecord is kindStarted and kindEnded.
type attemptRecord struct {
	Kind       recordKind `cbor:"0,keyasint"`
	Seq        uint64     `cbor:"1,keyasint"`
	Token      wire.Token `cbor:"2,keyasint"`
	Attempt    uint8      `cbor:"3,keyasint"`
	Made       int64      `cbor:"4,keyasint"`
	Trace      wire.Trace `cbor:"5,keyasint"`
	Intent     string     `cbor:"6,keyasint,omitempty"`
	ReceivedAt int64      `cbor:"7,keyasint,omitempty"`
	StartedAt  int64      `cbor:"8,keyasint,omitempty"`
	FinishedAt int64      `cbor:"9,keyasint,omitempty"`
	Code       wire.Code  `cbor:"10,keyasint,omitempty"`
	Detail     string     `cbor:"11,keyasint,omitempty"`
	Last       uint64     `cbor:"12,keyasint,omitempty"`
	// Boot is set while work runs that boots the board: the boot it began in.
	Boot uint64 `cbor:"13,keyasint,omitempty"`
	// Of what actuates, while it runs: the number that has begun, and where.
	Order uint64         `cbor:"14,keyasint,omitempty"`
	Lines []wire.LineKey `cbor:"15,keyasint,omitempty"`
	Board bool           `cbor:"16,keyasint,omitempty"`
	// Of a pulse, while it runs: the level at which it is to end, and where.
	PulsePin  string       `cbor:"17,keyasint,omitempty"`
	PulseLine wire.LineKey `cbor:"18,keyasint,omitempty"`
	PulseOff  bool         `cbor:"19,keyasint,omitempty"`
	// Hold says, while it runs, that it holds its Lines.
	Hold bool `cbor:"20,keyasint,omitempty"`
}

// marksRecord raises the marks of lines; key 0 is the whole board.
type marksRecord struct {
	Kind  recordKind `cbor:"0,keyasint"`
	Marks []lineMark `cbor:"1,keyasint"`
}

type lineMark struct {
	_     struct{} `cbor:",toarray"`
	Line  wire.LineKey
	Order uint64
}

// marksOf lists the marks of lines.
func (c *Core) marksOf(lines []wire.LineKey) []lineMark {
	var list []lineMark
	for _, l := range lines {
		list = append(list, lineMark{Line: l, Order: c.marks[l]})
	}
	return list
}

// holdRecord holds lines at their safe levels, or releases them. Order is the number
// of who held them, 0 for the gateway, or of who released them: those that were held,
// and those that its release Named, or all.
type holdRecord struct {
	Kind  recordKind     `cbor:"0,keyasint"`
	Lines []wire.LineKey `cbor:"1,keyasint"`
	Order uint64         `cbor:"2,keyasint,omitempty"`
	Off   bool           `cbor:"3,keyasint,omitempty"`
	Named []wire.LineKey `cbor:"4,keyasint,omitempty"`
	All   bool           `cbor:"5,keyasint,omitempty"`
}

// keepRecord keeps lines for the retry of an instruction, or ends that.
type keepRecord struct {
	Kind  recordKind     `cbor:"0,keyasint"`
	Seq   uint64         `cbor:"1,keyasint"`
	Order uint64         `cbor:"2,keyasint,omitempty"`
	Lines []wire.LineKey `cbor:"3,keyasint,omitempty"`
	Board bool           `cbor:"4,keyasint,omitempty"`
	Off   bool           `cbor:"5,keyasint,omitempty"`
}

type eventRecord struct {
	Kind   recordKind `cbor:"0,keyasint"`
	Event  wire.Event `cbor:"1,keyasint"`
	Made   int64      `cbor:"2,keyasint,omitempty"`
	Trace  wire.Trace `cbor:"3,keyasint"`
	Intent string     `cbor:"4,keyasint,omitempty"`
	// Unmet marks an event that was made before its process had been welcomed. It
	// cannot have been sent before a metRecord.
	Unmet bool `cbor:"5,keyasint,omitempty"`
}

type metRecord struct {
	Kind recordKind `cbor:"0,keyasint"`
}

type throughRecord struct {
	Kind    recordKind `cbor:"0,keyasint"`
	Through uint64     `cbor:"1,keyasint"`
}

type markRecord struct {
	Kind  recordKind `cbor:"0,keyasint"`
	Shard uint16     `cbor:"1,keyasint"`
	Seq   uint64     `cbor:"2,keyasint"`
	Made  int64      `cbor:"3,keyasint"`
}

type droppedRecord struct {
	Kind  recordKind `cbor:"0,keyasint"`
	Token wire.Token `cbor:"1,keyasint"`
}

type aheadRecord struct {
	Kind    recordKind `cbor:"0,keyasint"`
	Seq     uint64     `cbor:"1,keyasint"`
	Attempt uint8      `cbor:"2,keyasint"`
}

type rebornRecord struct {
	Kind        recordKind `cbor:"0,keyasint"`
	Incarnation uint64     `cbor:"1,keyasint"`
}

// encode returns the record's bytes. The types above can always be encoded.
func encode(v any) []byte {
	b, err := wire.EncodeRecord(v)
	if err != nil {
		panic(fmt.Sprintf("bug: %T can't be encoded: %v", v, err))
	}
	return b
}

func (c *Core) record(v any) { c.out.Records = append(c.out.Records, encode(v)) }

func (a *attempt) record(kind recordKind) attemptRecord {
	return attemptRecord{
		Kind: kind, Seq: a.seq, Token: a.token, Attempt: a.attempt, Made: a.made, Trace: a.trace, Intent: a.intent,
		ReceivedAt: a.receivedAt, StartedAt: a.startedAt, FinishedAt: a.finishedAt,
		Code: a.code, Detail: a.detail, Last: a.last, Boot: a.boot,
	}
}

// startedRecord is the record of a start: what was begun where, before it begins.
func (a *attempt) startedRecord() attemptRecord {
	r := a.record(kindStarted)
	if a.actuates && !mutant.On(mutant.MarkForgotten) {
		r.Order, r.Lines, r.Board = a.order, a.lines, a.board
	}
	r.Hold = a.holdsSafe
	if p := a.pulse; p != nil {
		r.PulsePin, r.PulseLine, r.PulseOff = p.Pin, p.Line, p.Off
	}
	return r
}

// head is the record that a journal begins with; next is the first event number
// that is not in use before the records that follow.
func (c *Core) head(next uint64) headRecord {
	return headRecord{kindHead, recordVersion, c.incarnation, next, c.through, c.table.topSeq, c.table.topToken}
}

// Snapshot returns the shortest journal that means the same as everything
// recorded so far. The shell rewrites the journal with it when it has grown, only
// between two steps and after the records of the last one are durable. It changes
// nothing: the rewrite may find no room.
func (c *Core) Snapshot() [][]byte {
	records := [][]byte{encode(c.head(c.through + 1))}
	shards := make([]uint16, 0, len(c.table.marks))
	for s := range c.table.marks {
		shards = append(shards, s)
	}
	slices.Sort(shards)
	for _, s := range shards {
		m := c.table.marks[s]
		records = append(records, encode(markRecord{kindMark, s, m.seq, m.made}))
	}
	if len(c.marks) > 0 && !mutant.On(mutant.MarkForgotten) {
		records = append(records, encode(marksRecord{kindMarks, c.marksOf(slices.Sorted(maps.Keys(c.marks)))}))
	}
	for _, r := range c.releasedRecords() {
		records = append(records, encode(r))
	}
	for _, l := range slices.Sorted(maps.Keys(c.holds)) {
		if !mutant.On(mutant.HoldForgotten) {
			records = append(records, encode(holdRecord{Kind: kindHold, Lines: []wire.LineKey{l}, Order: c.holds[l]}))
		}
	}
	for _, k := range c.kept {
		records = append(records, encode(keepRecord{Kind: kindKeep, Seq: k.seq, Order: k.stand.order, Lines: k.stand.lines, Board: k.stand.board}))
	}
	for _, r := range c.ahead {
		records = append(records, encode(aheadRecord{kindAhead, r.seq, r.attempt}))
	}
	for _, a := range c.table.ends {
		r := a.record(kindEnded)
		r.Detail = clip(r.Detail, maxStoredDetail)
		if a.last > c.through {
			r.Detail = "" // its event, which follows, has it
		}
		records = append(records, encode(r))
	}
	for _, a := range c.running {
		records = append(records, encode(a.startedRecord()))
	}
	for _, l := range c.leases {
		records = append(records, encode(l.record()))
	}
	for _, a := range c.queue {
		if a.stored {
			records = append(records, encode(a.queuedRecord()))
		}
	}
	for _, ev := range c.events {
		records = append(records, encode(c.eventRecord(ev)))
	}
	return records
}

func (c *Core) eventRecord(ev *wire.Event) eventRecord {
	r := eventRecord{Kind: kindEvent, Event: *ev, Unmet: ev.Number >= c.unmet}
	if a := c.table.known[ev.Token]; a != nil {
		r.Made, r.Trace, r.Intent = a.made, a.trace, a.intent
	}
	return r
}
