package engine

import (
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"

	"github.com/apollo-11/apollo11/wire"
	"github.com/apollo-11/apollo11/wire/mutant"
)

// Bounds of what one client may make the engine remember.
const (
	// MaxNodesPerTask bounds the fan-out of one task.
	MaxNodesPerTask = 1000
	// markRingSize is how many publishes are remembered in memory; older ones
	// are found in the log.
	markRingSize = 4096
)

// Sum identifies the content of a Spec, whatever its task id.
func (s Spec) Sum() ([16]byte, error) {
	s.TaskID = ""
	s.Trace = wire.Trace{} // a repeated submission may come with a fresh trace
	if s.Priority == 0 {
		s.Priority = wire.PriorityNormal
	}
	b, err := wire.EncodeRecord(&s)
	if err != nil {
		return [16]byte{}, fmt.Errorf("sum of task: %w", err)
	}
	h := sha256.Sum256(b)
	return [16]byte(h[:16]), nil
}

func (e *Engine) refuse(to any, kind RefusalKind, text, hint string) {
	e.effects.Counts.RefusedTasks++
	if to == nil {
		return
	}
	e.effects.Replies = append(e.effects.Replies, Reply{To: to, Refused: &Refusal{kind, text, hint}})
}

func (e *Engine) submit(now Now, in *Submit) {
	sum, err := in.Spec.Sum()
	if err != nil {
		e.refuse(in.Reply, RefusedInvalid, err.Error(), "")
		return
	}
	id := in.Spec.TaskID
	if id == "" {
		if m, ok := e.retransmitted(now, in); ok && e.tasks[m.TaskID] != nil {
			id = m.TaskID
		}
	}
	if t := e.tasks[id]; id != "" && t != nil {
		e.resubmit(in, t, sum)
		return
	}
	nodes, refusal := e.resolve(in.Spec)
	if refusal != nil {
		e.refuse(in.Reply, refusal.Kind, refusal.Text, refusal.Hint)
		return
	}
	act := in.Spec.Act()
	read := *in // what the caller has stays as it is
	in = &read
	in.Spec.Means(act)
	if refusal := e.held(act, nodes); refusal != nil {
		e.refuse(in.Reply, refusal.Kind, refusal.Text, refusal.Hint)
		return
	}
	if e.towards(act, nodes) {
		e.submitSafe(now, in, id, sum, nodes)
		return
	}
	if refuses := e.cfg.Hooks.Refuses; refuses != nil {
		if r := refuses(); r != nil {
			e.refuse(in.Reply, r.Kind, r.Text, r.Hint)
			return
		}
	}
	if e.open >= e.cfg.Capacity/10*9 {
		e.refuse(in.Reply, RefusedCapacity, fmt.Sprintf("the queue is full: %d unfinished instructions of %d", e.open, e.cfg.Capacity),
			"try again when some have finished, or cancel what is no longer needed")
		return
	}
	if e.open+len(nodes) > e.cfg.Capacity {
		e.refuse(in.Reply, RefusedCapacity, fmt.Sprintf("the task needs %d places, the queue of %d has %d left", len(nodes), e.cfg.Capacity, e.cfg.Capacity-e.open),
			"try again when some have finished, or split the task")
		return
	}
	e.create(now, in, id, sum, nodes)
}

// resubmit answers a task id that is known: the same content yields the first
// task, other content is a conflict (A4).
func (e *Engine) resubmit(in *Submit, t *task, sum [16]byte) {
	if t.Sum != sum && !mutant.On(mutant.ConflictTaken) {
		e.refuse(in.Reply, RefusedConflict,
			fmt.Sprintf("task %s was submitted before with other content", t.ID),
			"use another task_id, or leave it out to get a fresh one")
		return
	}
	e.effects.Counts.Existing++
	e.accept(in, t, true, nil)
}

// retransmitted looks for the first copy of an MQTT publish (A10).
func (e *Engine) retransmitted(now Now, in *Submit) (Mark, bool) {
	if !in.Dup || in.Mark == nil || mutant.On(mutant.PublishRepeated) {
		return Mark{}, false
	}
	m, ok := e.marks.find(in.Mark.Client, in.Mark.PacketID)
	if !ok && in.Found != nil {
		m, ok = *in.Found, true
	}
	// A clock that was set back makes the mark younger than now; it is still the
	// same publish.
	fresh := max(now.Wall-m.At, m.At-now.Wall) < e.cfg.MarkWindow.Milliseconds()
	return m, ok && m.Sum == in.Mark.Sum && fresh
}

// Retransmitted reports whether a Submit without a task id is the second copy of
// a publish that the log knows (Submit.Found): then it is the same task.
func (e *Engine) Retransmitted(now Now, in *Submit) bool {
	if in.Spec.TaskID != "" {
		return false
	}
	_, ok := e.retransmitted(now, in)
	return ok
}

// resolve turns the targets into a sorted list of nodes.
func (e *Engine) resolve(s Spec) ([]string, *Refusal) {
	if s.Label.IsZero() {
		if len(s.Nodes) == 0 || len(s.Nodes) > MaxNodesPerTask {
			return nil, &Refusal{RefusedInvalid, fmt.Sprintf("a task names %d nodes, it must name 1 to %d", len(s.Nodes), MaxNodesPerTask), ""}
		}
		return s.Nodes, nil
	}
	var nodes []string
	for id, n := range e.nodes {
		if v, ok := n.Labels[s.Label.Key]; n.known && ok && v == s.Label.Value {
			nodes = append(nodes, id)
		}
	}
	slices.Sort(nodes)
	switch {
	case len(nodes) == 0:
		return nil, &Refusal{RefusedNoNode, fmt.Sprintf("no node has the label %s=%s", s.Label.Key, s.Label.Value),
			"see `apollo node list` for the nodes that have connected and their labels"}
	case len(nodes) > MaxNodesPerTask:
		return nil, &Refusal{RefusedInvalid, fmt.Sprintf("the label %s=%s selects %d nodes, the limit is %d", s.Label.Key, s.Label.Value, len(nodes), MaxNodesPerTask),
			"split the task"}
	}
	return nodes, nil
}

func (e *Engine) create(now Now, in *Submit, id string, sum [16]byte, nodes []string) {
	s := in.Spec
	first := e.counters.NextSeq
	e.counters.NextSeq += uint64(len(nodes))
	e.topUsed = true
	if id == "" {
		id = wire.Key{Site: e.cfg.Site, Millis: now.Wall, Seq: first}.String()
	}
	trace := s.Trace
	if trace.IsZero() {
		trace = wire.NewTrace(e.rnd.Uint64(), e.rnd.Uint64())
	}
	notAfter := s.NotAfter
	if s.TTLMs != 0 {
		notAfter = after(now.Wall, s.TTLMs)
	}
	retry := e.cfg.Retry
	if s.Retry != nil {
		retry = *s.Retry
	}
	t := newTask(Task{ID: id, First: first, Count: uint32(len(nodes)), Spec: s, Sum: sum,
		Created: now.Wall, Source: in.Source, Trace: trace})
	t.insts = make([]*inst, 0, len(nodes))
	limit := wire.LimitMs(t.act, s.TimeoutMs, e.cfg.DefaultTimeout) // as it is resolved, for whoever asks
	var warnings []string
	for k, name := range nodes {
		i := e.inst(t, Instruction{
			Seq: first + uint64(k), Task: id, Node: name, Created: now.Wall, Intent: s.Intent, Args: s.Args,
			NotAfter: notAfter, TimeoutMs: limit, Priority: s.Priority, Trace: trace, Retry: retry})
		i.limitFrom(now)
		if !e.undueAtFirst(now, i) {
			i.node.behind(i)
		}
		e.move(now, i, StatePending, Entry{What: WhatSubmitted, Actor: in.Source.Actor, Path: in.Path})
		warnings = i.node.warn(warnings, s.Intent, i.safe)
		if i.undue {
			e.arm(now, i)
		} else {
			e.begins(now, i, in.Source.Actor)
		}
	}
	e.tasks[id] = t
	e.newTasks = append(e.newTasks, t.Task)
	e.remember(now, in, id)
	e.effects.Counts.Submitted++
	e.accept(in, t, false, warnings)
}

// remember notes which task an MQTT publish has become.
func (e *Engine) remember(now Now, in *Submit, id string) {
	if in.Mark == nil {
		return
	}
	m := *in.Mark
	m.TaskID, m.At = id, now.Wall
	e.marks.add(m)
	e.newMarks = append(e.newMarks, m)
}

// held says why an act is not taken for one of the nodes: something is held there that
// it would move away from safe.
func (e *Engine) held(a wire.Act, nodes []string) *Refusal {
	for _, id := range nodes {
		if n := e.nodes[id]; n != nil {
			if r := n.refusedHeld(a); r != nil {
				return r
			}
		}
	}
	return nil
}

// towards reports whether an act only leads to safe levels, on all the nodes.
func (e *Engine) towards(a wire.Act, nodes []string) bool {
	if mutant.On(mutant.SafeAtCapacity) {
		return false
	}
	for _, id := range nodes {
		level := func(string) (bool, bool) { return false, false }
		if n := e.nodes[id]; n != nil {
			level = n.safeLevel
		}
		if !a.Towards(level) {
			return false
		}
	}
	return true
}

// submitSafe takes something towards safe: beyond the capacity, out of its own reserve.
func (e *Engine) submitSafe(now Now, in *Submit, id string, sum [16]byte, nodes []string) {
	if t := e.sameSafe(in, sum, nodes); t != nil {
		e.share(now, in, t)
		return
	}
	if most := e.cfg.Capacity + e.safeReserve(); e.open+len(nodes) > most {
		e.refuse(in.Reply, RefusedCapacity, fmt.Sprintf("even the reserve for the way to safe is used up: %d unfinished instructions", e.open),
			"cancel what is no longer needed, or go there")
		return
	}
	strangers := 0
	for _, name := range nodes {
		if n := e.nodes[name]; n == nil || !n.stranger() && !n.known {
			strangers++
		}
	}
	if strangers > 0 && e.strangers()+strangers > maxStrangers {
		e.refuse(in.Reply, RefusedCapacity, fmt.Sprintf("orders for %d nodes that have never connected are kept, no more are taken", maxStrangers),
			"look whether the name is right: see `apollo node list`")
		return
	}
	e.create(now, in, id, sum, nodes)
}

// warn adds what the submitter should know about a node.
func (n *node) warn(list []string, intent string, safe bool) []string {
	const most = 5
	switch {
	case len(list) >= most:
	case !n.known:
		list = append(list, fmt.Sprintf("node %s has never connected; the instruction waits for it", n.ID))
	case n.cannot(intent):
		list = append(list, fmt.Sprintf("the agent of node %s does not know %s: it will refuse it and move nothing; "+
			"write the levels one by one with gpio.write, and update the agent", n.ID, intent))
	case n.twins.on && !safe:
		list = append(list, fmt.Sprintf("two boards say hello as node %s; the instruction is held back until one of them is gone", n.ID))
	case !n.online:
		list = append(list, fmt.Sprintf("node %s is offline; the instruction waits for it", n.ID))
	case len(n.Intents) > 0 && !slices.Contains(n.Intents, intent):
		list = append(list, fmt.Sprintf("node %s does not offer %s (it offers %s)", n.ID, intent, strings.Join(n.Intents, ", ")))
	}
	return list
}

func (e *Engine) accept(in *Submit, t *task, existing bool, warnings []string) {
	if in.Reply == nil {
		return
	}
	a := &Accepted{TaskID: t.ID, Trace: t.Trace, Existing: existing, Warnings: warnings,
		Instructions: make([]string, 0, len(t.insts)), Nodes: make([]string, 0, len(t.insts))}
	for _, i := range t.insts {
		a.Instructions = append(a.Instructions, i.Key(e.cfg.Site))
		a.Nodes = append(a.Nodes, i.Node)
		a.Superseded = append(a.Superseded, i.stoodFor[:min(len(i.stoodFor), mostNamed-len(a.Superseded))]...)
		a.SupersededCount += i.stood
	}
	e.effects.Replies = append(e.effects.Replies, Reply{To: in.Reply, Accepted: a})
}

// garbage keeps what could not be read.
func (e *Engine) garbage(now Now, in *Garbage) {
	if in.Event != 0 {
		n := e.hear(now, in.From)
		if n == nil || !e.inOrder(n, in.Event) {
			return
		}
		e.alarm(now, "unreadable_event", n.ID, in.Reason)
	}
	raw := in.Raw[:min(len(in.Raw), MaxDeadLetterBytes)]
	e.newDead = append(e.newDead, DeadLetter{Number: e.counters.NextDead, At: now.Wall, Kind: in.Kind,
		From: in.From, Reason: in.Reason, Raw: slices.Clone(raw)})
	e.counters.NextDead++
	e.topUsed = true
	e.effects.Counts.DeadLetters++
}

// markRing remembers the latest publishes.
type markRing struct {
	by   map[markKey]Mark
	ring []markKey
	next int
}

type markKey struct {
	client string
	packet uint16
}

func newMarkRing() markRing {
	return markRing{by: map[markKey]Mark{}, ring: make([]markKey, 0, markRingSize)}
}

func (r *markRing) find(client string, packet uint16) (Mark, bool) {
	m, ok := r.by[markKey{client, packet}]
	return m, ok
}

func (r *markRing) add(m Mark) {
	k := markKey{m.Client, m.PacketID}
	if _, ok := r.by[k]; ok {
		r.by[k] = m
		return
	}
	if len(r.ring) < markRingSize {
		r.ring = append(r.ring, k)
	} else {
		delete(r.by, r.ring[r.next])
		r.ring[r.next] = k
		r.next = (r.next + 1) % markRingSize
	}
	r.by[k] = m
}
