package broker_test

import (
	"fmt"
	"sync"
	"testing"

	"github.com/mochi-mqtt/server/v2/packets"

	"github.com/apollo-11/apollo11/broker"
)

// An agent that connects again while its old connection is still there is never
// reported as gone: the events come in order and the last one says connected.
func TestTakeoverKeepsPresenceInOrder(t *testing.T) {
	const n = 30
	g := accepting()
	b := serve(t, g)
	var last *client
	for range n {
		last = start(t, b.Addr("mqtt"), connect{id: "agent/pump-1",
			will: &packets.Packet{TopicName: "apollo/default/evt/pump-1", Payload: []byte("lost")}})
	}
	last.ping()
	events := g.present()
	if len(events) != 2*n-1 {
		t.Fatalf("%d events, want %d", len(events), 2*n-1)
	}
	for i, p := range events {
		connected := i%2 == 0
		if p.Connected != connected || p.Node != "pump-1" || p.Path != broker.Primary {
			t.Fatalf("event %d is %+v", i, p)
		}
		if !connected && (p.Cause != broker.TakenOver || p.Conn != events[i-1].Conn) {
			t.Fatalf("event %d is %+v after %+v", i, p, events[i-1])
		}
	}
	if u := g.uplinked(); len(u) != 0 {
		t.Errorf("wills were delivered although the node is there: %+v", u)
	}
	if s := b.Stats(); s.Agents != 1 {
		t.Errorf("%d agents connected, want 1", s.Agents)
	}
}

// Many connections of one client at the same moment end with one of them, whole.
func TestSimultaneousTakeoversEndWithOneWorkingConnection(t *testing.T) {
	g := accepting()
	b := serve(t, g)
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			for range 5 {
				c := open(t, b.Addr("mqtt"), connect{id: "agent/pump-1"})
				<-c.in // let in, or sent away by the next
			}
		})
	}
	group.Wait()
	c := start(t, b.Addr("mqtt"), connect{id: "agent/pump-1"})
	c.subscribe(1, 0, "apollo/default/cmd/pump-1")
	if err := b.Publish("apollo/default/cmd/pump-1", []byte("x"), 0, false); err != nil {
		t.Fatal(err)
	}
	c.want(packets.Publish)
	connected := 0
	for _, p := range g.present() {
		if p.Connected {
			connected++
		} else {
			connected--
		}
		if connected < 0 || connected > 1 {
			t.Fatalf("%d connections of one client at once", connected)
		}
	}
}

// C1 of the requirements: how an agent left is told, and a will only when it
// was lost.
func TestC1_PresenceSaysHowAnAgentLeft(t *testing.T) {
	g := accepting()
	b := serve(t, g)
	with := connect{id: "agent/pump-1", version: 5, will: &packets.Packet{TopicName: "apollo/default/evt/pump-1", Payload: []byte("lost")}}
	leave := []struct {
		cause broker.Cause
		do    func(*client)
		will  bool
	}{
		{broker.Graceful, func(c *client) { c.disconnect() }, false},
		{broker.Lost, func(c *client) { _ = c.conn.Close() }, true},
		{broker.Lost, func(c *client) { c.write([]byte{packets.Disconnect << 4, 2, 4, 0}) }, true}, // "with will"
		{broker.Refused, func(c *client) { c.write([]byte{packets.Publish<<4 | 2, 6, 0, 1, 'x', 0, 0, 0}) }, true},
		{broker.Shutdown, func(*client) { b.stop() }, false},
	}
	wills := 0
	for i, l := range leave {
		c := start(t, b.Addr("mqtt"), with)
		l.do(c)
		eventually(t, "presence", func() bool { return len(g.present()) == 2*i+2 })
		if p := g.present()[2*i+1]; p.Connected || p.Cause != l.cause {
			t.Errorf("case %d: presence %+v, want cause %s", i, p, l.cause)
		}
		if l.will {
			wills++
		}
		if n := len(g.uplinked()); n != wills {
			t.Errorf("case %d: %d wills delivered, want %d", i, n, wills)
		}
	}
}

// L7: a fleet that returns at once with its backlog loses nothing and is not
// thrown out.
func TestL7_FleetReturnsAtOnce(t *testing.T) {
	agents, backlog := 100, 50
	if testing.Short() {
		agents = 20
	}
	g := accepting()
	b := serve(t, g)
	cs := make([]*client, agents)
	for i := range cs {
		cs[i] = start(t, b.Addr("mqtt"), connect{id: fmt.Sprintf("agent/n%d", i)})
	}
	var group sync.WaitGroup
	for i, c := range cs {
		group.Go(func() {
			for k := range backlog {
				c.publish(pub{topic: fmt.Sprintf("apollo/default/evt/n%d", i), payload: fmt.Sprint(k), qos: 1, id: uint16(k + 1)})
			}
		})
	}
	group.Wait()
	for _, c := range cs {
		for k := range backlog {
			if ack := c.want(packets.Puback); ack.PacketID != uint16(k+1) {
				t.Fatalf("got %s, want id %d", describe(ack), k+1)
			}
		}
	}
	next := map[string]int{}
	for _, u := range g.uplinked() {
		if string(u.Payload) != fmt.Sprint(next[u.Node]) || u.ClientID != "agent/"+u.Node || u.Path != broker.Primary {
			t.Fatalf("uplink %+v, want number %d", u, next[u.Node])
		}
		next[u.Node]++
	}
	if len(next) != agents || len(g.uplinked()) != agents*backlog {
		t.Errorf("%d uplinks of %d agents", len(g.uplinked()), len(next))
	}
}
