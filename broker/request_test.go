package broker_test

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/mochi-mqtt/server/v2/packets"

	"github.com/apollo-11/apollo11/broker"
)

// E17: libraries that make one temporary subscription for each request broke at
// one request a second. Ten seconds at 200 requests a second, in the three ways
// in which clients do it, leave nothing behind: no connection, no session, no
// goroutine, and memory that does not grow with the number of requests.
func TestE17_RequestsWithReplyTopicsLeaveNothingBehind(t *testing.T) {
	const n = 2000
	answering := func(s broker.Submission) (broker.Verdict, bool) {
		return broker.Verdict{Reason: broker.Accepted, Body: append([]byte("answer to "), s.Payload...)}, true
	}
	for _, way := range []struct {
		name  string
		n     int
		bytes int64 // per request: far less than what would be left behind
		play  func(t *testing.T, b *running, c *client, n int)
	}{
		{"one subscription for all", n, 200, func(_ *testing.T, _ *running, c *client, n int) {
			c.subscribe(1, 0, "apollo/default/reply/hmi/#")
			for k := range n {
				c.ask(k, "apollo/default/reply/hmi/all")
			}
		}},
		{"one subscription a request", n, 200, func(_ *testing.T, _ *running, c *client, n int) {
			for k := range n {
				topic := fmt.Sprintf("apollo/default/reply/hmi/%d", k)
				if codes := c.subscribe(id(k), 0, topic); codes[0] != 0 {
					c.t.Fatalf("request %d: subscription refused with %#x", k, codes[0])
				}
				c.ask(k, topic)
				c.unsubscribe(id(k), topic)
			}
		}},
		// The log that the test keeps has a few lines a connection.
		{"one connection a request", n / 10, 2000, func(t *testing.T, b *running, _ *client, n int) {
			for k := range n {
				t.Run("request", func(t *testing.T) { // whose end frees the test's own client
					name := fmt.Sprintf("script-%d", k)
					c := start(t, b.Addr("mqtt"), connect{id: name, version: 5})
					c.subscribe(1, 0, "apollo/default/reply/"+name)
					c.ask(k, "apollo/default/reply/"+name)
					c.disconnect()
					c.wantClosed()
				})
			}
		}},
	} {
		t.Run(way.name, func(t *testing.T) {
			b := serve(t, answerer(answering))
			c := start(t, b.Addr("mqtt"), connect{id: "hmi", version: 5})
			way.play(t, b, c, way.n/10) // pools and maps get their size
			alone(t, b)
			goroutines, heap := runtime.NumGoroutine(), heapInUse()
			way.play(t, b, c, way.n)
			alone(t, b)
			eventually(t, "goroutines of ended connections to end", func() bool { return runtime.NumGoroutine() <= goroutines })
			if grown := int64(heapInUse()) - int64(heap); grown > int64(way.n)*way.bytes {
				t.Errorf("%d requests left %d bytes", way.n, grown)
			}
			s := b.Stats()
			if want := uint64(way.n + way.n/10); s.Submissions != want || s.OutboundDropped != 0 || s.PendingReceipts != 0 {
				t.Errorf("%d requests, stats %+v", want, s)
			}
			c.ping()
		})
	}
}

// A client that forgets to unsubscribe is stopped by a limit, with a code that it
// can read, and disturbs nobody.
func TestE17_ForgottenSubscriptionsAreBounded(t *testing.T) {
	b := serve(t, accepting())
	c := start(t, b.Addr("mqtt"), connect{id: "hmi", version: 5})
	refused := 0
	for k := range 1000 {
		if codes := c.subscribe(id(k), 0, fmt.Sprintf("apollo/default/reply/hmi/%d", k)); codes[0] >= 0x80 {
			refused++
		}
	}
	if refused == 0 || refused == 1000 {
		t.Errorf("%d of 1000 subscriptions were refused", refused)
	}
	// Taking one back makes room for one.
	c.unsubscribe(1, "apollo/default/reply/hmi/0")
	if codes := c.subscribe(2, 0, "apollo/default/reply/hmi/again"); codes[0] >= 0x80 {
		t.Errorf("no room after an unsubscribe: %#x", codes[0])
	}
	start(t, b.Addr("mqtt"), connect{id: "other"}).subscribe(1, 1, "apollo/default/task/+/status")
}

// answerer is a gateway that keeps nothing of what it is given.
type answerer func(broker.Submission) (broker.Verdict, bool)

func (a answerer) Submit(s broker.Submission, done func(broker.Verdict)) {
	v, _ := a(s)
	done(v)
}
func (answerer) Uplink(broker.Uplink)     {}
func (answerer) Presence(broker.Presence) {}

// id is the packet id of the k-th exchange of a client that takes the next one
// each time.
func id(k int) uint16 { return uint16(k%65535) + 1 }

// ask sends a request and waits for its receipt and its answer, which come in
// either order.
func (c *client) ask(k int, topic string) {
	c.t.Helper()
	payload := fmt.Sprint(k)
	c.publish(pub{topic: taskTopic, payload: payload, qos: 1, id: id(k),
		props: packets.Properties{ResponseTopic: topic, CorrelationData: []byte(payload)}})
	var acked, answered bool
	for !acked || !answered {
		switch pk := c.next(); {
		case pk.FixedHeader.Type == packets.Puback && pk.PacketID == id(k) && !acked:
			acked = true
		case pk.FixedHeader.Type == packets.Publish && string(pk.Payload) == "answer to "+payload && pk.TopicName == topic && !answered:
			answered = true
		default:
			c.t.Fatalf("request %d: got %s", k, describe(pk))
		}
	}
}

func (c *client) unsubscribe(id uint16, filter string) {
	c.t.Helper()
	pk := packets.Packet{FixedHeader: packets.FixedHeader{Type: packets.Unsubscribe, Qos: 1}, ProtocolVersion: c.version,
		PacketID: id, Filters: packets.Subscriptions{{Filter: filter}}}
	c.encode(pk.UnsubscribeEncode)
	if ack := c.want(packets.Unsuback); ack.PacketID != id {
		c.t.Fatalf("UNSUBACK for packet id %d, want %d", ack.PacketID, id)
	}
}

// alone waits until one client is connected and no session is kept.
func alone(t *testing.T, b *running) {
	t.Helper()
	eventually(t, "connections to end", func() bool {
		s := b.Stats()
		return s.Operators == 1 && s.Sessions == 0
	})
}

// heapInUse is what is reachable now.
func heapInUse() uint64 {
	runtime.GC()
	runtime.GC() // what finalizers let go of
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
