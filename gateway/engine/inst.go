package engine

import (
	"time"

	"github.com/apollo-11/apollo11/wire"
	"github.com/apollo-11/apollo11/wire/mutant"
)

// task is a Task in memory with its instructions.
type task struct {
	Task
	act     wire.Act // what its arguments mean; the most careful act if they can't be read
	insts   []*inst
	open    bool // as the log has it
	touched bool
	changed bool // its status is to be published
}

// inst is an Instruction in memory with what need not survive a restart.
type inst struct {
	Instruction
	task       *task
	node       *node
	entries    []Entry
	dirty      bool
	unwritten  bool // its latest attempt is in no round yet
	place      int  // in node.queue, from 1; 0 when it is not queued
	places     []place
	board      bool           // it holds the whole board
	safe       bool           // it only leads to safe levels, as far as its node has told
	wants      bool           // waits to be handed out
	undue      bool           // waits for what its task declares: it has no number yet
	listed     bool           // scratch of supersede
	inside     bool           // counted in node.inside
	sentTo     []wire.LineKey // the lines that the pins of its act had when its attempt was first sent
	kept       bool           // the agent may keep its lines for a next attempt
	noRoom     bool           // the agent has said so of this attempt
	wantRank   wire.Priority  // as counted at its lines
	lift       wire.Priority  // its rank in node.queue
	blockAt    time.Duration  // when it has held its line for as long as it may; 0 for not
	blocked    time.Duration  // how long it had before
	lateAt     time.Duration  // when it is late, towards safe; 0 for not
	late       bool           // counted in node.lates
	goodTill   time.Duration  // when its time limit has passed, whatever is done to the clock; 0 for none
	overTill   time.Duration  // when its lease has ended, whatever is done to the clock; 0 for no such limit
	overdue    bool           // its result came after it was given up: no further attempt by itself
	whisperAt  time.Duration  // when a safe frame goes over narrowband; 0 for not
	whispers   int
	driven     bool // the agent said that it has driven its lines, unrecorded
	renumbered int
	stood      int      // how many it has superseded
	stoodFor   []string // their names, the first few
	flying     bool     // counted in node.flying
	settled    bool     // as counted in Engine.open

	timer    timer         // set to the earliest of the times below
	sendAt   time.Duration // when it is sent again; 0 for not
	waitAt   time.Duration // when its retry is due; 0 for not
	execAt   time.Duration // when its execution is overdue; 0 for not
	sentAt   time.Duration // when it was last sent
	firstAt  time.Duration // when the wait for a word of it began; 0 for not
	askAt    time.Duration // when it is asked after over narrowband; 0 for not
	asks     int           // how often it was
	resends  int           // for want of a word, in this attempt and session
	disowned bool          // the node said of this attempt that it has not got it
	queries  int
	offers   offers        // of what waits in its agent
	cancelAt time.Duration // when the cancel is sent again; 0 for not
	stopAt   time.Duration // when it is sent over narrowband; 0 for not
	stops    int           // how often it was
	unlisted uint32        // reports of progress that no entry counts yet
	byHand   bool          // its next attempt was asked for by an operator: nothing holds it back. A restart forgets that
	waits    bool          // stands in the operator queue, as the log has it
}

func newTask(t Task) *task {
	act := t.Spec.Act()
	t.Spec.act = nil // it stands beside it
	return &task{Task: t, act: act}
}

// inst makes an instruction of the task in memory. It is not counted yet.
func (e *Engine) inst(t *task, rec Instruction) *inst {
	i := &inst{Instruction: rec, task: t, node: e.node(rec.Node), settled: true, waits: rec.Operator}
	i.timer.i = i
	i.safe = t.act.Towards(i.node.safeLevel)
	i.node.held++
	i.node.give(i.given())
	t.insts = append(t.insts, i)
	e.insts[i.Seq] = i
	return i
}

// release lets go of a finished task, and of nodes that nothing names any more.
func (e *Engine) release(t *task) {
	delete(e.tasks, t.ID)
	for _, i := range t.insts {
		delete(e.insts, i.Seq)
		e.timers.put(&i.timer, 0)
		if i.node.held--; i.node.held == 0 && !i.node.known && i.node.hold == nil {
			delete(e.nodes, i.node.ID)
		}
	}
}

// resume puts an adopted instruction back to where it was waiting.
func (e *Engine) resume(now Now, i *inst) {
	i.limitFrom(now)
	e.watchSafe(now, i)
	i.kept = !i.State.Settled() && i.mayBeKept()
	switch {
	case i.State.Settled():
	case i.By != 0: // withdrawn: its agent is told at its hello
	case i.waiting() && mutant.On(mutant.RetryTimerLost):
	case i.waiting():
		i.waitAt = now.in(until(now, i.RetryAt))
	case i.ReceivedAt == 0:
		e.enqueue(i)
	default:
		e.setInside(i, true)
		e.watchExec(now, i)
	}
	e.arm(now, i)
}

// limitFrom begins to count the time until its limit.
func (i *inst) limitFrom(now Now) {
	if i.NotAfter != 0 {
		i.goodTill = now.in(until(now, i.NotAfter))
	}
	if i.EndsBy != 0 {
		i.overTill = now.in(until(now, i.EndsBy))
	}
}

// endsBy is when its lease has ended by the wall clock as that is now: what has passed
// since it was taken counts, however the clock was set meanwhile. 0 for no such limit.
func (i *inst) endsBy(now Now) int64 {
	if i.EndsBy == 0 || mutant.On(mutant.LeaseFromBegin) {
		return 0
	}
	return max(1, min(i.EndsBy, now.Wall+(i.overTill-now.in(0)).Round(time.Millisecond).Milliseconds()))
}

// notAfter is its limit by the wall clock as that is now. Towards safe a clock that was
// set forward takes nothing of the time.
func (i *inst) notAfter(now Now) int64 {
	if left := i.goodTill - now.in(0); i.safe && i.goodTill != 0 && left > 0 {
		return max(i.NotAfter, after(now.Wall, left.Milliseconds()))
	}
	return i.NotAfter
}

func (i *inst) execLimit(cfg Config) time.Duration { return i.limit(cfg) + cfg.ExecGrace }

// Key is the instruction's id.
func (i *Instruction) Key(site string) string {
	return wire.Key{Site: site, Millis: i.Created, Seq: i.Seq}.String()
}
