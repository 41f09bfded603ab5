package engine

import (
	"time"

	"github.com/apollo-11/apollo11/wire"
)

// Now is the time as the caller sees it. The engine has no clock of its own.
type Now struct {
	// Mono is the time since an arbitrary start, never stored: for intervals.
	Mono time.Duration
	// Wall is Unix time in ms: for people and for expiry. It may jump.
	Wall int64
}

// Backoff is how the wait between attempts grows.
type Backoff uint8

const (
	BackoffExponential Backoff = 0 // doubles each time, up to the maximum
	BackoffFixed       Backoff = 1 // always the initial interval
	// BackoffTiered waits 5 s three times and 60 s from then on (C3).
	BackoffTiered Backoff = 2
)

// Retry is what happens after a failure that another attempt may cure (C3).
type Retry struct {
	_         struct{} `cbor:",toarray"`
	Max       uint8    // attempts after the first one; 0 means none
	InitialMs uint32
	MaxMs     uint32
	Backoff   Backoff
}

// Selector picks nodes by one label.
type Selector struct {
	_     struct{} `cbor:",toarray"`
	Key   string
	Value string
}

// IsZero reports whether no selector was given.
func (s Selector) IsZero() bool { return s == Selector{} }

// Spec is a task as its submitter wrote it, checked and in canonical form: two
// documents that mean the same give equal Specs.
type Spec struct {
	TaskID string      `cbor:"1,keyasint,omitempty"` // empty: the engine makes one
	Intent string      `cbor:"2,keyasint"`
	Args   wire.RawMap `cbor:"3,keyasint,omitzero"` // canonical arguments
	// Nodes is an explicit list, sorted, without repeats; or Label is set.
	Nodes []string `cbor:"4,keyasint,omitempty"`
	Label Selector `cbor:"5,keyasint,omitzero"`
	// TimeoutMs bounds one execution; 0 means the engine's default.
	TimeoutMs uint32 `cbor:"6,keyasint,omitempty"`
	// Retry is nil for the engine's default policy.
	Retry    *Retry        `cbor:"7,keyasint,omitempty"`
	Priority wire.Priority `cbor:"8,keyasint,omitempty"` // 0 means normal
	// TTLMs counts from submission; NotAfter is absolute (Unix ms). At most one
	// of them is set. 0 means no limit (A9).
	TTLMs    int64             `cbor:"9,keyasint,omitempty"`
	NotAfter int64             `cbor:"10,keyasint,omitempty"`
	Metadata map[string]string `cbor:"11,keyasint,omitempty"`
	// Trace is the submitter's own trace id, zero for a fresh one.
	Trace wire.Trace `cbor:"12,keyasint,omitzero"`

	// act is what Args mean, once somebody has read them; nil as it comes from a log.
	act *wire.Act
}

// Means says what the arguments mean: a door has read them, and nobody need do it again.
func (s *Spec) Means(a wire.Act) { s.act = &a }

// Act is what the arguments mean, the most careful if they can't be read. They are read
// here if no door has done it.
func (s Spec) Act() wire.Act {
	if s.act != nil {
		return *s.act
	}
	a, err := wire.ParseAct(s.Intent, s.Args)
	if err != nil {
		return wire.Act{}
	}
	return a
}

// Source says who submitted something and by which door.
type Source struct {
	_      struct{} `cbor:",toarray"`
	Via    string   // mqtt, http
	Actor  string   // user name, else client id or remote address
	Client string   // MQTT client id, for replies; may be empty
}

// Task is what an operator submitted. It is written once; how far it has come
// follows from its instructions, which are numbered First to First+Count-1.
type Task struct {
	ID      string     `cbor:"1,keyasint"`
	First   uint64     `cbor:"2,keyasint"`
	Count   uint32     `cbor:"3,keyasint"`
	Spec    Spec       `cbor:"4,keyasint"`
	Sum     [16]byte   `cbor:"5,keyasint"` // of the Spec, for the conflict check (A4)
	Created int64      `cbor:"6,keyasint"` // Unix ms
	Source  Source     `cbor:"7,keyasint"`
	Trace   wire.Trace `cbor:"8,keyasint"`
}

// Instruction is one task on one node, with everything needed to carry on after
// a restart.
type Instruction struct {
	// Version rises by one with every write (B8).
	Version uint32 `cbor:"1,keyasint"`
	Seq     uint64 `cbor:"2,keyasint"`
	Task    string `cbor:"3,keyasint"`
	Node    string `cbor:"4,keyasint"`
	State   State  `cbor:"5,keyasint"`
	// Reason is a short word for how it came to its state, for example expired,
	// interrupted, unconfirmed; empty when the state says it all.
	Reason  string     `cbor:"6,keyasint,omitempty"`
	Attempt uint8      `cbor:"7,keyasint,omitempty"` // 0 before the first dispatch
	Token   wire.Token `cbor:"8,keyasint,omitzero"`  // of the current attempt
	Created int64      `cbor:"9,keyasint"`           // Unix ms
	Updated int64      `cbor:"10,keyasint"`          // Unix ms

	Intent    string        `cbor:"11,keyasint"`
	Args      wire.RawMap   `cbor:"12,keyasint,omitzero"`
	NotAfter  int64         `cbor:"13,keyasint,omitempty"` // Unix ms, 0 none
	TimeoutMs uint32        `cbor:"14,keyasint,omitempty"`
	Priority  wire.Priority `cbor:"15,keyasint,omitempty"`
	Trace     wire.Trace    `cbor:"16,keyasint"`
	Retry     Retry         `cbor:"17,keyasint"`

	// Sends counts how often the current attempt was handed out.
	Sends uint8 `cbor:"18,keyasint,omitempty"`
	// Steps of the current attempt by the agent's clock, Unix ms, 0 = not yet.
	ReceivedAt int64 `cbor:"19,keyasint,omitempty"`
	StartedAt  int64 `cbor:"20,keyasint,omitempty"`
	FinishedAt int64 `cbor:"21,keyasint,omitempty"`
	// SettledAt is the gateway's Unix ms of the last result or timeout.
	SettledAt int64       `cbor:"22,keyasint,omitempty"`
	Code      wire.Code   `cbor:"23,keyasint,omitempty"`
	Detail    string      `cbor:"24,keyasint,omitempty"`
	Payload   wire.RawMap `cbor:"25,keyasint,omitzero"`
	// Path is where the result came from first (B13).
	Path Path `cbor:"26,keyasint,omitempty"`
	// Retries counts attempts spent from Retry.Max.
	Retries uint8 `cbor:"27,keyasint,omitempty"`
	// RetryAt is when the next attempt is due, Unix ms, in state RETRYING.
	RetryAt int64 `cbor:"28,keyasint,omitempty"`
	// Operator is true when only an operator may move it on.
	Operator bool `cbor:"29,keyasint,omitempty"`
	// CancelBy names who asked for cancellation; empty for nobody.
	CancelBy string `cbor:"30,keyasint,omitempty"`
	Percent  uint8  `cbor:"31,keyasint,omitempty"` // last reported progress
	// Lease is the output that it has set for a limited time, nil for none. It is
	// replaced, never changed.
	Lease *Lease `cbor:"32,keyasint,omitempty"`
	// Progress counts its progress entries in the timeline, Unlisted at least the
	// reports that came when there were maxProgress of them.
	Progress uint32 `cbor:"33,keyasint,omitempty"`
	Unlisted uint32 `cbor:"34,keyasint,omitempty"`
	// Order is its number in the order at its lines; 0 means Seq (docs/safety.md 1).
	Order uint64 `cbor:"35,keyasint,omitempty"`
	// By is the Seq of the newer instruction that stands for it: it is withdrawn and
	// never offered again; 0 for none (docs/safety.md 5).
	By uint64 `cbor:"36,keyasint,omitempty"`
	// Begun says that an attempt before the current one may have begun.
	Begun bool `cbor:"37,keyasint,omitempty"`
	// Same counts further submissions that this one stands for (docs/safety.md 5). A
	// restart may forget the latest.
	Same uint32 `cbor:"38,keyasint,omitempty"`
	// Doubted says that the log is an older copy and its node has seen more than the
	// copy knows: there may have been another attempt. The next attempt ends it.
	Doubted bool `cbor:"40,keyasint,omitempty"`
	// Driven says that its node has driven its lines to their safe levels for it, entered
	// there or not.
	Driven bool `cbor:"41,keyasint,omitempty"`
	// Since is when something towards safe that it stands for was submitted, Unix ms, if
	// that has not been delivered either: so long its lines have waited; 0 for none.
	Since int64 `cbor:"42,keyasint,omitempty"`
	// Opened is what was held before this gpio.release opened it, until it has ended.
	Opened *Hold `cbor:"43,keyasint,omitempty"`
	// Thrown says that the LOCAL switch of its node was thrown since the current attempt
	// was made: what has not arrived yet does not begin, and there is no further attempt
	// by itself (docs/safety.md 8).
	Thrown bool `cbor:"44,keyasint,omitempty"`
	// EndsBy is when the lease of a renewal has ended at the latest, Unix ms; 0 for no
	// such limit (docs/safety.md 8).
	EndsBy int64 `cbor:"45,keyasint,omitempty"`
}

// Path is the way by which a step became known.
type Path uint8

const (
	PathNone       Path = 0 // decided by the gateway itself
	PathPrimary    Path = 1
	PathNarrowband Path = 2
	PathHTTP       Path = 3
	PathMQTT       Path = 4 // the task topic
)

// String is the path's name in timelines.
func (p Path) String() string {
	switch p {
	case PathNone:
		return "gateway"
	case PathPrimary:
		return "primary"
	case PathNarrowband:
		return "narrowband"
	case PathHTTP:
		return "http"
	case PathMQTT:
		return "mqtt"
	}
	return "unknown"
}

// What is the kind of a timeline entry.
type What uint8

const (
	WhatSubmitted  What = 1
	WhatDispatched What = 2  // handed to the node's outbox for the first time in this attempt
	WhatResent     What = 3  // the same token once more
	WhatReceived   What = 4  // the agent has it
	WhatStarted    What = 5  // execution began
	WhatProgress   What = 6  // still running
	WhatProcessed  What = 7  // the agent's result
	WhatJoined     What = 8  // a second path brought the same result, perhaps with its payload
	WhatRetrying   What = 9  // another attempt was decided
	WhatTimeout    What = 10 // the gateway's opinion
	WhatCancelAsk  What = 11 // cancellation was asked of the agent
	WhatCancelled  What = 12
	WhatRequeued   What = 13 // back to PENDING: the node left before it confirmed
	WhatRefused    What = 14 // a report was refused: stale token, illegal step
	WhatQueried    What = 15 // the agent was asked what became of it
	WhatResolved   What = 16 // an operator settled it by hand
	WhatDoubted    What = 17 // the log is an older copy: no further attempt without an operator
	WhatLease      What = 18 // the board has ended a lease by itself, or could not; no state changes
	WhatDriven     What = 19 // the agent has driven its lines to the safe levels, unrecorded; no state changes
	WhatSuperseded What = 20 // something newer stands for it: it is withdrawn
	WhatDue        What = 21 // what its task waits for has come about: it has its number now
	WhatThrown     What = 22 // the LOCAL switch of its node was thrown: no further attempt by itself
)

var whatNames = [...]string{
	WhatSubmitted: "submitted", WhatDispatched: "dispatched", WhatResent: "resent",
	WhatReceived: "received", WhatStarted: "started", WhatProgress: "progress",
	WhatProcessed: "processed", WhatJoined: "joined", WhatRetrying: "retrying",
	WhatTimeout: "timeout", WhatCancelAsk: "cancel_requested", WhatCancelled: "cancelled",
	WhatRequeued: "requeued", WhatRefused: "refused", WhatQueried: "queried",
	WhatResolved: "resolved", WhatDoubted: "doubted",
	WhatLease: "lease_ended", WhatDriven: "driven", WhatSuperseded: "superseded", WhatDue: "due", WhatThrown: "local_thrown",
}

// String is the entry's name in timelines and logs.
func (w What) String() string {
	if int(w) < len(whatNames) && whatNames[w] != "" {
		return whatNames[w]
	}
	return "unknown"
}

// Entry is one line of an instruction's timeline (B4).
type Entry struct {
	At      int64  `cbor:"1,keyasint"`           // gateway, Unix ms
	AgentAt int64  `cbor:"2,keyasint,omitempty"` // agent, Unix ms; 0 when it is not the agent's step
	What    What   `cbor:"3,keyasint"`
	From    State  `cbor:"4,keyasint"`
	To      State  `cbor:"5,keyasint"` // equal to From when the state did not change
	Actor   string `cbor:"6,keyasint,omitempty"`
	// Token and Attempt are those in force after the step, except for a refused
	// report, where they are the report's.
	Token   wire.Token `cbor:"7,keyasint,omitzero"`
	Attempt uint8      `cbor:"8,keyasint,omitempty"`
	Path    Path       `cbor:"9,keyasint,omitempty"`
	// DurationMs is the time since the previous step that it measures: for
	// received since dispatch, for processed since start.
	DurationMs int64 `cbor:"10,keyasint,omitempty"`
	// Implied marks a step that no message reported but that must have happened.
	Implied bool      `cbor:"11,keyasint,omitempty"`
	Code    wire.Code `cbor:"12,keyasint,omitempty"`
	Detail  string    `cbor:"13,keyasint,omitempty"`
	Event   uint64    `cbor:"14,keyasint,omitempty"` // number of the agent's event
	// Payload is what a running instruction has seen, of WhatProgress.
	Payload wire.RawMap `cbor:"15,keyasint,omitzero"`
}

// Node is what the gateway knows about an agent for good.
type Node struct {
	ID          string            `cbor:"1,keyasint"`
	Short       string            `cbor:"2,keyasint"`
	Labels      map[string]string `cbor:"3,keyasint,omitempty"`
	Incarnation uint64            `cbor:"4,keyasint"`
	Version     string            `cbor:"5,keyasint,omitempty"`
	Intents     []string          `cbor:"6,keyasint,omitempty"`
	Pins        []string          `cbor:"7,keyasint,omitempty"`
	Board       string            `cbor:"8,keyasint,omitempty"`
	Workers     uint16            `cbor:"9,keyasint,omitempty"`
	FirstSeen   int64             `cbor:"10,keyasint"` // Unix ms
	LastHello   int64             `cbor:"11,keyasint"` // Unix ms
	// Left says that it has taken leave and not said hello since: nobody expects it.
	Left bool `cbor:"12,keyasint,omitempty"`
	// Rules are what the agent follows; Traits are those of Pins, in the same order.
	Rules  wire.Rules       `cbor:"13,keyasint,omitempty"`
	Traits []wire.PinTraits `cbor:"14,keyasint,omitempty"`
	// Throws is how often its LOCAL switch has been thrown since its Process was started,
	// plus 1, as the gateway has heard; 0 if the agent does not tell.
	Process uint64 `cbor:"15,keyasint,omitempty"`
	Throws  uint64 `cbor:"16,keyasint,omitempty"`
}

// Cursor is the last event of a node that is in the log (B7).
type Cursor struct {
	_           struct{} `cbor:",toarray"`
	Incarnation uint64
	Last        uint64
}

// Counters are the log's own numbers. They only rise.
type Counters struct {
	_         struct{} `cbor:",toarray"`
	Epoch     uint64   // random, drawn when the log was made
	Shard     uint16
	NextSeq   uint64
	NextToken uint64
	NextDead  uint64 // dead letters
}

// Mark remembers which task an MQTT publish became, so that its retransmission
// after a reconnect does not become another one (A10).
type Mark struct {
	Client   string   `cbor:"1,keyasint"`
	PacketID uint16   `cbor:"2,keyasint"`
	Sum      [16]byte `cbor:"3,keyasint"` // of the payload
	TaskID   string   `cbor:"4,keyasint"`
	At       int64    `cbor:"5,keyasint"` // Unix ms
}

// DeadLetter is something that could not be processed, kept with its reason
// (B10).
type DeadLetter struct {
	Number uint64 `cbor:"1,keyasint"`
	At     int64  `cbor:"2,keyasint"` // Unix ms
	Kind   string `cbor:"3,keyasint"` // task, event, compact
	From   string `cbor:"4,keyasint"` // node or client id
	Reason string `cbor:"5,keyasint"`
	Raw    []byte `cbor:"6,keyasint,omitempty"` // at most MaxDeadLetterBytes
}

// MaxDeadLetterBytes bounds what is kept of a message that could not be read;
// more would let a faulty client fill the disk.
const MaxDeadLetterBytes = 4 << 10
