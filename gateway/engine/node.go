package engine

import (
	"slices"
	"time"

	"github.com/apollo-11/apollo11/wire"
)

// gapPause is the least time between two requests to send events again: the
// agent's answer needs a round trip, and each request costs it a window.
const gapPause = time.Second

// maxNodes bounds the nodes that are remembered for ever, far beyond any site: whoever
// may connect could make up names otherwise, one a hello. maxStrangeAlarms bounds the
// standing alarms beyond which refused names that nobody knows are told together.
const (
	maxNodes         = 10_000
	maxStrangeAlarms = 2 * maxNodes
)

// node is a Node in memory. It exists from the first instruction or hello that
// names it; known says that it has said hello once.
type node struct {
	Node
	cursor  Cursor
	known   bool
	online  bool
	since   int64
	reason  string
	session uint64 // of the latest hello that was welcomed; 0 after a goodbye
	voice   uint64 // of the latest hello, welcomed or not: whose words come now
	ended   [pastSessions]uint64
	past    int // where in ended the next one goes
	heard   time.Duration
	met     bool          // heard has a meaning
	missed  bool          // the gateway has started and waits for its first hello
	askedAt time.Duration // when what it was asked over narrowband is over, one each narrowbandPause
	frames  frames        // that were sent to it over narrowband
	timer   timer         // when its silence is looked at

	queue queue
	orders
	hold   *Hold                   // nil for nothing held
	freed  map[wire.LineKey]uint64 // numbers of the latest gpio.release that its board has done, or may have
	lates  int                     // instructions towards safe that are late
	flying int
	open   map[uint64]*inst // unsettled
	held   int              // instructions in memory that name it

	pumped   bool
	blocked  bool // stands in Engine.blocked
	draining bool
	backlog  int    // how many wait of what waited when it came back, or is older
	drainTo  uint64 // the last of those
	doubt
	refusedAt time.Duration // when another board was refused under its name; 0 for never
	local     bool
	foreign   []wire.Foreign
	letGone   []letGone
	failing   map[uint64]struct{} // instructions whose lease could not be ended
	skewed    int                 // how many words in a row told a clock that is off

	begins uint64        // the first event that did not exist when this session began
	told   uint64        // the highest event that a word of this session spoke of
	toldAt time.Duration // when the agent last said which event comes next

	owed    bool
	gap     bool
	gapAt   time.Duration // before this no further gap is told
	carrier *uint64       // field of this round's latest message that can carry an EventAck
	changed bool
	renewed bool // Node and cursor have to be written
	moved   bool // cursor has to be written

	twins   twins
	levels  levels
	given   Given
	counted bool // given is what the log has given to it, and no version before has
	kept    Top  // of given, as it was written last
	word    Top  // of its latest hello
	// numbered is the highest number that stood at one of its lines.
	numbered uint64
	oddAt    time.Duration // when its numbers were last alarmed as implausible; 0 for never
}

func (e *Engine) node(id string) *node {
	n := e.nodes[id]
	if n == nil {
		n = &node{Node: Node{ID: id}, open: map[uint64]*inst{}, counted: true}
		n.timer.n = n
		e.nodes[id] = n
	}
	return n
}

func (n *node) state() NodeState {
	s := NodeState{Node: n.Node, Online: n.online, Since: n.since, Reason: n.reason, Queued: n.wanting, Flying: n.flying,
		Local: n.local, Foreign: n.foreign, Twin: n.twins.on, Levels: n.levelsNow()}
	for _, i := range n.open {
		if i.ReceivedAt != 0 && !i.waiting() {
			s.Running++
		}
	}
	return s
}

// opened returns the node's unsettled instructions in order of submission.
func (n *node) opened() []*inst {
	list := make([]*inst, 0, len(n.open))
	for _, i := range n.open {
		list = append(list, i)
	}
	slices.SortFunc(list, func(a, b *inst) int {
		if a.Seq < b.Seq {
			return -1
		}
		return 1
	})
	return list
}

// show asks for the node's state to be published.
func (e *Engine) show(n *node) {
	if !n.changed {
		n.changed = true
		e.changed = append(e.changed, n)
	}
}

// renew asks for the node's record to be written.
func (e *Engine) renew(n *node) {
	if !n.renewed {
		n.renewed = true
		e.newNodes = append(e.newNodes, n)
	}
}
