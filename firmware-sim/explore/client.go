package explore

import (
	"crypto/sha256"
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/apollo-11/apollo11/gateway/engine"
)

// packetIDs is how many packet ids a client uses before they come round: few, so
// that they do.
const packetIDs = 7

// client is a SCADA tool or an operator. By MQTT, a publish that was not answered
// is sent again after the reconnect, with DUP and the same packet id, as the
// standard demands. By HTTP, a request that was not answered is repeated only if
// it carries a task id; without one nobody can tell whether it was taken.
type client struct {
	w      *world
	id     string
	rnd    *rand.Rand
	packet uint16
	flight []*submission // not answered yet
	known  []*submission // answered with a task
}

// submission is one task that a client wants.
type submission struct {
	number int
	spec   engine.Spec
	mqtt   bool
	packet uint16
	taskID string // from the answer
	gone   bool   // given up by the client
}

func (p *submission) String() string {
	return fmt.Sprintf("submission %d (%s, task id %q, mqtt %v)", p.number, p.spec.Intent, p.spec.TaskID, p.mqtt)
}

func newClient(w *world, n int) *client {
	id := fmt.Sprintf("hmi-%d", n+1)
	return &client{w: w, id: id, rnd: w.stream(id)}
}

// submit begins a submission of the plan.
func (c *client) submit(s *step) {
	p := &submission{number: s.number, spec: *s.spec, mqtt: s.p < 0.6}
	p.spec.Trace = traceOf(p.number)
	c.w.check.wanted(p)
	c.w.counts.Submitted++
	if p.mqtt {
		c.publish(p)
		return
	}
	c.flight = append(c.flight, p)
	c.send(p, false)
}

// publish waits for a free packet id.
func (c *client) publish(p *submission) {
	next := c.packet%packetIDs + 1
	if slices.ContainsFunc(c.flight, func(o *submission) bool { return o.packet == next }) {
		c.w.after(between(c.rnd, 100, 1_000), func() { c.publish(p) })
		return
	}
	c.packet, p.packet = next, next
	c.flight = append(c.flight, p)
	c.send(p, false)
}

// send submits to the process that runs now; its answer may find the connection
// gone.
func (c *client) send(p *submission, again bool) {
	g := c.w.gateway
	process := g.process
	if process == nil {
		return // reconnect sends it
	}
	in := &engine.Submit{Spec: p.spec, Path: engine.PathHTTP, Source: engine.Source{Via: "http", Actor: c.id}}
	if p.mqtt {
		sum := sha256.Sum256(fmt.Append(nil, p.number, p.spec.Args))
		in.Path, in.Dup = engine.PathMQTT, again
		in.Source = engine.Source{Via: "mqtt", Actor: c.id, Client: c.id}
		in.Mark = &engine.Mark{Client: c.id, PacketID: p.packet, Sum: [16]byte(sum[:16])}
	}
	in.Reply = func(r engine.Reply) {
		c.w.check.replied(p, r)
		if g.process != process || !c.w.calm && chance(c.rnd, 0.1) {
			return // the answer is lost
		}
		c.answered(p, r)
	}
	g.put(in)
	c.w.after(between(c.rnd, 3_000, 8_000), func() {
		if slices.Contains(c.flight, p) && g.process == process {
			c.again(p)
		}
	})
}

// again repeats a submission whose answer did not come, if that is safe.
func (c *client) again(p *submission) {
	if !p.mqtt && p.spec.TaskID == "" {
		p.gone = true
		c.flight = slices.DeleteFunc(c.flight, func(o *submission) bool { return o == p })
		return
	}
	c.send(p, true)
}

// reconnect is called when the gateway is there again.
func (c *client) reconnect() {
	for _, p := range slices.Clone(c.flight) {
		c.w.after(between(c.rnd, 1, 500), func() {
			if slices.Contains(c.flight, p) {
				c.again(p)
			}
		})
	}
}

func (c *client) answered(p *submission, r engine.Reply) {
	k := slices.Index(c.flight, p)
	if k < 0 {
		return
	}
	c.flight = slices.Delete(c.flight, k, k+1)
	if r.Accepted != nil {
		p.taskID = r.Accepted.TaskID
		c.known = append(c.known, p)
		c.w.check.acknowledged(p)
	}
}

// pick is one of the tasks that the client knows, nil if there is none.
func (c *client) pick(ref int) *submission {
	if len(c.known) == 0 {
		return nil
	}
	return c.known[ref%len(c.known)]
}

// repeat submits a known task again, the same or with other content.
func (c *client) repeat(p *submission, other bool) {
	spec := p.spec
	spec.TaskID = p.taskID
	if other {
		spec.Intent = "something.else"
	}
	c.w.gateway.put(&engine.Submit{Spec: spec, Path: engine.PathHTTP, Source: engine.Source{Via: "http", Actor: c.id}, Reply: func(r engine.Reply) {
		switch {
		case other && (r.Refused == nil || r.Refused.Kind != engine.RefusedConflict):
			c.w.fail("task-id", "task %s with other content is answered with %+v", p.taskID, r)
		case !other && (r.Accepted == nil || !r.Accepted.Existing || r.Accepted.TaskID != p.taskID):
			c.w.fail("task-id", "task %s, submitted again, is answered with %+v", p.taskID, r)
		}
	}})
}

// cancel asks to stop a task.
func (c *client) cancel(task string) {
	c.stop(&engine.Cancel{TaskID: task})
}

// cancelOne asks to stop an instruction: of those that are not finished one that
// waits for another attempt, if there is any, for that is the hardest to do right.
func (c *client) cancelOne(ref int) {
	if list := c.w.check.unfinished(); len(list) > 0 {
		c.stop(&engine.Cancel{Seq: list[ref%len(list)]})
	}
}

func (c *client) stop(in *engine.Cancel) {
	in.Actor, in.Reason, in.Path, in.Reply = c.id, "by the plan", engine.PathHTTP, func(engine.Reply) {}
	c.w.check.cancelling(in.TaskID, in.Seq)
	c.w.gateway.put(in)
}

// garbage sends what cannot be read.
func (c *client) garbage() {
	c.w.gateway.put(&engine.Garbage{Kind: "task", From: c.id, Reason: "not JSON", Raw: []byte("{")})
}

// operate is what an operator does by hand. It may be refused.
func (c *client) operate(s *step) {
	in := &engine.Operate{Actor: c.id, Path: engine.PathHTTP, Note: "by the plan", AcceptUnknown: s.p < 0.6, Reply: func(engine.Reply) {}}
	switch s.kind {
	case opRetry, opResolve:
		waiting := c.w.check.waiting()
		if len(waiting) == 0 {
			return
		}
		in.Seq, in.Action = waiting[s.ref%len(waiting)], engine.ActionRetry
		if s.kind == opResolve {
			in.Action = engine.ActionResolve
		}
	case opQuiet:
		in.Action, in.Until = engine.ActionQuietOn, c.w.gateway.clock.wall()+s.long.Milliseconds()+1
		if s.p < 0.2 {
			in.Action = engine.ActionQuietOff
		}
	case opDead:
		in.Action, in.Dead = engine.ActionDeadDrop, uint64(s.ref%5)+1
	}
	if in.Action == engine.ActionRetry && !in.AcceptUnknown {
		was := c.w.check.book.last(in.Seq)
		in.Reply = func(r engine.Reply) { c.w.check.unasked(&was, r) }
	}
	c.w.gateway.put(in)
}

func (c *client) unsettled() string {
	if len(c.flight) > 0 {
		return fmt.Sprintf("%s has %d submissions without an answer", c.id, len(c.flight))
	}
	return ""
}
