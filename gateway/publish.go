package gateway

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/apollo-11/apollo11/gateway/engine"
	"github.com/apollo-11/apollo11/gateway/scada"
	"github.com/apollo-11/apollo11/wire"
)

// retainedTasks is how many tasks keep their retained status, the latest ones.
// They are in the broker's memory (about 1 kB each), which looks through all of
// them every second, and are for HMI tools that connect late; the history is in
// the log.
const retainedTasks = 5000

// pinNewsQueue bounds what waits to be published of pins: a second of 64 watches at
// their fastest on each of six nodes. Each is told, none replaces another.
const pinNewsQueue = 4096

// board publishes statuses, node states and alarms. A task or node that changes
// again before its turn is published once, with its latest state: a slow moment
// costs intermediate states, never the last one.
type board struct {
	topics wire.Topics
	pub    publisher
	log    *slog.Logger

	mu     sync.Mutex
	tasks  map[string]engine.TaskState
	order  []string
	nodes  map[string]engine.NodeState
	alarms []engine.Alarm
	pins   []engine.PinNews
	lost   int // pin news that had no room
	wake   chan struct{}

	// retained are the tasks with a retained status, ring the same in order of
	// their first publication; run owns both.
	retained map[string]bool
	ring     []string
	next     int
}

func newBoard(topics wire.Topics, pub publisher, log *slog.Logger) *board {
	return &board{topics: topics, pub: pub, log: log, tasks: map[string]engine.TaskState{},
		nodes: map[string]engine.NodeState{}, wake: make(chan struct{}, 1), retained: map[string]bool{}}
}

// show takes in what one round changed. It never waits.
func (b *board) show(e *engine.Effects) {
	if len(e.Statuses) == 0 && len(e.Nodes) == 0 && len(e.Alarms) == 0 && len(e.Pins) == 0 {
		return
	}
	b.mu.Lock()
	for _, s := range e.Statuses {
		if _, ok := b.tasks[s.Task.ID]; !ok {
			b.order = append(b.order, s.Task.ID)
		}
		b.tasks[s.Task.ID] = s
	}
	for _, n := range e.Nodes {
		b.nodes[n.Node.ID] = n
	}
	b.alarms = append(b.alarms, e.Alarms...)
	room := min(len(e.Pins), pinNewsQueue-len(b.pins))
	b.pins = append(b.pins, e.Pins[:room]...)
	b.lost += len(e.Pins) - room
	b.mu.Unlock()
	select {
	case b.wake <- struct{}{}:
	default:
	}
}

func (b *board) run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-b.wake:
			b.publish()
		}
	}
}

func (b *board) publish() {
	b.mu.Lock()
	tasks, order, nodes, alarms, pins, lost := b.tasks, b.order, b.nodes, b.alarms, b.pins, b.lost
	b.tasks, b.order, b.nodes, b.alarms = map[string]engine.TaskState{}, nil, map[string]engine.NodeState{}, nil
	b.pins, b.lost = nil, 0
	b.mu.Unlock()
	if lost > 0 {
		b.log.Warn("what happened at pins was not published: too much at once; the timelines have it", "reports", lost)
	}
	for _, p := range pins {
		b.post(b.topics.NodePin(p.Node, p.Pin), scada.NewPinView(p), false)
	}
	for _, a := range alarms {
		b.post(b.topics.Alarm(), alarmView(a), false)
	}
	now := time.Now().UnixMilli()
	for _, id := range slices.Sorted(maps.Keys(nodes)) {
		b.post(b.topics.NodeState(id), nodeView(nodes[id], now), true)
	}
	for _, id := range order {
		s := scada.NewStatus(b.topics.Site(), tasks[id].Task, tasks[id].Instructions)
		b.post(b.topics.TaskStatus(id), s, true)
		b.retain(id)
	}
}

// retain notes that a task has a retained status, and lets go of the oldest when
// there are too many. Should that task change again, it is retained anew.
func (b *board) retain(id string) {
	if b.retained[id] {
		return
	}
	b.retained[id] = true
	if len(b.ring) < retainedTasks {
		b.ring = append(b.ring, id)
		return
	}
	old := b.ring[b.next]
	b.ring[b.next] = id
	b.next = (b.next + 1) % retainedTasks
	delete(b.retained, old)
	b.send(b.topics.TaskStatus(old), nil, true)
}

func (b *board) post(topic string, d scada.Document, retain bool) {
	payload, err := scada.Marshal(d)
	if err != nil {
		b.log.Warn("status not published", "topic", topic, "error", err)
		return
	}
	b.send(topic, payload, retain)
}

func (b *board) send(topic string, payload []byte, retain bool) {
	if err := b.pub.Publish(topic, payload, 1, retain); err != nil {
		b.log.Warn("status not published", "topic", topic, "error", err)
	}
}
