package gateway

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"

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
	boxes map[string]chan wire.Message
	group sync.WaitGroup
}

func newOutboxes(topics wire.Topics, pub publisher, log *slog.Logger) *outboxes {
	return &outboxes{topics: topics, pub: pub, log: log, boxes: map[string]chan wire.Message{}}
}

// put hands a message to a node's goroutine. It never waits.
func (o *outboxes) put(ctx context.Context, node string, m wire.Message) {
	o.mu.Lock()
	box := o.boxes[node]
	if box == nil {
		box = make(chan wire.Message, outboxQueue)
		o.boxes[node] = box
		o.group.Add(1)
		go func() {
			defer o.group.Done()
			o.serve(ctx, node, box)
		}()
	}
	o.mu.Unlock()
	select {
	case box <- m:
	default:
		o.dropped.Add(1)
	}
}

func (o *outboxes) serve(ctx context.Context, node string, box <-chan wire.Message) {
	topic := o.topics.Cmd(node)
	for {
		select {
		case <-ctx.Done():
			return
		case m := <-box:
			b, err := wire.Encode(m)
			if err == nil {
				// QoS 0: the connection keeps order, and only the agent's own
				// reports count as delivery.
				err = o.pub.Publish(topic, b, 0, false)
			}
			if err != nil {
				o.dropped.Add(1)
				o.log.Warn("message to node not sent", "node", node, "error", err)
			}
		}
	}
}

// wait returns when all outboxes have ended, after their context has.
func (o *outboxes) wait() { o.group.Wait() }
