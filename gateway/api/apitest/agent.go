package apitest

import (
	"github.com/apollo-11/apollo11/gateway/engine"
	"github.com/apollo-11/apollo11/wire"
)

// Behaviour is what an agent does with an instruction that it receives.
type Behaviour struct {
	// Silent loses everything.
	Silent bool
	// Hold confirms the instruction, starts it and goes on until Finish.
	Hold bool
	// Rules says that the agent follows the rules of order and the way to safe.
	Rules bool
	// Code is the result, CodeNone for CodeOK.
	Code    wire.Code
	Detail  string
	Payload map[string]any
}

// agent is a node without a board.
type agent struct {
	name   string
	does   Behaviour
	next   uint64 // number of the next event
	held   []*wire.Instruction
	hello  wire.Hello
	active bool
}

// Connect brings a node online. Calling it again changes what the node does from
// now on.
func (g *Gateway) Connect(name string, labels map[string]string, does Behaviour) {
	g.mu.Lock()
	defer g.mu.Unlock()
	a := g.agents[name]
	if a == nil {
		a = &agent{name: name, next: 1}
		g.agents[name] = a
	}
	a.does = does
	if a.active {
		return
	}
	a.active = true
	a.hello = wire.Hello{Session: 7, Incarnation: 9, Version: "v1.2.3", Labels: labels, Short: wire.Short(name),
		Intents: []string{wire.IntentCollectMetrics, wire.IntentGPIORead, wire.IntentGPIOWrite, wire.IntentGPIOPulse},
		Pins:    []string{"GPIO17", "GPIO27"}, First: a.next, Next: a.next, Clock: g.now.Wall, ClockSet: true, Board: "sim", Workers: 2}
	if does.Rules {
		a.hello.Rules, a.hello.Nonce = wire.NewestRules, 1
		a.hello.Intents = append(a.hello.Intents, wire.IntentSafe, wire.IntentRelease)
		for _, p := range a.hello.Pins {
			a.hello.Traits = append(a.hello.Traits, wire.PinTraits{Line: wire.LineOf(p), Flags: wire.PinOutput | wire.PinHasSafe})
		}
	}
	g.settle(&engine.Uplink{Node: name, Msg: &a.hello})
}

// Disconnect takes a node offline.
func (g *Gateway) Disconnect(name, reason string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if a := g.agents[name]; a != nil && a.active {
		a.active = false
		g.settle(&engine.Uplink{Node: name, Msg: &wire.Goodbye{Session: a.hello.Session, Reason: reason}})
	}
}

// Finish ends everything that a node holds, as its behaviour says, and returns
// how much that was.
func (g *Gateway) Finish(name string) int {
	g.mu.Lock()
	defer g.mu.Unlock()
	a := g.agents[name]
	if a == nil {
		return 0
	}
	held := a.held
	a.held = nil
	for _, m := range held {
		g.settle(a.event(m, a.result(g.now.Wall, g.now.Wall)))
	}
	return len(held)
}

// hear is what follows when a message reaches the agent.
func (a *agent) hear(now int64, msg wire.Message) []engine.Input {
	if a.does.Silent || !a.active {
		return nil
	}
	switch m := msg.(type) {
	case *wire.Instruction:
		if !a.does.Hold {
			return []engine.Input{a.event(m, a.result(now, now+1))}
		}
		a.held = append(a.held, m)
		return []engine.Input{
			a.event(m, wire.Event{Phase: wire.PhaseReceived, ReceivedAt: now}),
			a.event(m, wire.Event{Phase: wire.PhaseStarted, ReceivedAt: now, StartedAt: now + 1}),
		}
	case *wire.Cancel:
		for k, h := range a.held {
			if h.Seq == m.Seq {
				a.held = append(a.held[:k:k], a.held[k+1:]...)
				return []engine.Input{a.event(h, wire.Event{Phase: wire.PhaseProcessed, Code: wire.CodeCancelled,
					FinishedAt: now, Detail: "stopped on request"})}
			}
		}
	}
	return nil
}

func (a *agent) result(started, finished int64) wire.Event {
	e := wire.Event{Phase: wire.PhaseProcessed, ReceivedAt: started, StartedAt: started, FinishedAt: finished,
		Code: a.does.Code, Detail: a.does.Detail, Payload: wireMap(a.does.Payload)}
	if e.Code == wire.CodeNone {
		e.Code = wire.CodeOK
	}
	return e
}

func (a *agent) event(m *wire.Instruction, e wire.Event) engine.Input {
	e.Number, e.Seq, e.Token, e.Attempt = a.next, m.Seq, m.Token, m.Attempt
	a.next++
	return &engine.Uplink{Node: a.name, Msg: &e}
}
