package engine

import (
	"time"

	"github.com/apollo-11/apollo11/wire"
)

// Input is anything that can happen to the engine: *Submit, *Cancel, *Uplink,
// *Compact, *Garbage, *NodeGone, *NarrowbandUp or *Operate. The passing of time is
// no input: Ready looks at its argument.
type Input interface{ input() }

// Submit asks for a task. Reply, if not nil, comes back in Effects.Replies.
type Submit struct {
	Spec   Spec
	Source Source
	Path   Path
	// Mark is set for MQTT publishes with QoS 1 or 2: it recognises a
	// retransmission. Found is the stored mark of the same client and packet id,
	// which the caller looks up when Wants asks for it.
	Mark  *Mark
	Dup   bool
	Found *Mark
	Reply any
}

// Cancel asks to stop a whole task (TaskID) or one instruction (Seq).
type Cancel struct {
	TaskID string
	Seq    uint64
	Actor  string
	Reason string
	Path   Path
	Reply  any
}

// Uplink is a decoded message of a node on the primary path.
type Uplink struct {
	Node string
	Msg  wire.Message
}

// Compact is a compact ack on the narrowband path.
type Compact struct {
	Short string
	Ack   wire.CompactAck
}

// Garbage is a message that could not be read.
type Garbage struct {
	Kind   string // task, event, compact
	From   string
	Reason string
	Raw    []byte
	// Event is the number of an event that cannot be read, 0 for anything else:
	// its place in the order is taken, so that those behind it can come.
	Event uint64
}

// NodeGone says that the connection of a node ended. Session is that of its
// hello, 0 when not known (then it is ignored for a node that is online).
type NodeGone struct {
	Node    string
	Session uint64
	Reason  string
}

func (*Submit) input()   {}
func (*Cancel) input()   {}
func (*Uplink) input()   {}
func (*Compact) input()  {}
func (*Garbage) input()  {}
func (*NodeGone) input() {}

// Want names what the engine needs from the log before an input. Empty fields
// are not needed.
type Want struct {
	TaskID string
	Seq    uint64
	// Client and PacketID ask for a Mark, put into Submit.Found.
	Client   string
	PacketID uint16
	// Dead asks for a dead letter, put into Operate.Found.
	Dead uint64
}

// Empty reports whether nothing is wanted.
func (w Want) Empty() bool { return w == Want{} }

// Ready is what has to be done, in this order.
type Ready struct {
	Records  Records
	Effects  Effects
	Deadline time.Duration // Mono at which Ready should be called again; 0 for none
}

// Records are to be made durable in one atomic batch.
type Records struct {
	Counters     *Counters
	Tasks        []Task // new ones
	Opened       []uint64
	Closed       []uint64 // First of tasks that became unfinished or finished
	Instructions []Write
	Nodes        []Node
	Cursors      []NodeCursor
	Marks        []Mark
	DeadLetters  []DeadLetter
	Dropped      []uint64 // numbers of dead letters to forget
	Audits       []Audit
	Quiet        *Quiet
	Moved        *Moved
	Reserved     *Reserved
	Holds        []Hold // one a node; an ended one is to be forgotten
}

// Write is an instruction's new content with the timeline entries that explain
// it.
type Write struct {
	Instruction Instruction
	Entries     []Entry
	Queue       QueueChange
}

// QueueChange says whether an instruction enters or leaves the operator queue.
type QueueChange uint8

const (
	QueueSame  QueueChange = 0
	QueueEnter QueueChange = 1
	QueueLeave QueueChange = 2
)

// NodeCursor is the cursor of one node, with what the log has given to it: nil while
// that is not known.
type NodeCursor struct {
	Node string
	Cursor
	Given *Given
}

// Empty reports whether nothing has to be written.
func (r *Records) Empty() bool {
	return r.Counters == nil && len(r.Tasks) == 0 && len(r.Opened) == 0 && len(r.Closed) == 0 &&
		len(r.Instructions) == 0 && len(r.Nodes) == 0 && len(r.Cursors) == 0 && len(r.Marks) == 0 &&
		len(r.DeadLetters) == 0 && len(r.Dropped) == 0 && len(r.Audits) == 0 && r.Quiet == nil && r.Moved == nil && r.Reserved == nil && len(r.Holds) == 0
}

// Effects may leave the gateway once the records are durable.
type Effects struct {
	Replies  []Reply
	Sends    []Send
	Statuses []TaskState
	Nodes    []NodeState
	Alarms   []Alarm
	Confirms []Confirm
	Compacts []CompactSend
	Pins     []PinNews
	Counts   Counts
	// Urgent is what may go ahead of the records, and need not leave after them.
	Urgent []Urgent
}

// Confirm is the end of a status-unknown window (B3): how long after an attempt
// was handed out the first sign of it came, and by which path. What was taken back
// in between is handed out anew: that is another window.
type Confirm struct {
	Path   Path
	Window time.Duration
}

// CompactSend is a frame for one node's narrowband topic.
type CompactSend struct {
	Short string
	Frame CompactFrame
}

// CompactFrame is a wire.CompactQuery, a wire.CompactCancel or a wire.CompactSafe.
type CompactFrame interface{ Encode() ([]byte, error) }

// Reply answers a Submit, Cancel or Operate. Exactly one of the pointers is set.
type Reply struct {
	To        any
	Accepted  *Accepted
	Cancelled *Cancelled
	Done      *Done
	Refused   *Refusal
}

// Accepted tells a submitter what became of the task.
type Accepted struct {
	TaskID       string
	Instructions []string // ids, in the order of the nodes
	Nodes        []string
	Trace        wire.Trace
	Existing     bool     // the same task had been submitted before
	Warnings     []string // for people
	// Superseded are instructions that this one stands for and that will not begin any
	// more, the first few; SupersededCount is how many they are.
	Superseded      []string
	SupersededCount int
}

// Cancelled tells how a cancellation stands, by instruction.
type Cancelled struct {
	TaskID string
	Done   int // cancelled now
	Asked  int // the agent has been, or will be, asked
	Final  int // had already ended
}

// RefusalKind groups refusals by the answer that each door gives.
type RefusalKind uint8

const (
	RefusedInvalid  RefusalKind = 1 // 400, 0x99
	RefusedConflict RefusalKind = 2 // 409, 0x97: same task id, other content
	RefusedCapacity RefusalKind = 3 // 503, 0x97: try again later
	RefusedNotFound RefusalKind = 4 // 404
	RefusedNoNode   RefusalKind = 5 // 422, 0x99: the selector matches nothing
	RefusedHeld     RefusalKind = 7 // 409, 0x83: its output is held at the safe level; sending it again does not help
	// RefusedUnknown: 409: it may happen a second time, and nobody has said yes to that.
	RefusedUnknown RefusalKind = 6
)

// Refusal says why something was not taken, and what to do.
type Refusal struct {
	Kind RefusalKind
	Text string
	Hint string
}

func (r *Refusal) Error() string {
	if r.Hint == "" {
		return r.Text
	}
	return r.Text + "; " + r.Hint
}

// Send is a message for one node's primary topic.
type Send struct {
	Node string
	Msg  wire.Message
}

// TaskState is a task with all its instructions, as they stand.
type TaskState struct {
	Task         Task
	Instructions []Instruction
}

// NodeState is a node as it stands.
type NodeState struct {
	Node    Node
	Online  bool
	Since   int64 // Unix ms of the last change of Online
	Reason  string
	Queued  int // waiting to be sent
	Flying  int // sent and not confirmed
	Running int // confirmed and not ended
	// Local says that its LOCAL switch is on; Foreign are its outputs that somebody
	// else has changed, by its latest heartbeat. Not to be changed.
	Local   bool
	Foreign []wire.Foreign
	// Twin says that two boards of its name are there: its commands are held back.
	Twin bool
	// Levels are those of its outputs, as it says, in the order of its pins.
	Levels []PinLevel
}

// Alarm is raised or cleared. Kind and Subject together name it.
type Alarm struct {
	At      int64 // Unix ms
	Kind    string
	Subject string
	Text    string
	Raised  bool // false: cleared
}

// Counts are what happened since the last Ready, for metrics.
type Counts struct {
	Submitted, Existing, RefusedTasks          int
	Dispatched, Resent, Retried                int
	Events, DuplicateEvents, EventGaps         int
	StaleReports, UnknownReports, IllegalMoves int
	CompactAcks, CompactFirst                  int
	Succeeded, Failed, TimedOut, Cancelled     int
	DeadLetters                                int
	DigestsEqual, DigestsDiffer                int
	LeasesEnded                                int
}

// Empty reports whether there is nothing to deliver.
func (f *Effects) Empty() bool {
	return len(f.Replies) == 0 && len(f.Sends) == 0 && len(f.Statuses) == 0 && len(f.Nodes) == 0 &&
		len(f.Alarms) == 0 && len(f.Confirms) == 0 && len(f.Compacts) == 0 && len(f.Pins) == 0 && f.Counts == Counts{}
}
