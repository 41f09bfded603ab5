package engine

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/apollo-11/apollo11/wire"
	"github.com/apollo-11/apollo11/wire/mutant"
)

// Engine holds every unfinished task, every node, and what is owed to them. It
// is not safe for concurrent use: one goroutine owns it.
type Engine struct {
	cfg      Config
	rnd      *rand.Rand
	counters Counters
	began    Counters // as they were when this process began
	topUsed  bool     // counters have changed since the last Ready

	tasks  map[string]*task
	insts  map[uint64]*inst
	nodes  map[string]*node
	shorts map[string]string // short id -> node
	narrow map[string]int    // narrowband connections by short id
	open   int               // unsettled instructions
	known  int               // nodes that have said hello once
	marks  markRing
	timers timerHeap
	alarms alarms
	quiet  Quiet
	lost   Lost
	moving Moved

	acks     acks
	quietEnd time.Duration // when the quiet period ends: a clock that is set does not move it
	paused   bool          // by the latency of acks
	pausedAt time.Duration // since when
	resumeAt time.Duration // before this no new pause begins
	paceAt   time.Duration // when it is looked at next
	flying   int           // unconfirmed, over all nodes
	blocked  []*node       // that wait for the water to fall
	draining []*node
	bucket   drain
	own      timer
	undue    []*inst       // wait for what their task declares
	dueAt    time.Duration // when that is asked next; 0 for never

	lines    []nodeLine // to be looked at before anything is sent
	reserved Reserved
	skipped  skipped

	auditNo   uint64 // of the latest entry
	auditHead [32]byte

	// Collected since the last Ready.
	touched   []*task // to be looked at for opening, closing and status
	dirty     []*inst
	logged    int // entries of timelines
	pumps     []*node
	owing     []*node // nodes that are owed an EventAck
	changed   []*node // nodes whose state is to be published
	moved     []*node // nodes whose cursor has to be written
	newTasks  []Task
	newNodes  []*node
	newMarks  []Mark
	newDead   []DeadLetter
	newAudit  []Audit
	newHolds  []*node
	dropped   []uint64 // dead letters
	quietNew  bool
	movedNew  bool
	effects   Effects
	lastReady time.Duration
}

// New returns an engine with an empty memory. Recovery then calls Restore for
// the nodes and Adopt for each unfinished task. rnd is the only source of
// randomness: token suffixes, trace ids, jitter.
func New(cfg Config, counters Counters, rnd *rand.Rand) *Engine {
	if counters.NextSeq == 0 {
		counters.NextSeq = 1
	}
	if counters.NextToken == 0 {
		counters.NextToken = 1
	}
	if counters.NextDead == 0 {
		counters.NextDead = 1
	}
	cfg = cfg.withDefaults()
	return &Engine{
		cfg: cfg, rnd: rnd, counters: counters, began: counters, bucket: drain{tokens: time.Second * time.Duration(cfg.DrainBurst) / time.Duration(cfg.DrainRate)},
		tasks: map[string]*task{}, insts: map[uint64]*inst{}, nodes: map[string]*node{},
		shorts: map[string]string{}, narrow: map[string]int{}, alarms: newAlarms(), marks: newMarkRing(),
	}
}

// Restore takes in a node from the log, offline until it says hello.
func (e *Engine) Restore(n Node, c Cursor) {
	m := e.node(n.ID)
	m.Node, m.cursor, m.counted = n, c, false
	e.know(m)
	e.learn(Now{}, m)
	e.shorts[n.Short] = n.ID
	e.expect(m)
}

// Adopt takes in a task from the log: at recovery, or because Wants asked for
// it. open says whether the log holds it as unfinished. A task that is in memory
// already is left alone.
func (e *Engine) Adopt(now Now, t Task, insts []Instruction, open bool) {
	if e.tasks[t.ID] != nil {
		return
	}
	m := newTask(t)
	m.open = open
	for _, rec := range insts {
		i := e.inst(m, rec)
		e.undueAtFirst(now, i)
		e.track(now, i)
		e.resume(now, i)
	}
	e.tasks[t.ID] = m
	e.touch(m)
}

// Wants says what has to be loaded from the log before Step(in).
func (e *Engine) Wants(in Input) Want {
	switch in := in.(type) {
	case *Submit:
		var w Want
		if in.Dup && in.Mark != nil {
			m, ok := e.marks.find(in.Mark.Client, in.Mark.PacketID)
			switch {
			case !ok:
				w.Client, w.PacketID = in.Mark.Client, in.Mark.PacketID
			case in.Spec.TaskID == "" && m.Sum == in.Mark.Sum && e.tasks[m.TaskID] == nil:
				w.TaskID = m.TaskID // it may have finished and left memory
			}
		}
		if id := in.Spec.TaskID; id != "" && e.tasks[id] == nil {
			w.TaskID = id
		}
		return w
	case *Cancel:
		if in.TaskID != "" && e.tasks[in.TaskID] == nil {
			return Want{TaskID: in.TaskID}
		}
		if in.Seq != 0 && e.insts[in.Seq] == nil {
			return Want{Seq: in.Seq}
		}
	case *Operate:
		if in.Dead != 0 {
			return Want{Dead: in.Dead}
		}
		if in.Seq != 0 && e.insts[in.Seq] == nil {
			return Want{Seq: in.Seq}
		}
	case *Uplink:
		return e.wantsOf(in)
	case *Compact:
		if e.insts[in.Ack.Seq] == nil {
			return Want{Seq: in.Ack.Seq}
		}
	}
	return Want{}
}

func (e *Engine) wantsOf(in *Uplink) Want {
	switch m := in.Msg.(type) {
	case *wire.Event:
		n := e.nodes[in.Node]
		if n != nil && n.session != 0 && m.Number == n.cursor.Last+1 && e.insts[m.Seq] == nil {
			return Want{Seq: m.Seq}
		}
	case *wire.Report:
		// A report answers a query about open instructions: those are in memory.
	}
	return Want{}
}

// Step takes one input in. What follows from it is collected until Ready.
func (e *Engine) Step(now Now, in Input) {
	switch in := in.(type) {
	case *Submit:
		e.submit(now, in)
	case *Cancel:
		e.cancel(now, in)
	case *Uplink:
		e.uplink(now, in)
	case *Compact:
		e.compact(now, in)
	case *Garbage:
		e.garbage(now, in)
	case *Operate:
		e.operate(now, in)
	case *NarrowbandUp:
		e.narrowbandUp(now, in)
	case *NodeGone:
		if n := e.nodes[in.Node]; n != nil && n.session != 0 && in.Session == n.session {
			e.lose(now, n, in.Reason)
		}
	default:
		panic(fmt.Sprintf("bug: unknown input %T", in))
	}
}

// Ready lets time pass, hands out what may be sent, and returns everything that
// has collected since the last call. The caller must carry it out.
func (e *Engine) Ready(now Now) Ready {
	if now.Mono < e.lastReady {
		panic("bug: monotonic time went back")
	}
	e.lastReady = now.Mono
	e.fire(now)
	if e.dueAt != 0 && now.Mono >= e.dueAt {
		e.becomeDue(now)
	}
	e.pace(now)
	e.holdsAgain(now)
	e.sendOut(now)
	if e.holdsAgain(now) { // what has ended just now
		e.sendOut(now)
	}
	e.levels(now)
	e.armOwn(now)
	var r Ready
	e.payAcks(now)
	e.collectTasks(&r)
	e.collectInsts(&r)
	e.collectNodes(&r)
	r.Records.Tasks, e.newTasks = e.newTasks, nil
	r.Records.Marks, e.newMarks = e.newMarks, nil
	r.Records.DeadLetters, e.newDead = e.newDead, nil
	r.Records.Dropped, e.dropped = e.dropped, nil
	r.Records.Audits, e.newAudit = e.newAudit, nil
	if e.quietNew {
		q := e.quiet
		r.Records.Quiet, e.quietNew = &q, false
	}
	if e.movedNew {
		m := e.moving
		r.Records.Moved, e.movedNew = &m, false
	}
	e.collectHolds(&r.Records)
	if e.topUsed || !r.Records.Empty() {
		e.reserve(&r.Records)
	}
	if e.topUsed {
		c := e.counters
		r.Records.Counters = &c
		e.topUsed = false
	}
	e.effects.Statuses = append(e.effects.Statuses, r.Effects.Statuses...)
	e.effects.Nodes = append(e.effects.Nodes, r.Effects.Nodes...)
	r.Effects, e.effects = e.effects, Effects{}
	if r.Deadline = e.timers.next(); len(e.pumps) > 0 {
		r.Deadline = now.in(0)
	}
	return r
}

// sendOut hands out what may be sent. That may let more be sent, so it goes on
// until nothing asks for it.
func (e *Engine) sendOut(now Now) {
	for {
		e.arrange(now)
		e.drainBacklogs(now)
		if len(e.pumps) == 0 {
			return
		}
		for k := 0; k < len(e.pumps); k++ {
			e.pumps[k].pumped = false
			e.pump(now, e.pumps[k])
		}
		e.pumps = e.pumps[:0]
	}
}

// collectTasks writes down which tasks opened or closed, builds the statuses to
// publish, and lets go of what is finished.
func (e *Engine) collectTasks(r *Ready) {
	for _, t := range e.touched {
		t.touched = false
		open := slices.ContainsFunc(t.insts, func(i *inst) bool { return !i.State.Settled() })
		if open != t.open {
			t.open = open
			if open {
				r.Records.Opened = append(r.Records.Opened, t.First)
			} else {
				r.Records.Closed = append(r.Records.Closed, t.First)
			}
		}
		if t.changed {
			t.changed = false
			s := TaskState{Task: t.Task, Instructions: make([]Instruction, len(t.insts))}
			for k, i := range t.insts {
				s.Instructions[k] = i.Instruction
				if i.dirty {
					s.Instructions[k].Version++ // as it is about to be written
				}
			}
			r.Effects.Statuses = append(r.Effects.Statuses, s)
		}
		if !open {
			e.release(t)
		}
	}
	e.touched = e.touched[:0]
}

func (e *Engine) collectInsts(r *Ready) {
	e.logged = 0
	if len(e.dirty) == 0 {
		return
	}
	r.Records.Instructions = make([]Write, 0, len(e.dirty))
	for _, i := range e.dirty {
		i.dirty = false
		if i.unwritten && i.safe && i.wants {
			e.wantPump(i.node) // see sendSafe
		}
		i.unwritten = false
		if !mutant.On(mutant.VersionStuck) {
			i.Version++
		}
		w := Write{Instruction: i.Instruction, Entries: i.entries}
		if i.Operator != i.waits {
			i.waits = i.Operator
			w.Queue = QueueLeave
			if mutant.On(mutant.QueueStale) {
				w.Queue = 0
			}
			if i.Operator {
				w.Queue = QueueEnter
			}
		}
		r.Records.Instructions = append(r.Records.Instructions, w)
		i.entries = nil
	}
	e.dirty = e.dirty[:0]
}

func (e *Engine) touch(t *task) {
	if !t.touched {
		t.touched = true
		e.touched = append(e.touched, t)
	}
}

// mark notes that an instruction has to be written, and its status published.
func (e *Engine) mark(now Now, i *inst) {
	i.Updated = now.Wall
	e.touchLines(i)
	if !i.dirty {
		i.dirty = true
		e.dirty = append(e.dirty, i)
	}
	i.task.changed = true
	e.touch(i.task)
}

// log adds a timeline entry that does not change the state.
func (e *Engine) log(now Now, i *inst, en Entry) {
	en.At = now.Wall
	if en.From == StateNone && en.To == StateNone {
		en.From, en.To = i.State, i.State
	}
	if en.Attempt == 0 {
		en.Token, en.Attempt = i.Token, i.Attempt
	}
	i.entries = append(i.entries, en)
	e.logged++
	e.mark(now, i)
}

// move changes the state, with the timeline entry that says why. It returns
// false, and refuses and records the attempt, when the table does not allow it.
func (e *Engine) move(now Now, i *inst, to State, en Entry) bool {
	if !Allowed(i.State, to) && !mutant.On(mutant.TableIgnored) {
		e.effects.Counts.IllegalMoves++
		e.alarm(now, "illegal_transition", i.Key(e.cfg.Site), fmt.Sprintf(
			"a step from %v to %v was refused (%s, %s)", i.State, to, en.What, en.Path))
		e.log(now, i, Entry{What: WhatRefused, Path: en.Path, Code: en.Code, Event: en.Event,
			Actor: en.Actor, Detail: fmt.Sprintf("%v to %v is not allowed", i.State, to)})
		return false
	}
	en.From, en.To = i.State, to
	i.State = to
	e.log(now, i, en)
	e.track(now, i)
	return true
}

// track keeps the count and the node's set of unsettled instructions.
func (e *Engine) track(now Now, i *inst) {
	settled := i.State.Settled()
	if settled == i.settled {
		return
	}
	i.settled = settled
	if settled {
		e.lastWord(i)
		e.open--
		delete(i.node.open, i.Seq)
		if i.Code.Class() == wire.ClassRetryable && !mutant.On(mutant.KeptForever) { // whatever has ended its waiting for another attempt
			e.letGo(now, i)
		}
		e.ground(i)
		e.unwant(i)
		e.setInside(i, false)
		e.unplace(i)
		e.onTime(now, i)
		i.sendAt, i.waitAt, i.execAt, i.cancelAt, i.askAt, i.stopAt = 0, 0, 0, 0, 0, 0
		i.blockAt, i.blocked, i.whisperAt = 0, 0, 0
		return
	}
	e.open++
	i.node.open[i.Seq] = i
	e.place(i)
}

// Open is the number of unfinished instructions.
func (e *Engine) Open() int { return e.open }

// Nodes returns the state of every node, by name.
func (e *Engine) Nodes() []NodeState {
	out := make([]NodeState, 0, len(e.nodes))
	for _, n := range e.nodes {
		if n.known {
			out = append(out, n.state())
		}
	}
	slices.SortFunc(out, func(a, b NodeState) int { return cmp.Compare(a.Node.ID, b.Node.ID) })
	return out
}

// Epoch names the log that this engine writes.
func (e *Engine) Epoch() uint64 { return e.counters.Epoch }

// Unfinished returns every unfinished task, oldest first.
func (e *Engine) Unfinished() []TaskState {
	out := make([]TaskState, 0, len(e.tasks))
	for _, t := range e.tasks {
		s := TaskState{Task: t.Task}
		for _, i := range t.insts {
			s.Instructions = append(s.Instructions, i.Instruction)
		}
		out = append(out, s)
	}
	slices.SortFunc(out, func(a, b TaskState) int { return cmp.Compare(a.Task.First, b.Task.First) })
	return out
}
