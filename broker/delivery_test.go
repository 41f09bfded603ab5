package broker_test

import (
	"bytes"
	"fmt"
	"net"
	"testing"
	"time"

	"github.com/mochi-mqtt/server/v2/packets"

	"github.com/apollo-11/apollo11/broker"
)

func status(i int) string { return fmt.Sprintf("apollo/default/task/t%d/status", i) }

// publishAll publishes n messages and returns the longest that one took.
func publishAll(t *testing.T, b *running, n int, topic func(int) string, size int, qos byte, retain bool) time.Duration {
	t.Helper()
	payload := bytes.Repeat([]byte("x"), size)
	var slowest time.Duration
	for i := range n {
		begin := time.Now()
		if err := b.Publish(topic(i), payload, qos, retain); err != nil {
			t.Fatal(err)
		}
		slowest = max(slowest, time.Since(begin))
	}
	return slowest
}

// deaf is a client that subscribes and then never reads again.
func deaf(t *testing.T, b *running, qos byte) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", b.Addr("mqtt").String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	if err := conn.(*net.TCPConn).SetReadBuffer(4 << 10); err != nil {
		t.Fatal(err)
	}
	var buf bytes.Buffer
	con := packets.Packet{FixedHeader: packets.FixedHeader{Type: packets.Connect}, ProtocolVersion: 4,
		Connect: packets.ConnectParams{ProtocolName: []byte("MQTT"), Clean: true, ClientIdentifier: "deaf", Keepalive: 600}}
	sub := packets.Packet{FixedHeader: packets.FixedHeader{Type: packets.Subscribe, Qos: 1}, ProtocolVersion: 4, PacketID: 1,
		Filters: packets.Subscriptions{{Filter: "#", Qos: qos}}}
	if err := con.ConnectEncode(&buf); err != nil {
		t.Fatal(err)
	}
	if err := sub.SubscribeEncode(&buf); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Write(buf.Bytes()); err != nil {
		t.Fatal(err)
	}
	answer := make([]byte, 4+5) // CONNACK and SUBACK
	for n := 0; n < len(answer); {
		m, err := conn.Read(answer[n:])
		if err != nil {
			t.Fatal(err)
		}
		n += m
	}
	return conn
}

// A subscriber that stops reading is closed; it stalls neither the gateway nor
// the other subscribers. (The protocol engine alone blocks every publisher.)
func TestStuckSubscriberDoesNotStallOthers(t *testing.T) {
	for _, qos := range []byte{0, 1} {
		t.Run(fmt.Sprintf("QoS %d", qos), func(t *testing.T) {
			b := serve(t, accepting(), func(c *broker.Config) { c.Limits.OperatorWriteBuffer = 64 << 10 })
			deaf(t, b, qos)
			agent := start(t, b.Addr("mqtt"), connect{id: "agent/pump-1"})
			agent.subscribe(1, 1, "apollo/default/cmd/pump-1")
			for i := 0; b.Stats().SlowClosed == 0; i++ {
				slowest := publishAll(t, b, 100, status, 4<<10, 1, false)
				if slowest > 5*time.Second {
					t.Fatalf("one publish took %s", slowest)
				}
				if i > 1000 {
					t.Fatal("the stuck subscriber is never closed")
				}
			}
			if err := b.Publish("apollo/default/cmd/pump-1", []byte("go"), 1, false); err != nil {
				t.Fatal(err)
			}
			agent.want(packets.Publish)
		})
	}
}

// A takeover of a stuck session is immediate too.
func TestTakeoverOfAStuckSessionIsImmediate(t *testing.T) {
	b := serve(t, accepting())
	deaf(t, b, 0)
	publishAll(t, b, 100, status, 4<<10, 0, false)
	c := start(t, b.Addr("mqtt"), connect{id: "deaf"})
	c.ping()
}

// A burst reaches a subscriber that reads, whole.
func TestBurstReachesAReadingSubscriberWhole(t *testing.T) {
	const n = 4000 // what the test's client takes in on its own
	b := serve(t, accepting())
	c := start(t, b.Addr("mqtt"), connect{id: "hmi"})
	c.subscribe(1, 0, "#")
	publishAll(t, b, n, status, 200, 1, false)
	for i := range n {
		if pk := c.want(packets.Publish); pk.TopicName != status(i) {
			t.Fatalf("message %d is %s", i, pk.TopicName)
		}
	}
	if s := b.Stats(); s.OutboundDropped != 0 || s.SlowClosed != 0 {
		t.Errorf("stats %+v", s)
	}
}

// Any number of retained messages fits through the bounded queues.
func TestRetainedReplayIsWhole(t *testing.T) {
	for _, qos := range []byte{0, 2} {
		t.Run(fmt.Sprintf("QoS %d", qos), func(t *testing.T) { testReplay(t, qos) })
	}
}

func testReplay(t *testing.T, qos byte) {
	const n = 1000
	b := serve(t, accepting(), func(c *broker.Config) {
		c.Limits.OperatorWriteBuffer = 64 << 10
		c.Limits.Outbound = 64
	})
	publishAll(t, b, n, status, 1<<10, 1, true)
	c := start(t, b.Addr("mqtt"), connect{id: "hmi"})
	pk := packets.Packet{FixedHeader: packets.FixedHeader{Type: packets.Subscribe, Qos: 1}, ProtocolVersion: 4, PacketID: 1,
		Filters: packets.Subscriptions{{Filter: "apollo/default/task/+/status", Qos: qos}}}
	c.encode(pk.SubscribeEncode)
	seen := map[string]bool{}
	for len(seen) < n {
		if pk := c.next(); pk.FixedHeader.Type == packets.Publish {
			if !pk.FixedHeader.Retain {
				t.Fatal("replayed without the retain flag")
			}
			seen[pk.TopicName] = true
		}
	}
	c.ping()
	if s := b.Stats(); s.OutboundDropped != 0 {
		t.Errorf("%d messages dropped", s.OutboundDropped)
	}
	// The gateway clears a topic with an empty retained message.
	for i := range n {
		if err := b.Publish(status(i), nil, 1, true); err != nil {
			t.Fatal(err)
		}
	}
	again := start(t, b.Addr("mqtt"), connect{id: "other"})
	again.subscribe(1, 0, "#")
	again.ping()
}

// B7: agents are granted QoS 0: nothing of theirs fills up in the broker when
// they do not acknowledge, and what they miss comes again from the log.
func TestB7_AgentIsGrantedQoS0AndNothingFillsUp(t *testing.T) {
	b := serve(t, accepting(), func(c *broker.Config) { c.Limits.Outbound = 16 })
	agent := start(t, b.Addr("mqtt"), connect{id: "agent/pump-1"})
	if got := agent.subscribe(1, 1, "apollo/default/cmd/pump-1"); got[0] != 0 {
		t.Fatalf("granted QoS %d, want 0", got[0])
	}
	for range 500 {
		if err := b.Publish("apollo/default/cmd/pump-1", []byte("x"), 1, false); err != nil {
			t.Fatal(err)
		}
		if pk := agent.want(packets.Publish); pk.FixedHeader.Qos != 0 {
			t.Fatalf("delivered with QoS %d", pk.FixedHeader.Qos)
		}
	}
}

// An operator that acknowledges nothing is disconnected before the protocol
// engine begins to drop silently.
func TestInflightOverflowDisconnectsAndIsCounted(t *testing.T) {
	b := serve(t, accepting(), func(c *broker.Config) {
		c.Limits.Outbound = 64
		c.Limits.AckStall = 10 * time.Millisecond
	})
	c := start(t, b.Addr("mqtt"), connect{id: "hmi", version: 5})
	c.subscribe(1, 1, "#")
	publishAll(t, b, 100, status, 10, 1, false)
	got := c.wantClosed()
	last := got[len(got)-1]
	if last.FixedHeader.Type != packets.Disconnect || last.ReasonCode != 0x97 {
		t.Errorf("the last packet is %s, want a DISCONNECT 0x97", describe(last))
	}
	s := b.Stats()
	if s.OutboundDropped == 0 {
		t.Error("nothing counted as dropped")
	}
	eventually(t, "the close is counted", func() bool { return b.Stats().SlowClosed == 1 })
}

// A client's own packet ids have nothing to do with those of deliveries to it.
func TestSharedPacketIDsDoNotCollide(t *testing.T) {
	g := accepting()
	b := serve(t, g)
	c := start(t, b.Addr("mqtt"), connect{id: "hmi", persistent: true})
	c.subscribe(1, 1, "apollo/default/alarm")
	if err := b.Publish("apollo/default/alarm", []byte("fire"), 1, false); err != nil {
		t.Fatal(err)
	}
	if pk := c.want(packets.Publish); pk.PacketID != 1 {
		t.Fatalf("delivery has packet id %d, want 1", pk.PacketID)
	}
	// Not acknowledged; now the client uses id 1 for everything.
	c.publish(pub{topic: taskTopic, payload: "x", qos: 1, id: 1})
	c.want(packets.Puback)
	c.publish(pub{topic: taskTopic, payload: "y", qos: 2, id: 1})
	c.want(packets.Pubrec)
	c.ack(packets.Pubrel, 1)
	c.want(packets.Pubcomp)
	if got := c.subscribe(1, 1, "apollo/default/task/+/status"); got[0] != 1 {
		t.Fatalf("subscribe refused: %#x", got[0])
	}
	unsub := packets.Packet{FixedHeader: packets.FixedHeader{Type: packets.Unsubscribe, Qos: 1}, ProtocolVersion: 4, PacketID: 1,
		Filters: packets.Subscriptions{{Filter: "apollo/default/task/+/status"}}}
	c.encode(unsub.UnsubscribeEncode)
	if ack := c.want(packets.Unsuback); ack.PacketID != 1 {
		t.Fatalf("got %s", describe(ack))
	}
	// The delivery is still owed.
	_ = c.conn.Close()
	c = start(t, b.Addr("mqtt"), connect{id: "hmi", persistent: true})
	if pk := c.want(packets.Publish); pk.PacketID != 1 || !pk.FixedHeader.Dup || string(pk.Payload) != "fire" {
		t.Fatalf("redelivery is %s", describe(pk))
	}
	c.ack(packets.Puback, 1)
	c.ping()
}

// B4: what was acknowledged is not sent again, and nothing stays behind.
func TestB4_DeliveryIsOwedUntilAcknowledged(t *testing.T) {
	b := serve(t, accepting())
	c := start(t, b.Addr("mqtt"), connect{id: "hmi", persistent: true})
	c.subscribe(1, 2, "#")
	for i := range 3 {
		if err := b.Publish("apollo/default/alarm", fmt.Append(nil, i), 2, false); err != nil {
			t.Fatal(err)
		}
	}
	for released := 0; released < 3; {
		switch pk := c.next(); pk.FixedHeader.Type {
		case packets.Publish:
			c.ack(packets.Pubrec, pk.PacketID)
		case packets.Pubrel:
			c.ack(packets.Pubcomp, pk.PacketID)
			released++
		}
	}
	c.ping()
	c.disconnect()
	c.wantClosed()
	c = start(t, b.Addr("mqtt"), connect{id: "hmi", persistent: true})
	c.ping()
}

// B11: an operator's session keeps what came while it was away, in order.
func TestB11_SessionKeepsOrderWhileAway(t *testing.T) {
	const n = 200
	for _, version := range []byte{4, 5} {
		b := serve(t, accepting())
		o := connect{id: "hmi", version: version, persistent: true, keepalive: 30}
		if version == 5 {
			o.props = packets.Properties{SessionExpiryInterval: 300, SessionExpiryIntervalFlag: true}
		}
		c := start(t, b.Addr("mqtt"), o)
		c.subscribe(1, 1, "#")
		_ = c.conn.Close()
		eventually(t, "session is kept", func() bool { return b.Stats().Sessions == 1 })
		publishAll(t, b, n, status, 10, 1, false)
		c = open(t, b.Addr("mqtt"), o)
		if ack := c.want(packets.Connack); !ack.SessionPresent {
			t.Fatal("no session present")
		}
		for i := range n {
			pk := c.want(packets.Publish)
			if pk.TopicName != status(i) || !pk.FixedHeader.Dup {
				t.Fatalf("version %d: message %d is %s", version, i, describe(pk))
			}
			c.ack(packets.Puback, pk.PacketID)
		}
	}
}

// A session that has ended leaves no subscriptions behind.
func TestEndedSessionLeavesNoGhostSubscription(t *testing.T) {
	b := serve(t, accepting(), func(c *broker.Config) { c.Limits.SessionExpiry = 10 * time.Millisecond })
	c := start(t, b.Addr("mqtt"), connect{id: "hmi", persistent: true})
	c.subscribe(1, 1, "#")
	c.disconnect()
	eventually(t, "session is kept", func() bool { return b.Stats().Operators == 0 })
	eventually(t, "session has ended", func() bool { return b.Stats().Sessions == 0 })
	c = open(t, b.Addr("mqtt"), connect{id: "hmi", persistent: true})
	if ack := c.want(packets.Connack); ack.SessionPresent {
		t.Fatal("session is still present")
	}
	publishAll(t, b, 10, status, 10, 1, false)
	c.ping()
}

// A client that takes few unacknowledged messages stops neither its own
// deliveries nor anybody else's.
func TestReceiveMaximumOfASubscriberNeverStopsDeliveries(t *testing.T) {
	const n = 2000
	for _, most := range []uint16{1, 200, 8000, 65535} {
		t.Run(fmt.Sprint(most), func(t *testing.T) {
			b := serve(t, accepting())
			c := start(t, b.Addr("mqtt"), connect{id: "hmi", version: 5, props: packets.Properties{ReceiveMaximum: most}})
			granted := c.subscribe(1, 1, "#")[0]
			if want := byte(1); most < 1024 {
				want = 0
				if granted != want {
					t.Fatalf("granted QoS %d, want %d", granted, want)
				}
			}
			for i := range n / 100 {
				publishAll(t, b, 100, func(int) string { return status(i) }, 20, 1, false)
				for range 100 {
					pk := c.want(packets.Publish)
					if pk.FixedHeader.Qos > 0 {
						c.ack(packets.Puback, pk.PacketID)
					}
				}
				c.ping() // the acknowledgements have arrived
			}
		})
	}
}

// A burst longer than the window of unacknowledged messages reaches a client
// that acknowledges, whole and in order.
func TestBurstBeyondTheWindowWaitsForAcknowledgements(t *testing.T) {
	const n = 1000
	b := serve(t, accepting(), func(c *broker.Config) {
		c.Limits.Outbound = 64
		c.Limits.AckStall = patience
	})
	c := start(t, b.Addr("mqtt"), connect{id: "hmi"})
	c.subscribe(1, 1, "#")
	done := make(chan error, 1)
	go func() {
		for i := range n {
			if err := b.Publish(status(i), []byte("x"), 1, false); err != nil {
				done <- err
				return
			}
		}
		done <- nil
	}()
	for i := range n {
		pk := c.want(packets.Publish)
		if pk.TopicName != status(i) {
			t.Fatalf("message %d is %s", i, pk.TopicName)
		}
		c.ack(packets.Puback, pk.PacketID)
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if s := b.Stats(); s.OutboundDropped != 0 || s.SlowClosed != 0 {
		t.Errorf("stats %+v", s)
	}
}

// B8: a session that overflows while its client is away is ended, so that the
// client subscribes again and finds the present status, not an old one.
func TestB8_SessionThatOverflowsWhileAwayIsEnded(t *testing.T) {
	b := serve(t, accepting(), func(c *broker.Config) { c.Limits.Outbound = 64 })
	c := start(t, b.Addr("mqtt"), connect{id: "hmi", persistent: true})
	c.subscribe(1, 1, "#")
	_ = c.conn.Close()
	eventually(t, "session is kept", func() bool { return b.Stats().Sessions == 1 })
	publishAll(t, b, 100, status, 10, 1, true)
	eventually(t, "session has ended", func() bool { return b.Stats().Sessions == 0 })
	c = open(t, b.Addr("mqtt"), connect{id: "hmi", persistent: true})
	if ack := c.want(packets.Connack); ack.SessionPresent {
		t.Fatal("session is still present")
	}
	c.subscribe(1, 1, status(99))
	c.want(packets.Publish)
}
