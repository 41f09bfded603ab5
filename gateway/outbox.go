package gateway

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"

	"github.com/apollo-11/apollo11/gateway/engine"
	"github.com/apollo-11/apollo11/wire"
)

// outboxQueue bounds what waits for one node. The engine's window keeps it far
// below; what does not fit is dropped, counted, and sent again by the engine.
const outboxQueue = 256

// publisher is the part of the broker that sends.
type publisher interface {
	Publish(topic string, payload []byte, qos byte, retain bool) error
}

// outboxes has one goroutine per node, so that a board that does not read
// delays nobody else.
type outboxes struct {
	topics  wire.Topics
	pub     publisher
	log     *slog.Logger
	dropped atomic.Uint64

	mu    sync.Mutex
	boxes map[string]chan []byte
	group sync.WaitGroup
}

func newOutboxes(topics wire.Topics, pub publisher, log *slog.Logger) *outboxes {
	return &outboxes{topics: topics, pub: pub, log: log, boxes: map[string]chan []byte{}}
}

// put hands a message to a node's goroutine. It never waits.
func (o *outboxes) put(ctx context.Context, node string, m wire.Message) {
	b, err := wire.Encode(m)
	if err != nil {
		o.dropped.Add(1)
		o.log.Warn("message to node not sent", "node", node, "error", err)
		return
	}
	o.hand(ctx, o.topics.Cmd(node), b)
}

func (o *outboxes) hand(ctx context.Context, topic string, b []byte) {
	o.mu.Lock()
	box := o.boxes[topic]
	if box == nil {
		box = make(chan []byte, outboxQueue)
		o.boxes[topic] = box
		o.group.Add(1)
		go func() {
			defer o.group.Done()
			o.serve(ctx, topic, box)
		}()
	}
	o.mu.Unlock()
	select {
	case box <- b:
	default:
		o.dropped.Add(1)
	}
}

func (o *outboxes) serve(ctx context.Context, topic string, box <-chan []byte) {
	for {
		select {
		case <-ctx.Done():
			return
		case b := <-box:
			// QoS 0: the connection keeps order, and only the agent's own reports
			// count as delivery.
			if err := o.pub.Publish(topic, b, 0, false); err != nil {
				o.dropped.Add(1)
				o.log.Warn("message to node not sent", "topic", topic, "error", err)
			}
		}
	}
}

// putCompact hands a frame to the goroutine of a node's narrowband topic.
func (o *outboxes) putCompact(ctx context.Context, c engine.CompactSend) {
	b, err := c.Frame.Encode()
	if err != nil {
		o.dropped.Add(1)
		o.log.Warn("compact frame not sent", "short", c.Short, "error", err)
		return
	}
	o.hand(ctx, wire.NarrowbandDown(c.Short), b)
}

// wait returns when all outboxes have ended, after their context has.
func (o *outboxes) wait() { o.group.Wait() }
