package broker_test

import (
	"fmt"
	"testing"

	"github.com/mochi-mqtt/server/v2/packets"

	"github.com/apollo-11/apollo11/broker"
)

// A2: nothing is acknowledged before the gateway says so, and then everything
// in the order in which it was sent, whatever the order of the verdicts.
func TestA2_NoReceiptBeforeTheVerdictAndAllInOrder(t *testing.T) {
	const n = 100
	for _, version := range []byte{4, 5} {
		for _, qos := range []byte{1, 2} {
			t.Run(fmt.Sprintf("version %d QoS %d", version, qos), func(t *testing.T) {
				g := new(gateway)
				b := serve(t, g)
				c := start(t, b.Addr("mqtt"), connect{id: "hmi", version: version})
				for id := uint16(1); id <= n; id++ {
					c.publish(pub{topic: taskTopic, payload: fmt.Sprint(id), qos: qos, id: id})
				}
				subs := g.waitSubmitted(t, n)
				c.ping() // fails on any receipt
				if p := b.Stats().PendingReceipts; p != n {
					t.Errorf("%d receipts are pending, want %d", p, n)
				}
				for i := n - 1; i >= 0; i-- {
					subs[i].done(broker.Verdict{Reason: broker.Accepted})
				}
				kind := byte(packets.Puback)
				if qos == 2 {
					kind = packets.Pubrec
				}
				for id := uint16(1); id <= n; id++ {
					if ack := c.want(kind); ack.PacketID != id || ack.ReasonCode != 0 {
						t.Fatalf("receipt %s, want id %d", describe(ack), id)
					}
				}
				if qos == 2 {
					for id := uint16(1); id <= n; id++ {
						c.ack(packets.Pubrel, id)
						if comp := c.want(packets.Pubcomp); comp.PacketID != id || comp.ReasonCode != 0 {
							t.Fatalf("completion %s, want id %d", describe(comp), id)
						}
					}
				}
				if p := b.Stats().PendingReceipts; p != 0 {
					t.Errorf("%d receipts are pending after all verdicts", p)
				}
			})
		}
	}
}

// A repetition on the same connection is one submission and one receipt.
func TestA10_RepetitionInFlightIsAbsorbed(t *testing.T) {
	g := new(gateway)
	b := serve(t, g)
	c := start(t, b.Addr("mqtt"), connect{id: "hmi"})
	for range 3 {
		c.publish(pub{topic: taskTopic, payload: "x", qos: 1, id: 7, dup: len(g.submitted()) > 0})
		g.waitSubmitted(t, 1)
		c.ping()
	}
	g.submitted()[0].done(broker.Verdict{Reason: broker.Accepted})
	c.want(packets.Puback)
	c.ping()
	if n := len(g.submitted()); n != 1 {
		t.Errorf("%d submissions, want 1", n)
	}
	if n := b.Stats().Duplicates; n != 2 {
		t.Errorf("%d duplicates counted, want 2", n)
	}
	// The packet id is free again: this is another command.
	c.publish(pub{topic: taskTopic, payload: "y", qos: 1, id: 7})
	g.waitSubmitted(t, 2)
}

// A QoS 2 repetition after PUBREC gets PUBREC again and is not a second command.
func TestA10_QoS2RepetitionAfterPubrecIsAnsweredAgain(t *testing.T) {
	g := accepting()
	b := serve(t, g)
	c := start(t, b.Addr("mqtt"), connect{id: "hmi"})
	for i := range 3 {
		c.publish(pub{topic: taskTopic, payload: "x", qos: 2, id: 7, dup: i > 0})
		c.want(packets.Pubrec)
	}
	c.ack(packets.Pubrel, 7)
	c.want(packets.Pubcomp)
	c.ack(packets.Pubrel, 7) // repeated because PUBCOMP was lost
	c.want(packets.Pubcomp)
	if n := len(g.submitted()); n != 1 {
		t.Errorf("%d submissions, want 1", n)
	}
}

// After a reconnect only the durable log can tell a repetition from a new
// command, so the gateway gets it with the flag.
func TestA10_RepetitionAfterReconnectIsPassedOnWithItsFlag(t *testing.T) {
	g := new(gateway)
	b := serve(t, g)
	c := start(t, b.Addr("mqtt"), connect{id: "hmi", persistent: true})
	c.publish(pub{topic: taskTopic, payload: "x", qos: 1, id: 7})
	first := g.waitSubmitted(t, 1)[0]
	c2 := start(t, b.Addr("mqtt"), connect{id: "hmi", persistent: true})
	c2.publish(pub{topic: taskTopic, payload: "x", qos: 1, id: 7, dup: true})
	second := g.waitSubmitted(t, 2)[1]
	if first.Dup || !second.Dup || second.PacketID != 7 || second.ClientID != "hmi" {
		t.Errorf("first %+v, second %+v", first.Submission, second.Submission)
	}
	first.done(broker.Verdict{Reason: broker.Accepted}) // its connection is gone
	c2.ping()
	second.done(broker.Verdict{Reason: broker.Accepted})
	c2.want(packets.Puback)
}

// A17: a QoS 2 publish that is refused once is refused once, also when it is
// repeated on a new connection of the same session.
func TestA17_QoS2RefusalIsCountedOnceOverReconnects(t *testing.T) {
	g := deciding(broker.Verdict{Reason: broker.Invalid, Text: "not JSON"})
	b := serve(t, g)
	for i := range 3 {
		c := start(t, b.Addr("mqtt"), connect{id: "hmi", persistent: true})
		c.publish(pub{topic: taskTopic, payload: "[object Object]", qos: 2, id: 9, dup: i > 0})
		c.want(packets.Pubrec)
		_ = c.conn.Close()
	}
	c := start(t, b.Addr("mqtt"), connect{id: "hmi", persistent: true})
	c.ack(packets.Pubrel, 9)
	c.want(packets.Pubcomp)
	if n := len(g.submitted()); n != 1 {
		t.Errorf("%d submissions, want 1", n)
	}
	if n := b.Stats().Refusals[broker.Invalid]; n != 1 {
		t.Errorf("%d refusals counted, want 1", n)
	}
}

// The gateway sees all that a publish said.
func TestSubmissionCarriesWhatTheSenderSaid(t *testing.T) {
	g := accepting()
	b := serve(t, g)
	c := start(t, b.Addr("mqtt"), connect{id: "hmi-5", version: 5, user: "ops", pass: "secret"})
	c.publish(pub{topic: taskTopic, payload: "{}", qos: 1, id: 3, props: packets.Properties{
		ResponseTopic: "answers/hmi", CorrelationData: []byte{1, 2}, MessageExpiryInterval: 30, ContentType: "application/json",
		User: []packets.UserProperty{{Key: "a", Val: "b"}},
	}})
	if ack := c.want(packets.Puback); len(ack.Properties.User) != 0 {
		t.Errorf("receipt repeats user properties: %v", ack.Properties.User)
	}
	s := g.submitted()[0].Submission
	want := broker.Submission{Topic: taskTopic, ClientID: "hmi-5", Username: "ops", Listener: "mqtt", Remote: c.conn.LocalAddr().String(),
		Payload: []byte("{}"), QoS: 1, PacketID: 3, MQTT5: true, ResponseTopic: "answers/hmi", Correlation: []byte{1, 2},
		Expiry: 30e9, ContentType: "application/json"}
	if fmt.Sprintf("%+v", s) != fmt.Sprintf("%+v", want) {
		t.Errorf("submission\n%+v, want\n%+v", s, want)
	}
}

// B14: an MQTT 5 client that exceeds the announced receive maximum is told why;
// what it flooded in does not starve an agent.
func TestB14_ReceiveMaximumIsEnforcedWithAReason(t *testing.T) {
	g := new(gateway)
	b := serve(t, g, func(c *broker.Config) { c.Limits.Unacked = 5 })
	agent := start(t, b.Addr("mqtt"), connect{id: "agent/pump-1"})
	c := open(t, b.Addr("mqtt"), connect{id: "hmi", version: 5})
	if ack := c.want(packets.Connack); ack.Properties.ReceiveMaximum != 5 {
		t.Fatalf("announced receive maximum %d, want 5", ack.Properties.ReceiveMaximum)
	}
	for id := uint16(1); id <= 6; id++ {
		c.publish(pub{topic: taskTopic, qos: 1, id: id})
	}
	got := c.wantClosed()
	if len(got) != 1 || got[0].FixedHeader.Type != packets.Disconnect || got[0].ReasonCode != 0x93 || got[0].Properties.ReasonString == "" {
		t.Fatalf("before the close came %v, want a DISCONNECT 0x93 with a reason", got)
	}
	if n := len(g.submitted()); n != 5 {
		t.Errorf("%d submissions, want 5", n)
	}
	agent.publish(pub{topic: "apollo/default/evt/pump-1", payload: "e", qos: 1, id: 1})
	agent.want(packets.Puback)
}

// An MQTT 3.1.1 client has no receive maximum: it is slowed down, not lost.
func TestBackpressureHoldsASenderWithoutLosingAnything(t *testing.T) {
	const n = 200
	for _, limit := range []string{"count", "bytes"} {
		t.Run(limit, func(t *testing.T) {
			g := new(gateway)
			b := serve(t, g, func(c *broker.Config) {
				if limit == "count" {
					c.Limits.Unacked = 10
				} else {
					c.Limits.UnackedBytes = 4 << 10 // four of these payloads
				}
			})
			c := start(t, b.Addr("mqtt"), connect{id: "hmi"})
			for id := uint16(1); id <= n; id++ {
				c.publish(pub{topic: taskTopic, payload: fmt.Sprintf("%01000d", id), qos: 1, id: id})
			}
			for i := range n {
				s := g.waitSubmitted(t, i+1)
				if most := len(s) - i; most > 10 {
					t.Fatalf("%d wait at once, want at most 10", most)
				}
				s[i].done(broker.Verdict{Reason: broker.Accepted})
				if ack := c.want(packets.Puback); ack.PacketID != uint16(i+1) {
					t.Fatalf("receipt %s, want id %d", describe(ack), i+1)
				}
			}
		})
	}
}

// Two publishes under one packet id are a fault of the client, not one command.
func TestPacketIDInUseEndsTheConnection(t *testing.T) {
	g := new(gateway)
	b := serve(t, g)
	c := start(t, b.Addr("mqtt"), connect{id: "hmi", version: 5})
	c.publish(pub{topic: taskTopic, payload: "a", qos: 1, id: 7})
	c.publish(pub{topic: taskTopic, payload: "b", qos: 1, id: 7})
	got := c.wantClosed()
	if len(got) != 1 || got[0].FixedHeader.Type != packets.Disconnect || got[0].ReasonCode != 0x82 {
		t.Fatalf("before the close came %v, want a DISCONNECT 0x82", got)
	}
}

// A verdict given twice is a bug of the gateway that must not confuse a client.
func TestSecondVerdictIsIgnoredAndCounted(t *testing.T) {
	g := new(gateway)
	b := serve(t, g)
	c := start(t, b.Addr("mqtt"), connect{id: "hmi"})
	c.publish(pub{topic: taskTopic, payload: "a", qos: 1, id: 7})
	s := g.waitSubmitted(t, 1)[0]
	s.done(broker.Verdict{Reason: broker.Accepted})
	s.done(broker.Verdict{Reason: broker.Invalid})
	c.want(packets.Puback)
	c.ping()
	if n := b.Stats().DoubleDone; n != 1 {
		t.Errorf("%d double verdicts counted, want 1", n)
	}
}
