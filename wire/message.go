package wire

import "math"

// Kind is key 0 of every message.
type Kind uint8

// Kinds from the gateway to an agent (topic cmd/<node>).
const (
	KindInstruction Kind = 1
	KindCancel      Kind = 2
	KindQuery       Kind = 3
	KindWelcome     Kind = 4
	KindEventAck    Kind = 5
	KindRelease     Kind = 6
	KindSafeNow     Kind = 7
)

// Kinds from an agent to the gateway (topic evt/<node>).
const (
	KindHello     Kind = 16
	KindEvent     Kind = 17
	KindHeartbeat Kind = 18
	KindReport    Kind = 19
	KindDigest    Kind = 20
	KindGoodbye   Kind = 21
)

// Message is one of the pointer types below.
type Message interface {
	kind() Kind
	setKind()
	// Validate reports the first thing that makes the message unfit to send or
	// to act on. Encode and the decoders call it.
	Validate() error
}

// Ref names one attempt of one instruction.
type Ref struct {
	_     struct{} `cbor:",toarray"`
	Seq   uint64
	Token Token
}

// Instruction asks a node to execute one attempt. A resend has the same Token
// and a higher Resend; a retry has a new Token and the next Attempt.
type Instruction struct {
	K       Kind   `cbor:"0,keyasint"`
	Seq     uint64 `cbor:"1,keyasint"` // instruction sequence, unique in the gateway's log
	Key     string `cbor:"2,keyasint"` // idempotency key, see Key
	Token   Token  `cbor:"3,keyasint"`
	Attempt uint8  `cbor:"4,keyasint"` // from 1
	Intent  string `cbor:"5,keyasint"`
	// Args is an encoded CBOR map, absent for none.
	Args RawMap `cbor:"6,keyasint,omitzero"`
	// NotAfter is the Unix time in ms after which execution must not start; 0
	// means no limit (A9).
	NotAfter int64 `cbor:"7,keyasint,omitempty"`
	// TimeoutMs bounds the execution; 0 means the agent's default.
	TimeoutMs uint32   `cbor:"8,keyasint,omitempty"`
	Priority  Priority `cbor:"9,keyasint,omitempty"`
	Trace     Trace    `cbor:"10,keyasint"`
	// SentAt is the gateway's Unix time in ms when this copy was handed out.
	SentAt int64 `cbor:"11,keyasint"`
	Resend uint8 `cbor:"12,keyasint,omitempty"`
	// Through is a piggybacked EventAck; 0 means none.
	Through uint64 `cbor:"13,keyasint,omitempty"`
	// Order is the number by which it stands in the order at its lines; 0 means Seq.
	// Resends and retries keep it, an operator's retry has a new one.
	Order uint64 `cbor:"14,keyasint,omitempty"`
	// Lines are the lines that the gateway took its pins for, as the latest hello
	// told them; none if it does not know. If one of its names means another line
	// by now it ends with CodeMapChanged.
	Lines []LineKey `cbor:"15,keyasint,omitempty"`
	// Keep says that the gateway will try again after a failure that may pass: until
	// then, or until a Release, the agent keeps its lines for it, for OrderWait at
	// most.
	Keep bool `cbor:"16,keyasint,omitempty"`
	// Throws is what the agent had told of its LOCAL switch (Hello.Throws) when this was
	// handed out first: all throws that the gateway had heard of. What moves something
	// away from its safe level, and finds another number at the agent, is refused with
	// CodeLocal: it was submitted before the gateway heard of the last one. ThrownSince
	// stands for a number that no agent has. 0 says nothing.
	Throws uint64 `cbor:"17,keyasint,omitempty"`
	// EndsBy is the Unix time in ms by which a lease that this begins has ended, however
	// late it begins; 0 means no limit beside its own length.
	EndsBy int64 `cbor:"18,keyasint,omitempty"`
}

// ThrownSince is Instruction.Throws of what was handed out before the gateway heard that
// the LOCAL switch had been thrown: an agent that has not got it yet does not begin it.
const ThrownSince = math.MaxUint64

// Cancel asks a node to stop an attempt. The answer is an Event: cancelled, or
// the result if the work was faster.
type Cancel struct {
	K       Kind   `cbor:"0,keyasint"`
	Seq     uint64 `cbor:"1,keyasint"`
	Token   Token  `cbor:"3,keyasint"`
	Reason  string `cbor:"4,keyasint,omitempty"`
	Trace   Trace  `cbor:"10,keyasint"`
	Through uint64 `cbor:"13,keyasint,omitempty"`
}

// Release says that the lines which an agent keeps for the retry of an instruction
// are not kept for it any more. It is sent to agents that name Rules.
type Release struct {
	K       Kind   `cbor:"0,keyasint"`
	Seq     uint64 `cbor:"1,keyasint"`
	Through uint64 `cbor:"13,keyasint,omitempty"`
}

// SafeNow has lines driven to their safe levels at once, before the instruction that
// it is a copy of is on the gateway's disk. It settles nothing and is not written down:
// the Instruction follows, or its gateway has died and the record is lost. It is sent to
// agents that follow RulesUrgent, and acknowledges no events.
type SafeNow struct {
	K     Kind   `cbor:"0,keyasint"`
	Seq   uint64 `cbor:"1,keyasint"`
	Token Token  `cbor:"3,keyasint"`
	// NotAfter is the Unix time in ms after which nothing is driven; 0 means no limit.
	NotAfter int64 `cbor:"7,keyasint,omitempty"`
	// Order is the number by which it stands in the order at its lines; 0 means Seq.
	Order uint64 `cbor:"14,keyasint,omitempty"`
	// Lines are those to drive; none means all outputs that have a safe level.
	Lines []LineKey `cbor:"15,keyasint,omitempty"`
}

// Query asks what became of some attempts. The answer is a Report. For an agent
// that follows RulesOrder it also offers again, in this session, what it names: of
// what waited when the agent was started nothing begins before. So a gateway never
// asks about what it has withdrawn: that it cancels.
type Query struct {
	K       Kind   `cbor:"0,keyasint"`
	Refs    []Ref  `cbor:"1,keyasint"`
	Through uint64 `cbor:"13,keyasint,omitempty"`
}

// Welcome answers a Hello. After it the gateway sends what the node has missed.
type Welcome struct {
	K       Kind   `cbor:"0,keyasint"`
	Session uint64 `cbor:"1,keyasint"` // the Hello's session
	// Epoch names the gateway's log; another value means another log.
	Epoch uint64 `cbor:"2,keyasint"`
	// Now is the gateway's Unix time in ms, for agents whose clock is not set.
	Now         int64  `cbor:"3,keyasint"`
	HeartbeatMs uint32 `cbor:"4,keyasint"`
	// Refused says in a sentence why the gateway will not work with this node
	// (for example a short id that another node has); empty means welcome.
	Refused string `cbor:"5,keyasint,omitempty"`
	// Phases is the highest phase of events that the gateway knows; 0 means
	// OldMaxPhase. A higher one is not sent to it.
	Phases Phase `cbor:"6,keyasint,omitempty"`
	// Rules are what the gateway follows; 0 for one that knows none.
	Rules Rules `cbor:"7,keyasint,omitempty"`
	// Holds are the lines that the gateway has held at their safe levels until
	// somebody releases them. The agent adds them to its own.
	Holds   []LineKey `cbor:"8,keyasint,omitempty"`
	Through uint64    `cbor:"13,keyasint,omitempty"`
}

// EventAck says that every event up to and including Through is on the gateway's
// disk. The agent may forget them (B7).
type EventAck struct {
	K       Kind   `cbor:"0,keyasint"`
	Through uint64 `cbor:"13,keyasint"`
	// Gap asks the agent to send again from Through+1: something was missing.
	Gap bool `cbor:"14,keyasint,omitempty"`
}

// Hello is the first message of an agent on every primary connection.
type Hello struct {
	K Kind `cbor:"0,keyasint"`
	// Session is a random number of this connection: a last will that carries
	// another one is old news.
	Session uint64 `cbor:"1,keyasint"`
	// Incarnation is a random number drawn when the agent's journal was made: a
	// new one means that the agent has forgotten everything.
	Incarnation uint64            `cbor:"2,keyasint"`
	Version     string            `cbor:"3,keyasint,omitempty"`
	Labels      map[string]string `cbor:"4,keyasint,omitempty"`
	Short       string            `cbor:"5,keyasint"`
	Intents     []string          `cbor:"6,keyasint,omitempty"`
	Pins        []string          `cbor:"7,keyasint,omitempty"`
	// First is the oldest event number that the agent still holds, Next the one
	// that it will use next; equal when it holds none. Numbers start at 1.
	First uint64 `cbor:"8,keyasint"`
	Next  uint64 `cbor:"9,keyasint"`
	// Clock is the agent's Unix time in ms; ClockSet is false when the agent
	// knows that it cannot be right (no real-time clock, not yet synchronised).
	Clock    int64 `cbor:"10,keyasint"`
	ClockSet bool  `cbor:"11,keyasint,omitempty"`
	// Board is the pin back end: sim, periph.
	Board string `cbor:"12,keyasint,omitempty"`
	// Workers is the number of instructions that the agent runs at a time.
	Workers uint16 `cbor:"13,keyasint,omitempty"`
	// TopSeq and TopToken are the highest instruction sequence, or order number that has
	// begun, and the highest token sequence that the agent has ever seen, 0 for none. A gateway that has given out less
	// has lost a part of its log.
	TopSeq   uint64 `cbor:"14,keyasint,omitempty"`
	TopToken uint64 `cbor:"15,keyasint,omitempty"`
	// Nonce is a random number of this process: another one under the same name is
	// another board, or this one started again.
	Nonce uint64 `cbor:"16,keyasint,omitempty"`
	// Rules are what the agent follows; 0 for one that knows none.
	Rules Rules `cbor:"17,keyasint,omitempty"`
	// Traits are those of Pins, in the same order; none from an agent without Rules.
	Traits []PinTraits `cbor:"18,keyasint,omitempty"`
	// Actuating are those of Intents, by index, which the agent takes to move
	// something although the gateway may not: it is believed towards caution only.
	Actuating []uint16 `cbor:"19,keyasint,omitempty"`
	// Local says that the LOCAL switch is on.
	Local bool `cbor:"20,keyasint,omitempty"`
	// Throws is how often the LOCAL switch has been thrown since this process was
	// started (see Nonce), plus 1; 0 if the agent does not tell.
	Throws uint64 `cbor:"21,keyasint,omitempty"`
}

// Event reports a step of one attempt. It is in the agent's journal before it
// is sent and until an EventAck covers it. A short task sends one Event with all
// its times instead of three.
type Event struct {
	K       Kind   `cbor:"0,keyasint"`
	Number  uint64 `cbor:"1,keyasint"` // strictly increasing per node and incarnation
	Seq     uint64 `cbor:"2,keyasint"`
	Token   Token  `cbor:"3,keyasint"`
	Attempt uint8  `cbor:"4,keyasint"`
	Phase   Phase  `cbor:"5,keyasint"`
	// Unix times in ms by the agent's clock, corrected by the gateway's if the
	// agent's is not set; 0 when the step has not happened.
	ReceivedAt int64 `cbor:"6,keyasint,omitempty"`
	StartedAt  int64 `cbor:"7,keyasint,omitempty"`
	FinishedAt int64 `cbor:"8,keyasint,omitempty"`
	// Code is set on PhaseProcessed only.
	Code   Code   `cbor:"9,keyasint,omitempty"`
	Detail string `cbor:"10,keyasint,omitempty"` // a sentence for people
	// Payload is an encoded CBOR map, absent for none.
	Payload RawMap `cbor:"11,keyasint,omitzero"`
	Percent uint8  `cbor:"12,keyasint,omitempty"` // of PhaseProgress, 0 to 100
	// Lease is set on PhaseLease only, whose FinishedAt is when the lease ended
	// and whose Payload has the pin and its level, as far as it is known.
	Lease LeaseEnd `cbor:"13,keyasint,omitempty"`
}

// Running is one attempt that an agent is executing.
type Running struct {
	_       struct{} `cbor:",toarray"`
	Seq     uint64
	Token   Token
	Percent uint8
}

// Foreign is an output whose level is not the one that the agent set: somebody
// else has changed it (C15).
type Foreign struct {
	_         struct{} `cbor:",toarray"`
	Pin       string
	Commanded uint8 // 0 or 1
	Found     uint8 // 0 or 1
}

// Heartbeat says that an agent is alive and what it does.
type Heartbeat struct {
	K       Kind   `cbor:"0,keyasint"`
	Session uint64 `cbor:"1,keyasint"`
	// Clock is the agent's Unix time in ms as it is; that of the gateway, as far as
	// it is known, if the agent's is not set.
	Clock    int64     `cbor:"2,keyasint"`
	UptimeMs int64     `cbor:"3,keyasint"`
	Running  []Running `cbor:"4,keyasint,omitempty"`
	// Queued counts instructions received but not started.
	Queued uint32 `cbor:"5,keyasint,omitempty"`
	// Through is the highest event number that the agent knows to be
	// acknowledged; Next the number that it will use next.
	Through uint64 `cbor:"6,keyasint,omitempty"`
	Next    uint64 `cbor:"7,keyasint,omitempty"`
	// Foreign are the outputs that somebody else has changed.
	Foreign []Foreign `cbor:"8,keyasint,omitempty"`
	// Local says that the LOCAL switch is on: what would actuate is refused.
	Local bool `cbor:"9,keyasint,omitempty"`
	// Levels are how the pins of this session's hello stand, in its order: see
	// PackLevels. Absent if the agent does not tell.
	Levels []byte `cbor:"10,keyasint,omitempty"`
	// Room is how many more instructions may wait in the agent, plus 1; 0 if it does
	// not tell.
	Room uint32 `cbor:"11,keyasint,omitempty"`
	// Throws is that of the Hello, as it is now.
	Throws uint64 `cbor:"12,keyasint,omitempty"`
}

// Status is an agent's knowledge of one attempt.
type Status uint8

const (
	StatusNever   Status = 1 // this token never arrived, or was forgotten after 24 h
	StatusQueued  Status = 2 // received, not started
	StatusRunning Status = 3
	StatusDone    Status = 4 // its result follows, or was sent, as an Event
	// The following are told to gateways that follow RulesOrder only; an older one
	// refuses a report with a status that it does not know.
	//
	// StatusFull means that the queue of the agent is full. It has not taken the
	// attempt and does not know it; it may be sent again when there is room.
	StatusFull Status = 5
	// StatusDriven means that its line has been driven to the safe level and that this
	// is not on the agent's disk yet. It settles nothing.
	StatusDriven Status = 6
)

// State is one answer in a Report.
type State struct {
	_      struct{} `cbor:",toarray"`
	Seq    uint64
	Token  Token
	Status Status
	Code   Code // with StatusDone
}

// Report answers a Query. It is not journalled: it states what is, and may be
// lost and asked for again.
type Report struct {
	K      Kind    `cbor:"0,keyasint"`
	States []State `cbor:"1,keyasint"`
}

// Digest sums up what the agent holds, to be compared with the gateway's view
// (B9). Hash and Count are those of DigestOf over all attempts that the agent has
// and has not ended, as far as the gateway has acknowledged that it knows of
// them.
type Digest struct {
	K       Kind   `cbor:"0,keyasint"`
	Session uint64 `cbor:"1,keyasint"`
	Hash    uint64 `cbor:"2,keyasint"`
	Count   uint32 `cbor:"3,keyasint"`
	Next    uint64 `cbor:"4,keyasint"` // next event number
}

// Goodbye ends a session: sent by an agent that stops, or by the broker as its
// last will (Lost).
type Goodbye struct {
	K       Kind   `cbor:"0,keyasint"`
	Session uint64 `cbor:"1,keyasint"`
	Lost    bool   `cbor:"2,keyasint,omitempty"`
	Reason  string `cbor:"3,keyasint,omitempty"`
	// Unstarted are attempts that the agent received but promises not to run.
	Unstarted []Ref `cbor:"4,keyasint,omitempty"`
}

func (m *Instruction) kind() Kind { return KindInstruction }
func (m *Cancel) kind() Kind      { return KindCancel }
func (m *Query) kind() Kind       { return KindQuery }
func (m *Welcome) kind() Kind     { return KindWelcome }
func (m *EventAck) kind() Kind    { return KindEventAck }
func (m *Release) kind() Kind     { return KindRelease }
func (m *SafeNow) kind() Kind     { return KindSafeNow }
func (m *Hello) kind() Kind       { return KindHello }
func (m *Event) kind() Kind       { return KindEvent }
func (m *Heartbeat) kind() Kind   { return KindHeartbeat }
func (m *Report) kind() Kind      { return KindReport }
func (m *Digest) kind() Kind      { return KindDigest }
func (m *Goodbye) kind() Kind     { return KindGoodbye }

func (m *Instruction) setKind() { m.K = KindInstruction }
func (m *Cancel) setKind()      { m.K = KindCancel }
func (m *Query) setKind()       { m.K = KindQuery }
func (m *Welcome) setKind()     { m.K = KindWelcome }
func (m *EventAck) setKind()    { m.K = KindEventAck }
func (m *Release) setKind()     { m.K = KindRelease }
func (m *SafeNow) setKind()     { m.K = KindSafeNow }
func (m *Hello) setKind()       { m.K = KindHello }
func (m *Event) setKind()       { m.K = KindEvent }
func (m *Heartbeat) setKind()   { m.K = KindHeartbeat }
func (m *Report) setKind()      { m.K = KindReport }
func (m *Digest) setKind()      { m.K = KindDigest }
func (m *Goodbye) setKind()     { m.K = KindGoodbye }
