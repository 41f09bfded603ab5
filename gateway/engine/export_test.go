package engine

import (
	"fmt"
	"slices"
	"time"
)

// Sizes is what the engine holds in memory.
type Sizes struct {
	Tasks, Instructions, Nodes, Queued, Flying, Timers, Open int
}

// Sizes counts what is in memory, node by node and timer by timer.
func (e *Engine) Sizes() Sizes {
	s := Sizes{Tasks: len(e.tasks), Instructions: len(e.insts), Nodes: len(e.nodes), Timers: e.timers.Len(), Open: e.open}
	if e.own.set() {
		s.Timers-- // it may look at the pace of acks a while longer
	}
	for _, n := range e.nodes {
		s.Queued += n.wanting
		s.Flying += n.flying
	}
	return s
}

// Check recounts everything that the engine counts as it goes, and demands that
// every unfinished instruction waits for something. It is called after Ready.
func (e *Engine) Check() error {
	open, up, held := 0, 0, map[*node]int{}
	flying, unsettled := map[*node]int{}, map[*node]int{}
	for id, t := range e.tasks {
		if t.ID != id || !t.open || t.touched || t.changed || len(t.insts) != int(t.Count) {
			return fmt.Errorf("task %s: kept as %s, open %v, touched %v, changed %v, %d of %d instructions", t.ID, id, t.open, t.touched, t.changed, len(t.insts), t.Count)
		}
		for _, i := range t.insts {
			if e.insts[i.Seq] != i {
				return fmt.Errorf("instruction %d of task %s is not indexed", i.Seq, id)
			}
			if e.nodes[i.Node] != i.node {
				return fmt.Errorf("instruction %d belongs to a copy of node %s", i.Seq, i.Node)
			}
			if err := e.checkInst(i); err != nil {
				return fmt.Errorf("instruction %d (%v): %w", i.Seq, i.State, err)
			}
			held[i.node]++
			if i.flying {
				flying[i.node]++
				up++
			}
			if !i.State.Settled() {
				open++
				unsettled[i.node]++
			}
		}
	}
	if open != e.open || up != e.flying {
		return fmt.Errorf("open is %d and flying %d, a recount says %d and %d", e.open, e.flying, open, up)
	}
	if e.highWater() != (e.flying >= e.cfg.HighWater) || !e.highWater() && len(e.blocked) > 0 {
		return fmt.Errorf("%d nodes wait for the water to fall, and it stands at %d", len(e.blocked), e.flying)
	}
	if (e.paused || e.quiet.On) && !e.own.set() {
		return fmt.Errorf("held back (quiet %v, paused %v), and nothing will end it", e.quiet.On, e.paused)
	}
	for id, n := range e.nodes {
		if n.flying != flying[n] || len(n.open) != unsettled[n] || n.held != held[n] {
			return fmt.Errorf("node %s: flying %d, open %d, held %d; a recount says %d, %d, %d", id, n.flying, len(n.open), n.held, flying[n], unsettled[n], held[n])
		}
		if !n.known && n.held == 0 && n.hold == nil {
			return fmt.Errorf("node %s has never connected and nothing names it: it should be gone", id)
		}
		if err := e.checkNodeMemory(n); err != nil {
			return fmt.Errorf("node %s: %w", id, err)
		}
	}
	if len(e.timers.list) > 0 && e.timers.next() <= e.lastReady {
		t := e.timers.list[0]
		if t.i != nil {
			return fmt.Errorf("the timer of instruction %d is due: send %v wait %v exec %v cancel %v ask %v block %v late %v whisper %v", t.i.Seq, t.i.sendAt, t.i.waitAt, t.i.execAt, t.i.cancelAt, t.i.askAt, t.i.blockAt, t.i.lateAt, t.i.whisperAt)
		}
		return fmt.Errorf("a timer (node %v, own %v) is due", t.n != nil, t == &e.own)
	}
	return e.checkTimers()
}

func (e *Engine) checkInst(i *inst) error {
	if i.dirty || len(i.entries) != 0 || i.settled != i.State.Settled() {
		return fmt.Errorf("dirty %v, %d entries, counted as settled %v", i.dirty, len(i.entries), i.settled)
	}
	if i.State.Settled() {
		if i.wants || i.inside || i.late || i.places != nil || i.queued() || i.flying || i.timer.set() || i.sendAt|i.waitAt|i.execAt|i.cancelAt|i.askAt|i.stopAt|i.blockAt|i.whisperAt|i.lateAt != 0 {
			return fmt.Errorf("it is settled and still waits")
		}
		return nil
	}
	for _, at := range []time.Duration{i.sendAt, i.waitAt, i.execAt, i.cancelAt, i.askAt, i.stopAt, i.blockAt, i.whisperAt, i.lateAt} {
		if at != 0 && (!i.timer.set() || i.timer.at > at) {
			return fmt.Errorf("it waits for %v, its timer is set to %v (%v)", at, i.timer.at, i.timer.set())
		}
	}
	if i.flying && (i.ReceivedAt != 0 || i.sendAt == 0) {
		return fmt.Errorf("flying, but confirmed at %d or never sent again (%v)", i.ReceivedAt, i.sendAt)
	}
	if i.queued() && !i.wants || i.wants && i.By != 0 {
		return fmt.Errorf("queued %v, waits to be handed out %v, superseded by %d", i.queued(), i.wants, i.By)
	}
	if i.wants && i.ReceivedAt != 0 && !i.waiting() {
		return fmt.Errorf("queued although the node has it")
	}
	if i.undue && (e.dueAt == 0 || i.places != nil || i.wants) {
		return fmt.Errorf("it is not due, and asked after at %v, in the order %v, wants %v", e.dueAt, i.places != nil, i.wants)
	}
	if i.node.online && !i.wants && !i.undue && !i.timer.set() {
		return fmt.Errorf("its node is online and nothing will ever move it")
	}
	return nil
}

func (e *Engine) checkNodeMemory(n *node) error {
	for k, i := range n.queue {
		if i.place != k+1 || i.node != n || i.State.Settled() {
			return fmt.Errorf("queue holds instruction %d (%v) at %d, which believes to be at %d", i.Seq, i.State, k, i.place-1)
		}
	}
	if err := e.checkOrder(n); err != nil {
		return err
	}
	if n.carrier != nil || n.owed || n.pumped || n.changed || n.renewed || n.moved {
		return fmt.Errorf("something was left for the next round")
	}
	if n.online && !n.timer.set() {
		return fmt.Errorf("online and nobody watches its silence")
	}
	if e.mayFly(n) && !n.backlogged(n.queue[0]) {
		return fmt.Errorf("online with %d queued and %d flying: nothing holds them back", len(n.queue), n.flying)
	}
	if e.mayDrain(n) && !e.own.set() {
		return fmt.Errorf("a backlog of %d that nothing will ever move", n.backlog)
	}
	return e.checkDrain(n)
}

// checkOrder holds a node's lines against everything that is open there: that each
// stands where its number belongs, that no newer one was handed out before an older
// one that is not past, and that nothing whose turn has come is left out.
func (e *Engine) checkOrder(n *node) error {
	if len(e.lines) > 0 {
		return fmt.Errorf("%d lines were not looked at", len(e.lines))
	}
	wanting, inside, lates := 0, 0, 0
	for _, i := range n.open {
		if (stands(i.task.act) && !i.undue) != (len(i.places) > 0) {
			return fmt.Errorf("instruction %d stands at %d places", i.Seq, len(i.places))
		}
		if i.wants {
			wanting++
			if !i.safe && e.itsTurn(i) != i.queued() {
				return fmt.Errorf("instruction %d (order %d): its turn %v, queued %v", i.Seq, i.order(), e.itsTurn(i), i.queued())
			}
		}
		if i.inside {
			inside++
		}
		if i.late {
			lates++
		}
	}
	if wanting != n.wanting || inside != n.inside || lates != n.lates || n.online && len(n.safes) > 0 {
		return fmt.Errorf("waiting %d, inside %d, late %d, %d towards safe kept back; a recount says %d, %d, %d", n.wanting, n.inside, n.lates, len(n.safes), wanting, inside, lates)
	}
	waiting := 0
	if n.loose > 0 {
		waiting++
	}
	for _, l := range append([]*line{&n.all, &n.board}, n.byAge...) {
		wanting, inside, last := 0, 0, uint64(0)
		for p := l.first; p != nil; p = p.next {
			if p.i.order() <= last || p.i.State.Settled() {
				return fmt.Errorf("instruction %d (%v) stands behind number %d", p.i.Seq, p.i.State, last)
			}
			last = p.i.order()
			if p.i.wants && !p.i.safe {
				wanting++
			}
			if p.i.inside {
				inside++
			}
		}
		if wanting != l.wanting || inside != l.inside {
			return fmt.Errorf("line %x: waiting %d, inside %d; a recount says %d and %d", l.key, l.wanting, l.inside, wanting, inside)
		}
		if l.wanting > 0 && l != &n.all {
			waiting++
		}
	}
	if waiting != n.waiting {
		return fmt.Errorf("%d lines wait, a recount says %d", n.waiting, waiting)
	}
	return nil
}

// checkDrain recounts a backlog.
func (e *Engine) checkDrain(n *node) error {
	backlog := 0
	for _, i := range n.open {
		if n.draining && i.Seq <= n.drainTo && i.wants && !i.safe {
			backlog++
		}
	}
	if n.draining && (backlog != n.backlog || backlog == 0 || !n.online) {
		return fmt.Errorf("a backlog of %d up to %d (online %v), a recount says %d", n.backlog, n.drainTo, n.online, backlog)
	}
	if n.draining != slices.Contains(e.draining, n) || n.blocked != slices.Contains(e.blocked, n) {
		return fmt.Errorf("draining %v, blocked %v, and the engine's lists disagree", n.draining, n.blocked)
	}
	return nil
}

func (e *Engine) checkTimers() error {
	for k, t := range e.timers.list {
		if t.at < e.timers.next() || t.at == 0 {
			return fmt.Errorf("a timer is set to %v, before the first, %v", t.at, e.timers.next())
		}
		if t.place != k+1 {
			return fmt.Errorf("timer at %d believes to be at %d", k, t.place-1)
		}
		if t.i != nil && e.insts[t.i.Seq] != t.i {
			return fmt.Errorf("a timer keeps the finished instruction %d", t.i.Seq)
		}
		if t.n != nil && e.nodes[t.n.ID] != t.n {
			return fmt.Errorf("a timer keeps the forgotten node %s", t.n.ID)
		}
	}
	return nil
}
