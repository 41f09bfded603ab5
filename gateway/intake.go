package gateway

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/apollo-11/apollo11/broker"
	"github.com/apollo-11/apollo11/gateway/engine"
	"github.com/apollo-11/apollo11/gateway/scada"
	"github.com/apollo-11/apollo11/wire"
)

// intakeWait is how long a door waits for a place in the loop's queue before it
// says that the gateway is too busy. While it waits its client is held back by
// TCP, which is what slows a flood down.
const intakeWait = 10 * time.Second

// intake is the broker's handler: it turns packets into inputs.
type intake struct {
	ctx    context.Context
	topics wire.Topics
	loop   *loop
	m      *metrics
	log    *slog.Logger
}

// Submit implements broker.Handler: a publish on the task topic or on a safe topic.
func (k *intake) Submit(s broker.Submission, done func(broker.Verdict)) {
	if kind, target := k.topics.Parse(s.Topic); kind == wire.TopicSafe {
		k.safe(s, target, done)
		return
	}
	spec, warnings, err := scada.ParseTask(s.Payload, scada.JSON, scada.Options{Site: k.topics.Site(), Now: time.Now().UnixMilli()})
	if err != nil {
		k.m.refused.WithLabelValues("mqtt", "invalid").Inc()
		if perr := k.put(&engine.Garbage{Kind: "task", From: s.ClientID, Reason: err.Error(), Raw: s.Payload}); perr != nil {
			k.log.Warn("refused task not kept as a dead letter", "client", s.ClientID, "error", perr)
		}
		k.finish(done)(faulty(err))
		return
	}
	if s.Expiry > 0 && spec.TTLMs == 0 && spec.NotAfter == 0 {
		// MQTT 5 message expiry is a time limit like any other.
		spec.TTLMs = s.Expiry.Milliseconds()
	}
	in := submission(s, spec)
	in.Dup = s.Dup
	if s.QoS > 0 && s.ClientID != "" {
		sum := sha256.Sum256(s.Payload)
		in.Mark = &engine.Mark{Client: s.ClientID, PacketID: s.PacketID, Sum: [16]byte(sum[:16])}
	}
	k.submit(in, warnings, done)
}

// safe takes a publish on a safe topic, whatever is in it. Unlike a task it is never
// taken for the second copy of an earlier one: an output that is driven to its safe
// level once too often is better than one that is not.
func (k *intake) safe(s broker.Submission, target string, done func(broker.Verdict)) {
	node, pin := wire.SafeTarget(target)
	spec, err := scada.Verb(wire.IntentSafe, node, pin, "")
	if err != nil {
		k.m.refused.WithLabelValues("mqtt", "invalid").Inc()
		k.finish(done)(faulty(err))
		return
	}
	spec.TTLMs = s.Expiry.Milliseconds() // its own time limit, the only one that it can have
	k.submit(submission(s, spec), nil, done)
}

func submission(s broker.Submission, spec engine.Spec) *engine.Submit {
	return &engine.Submit{Spec: spec, Path: engine.PathMQTT,
		Source: engine.Source{Via: "mqtt", Actor: actor(s.Username, s.ClientID), Client: s.ClientID}}
}

func (k *intake) submit(in *engine.Submit, warnings []scada.Warning, done func(broker.Verdict)) {
	taskID := in.Spec.TaskID
	in.Reply = func(r engine.Reply) { k.finish(done)(verdict(k.topics, taskID, r, warnings)) }
	if err := k.put(in); err != nil {
		done(broker.Verdict{Reason: broker.Unavailable, Text: "the gateway is stopping or too busy: " + err.Error() + "; send the task again"})
	}
}

// finish hands a verdict to the broker. An answer that cannot be written is
// left out: the receipt says the same.
func (k *intake) finish(done func(broker.Verdict)) func(broker.Verdict, error) {
	return func(v broker.Verdict, err error) {
		if err != nil {
			k.log.Warn("answer to a submission could not be written", "error", err)
		}
		done(v)
	}
}

func actor(user, client string) string {
	if user != "" {
		return user
	}
	return client
}

// put hands an input to the loop, waiting at most intakeWait.
func (k *intake) put(in engine.Input) error {
	ctx, cancel := context.WithTimeout(k.ctx, intakeWait)
	defer cancel()
	return k.loop.put(ctx, in)
}

// Uplink implements broker.Handler: a message of an agent.
func (k *intake) Uplink(u broker.Uplink) {
	in, err := decodeUplink(u)
	if err != nil {
		from, kind := u.Node, "event"
		if u.Path == broker.Narrowband {
			from, kind = u.Short, "compact"
		}
		g := &engine.Garbage{Kind: kind, From: from, Reason: err.Error(), Raw: u.Payload}
		if n, ok := wire.EventNumber(u.Payload); ok && u.Path == broker.Primary {
			g.Event = n
		}
		in = g
	}
	if err := k.put(in); err != nil && !errors.Is(err, context.Canceled) {
		k.m.uplinkDropped.Inc() // the agent sends it again
	}
}

func decodeUplink(u broker.Uplink) (engine.Input, error) {
	if u.Path == broker.Primary {
		m, err := wire.DecodeUplink(u.Payload)
		if err != nil {
			return nil, err
		}
		return &engine.Uplink{Node: u.Node, Msg: m}, nil
	}
	m, err := wire.DecodeCompact(u.Payload)
	if err != nil {
		return nil, err
	}
	ack, ok := m.(wire.CompactAck)
	if !ok {
		return nil, fmt.Errorf("a %T is not for the gateway", m)
	}
	return &engine.Compact{Short: u.Short, Ack: ack}, nil
}

// Presence implements broker.Handler. The sessions of nodes are told by their
// own hello and goodbye, the latter also as their last will; the connection
// itself decides nothing.
func (k *intake) Presence(p broker.Presence) {
	if p.Path != broker.Narrowband {
		return
	}
	k.m.narrowband(p.Connected)
	if err := k.put(&engine.NarrowbandUp{Short: p.Short, Up: p.Connected}); err != nil && !errors.Is(err, context.Canceled) {
		k.log.Warn("narrowband presence lost", "short", p.Short, "error", err)
	}
}
