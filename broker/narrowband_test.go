package broker_test

import (
	"strings"
	"testing"

	"github.com/mochi-mqtt/server/v2/packets"

	"github.com/apollo-11/apollo11/broker"
)

// B3: the narrowband listener carries small frames of its own clients, at its
// own rate, and what is over it is dropped and counted.
func TestB3_NarrowbandFramesAreShaped(t *testing.T) {
	g := accepting()
	b := serve(t, g, func(c *broker.Config) { c.Limits.NarrowbandRate = 3 })
	c := start(t, b.Addr("narrowband"), connect{id: "nb/p00001", version: 5})
	c.publish(pub{topic: "n/p00001", payload: "ack-1", qos: 1, id: 1})
	c.want(packets.Puback)
	c.publish(pub{topic: "n/p00001", payload: strings.Repeat("x", 64), qos: 1, id: 2})
	if ack := c.want(packets.Puback); ack.ReasonCode != 0x99 {
		t.Errorf("a frame over the limit: %s", describe(ack))
	}
	c.publish(pub{topic: "n/p00002", payload: "x", qos: 1, id: 3})
	if ack := c.want(packets.Puback); ack.ReasonCode != 0x87 {
		t.Errorf("a frame for another node: %s", describe(ack))
	}
	c.publish(pub{topic: taskTopic, payload: "x", qos: 1, id: 3})
	if ack := c.want(packets.Puback); ack.ReasonCode != 0x87 {
		t.Errorf("a task over narrowband: %s", describe(ack))
	}
	const burst = 200
	for range burst {
		c.publish(pub{topic: "n/p00001", payload: "ack"})
	}
	c.ping()
	s := b.Stats()
	if s.Throttled < burst/2 || s.Throttled+s.Uplinks != burst+1 || s.UplinksDropped != s.Throttled+3 {
		t.Errorf("stats %+v", s)
	}
	u := g.uplinked()[0]
	if u.Path != broker.Narrowband || u.Short != "p00001" || u.Node != "" || string(u.Payload) != "ack-1" {
		t.Errorf("uplink %+v", u)
	}
	if p := g.present(); len(p) != 1 || p[0].Path != broker.Narrowband || p[0].Short != "p00001" || !p[0].Connected {
		t.Errorf("presence %+v", p)
	}
	c.subscribe(9, 0, "d/p00001")
	if err := b.Publish("d/p00001", []byte("query"), 0, false); err != nil {
		t.Fatal(err)
	}
	if pk := c.want(packets.Publish); pk.TopicName != "d/p00001" || string(pk.Payload) != "query" {
		t.Errorf("got %s", describe(pk))
	}
}

// A flood on one narrowband client does not use up the rate of another.
func TestB3_NarrowbandRateIsPerClient(t *testing.T) {
	g := accepting()
	b := serve(t, g)
	flood := start(t, b.Addr("narrowband"), connect{id: "nb/p00001"})
	for range 100 {
		flood.publish(pub{topic: "n/p00001", payload: "x"})
	}
	flood.ping()
	quiet := start(t, b.Addr("narrowband"), connect{id: "nb/p00002"})
	quiet.publish(pub{topic: "n/p00002", payload: "mine", qos: 1, id: 1})
	quiet.want(packets.Puback)
	all := g.uplinked()
	if last := all[len(all)-1]; last.Short != "p00002" {
		t.Errorf("the last uplink is %+v", last)
	}
}
