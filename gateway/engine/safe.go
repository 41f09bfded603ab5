package engine

import (
	"fmt"
	"slices"
	"time"

	"github.com/apollo-11/apollo11/wire"
	"github.com/apollo-11/apollo11/wire/mutant"
)

// Towards safe (docs/safety.md 5). What only brings lines to their safe levels waits
// for nothing but its node: no older work, no priority, window, drain, water mark,
// capacity, quiet period or pause, and no doubt about the path. What it supersedes is
// withdrawn when it is submitted, whatever becomes of it later.

const (
	alarmSafeLate  = "safe_undelivered"   // subject: node
	alarmSafeLocal = "safe_refused_local" // subject: instruction
	alarmSafeGone  = "safe_expired"       // subject: instruction

	// safeWhisper is how long after it was handed out without a word a safe frame goes
	// over narrowband, as a question would: the bound for the pin is a second beyond the
	// round trip.
	safeWhisper = askNarrowband
	// safeAgain is the longest wait between two copies.
	safeAgain = 5 * time.Second

	// maxStrangers bounds the nodes that have never been seen and to which something
	// towards safe is owed, strangerHold how long that is remembered: somebody who
	// misspells a name in an emergency must not be refused, nor fill the log.
	maxStrangers = 1000
	strangerHold = 24 * time.Hour

	// mostNamed bounds the superseded instructions that an answer names.
	mostNamed = 20
)

// safeReserve is how many unfinished instructions towards safe may be there beyond the
// capacity.
func (e *Engine) safeReserve() int { return max(e.cfg.Capacity/10, 100) }

// sendSafe hands out what is towards safe, also to a node that is silent: as long as its
// connection stands its pins may be driven past a loop that hangs. One whose latest
// attempt is not written yet is not tried again before: of each attempt the log knows.
func (e *Engine) sendSafe(now Now, n *node) {
	for k := 0; n.session != 0 && k < len(n.safes); {
		i := n.safes[k]
		if i.unwritten && e.unsent(i) {
			k++
			continue
		}
		e.unwant(i)
		e.dispatch(now, i)
		e.arm(now, i)
	}
}

// untold reports whether one more copy is not worth an entry: what is sent without a
// budget must not make a timeline without end.
func (i *inst) untold() bool {
	const told = 8
	return i.safe && i.resends > told && i.resends&(i.resends-1) != 0
}

// supersede withdraws what is older and open on the lines of an instruction towards
// safe. It is final: neither a refusal, nor an expiry, a cancel or the loss of
// the newer one brings it back.
func (e *Engine) supersede(now Now, o *inst) {
	n := o.node
	e.endUndue(now, o)
	var list []*inst
	add := func(l *line) {
		for p := l.first; p != nil && p.i.order() < o.order(); p = p.next {
			if i := p.i; i != o && i.By == 0 && !i.listed && o.covers(i) {
				i.listed = true
				list = append(list, i)
			}
		}
	}
	for k := range o.places {
		if l := o.places[k].l; l != &n.all {
			add(l)
		}
	}
	if o.board { // its lines are not known yet
		add(&n.all)
	}
	for _, i := range list {
		i.listed = false
		e.supersededBy(now, i, o)
	}
}

// covers reports whether an instruction towards safe stands for an older one that
// shares a line with it. Of what holds the whole board it does not: its own line is
// all that it touches. Nor does it for one towards safe that is for more lines than
// itself, some of which would then never be driven; nor a mere write for one that
// begins or ends a hold.
func (o *inst) covers(i *inst) bool {
	a := i.task.act
	if holdsBoard(a) || (a.Safe || a.Release) && !o.task.act.Safe {
		return false
	}
	if !i.safe || o.board {
		return true
	}
	return !i.board && !slices.ContainsFunc(i.places, func(p place) bool {
		return p.l != &i.node.all && !slices.ContainsFunc(o.places, func(q place) bool { return q.l == p.l })
	})
}

// supersededBy withdraws one instruction for a newer one that stands for it.
func (e *Engine) supersededBy(now Now, i, o *inst) {
	why := fmt.Sprintf("%s stands for it", o.Key(e.cfg.Site))
	if len(o.stoodFor) < mostNamed {
		o.stoodFor = append(o.stoodFor, i.Key(e.cfg.Site))
	}
	o.stood++
	if mutant.On(mutant.WithdrawnOffered) {
		return
	}
	unsent, undone := e.unsent(i), !i.MayHaveRun()
	i.By = o.Seq
	e.unwant(i)
	e.heir(now, i, o)
	i.waitAt, i.blockAt, i.blocked, i.whisperAt = 0, 0, 0, 0
	switch {
	case unsent && undone:
		e.endSuperseded(now, i, why)
	case i.waiting():
		// Its last attempt may have done it: that is unknown, and final.
		if i.node.online && i.Code == wire.CodeNone && i.Attempt != 0 {
			e.sendCancel(now, i, ReasonSuperseded)
		}
		e.giveUp(now, i, ReasonSuperseded, why+"; what its last attempt did is not known")
	default:
		e.ground(i)
		e.log(now, i, Entry{What: WhatSuperseded, Detail: why})
		if i.node.online {
			i.blockAt = now.in(wire.OrderWait)
		}
		e.askCancel(now, i)
	}
	e.arm(now, i)
}

// endSuperseded ends an instruction that is known not to have begun.
func (e *Engine) endSuperseded(now Now, i *inst, why string) {
	if !e.move(now, i, StateCancelled, Entry{What: WhatSuperseded, Detail: why}) {
		return
	}
	i.Reason, i.Detail, i.SettledAt = ReasonSuperseded, why, now.Wall
	e.effects.Counts.Cancelled++
}

// renewal lets a renewed lease stand for the older one right before it that was not
// sent yet. However late it begins, its lease ends its own length after it was taken; so
// that is also its time limit, if it has none or a later one (docs/safety.md 8).
func (e *Engine) renewal(now Now, o *inst) {
	if o.task.act.MaxOn == 0 || !o.task.act.Sets || len(o.places) != 2 {
		return
	}
	p := o.places[1].prev
	if p == nil && o.places[1].l.newest.sum != sumOf(o) || p != nil && sumOf(p.i) != sumOf(o) {
		return
	}
	o.EndsBy = after(now.Wall, o.task.act.MaxOn.Milliseconds())
	if o.NotAfter == 0 || o.NotAfter > o.EndsBy {
		o.NotAfter = o.EndsBy
	}
	o.limitFrom(now)
	if p != nil && p.i.By == 0 && e.unsent(p.i) && !p.i.MayHaveRun() {
		e.supersededBy(now, p.i, o)
	}
}

// watchSafe sets when it is late, and when it goes over narrowband.
func (e *Engine) watchSafe(now Now, i *inst) {
	if !i.safe || i.State.Settled() || i.By != 0 {
		return
	}
	if i.undelivered() && !i.late && i.lateAt == 0 {
		wait := wire.SafeLate
		if i.Attempt <= 1 && !i.waiting() {
			wait = min(wait, until(now, i.since()+wire.SafeLate.Milliseconds()))
		}
		if i.lateAt = now.in(wait); wait == 0 {
			e.lateSafe(now, i)
		}
	}
	e.whisper(now, i)
}

// whispered reports whether it may go over narrowband: what its node has not received,
// and a further attempt that the primary path can't bring.
func (i *inst) whispered() bool {
	here := i.ReceivedAt == 0 || i.waiting() && !i.node.online
	return i.safe && here && !i.driven && i.By == 0 && !i.State.Settled()
}

// whisper sets when a safe frame is sent for it over narrowband.
func (e *Engine) whisper(now Now, i *inst) {
	if i.whispered() && i.whisperAt == 0 && e.narrow[i.node.Short] > 0 {
		i.whisperAt = now.in(safeWhisper)
	}
}

// whisperAll is for a narrowband connection that has come up.
func (e *Engine) whisperAll(now Now, n *node) {
	for _, i := range n.opened() {
		if i.safe {
			e.whisper(now, i)
			e.arm(now, i)
		}
	}
}

// safeCompact sends a safe frame over narrowband, and the next one later each time.
func (e *Engine) safeCompact(now Now, i *inst) {
	n := i.node
	if !i.whispered() || e.narrow[n.Short] == 0 || i.order() > wire.MaxCompactSeq {
		return
	}
	keys, board := n.keysOf(i.task.act)
	hashes := make([]uint16, 0, len(keys)+1)
	if board || len(i.task.act.Pins) == 0 {
		hashes, keys = append(hashes, 0), nil
	}
	for _, k := range keys {
		hashes = append(hashes, k.Hash())
	}
	for _, h := range hashes {
		if free := n.frames.take(now, frameSafe); free != 0 {
			i.whisperAt = free
			return
		}
		e.effects.Compacts = append(e.effects.Compacts, CompactSend{n.Short, wire.CompactSafe{Seq: i.order(), Line: h}})
	}
	i.whispers++
	i.whisperAt = now.in(min(safeWhisper<<min(i.whispers, 6), time.Minute))
}

// drive notes that the agent has driven the lines of an instruction to their safe
// levels without having that on its disk. It settles nothing.
func (e *Engine) drive(now Now, i *inst, path Path) {
	if i == nil || !i.safe || i.driven || i.State.Settled() {
		return
	}
	if i.flying {
		e.windowEnds(now, i, path)
	}
	i.driven, i.Driven, i.firstAt, i.whisperAt, i.lateAt = true, true, 0, 0, 0
	e.log(now, i, Entry{What: WhatDriven, Path: path, Actor: i.Node, Code: wire.CodeDriven})
	e.onTime(now, i)
	e.arm(now, i)
}

// byOrder finds the instruction towards safe that a compact ack of a safe frame speaks
// of.
func (e *Engine) byOrder(n *node, order uint64) *inst {
	for p := n.all.first; p != nil; p = p.next {
		if p.i.safe && p.i.order() == order {
			return p.i
		}
	}
	return nil
}

// compactSafe takes in what an agent says to a safe frame. It reports whether that was
// all that the ack says.
func (e *Engine) compactSafe(now Now, n *node, a wire.CompactAck) bool {
	if n == nil {
		return false
	}
	i := e.byOrder(n, a.Seq)
	if a.Code == wire.CodeDriven {
		if i == nil {
			e.lostRecord(now, n, a.Seq)
		}
		e.drive(now, i, PathNarrowband)
		return true // one that has ended meanwhile needs no word
	}
	// An answer to the frame looks like one to the first attempt. What does not say that
	// it was done is not believed as the end of that: its event will tell.
	if k := a.Code.Class(); mutant.On(mutant.FrameEndsAttempt) || a.Attempt != 1 || k == wire.ClassProgress || k == wire.ClassSuccess {
		return false
	}
	if i == nil {
		// It has ended; or its number, which no instruction has as its sequence, is that
		// of an operator's retry that has.
		j := e.insts[a.Seq]
		return j == nil && n.Rules >= wire.RulesOrder || j != nil && j.node == n && j.safe
	}
	if a.Code == wire.CodeLocal {
		e.refusedLocal(now, i)
	}
	return true
}

func (e *Engine) refusedLocal(now Now, i *inst) {
	e.alarm(now, alarmSafeLocal, i.Key(e.cfg.Site), fmt.Sprintf(
		"the LOCAL switch of %s is on: %s was refused, whoever works there must do it", i.Node, i.what()))
}

// undelivered reports whether something towards safe has not arrived. What an operator has
// tried again was only received before that, and a further attempt for a node that is
// away waits like a first one.
func (i *inst) undelivered() bool {
	return (i.ReceivedAt == 0 || i.waiting() && (i.byHand || !i.node.online)) && !i.driven
}

// lateSafe raises the alarm about something towards safe that has not arrived.
func (e *Engine) lateSafe(now Now, i *inst) {
	if !i.undelivered() || i.By != 0 {
		return
	}
	i.late, i.lateAt = true, 0
	i.node.lates++
	e.condition(now, alarmSafeLate, i.Node, fmt.Sprintf("%s (%s) has not reached its node: %s", i.what(), i.Key(e.cfg.Site), i.node.away()))
}

// away says how a node stands, for an alarm.
func (n *node) away() string {
	switch {
	case !n.known:
		return "the node has never connected"
	case !n.online:
		return "the node is offline"
	}
	return "the node is connected and does not answer"
}

// heir hands on how long a line has waited for its safe level: the newer one that stands
// for an older one is late when that would have been, and an alarm goes on standing.
// Else whoever repeats it often enough would never hear of it.
func (e *Engine) heir(now Now, i, o *inst) {
	if i.safe && o.safe && i.undelivered() {
		began := i.since()
		if i.lateAt != 0 { // a further attempt has waited since it was sent
			began = now.Wall - (wire.SafeLate - max(0, i.lateAt-now.Mono)).Milliseconds()
		}
		o.Since = min(began, o.since())
		if i.late && !o.late {
			i.late, o.late, o.lateAt = false, true, 0
		}
		if o.lateAt != 0 {
			o.lateAt = 0
			e.watchSafe(now, o)
		}
	}
	e.onTime(now, i)
}

// since is when its lines began to wait for it.
func (i *inst) since() int64 {
	if i.Since != 0 {
		return i.Since
	}
	return i.Created
}

// onTime ends that, when the last one has been answered.
func (e *Engine) onTime(now Now, i *inst) {
	i.lateAt = 0
	if !i.late {
		return
	}
	i.late = false
	if i.node.lates--; i.node.lates == 0 {
		e.clear(now, alarmSafeLate, i.Node)
	}
}

// safeEnded is called for each end of something towards safe.
func (e *Engine) safeEnded(now Now, i *inst) {
	if !i.safe {
		return
	}
	late := i.NotAfter != 0 && i.Reason == ReasonUnconfirmed && !i.Driven
	if i.State == StateTimeout && (i.Reason == ReasonExpired || late) || i.Code == wire.CodeExpired {
		what := "was not executed: its time limit has passed"
		switch {
		case i.Driven:
			what = "was driven to its safe level, and its time limit had passed before its node entered that"
		case late:
			what = "was not confirmed: its time limit has passed, and whether it was executed is not known"
		}
		e.alarm(now, alarmSafeGone, i.Key(e.cfg.Site), fmt.Sprintf("%s on %s %s", i.what(), i.Node, what))
	}
	if i.Code == wire.CodeLocal {
		e.refusedLocal(now, i)
	}
}

// sameSafe finds the task of which a submission is one more copy: towards safe, the
// same, undelivered, with nothing after it on its lines. Both share one record, so that
// no flood can use up the reserve.
func (e *Engine) sameSafe(in *Submit, sum [16]byte, nodes []string) *task {
	if in.Spec.TaskID != "" || in.Spec.TTLMs != 0 || in.Spec.NotAfter != 0 {
		return nil
	}
	n := e.nodes[nodes[0]]
	if n == nil {
		return nil
	}
	a := in.Spec.Act()
	if !a.Towards(n.safeLevel) {
		return nil
	}
	keys, board := n.keysOf(a)
	l := &n.board
	if !board && len(keys) > 0 {
		l = n.lines[keys[0]]
	}
	if l == nil || l.last == nil {
		return nil
	}
	t := l.last.i.task
	if t.Sum != sum || len(t.insts) != len(nodes) {
		return nil
	}
	for k, i := range t.insts {
		if i.Node != nodes[k] || !i.safe || i.ReceivedAt != 0 || i.By != 0 || i.CancelBy != "" || i.State.Settled() || i.waiting() {
			return nil
		}
		for k := range i.places {
			if p := &i.places[k]; p.l != &i.node.all && p.next != nil {
				return nil
			}
		}
	}
	return t
}

// share counts one more submission for a task towards safe.
func (e *Engine) share(now Now, in *Submit, t *task) {
	for _, i := range t.insts {
		e.holdSafe(now, i, in.Source.Actor) // a release in between may have been taken back
		i.Same++
		if i.Same&(i.Same-1) == 0 { // the timeline must not grow with a flood
			e.log(now, i, Entry{What: WhatSubmitted, Actor: in.Source.Actor, Path: in.Path, Detail: fmt.Sprintf("the same once more, %d so far", i.Same)})
		}
	}
	e.remember(now, in, t.ID)
	e.effects.Counts.Existing++
	e.accept(in, t, true, nil)
}

// strangers counts the nodes that have never been seen and are owed something towards
// safe, or are held.
func (e *Engine) strangers() int {
	count := 0
	for _, n := range e.nodes {
		if n.stranger() {
			count++
		}
	}
	return count
}

// stranger reports whether a node that was never seen is owed something towards safe, or
// is held: that stays when it is cancelled.
func (n *node) stranger() bool {
	if n.known || n.hold != nil {
		return !n.known
	}
	for p := n.all.first; p != nil; p = p.next {
		if p.i.safe {
			return true
		}
	}
	return false
}

// forgetAt is when something towards safe for a node that was never seen is forgotten,
// Unix ms; 0 for never.
func (i *inst) forgetAt() int64 {
	if !i.safe || i.node.known {
		return 0
	}
	return i.Created + strangerHold.Milliseconds()
}

// holdsBoard reports whether an act holds more than the lines that it names.
func holdsBoard(a wire.Act) bool { return a.Moves() && a.Holds != wire.HoldsPins }
