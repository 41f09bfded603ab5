package engine_test

import (
	"slices"

	"github.com/apollo-11/apollo11/gateway/engine"
	"github.com/apollo-11/apollo11/wire"
)

// plant is a fault that is put between the engine and its site, in order to show
// that the simulation's rules would catch it in the engine.
type plant uint8

const (
	plantNone       plant = iota
	plantEarly            // effects leave before the commit
	plantReuse            // a retry carries the first attempt's token
	plantStale            // an old token is taken for the current one
	plantLimit            // the limit is not passed on
	plantSleep            // the engine is not woken at its deadline
	plantAck              // one more event is acknowledged than was taken
	plantRepeat           // a retransmission is not recognised
	plantForget           // an unfinished task is not marked as such
	plantVersion          // a version is left out
	plantStep             // a timeline entry is left out
	plantSuccess          // a failure is recorded as success
	plantInsistence       // an intent that must not run twice is taken for one that may
	plantTwice            // an agent does not know its tokens
	plantLate             // an agent does not look at the limit
	plantHasty            // an agent takes instructions before its welcome
	plantBucket           // a backlog is sent in one burst
	plantQuiet            // something is sent again in a quiet period
	plantAudit            // an audit entry is left out
	plantQueue            // what leaves the operator queue stays in its index
	plantTop              // nobody tells the gateway of numbers that it has lost
	plantCount
)

var plantNames = [...]string{"none", "effects before commit", "token used again", "stale token accepted", "limit dropped",
	"deadline ignored", "event acknowledged too early", "retransmission not recognised", "unfinished task not marked",
	"version left out", "timeline entry left out", "failure shown as success", "pulse run again",
	"agent without dedupe", "agent without a clock", "agent that does not wait for its welcome",
	"drain without bucket", "resend in a quiet period", "audit gap", "queue index not kept", "lost numbers not told"}

func (p plant) String() string { return plantNames[p] }

// input changes what comes in.
func (p plant) input(g *simGateway, in engine.Input) engine.Input {
	switch x := in.(type) {
	case *engine.Submit:
		if p == plantRepeat {
			c := *x
			c.Dup = false
			return &c
		}
		if p == plantInsistence && x.Spec.Intent == "valve.turn" {
			c := *x
			c.Spec.Intent = wire.IntentGPIOWrite
			c.Spec.Means(wire.Act{Traits: wire.TraitsOf(c.Spec.Intent)}) // its arguments are still those of another
			return &c
		}
	case *engine.Uplink:
		if m, ok := x.Msg.(*wire.Hello); ok && p == plantTop {
			c := *m
			c.TopSeq, c.TopToken = 0, 0
			return &engine.Uplink{Node: x.Node, Msg: &c}
		}
		m, ok := x.Msg.(*wire.Event)
		if !ok {
			return in
		}
		i, known := g.log.insts[m.Seq]
		if p == plantStale && known && i.Attempt > 1 && m.Token != i.Token {
			c := *m
			c.Token, c.Attempt = i.Token, i.Attempt
			return &engine.Uplink{Node: x.Node, Msg: &c}
		}
	}
	return in
}

// ready changes what goes out.
func (p plant) ready(g *simGateway, r *engine.Ready) {
	switch p {
	case plantForget:
		r.Records.Opened = nil
	case plantVersion:
		for k := range r.Records.Instructions {
			if i := &r.Records.Instructions[k].Instruction; i.Version > 3 {
				i.Version++
			}
		}
	case plantQuiet:
		if g.eng.Quiet().On {
			p.again(g, r)
		}
	case plantAudit:
		r.Records.Audits = slices.DeleteFunc(r.Records.Audits, func(a engine.Audit) bool { return a.Number == 3 })
	case plantQueue:
		for k := range r.Records.Instructions {
			if w := &r.Records.Instructions[k]; w.Queue == engine.QueueLeave {
				w.Queue = engine.QueueSame
			}
		}
	case plantStep:
		for k := range r.Records.Instructions {
			w := &r.Records.Instructions[k]
			w.Entries = slices.DeleteFunc(w.Entries, func(e engine.Entry) bool { return e.What == engine.WhatStarted && e.Implied })
		}
	case plantSuccess:
		for k := range r.Records.Instructions {
			w := &r.Records.Instructions[k]
			if w.Instruction.Code == wire.CodeNoSuchPin {
				w.Instruction.State = engine.StateSucceeded
				w.Entries[len(w.Entries)-1].To = engine.StateSucceeded
			}
		}
	}
	for k, s := range r.Effects.Sends {
		r.Effects.Sends[k].Msg = p.message(g, s.Msg)
	}
}

// again sends once more what a node has not confirmed.
func (p plant) again(g *simGateway, r *engine.Ready) {
	for _, i := range g.log.insts {
		if i.State == engine.StateDispatched && i.ReceivedAt == 0 {
			r.Effects.Sends = append(r.Effects.Sends, engine.Send{Node: i.Node, Msg: &wire.Instruction{Seq: i.Seq, Key: i.Key("default"),
				Token: i.Token, Attempt: i.Attempt, Intent: i.Intent, Args: i.Args, NotAfter: i.NotAfter, Trace: i.Trace, Resend: i.Sends}})
			return
		}
	}
}

func (p plant) message(g *simGateway, m wire.Message) wire.Message {
	switch m := m.(type) {
	case *wire.Instruction:
		c := *m
		switch {
		case p == plantLimit:
			c.NotAfter = 0
		case p == plantReuse && m.Attempt > 1:
			for t, seq := range g.log.tokens {
				if seq == m.Seq && t.Seq < c.Token.Seq {
					c.Token = t
				}
			}
		}
		return &c
	case *wire.EventAck:
		if p == plantAck {
			return &wire.EventAck{Through: m.Through + 1, Gap: m.Gap}
		}
	}
	return m
}
