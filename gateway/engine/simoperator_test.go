package engine_test

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/apollo-11/apollo11/gateway/engine"
	"github.com/apollo-11/apollo11/wire"
)

// simOperator works by hand on what the log shows: the operator queue, dead
// letters, quiet periods. He stops with the faults; a quiet period ends by itself.
type simOperator struct {
	w    *world
	name string
}

func newSimOperator(w *world) *simOperator { return &simOperator{w, "op-1"} }

func (o *simOperator) next() {
	o.w.after(o.w.span(500, 8000), func() {
		if o.w.calm {
			return
		}
		if o.w.gateway.process != nil {
			o.act()
		}
		o.next()
	})
}

func (o *simOperator) act() {
	in := &engine.Operate{Actor: o.name, Note: "by hand", Path: engine.PathHTTP, AcceptUnknown: true}
	queue := slices.Sorted(maps.Keys(o.w.gateway.log.queue))
	dead := slices.Sorted(maps.Keys(o.w.gateway.log.dead))
	switch k := o.w.rnd.IntN(8); {
	case k < 3 && len(queue) > 0:
		in.Action, in.Seq = engine.ActionRetry, queue[o.w.rnd.IntN(len(queue))]
	case k == 3 && len(queue) > 0:
		in.Action, in.Seq = engine.ActionResolve, queue[o.w.rnd.IntN(len(queue))]
	case k == 4 && len(queue) > 0:
		o.w.gateway.put(&engine.Cancel{Seq: queue[o.w.rnd.IntN(len(queue))], Actor: o.name, Reply: func(engine.Reply) {}})
		return
	case k == 5 && len(dead) > 0:
		in.Action, in.Dead = engine.ActionDeadDrop, dead[o.w.rnd.IntN(len(dead))]
	case k == 6:
		in.Action = engine.ActionQuietOn
		in.Until = o.w.gateway.now().Wall + o.w.span(1000, 15_000).Milliseconds()
	default:
		in.Action = engine.ActionQuietOff
	}
	in.Reply = func(r engine.Reply) {
		if r.Done != nil && r.Done.Action != in.Action || r.Done == nil && r.Refused == nil {
			o.w.fail("%s is answered with %s", in.Action, reply(r))
		}
	}
	o.w.gateway.put(in)
}

// backlogs holds what a gateway sends to nodes that came back against the token
// bucket that it promises, and what it sends in a quiet period against that.
type backlogs struct {
	g       *simGateway
	session map[string]uint64           // of the node's latest welcome
	online  map[string]bool             // as told
	waiting map[string]map[uint64]uint8 // what waited when a node came back: the attempt that will be sent
	tokens  float64
	at      time.Duration
}

func newBacklogs(g *simGateway) *backlogs {
	return &backlogs{g: g, session: map[string]uint64{}, online: map[string]bool{}, waiting: map[string]map[uint64]uint8{}, tokens: float64(g.burst)}
}

// ready looks at what one Ready hands out. It is called before the log takes it in;
// quiet says whether there was a quiet period before and is one after.
func (b *backlogs) ready(r *engine.Ready, now engine.Now, quiet bool) {
	for _, s := range r.Effects.Sends {
		if m, ok := welcome(s.Msg); ok && m.Refused == "" && b.session[s.Node] != m.Session {
			b.session[s.Node] = m.Session
			b.cameBack(s.Node)
		}
	}
	for _, n := range r.Effects.Nodes {
		if n.Online && !b.online[n.Node.ID] {
			b.cameBack(n.Node.ID)
		}
		b.online[n.Node.ID] = n.Online
	}
	b.tokens = min(float64(b.g.burst), b.tokens+(now.Mono-b.at).Seconds()*float64(b.g.rate))
	b.at = now.Mono
	for _, s := range r.Effects.Sends {
		m, ok := instruction(s.Msg)
		if !ok {
			continue
		}
		a := b.agent(s.Node)
		if a.rules && a.towards(m) {
			delete(b.waiting[s.Node], m.Seq)
			continue // waits for nothing
		}
		if quiet && !b.pressed(a, m, r) && !b.hadNoRoom(m.Seq) && (m.Resend > 0 || m.Attempt > 1 && !b.byHand(m.Seq, r)) {
			b.g.w.fail("instruction %d is sent again (attempt %d, resend %d) in a quiet period", m.Seq, m.Attempt, m.Resend)
		}
		if b.waiting[s.Node][m.Seq] != m.Attempt || b.byHand(m.Seq, r) {
			continue
		}
		delete(b.waiting[s.Node], m.Seq)
		if b.tokens--; b.tokens < -0.01 {
			b.g.w.fail("backlogs are sent faster than %d a second after %d at once", b.g.rate, b.g.burst)
		}
	}
}

func (b *backlogs) agent(id string) *simAgent {
	for _, a := range b.g.w.agents {
		if a.id == id {
			return a
		}
	}
	return nil
}

// hadNoRoom reports whether the agent did not take an attempt for want of room: the
// next copy is no repetition.
func (b *backlogs) hadNoRoom(seq uint64) bool {
	lines := b.g.log.lines[seq]
	return len(lines) > 0 && strings.Contains(lines[len(lines)-1].Detail, "queue is full")
}

// pressed reports whether something newer waits on a line of an instruction: quiet
// holds no line against newer work.
func (b *backlogs) pressed(a *simAgent, m *wire.Instruction, r *engine.Ready) bool {
	keys := a.placesOf(m)
	newer := func(i *engine.Instruction) bool {
		o := &attempt{msg: &wire.Instruction{Seq: i.Seq, Order: i.Order, Intent: i.Intent, Args: i.Args}}
		t := &attempt{msg: m}
		if h := b.g.log.insts[m.Seq]; t.msg.Order == 0 {
			t.msg = &wire.Instruction{Seq: m.Seq, Order: h.Order}
		}
		return i.Node == a.id && o.order() > t.order() && slices.ContainsFunc(a.placesOf(o.msg), func(k wire.LineKey) bool { return slices.Contains(keys, k) })
	}
	for _, w := range r.Records.Instructions {
		if newer(&w.Instruction) {
			return true
		}
	}
	for _, i := range b.g.log.insts {
		if !i.State.Settled() && newer(&i) {
			return true
		}
	}
	return false
}

// byHand reports whether an operator asked for the latest attempt.
func (b *backlogs) byHand(seq uint64, r *engine.Ready) bool {
	lines := slices.Clone(b.g.log.lines[seq])
	for _, w := range r.Records.Instructions {
		if w.Instruction.Seq == seq {
			lines = append(lines, w.Entries...)
		}
	}
	for _, e := range slices.Backward(lines) {
		if e.What == engine.WhatRetrying && !e.Implied {
			return e.Actor != ""
		}
	}
	return false
}

func (b *backlogs) cameBack(node string) {
	m := map[uint64]uint8{}
	for seq, i := range b.g.log.insts {
		if i.Node == node && !i.State.Settled() && i.ReceivedAt == 0 && (i.State != engine.StateRetrying || i.RetryAt == 0) {
			m[seq] = max(1, i.Attempt)
		}
	}
	b.waiting[node] = m
}
