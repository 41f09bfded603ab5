package fleet

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	mqtt "github.com/eclipse/paho.mqtt.golang"

	"github.com/apollo-11/apollo11/wire"
)

// connectWait bounds the connection of one node.
const connectWait = 30 * time.Second

// inbox bounds what waits inside a node; the gateway's window keeps it below 16.
const inbox = 1024

// Fleet is a set of connected nodes.
type Fleet struct {
	nodes    []*node
	executed atomic.Uint64
}

type node struct {
	name    string
	topics  wire.Topics
	client  mqtt.Client
	session uint64
	inbox   chan []byte
	done    chan struct{}
	fleet   *Fleet

	next  uint64 // event number; owned by serve
	tasks map[wire.Token]bool
}

// Options says where a fleet connects.
type Options struct {
	Addr  string // host:port of the gateway's MQTT door
	Site  string
	Count int
	Start int // number of the first node, for several fleets at one gateway
}

// Name is the name of the n-th node.
func Name(n int) string { return fmt.Sprintf("fleet-%04d", n) }

// Start connects the nodes and returns when every one of them was welcomed.
func Start(ctx context.Context, o Options) (*Fleet, error) {
	topics, err := wire.NewTopics(o.Site)
	if err != nil {
		return nil, err
	}
	f := &Fleet{}
	var group sync.WaitGroup
	errs := make(chan error, o.Count)
	limit := make(chan struct{}, 32) // connections at a time
	for k := range o.Count {
		n := &node{name: Name(o.Start + k), topics: topics, session: uint64(k) + 1, inbox: make(chan []byte, inbox),
			done: make(chan struct{}), fleet: f, next: 1, tasks: map[wire.Token]bool{}}
		f.nodes = append(f.nodes, n)
		group.Add(1)
		go func() {
			defer group.Done()
			limit <- struct{}{}
			defer func() { <-limit }()
			errs <- n.connect(ctx, o.Addr)
		}()
	}
	group.Wait()
	close(errs)
	for err := range errs {
		if err != nil {
			f.Stop()
			return nil, err
		}
	}
	return f, nil
}

// Executed is the number of instructions that the fleet has executed.
func (f *Fleet) Executed() uint64 { return f.executed.Load() }

// Stop disconnects every node.
func (f *Fleet) Stop() {
	for _, n := range f.nodes {
		if n.client == nil {
			continue
		}
		n.client.Disconnect(50)
		close(n.inbox)
		<-n.done
	}
}

func (n *node) connect(ctx context.Context, addr string) error {
	welcome := make(chan error, 1)
	o := mqtt.NewClientOptions().AddBroker("tcp://" + addr).SetClientID("agent/" + n.name).
		SetProtocolVersion(4).SetCleanSession(true).SetAutoReconnect(false).SetConnectTimeout(connectWait).
		SetKeepAlive(60 * time.Second).SetOrderMatters(true)
	o.SetDefaultPublishHandler(func(_ mqtt.Client, m mqtt.Message) {
		select {
		case n.inbox <- m.Payload():
		default: // the gateway sends it again
		}
	})
	client := mqtt.NewClient(o)
	if err := wait(client.Connect()); err != nil {
		return fmt.Errorf("%s: connect: %w", n.name, err)
	}
	n.client = client
	go n.serve(welcome)
	if err := wait(client.Subscribe(n.topics.Cmd(n.name), 0, nil)); err != nil {
		return fmt.Errorf("%s: subscribe: %w", n.name, err)
	}
	hello := &wire.Hello{Session: n.session, Incarnation: uint64(time.Now().UnixNano()), Version: "fleet", Short: wire.Short(n.name),
		First: 1, Next: 1, Clock: time.Now().UnixMilli(), ClockSet: true, Board: "fleet"}
	if err := n.send(hello); err != nil {
		return fmt.Errorf("%s: hello: %w", n.name, err)
	}
	select {
	case err := <-welcome:
		return err
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(connectWait):
		return fmt.Errorf("%s: no welcome within %v", n.name, connectWait)
	}
}

func wait(t mqtt.Token) error {
	if !t.WaitTimeout(connectWait) {
		return errors.New("no answer")
	}
	return t.Error()
}

func (n *node) send(m wire.Message) error {
	b, err := wire.Encode(m)
	if err != nil {
		return err
	}
	n.client.Publish(n.topics.Evt(n.name), 0, false, b)
	return nil
}

// serve answers what comes, until the inbox is closed.
func (n *node) serve(welcome chan<- error) {
	defer close(n.done)
	beat := time.NewTicker(5 * time.Second)
	defer beat.Stop()
	for {
		select {
		case <-beat.C:
			if n.send(&wire.Heartbeat{Session: n.session, Clock: time.Now().UnixMilli()}) != nil {
				return
			}
		case b, ok := <-n.inbox:
			if !ok {
				return
			}
			m, err := wire.DecodeDownlink(b)
			if err != nil {
				return
			}
			switch m := m.(type) {
			case *wire.Welcome:
				err = nil
				if m.Refused != "" {
					err = fmt.Errorf("%s: refused: %s", n.name, m.Refused)
				}
				select {
				case welcome <- err:
				default:
				}
			case *wire.Instruction:
				if n.execute(m) != nil {
					return
				}
			}
		}
	}
}

func (n *node) execute(m *wire.Instruction) error {
	if n.tasks[m.Token] {
		return nil // the event is on its way
	}
	n.tasks[m.Token] = true
	n.fleet.executed.Add(1)
	now := time.Now().UnixMilli()
	e := &wire.Event{Number: n.next, Seq: m.Seq, Token: m.Token, Attempt: m.Attempt, Phase: wire.PhaseProcessed,
		ReceivedAt: now, StartedAt: now, FinishedAt: now, Code: wire.CodeOK}
	n.next++
	return n.send(e)
}
