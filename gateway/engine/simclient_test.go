package engine_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/apollo-11/apollo11/gateway/engine"
	"github.com/apollo-11/apollo11/wire"
)

// simClient submits tasks as a SCADA tool does: a publish that is not answered
// is sent again after the reconnect, with DUP and the same packet id. Packet ids
// come round quickly.
type simClient struct {
	w      *world
	id     string
	left   int // tasks still to be submitted
	packet uint16
	flight []*publish // not answered yet
	known  []*publish // answered, for cancels and repetitions
}

type publish struct {
	number int
	spec   engine.Spec
	packet uint16
	taskID string // from the answer
}

// tasksPerClient is how many tasks a client submits in the faulty phase.
const tasksPerClient = 10

func newSimClient(w *world, id string) *simClient {
	return &simClient{w: w, id: id, left: tasksPerClient}
}

func (c *simClient) next() {
	c.w.after(c.w.span(10, 6000), func() {
		if c.left > 0 {
			c.left--
			c.submit()
		}
		if !c.w.calm && len(c.known) > 0 {
			c.disturb()
		}
		if c.left > 0 || !c.w.calm {
			c.next()
		}
	})
}

// disturb cancels, submits again under the same id, or sends rubbish.
func (c *simClient) disturb() {
	p := c.known[c.w.rnd.IntN(len(c.known))]
	g := c.w.gateway
	switch c.w.rnd.IntN(6) {
	case 0:
		g.put(&engine.Cancel{TaskID: p.taskID, Actor: c.id, Reply: func(engine.Reply) {}})
	case 1:
		again := *p
		again.spec.TaskID = p.taskID
		g.put(&engine.Submit{Spec: again.spec, Source: engine.Source{Actor: c.id}, Reply: func(r engine.Reply) {
			if r.Accepted == nil || !r.Accepted.Existing || r.Accepted.TaskID != p.taskID {
				c.w.fail("task %s, submitted again, is answered with %s", p.taskID, reply(r))
			}
		}})
	case 2:
		other := p.spec
		other.TaskID, other.Intent = p.taskID, "something.else"
		g.put(&engine.Submit{Spec: other, Source: engine.Source{Actor: c.id}, Reply: func(r engine.Reply) {
			if r.Refused == nil || r.Refused.Kind != engine.RefusedConflict {
				c.w.fail("task %s with other content is answered with %s", p.taskID, reply(r))
			}
		}})
	case 3:
		g.put(&engine.Garbage{Kind: "task", From: c.id, Reason: "not JSON", Raw: []byte("{")})
	}
}

func (c *simClient) submit() {
	p := &publish{spec: c.spec()}
	c.w.oracle.submission(p)
	p.spec.Trace = wire.NewTrace(1, uint64(p.number))
	p.spec.Metadata = map[string]string{"n": strconv.Itoa(p.number)} // no two tasks are alike
	if c.w.chance(0.4) {
		p.spec.TaskID = fmt.Sprintf("task-%d", p.number)
	}
	if c.packet = c.packet%5 + 1; slices.ContainsFunc(c.flight, func(o *publish) bool { return o.packet == c.packet }) {
		c.left++ // no free packet id: try again later
		return
	}
	p.packet = c.packet
	c.flight = append(c.flight, p)
	c.publish(p, false)
}

func (c *simClient) spec() engine.Spec {
	w := c.w
	s := engine.Spec{Intent: []string{wire.IntentGPIOWrite, wire.IntentGPIOPulse, "valve.turn"}[w.rnd.IntN(3)],
		TimeoutMs: uint32(w.span(500, 8000).Milliseconds()), Priority: wire.Priority(w.rnd.IntN(4))}
	if args := c.arguments(&s); args != nil {
		var err error
		if s.Args, err = wire.EncodeMap(args, wire.MaxArgsBytes); err != nil {
			panic(err)
		}
	}
	switch w.rnd.IntN(6) {
	case 0:
		s.Label = engine.Selector{Key: "role", Value: "worker"}
	case 1:
		s.Nodes = []string{"ghost", "node-1"}
		s.TTLMs = w.span(1000, 20_000).Milliseconds()
	default:
		for _, a := range w.agents {
			if w.chance(0.5) || len(s.Nodes) == 0 {
				s.Nodes = append(s.Nodes, a.id)
			}
		}
	}
	if w.chance(0.4) {
		s.TTLMs = w.span(500, 30_000).Milliseconds()
	}
	if w.chance(0.5) {
		s.Retry = &engine.Retry{Max: uint8(w.rnd.IntN(3)), InitialMs: uint32(w.rnd.IntN(2000)), MaxMs: 2000, Backoff: engine.Backoff(w.rnd.IntN(2))}
	}
	return s
}

// arguments are for one of a few pins, so that lines are fought over. Some sites have
// no line for two commands to meet.
func (c *simClient) arguments(s *engine.Spec) map[string]any {
	w := c.w
	pin := simPins[w.rnd.IntN(len(simPins))]
	level := uint64(w.rnd.IntN(2))
	switch {
	case s.Intent == "valve.turn" && w.rules && w.chance(0.3):
		s.Intent = wire.IntentSafe
		if w.chance(0.5) {
			s.Intent = wire.IntentRelease
		}
		if w.chance(0.3) {
			return map[string]any{}
		}
		return map[string]any{"pin": pin}
	case s.Intent == wire.IntentGPIOPulse:
		return map[string]any{"pin": pin, "level": level, "width_ms": uint64(w.span(1, 900).Milliseconds()) + 1}
	case s.Intent == wire.IntentGPIOWrite:
		args := map[string]any{"pin": pin, "level": level}
		if w.chance(0.1) {
			args["max_on_ms"] = uint64(5000)
		}
		return args
	}
	return nil
}

// publish sends a task; its answer may find the connection gone.
func (c *simClient) publish(p *publish, dup bool) {
	sum, err := p.spec.Sum()
	if err != nil {
		panic(err)
	}
	g := c.w.gateway
	process := g.process
	g.put(&engine.Submit{Spec: p.spec, Path: engine.PathMQTT, Dup: dup, Source: engine.Source{Via: "mqtt", Actor: c.id, Client: c.id},
		Mark: &engine.Mark{Client: c.id, PacketID: p.packet, Sum: sum},
		Reply: func(r engine.Reply) {
			if g.process != process || !c.w.calm && c.w.chance(0.1) {
				return // the acknowledgement is lost
			}
			c.answered(p, r)
		}})
	// A client whose acknowledgement is lost reconnects after a while.
	c.w.after(c.w.span(500, 4000), func() {
		if slices.Contains(c.flight, p) && g.process == process {
			c.publish(p, true)
		}
	})
}

func (c *simClient) answered(p *publish, r engine.Reply) {
	k := slices.Index(c.flight, p)
	if k < 0 {
		return
	}
	c.flight = slices.Delete(c.flight, k, k+1)
	switch {
	case r.Accepted != nil:
		p.taskID = r.Accepted.TaskID
		c.known = append(c.known, p)
		c.w.oracle.accepted(p)
	case r.Refused != nil && strings.Contains(r.Refused.Text, "held at"):
		c.w.oracle.refusedHeld(p)
	case r.Refused != nil && r.Refused.Kind != engine.RefusedNoNode:
		c.w.fail("submission %d is refused: %v", p.number, r.Refused)
	}
}

// reconnected sends again what was not answered.
func (c *simClient) reconnected() {
	for _, p := range c.flight {
		c.w.after(c.w.span(1, 500), func() {
			if slices.Contains(c.flight, p) {
				c.publish(p, true)
			}
		})
	}
}
