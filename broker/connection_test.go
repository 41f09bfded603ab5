package broker_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net"
	"runtime"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/mochi-mqtt/server/v2/packets"

	"github.com/apollo-11/apollo11/broker"
)

// A connection that says nothing, or half a CONNECT, is closed in time.
func TestSilentConnectionIsClosed(t *testing.T) {
	b := serve(t, accepting(), func(c *broker.Config) {
		c.WebSocket = "127.0.0.1:0"
		c.Limits.ConnectTimeout = 50 * time.Millisecond
	})
	for _, listener := range []string{"mqtt", "ws", "narrowband"} {
		dial(t, b.Addr(listener), 4).wantClosed()
		half := dial(t, b.Addr(listener), 4)
		half.write([]byte{packets.Connect << 4, 20, 0, 4, 'M'})
		half.wantClosed()
	}
}

// Stopping does not wait for peers that say nothing, do not read or do not close.
func TestStopDoesNotHangOnSilentPeers(t *testing.T) {
	b := serve(t, new(gateway), func(c *broker.Config) { c.WebSocket = "127.0.0.1:0" })
	silent := []*client{dial(t, b.Addr("mqtt"), 4), dial(t, b.Addr("ws"), 4), dial(t, b.Addr("narrowband"), 4)}
	idle := start(t, b.Addr("mqtt"), connect{id: "hmi", version: 5})
	old := start(t, b.Addr("mqtt"), connect{id: "hmi-3"})
	waiting := start(t, b.Addr("mqtt"), connect{id: "hmi-4"})
	waiting.publish(pub{topic: taskTopic, payload: "x", qos: 1, id: 1}) // its verdict never comes
	deaf(t, b, 0)
	publishAll(t, b, 300, status, 1<<10, 0, false)
	b.stop()
	if got := idle.wantClosed(); len(got) != 1 || got[0].FixedHeader.Type != packets.Disconnect || got[0].ReasonCode != 0x8b {
		t.Errorf("MQTT 5 client got %v, want DISCONNECT 0x8b", got)
	}
	if got := old.wantClosed(); len(got) != 0 {
		t.Errorf("MQTT 3.1.1 client got %v, want nothing", got)
	}
	for _, c := range silent {
		c.wantClosed()
	}
	if err := b.Publish("apollo/default/alarm", nil, 0, false); err == nil {
		t.Error("publish after the end succeeds")
	}
}

// Run leaves no goroutine behind.
func TestRunLeavesNoGoroutineBehind(t *testing.T) {
	before := runtime.NumGoroutine()
	b := serve(t, accepting(), func(c *broker.Config) { c.WebSocket = "127.0.0.1:0" })
	for i := range 20 {
		c := start(t, b.Addr("mqtt"), connect{id: fmt.Sprint("hmi", i)})
		c.subscribe(1, 1, "#")
		if i%2 == 0 {
			_ = c.conn.Close()
		}
	}
	b.stop()
	eventually(t, "goroutines have ended", func() bool { return runtime.NumGoroutine() <= before+20 }) // readers of the test clients
}

// flaky fails some of its accepts as a system short of descriptors does.
type flaky struct {
	net.Listener
	failures *atomic.Int64
}

func (f flaky) Accept() (net.Conn, error) {
	if f.failures.Add(-1) >= 0 {
		return nil, syscall.EMFILE
	}
	return f.Listener.Accept()
}

// Errors of Accept are survived. (The protocol engine's own listener ends at
// the first one, silently.)
func TestAcceptErrorsAreSurvived(t *testing.T) {
	failures := new(atomic.Int64)
	failures.Store(15)
	b := serve(t, accepting(), func(c *broker.Config) {
		c.WebSocket = "127.0.0.1:0"
		c.Listen = func(network, address string) (net.Listener, error) {
			l, err := net.Listen(network, address)
			return flaky{l, failures}, err
		}
	})
	for _, listener := range []string{"mqtt", "narrowband"} {
		o := connect{id: "hmi"}
		if listener == "narrowband" {
			o.id = "nb/p00001"
		}
		start(t, b.Addr(listener), o).ping()
	}
	if n := b.Stats().AcceptErrors; n < 10 {
		t.Errorf("%d accept errors counted", n)
	}
}

// The number of sockets is bounded, and a closed one makes room.
func TestConnectionsAreBounded(t *testing.T) {
	b := serve(t, accepting(), func(c *broker.Config) { c.Limits.Connections = 3 })
	var cs []*client
	for i := range 3 {
		cs = append(cs, start(t, b.Addr("mqtt"), connect{id: fmt.Sprint("hmi", i)}))
	}
	dial(t, b.Addr("mqtt"), 4).wantClosed()
	if n := b.Stats().TurnedAway; n != 1 {
		t.Errorf("%d turned away, want 1", n)
	}
	_ = cs[0].conn.Close()
	eventually(t, "room", func() bool { return b.Stats().Operators == 2 })
	eventually(t, "another client is let in", func() bool {
		c := open(t, b.Addr("mqtt"), connect{id: "late"})
		select {
		case _, ok := <-c.in:
			return ok
		case <-time.After(patience):
			return false
		}
	})
}

// L2: keepalives of 10, 60 and 1200 s are fine, and so are silence and the
// longest one for an operator's script; an agent must have one.
func TestL2_Keepalive(t *testing.T) {
	cases := []struct {
		id        string
		version   byte
		keepalive uint16
		ok        bool
		server    uint16 // MQTT 5: the value the client is told, 0 is its own
	}{
		{"agent/a", 4, 10, true, 0}, {"agent/a", 4, 60, true, 0}, {"agent/a", 4, 1200, true, 0},
		{"agent/a", 4, 0, false, 0}, {"agent/a", 4, 1201, false, 0},
		{"agent/a", 5, 0, true, 1200}, {"agent/a", 5, 65535, true, 1200}, {"agent/a", 5, 10, true, 0},
		{"hmi", 4, 0, true, 0}, {"hmi", 4, 10, true, 0}, {"hmi", 4, 43691, true, 0}, {"hmi", 4, 65535, true, 0},
		{"hmi", 5, 0, true, 1200},
	}
	b := serve(t, accepting())
	for _, tc := range cases {
		t.Run(fmt.Sprintf("%s version %d keepalive %d", tc.id, tc.version, tc.keepalive), func(t *testing.T) {
			c := dial(t, b.Addr("mqtt"), tc.version)
			c.rawConnect(tc.id, tc.keepalive)
			ack := c.want(packets.Connack)
			if (ack.ReasonCode == 0) != tc.ok || ack.Properties.ServerKeepAlive != tc.server {
				t.Fatalf("got %s server keepalive %d", describe(ack), ack.Properties.ServerKeepAlive)
			}
			if tc.ok {
				c.ping()
			}
		})
	}
}

// rawConnect sends a CONNECT whose keepalive may be 0.
func (c *client) rawConnect(id string, keepalive uint16) {
	c.t.Helper()
	pk := packets.Packet{FixedHeader: packets.FixedHeader{Type: packets.Connect}, ProtocolVersion: c.version,
		Connect: packets.ConnectParams{ProtocolName: []byte("MQTT"), Clean: true, ClientIdentifier: id, Keepalive: keepalive}}
	c.encode(pk.ConnectEncode)
}

// L3: a peer whose packets no longer arrive is noticed after one and a half
// keepalives, its will is delivered and it is gone.
func TestL3_BlackHoleIsNoticedWithinTheKeepalive(t *testing.T) {
	g := accepting()
	b := serve(t, g)
	begin := time.Now()
	c := start(t, b.Addr("mqtt"), connect{id: "agent/pump-1", keepalive: 1,
		will: &packets.Packet{TopicName: "apollo/default/evt/pump-1", Payload: []byte("lost")}})
	c.wantClosed()
	if d := time.Since(begin); d < time.Second {
		t.Errorf("closed after %s, before the keepalive has passed", d)
	}
	eventually(t, "presence", func() bool { return len(g.present()) == 2 })
	if p := g.present()[1]; p.Connected || p.Cause != broker.Lost {
		t.Errorf("presence %+v", p)
	}
	if u := g.uplinked(); len(u) != 1 || string(u[0].Payload) != "lost" || !u[0].Will || u[0].Node != "pump-1" {
		t.Errorf("uplinks %+v", u)
	}
}

// Bytes that panic the protocol engine's decoder cost their sender the
// connection and leave nothing behind.
func TestHostileBytesCostOneConnection(t *testing.T) {
	g := accepting()
	b := serve(t, g)
	agent := start(t, b.Addr("mqtt"), connect{id: "agent/pump-1", version: 5})
	agent.write([]byte{packets.Subscribe<<4 | 2, 6, 0, 1, 0, 0, 1, 'a'}) // ends inside the filter
	agent.wantClosed()
	eventually(t, "presence", func() bool { return len(g.present()) == 2 })
	again := start(t, b.Addr("mqtt"), connect{id: "agent/pump-1", version: 5})
	again.subscribe(1, 0, "apollo/default/cmd/pump-1")
	if err := b.Publish("apollo/default/cmd/pump-1", []byte("x"), 0, false); err != nil {
		t.Fatal(err)
	}
	again.want(packets.Publish)
	if n := b.Stats().Panics; n != 1 {
		t.Errorf("%d panics counted, want 1", n)
	}
}

// Whatever comes instead of MQTT, the broker goes on.
func TestGarbageIsClosed(t *testing.T) {
	b := serve(t, accepting())
	for _, bytes := range []string{
		"GET / HTTP/1.1\r\n\r\n",
		"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", // TLS
		"\x30\x05\x00\x01aXX",                          // PUBLISH first
		"\x10\xff\xff\xff\xff\x7f",                     // a length of five bytes
		"\x10\xff\xff\x7f",                             // CONNECT of 2 MiB
		"\x10\x04\x00\x04MQ",
		"\x00\x00",
		"\xff\x00",
	} {
		c := dial(t, b.Addr("mqtt"), 4)
		c.write([]byte(bytes))
		_ = c.conn.(*net.TCPConn).CloseWrite()
		c.wantClosed()
	}
	start(t, b.Addr("mqtt"), connect{id: "hmi"}).ping()
}

// Refusals of CONNECT use the codes of the client's protocol version.
func TestL9_ConnectIsRefusedWithAReason(t *testing.T) {
	will := func(topic, payload string, retain bool) *packets.Packet {
		return &packets.Packet{TopicName: topic, Payload: []byte(payload), FixedHeader: packets.FixedHeader{Retain: retain}}
	}
	const evt = "apollo/default/evt/pump-1"
	cases := []struct {
		name   string
		o      connect
		v3, v5 byte
		text   string
	}{
		{"will of an operator", connect{id: "hmi", will: will("status/hmi", "gone", false)}, 5, 0x87, "only agents"},
		{"will as a command", connect{id: "hmi", will: will(taskTopic, "{}", false)}, 5, 0x87, "can not be a will"},
		{"will for another node", connect{id: "agent/pump-1", will: will("apollo/default/evt/pump-2", "x", false)}, 5, 0x87, evt},
		{"will on a command topic", connect{id: "agent/pump-1", will: will("apollo/default/cmd/pump-1", "x", false)}, 5, 0x87, evt},
		{"will with a wildcard", connect{id: "agent/pump-1", will: will("apollo/#", "x", false)}, 5, 0x87, evt},
		{"will on the system topic", connect{id: "agent/pump-1", will: will("$SYS/x", "x", false)}, 5, 0x87, evt},
		{"will without a topic", connect{id: "agent/pump-1", will: will("", "x", false)}, 5, 0x87, evt},
		{"empty will", connect{id: "agent/pump-1", will: will(evt, "", false)}, 5, 0x99, "0 bytes"},
		{"large will", connect{id: "agent/pump-1", will: will(evt, strings.Repeat("x", 5000), false)}, 5, 0x99, "5000 bytes"},
		{"retained will", connect{id: "agent/pump-1", will: will(evt, "x", true)}, 5, 0x9a, "retained"},
		{"the broker's own id", connect{id: "inline"}, 2, 0x85, "choose another"},
		{"control character in the id", connect{id: "hmi\n"}, 2, 0x85, "must not contain"},
		{"long id", connect{id: strings.Repeat("x", 300)}, 2, 0x85, "300 bytes"},
		{"no node", connect{id: "agent/"}, 2, 0x85, "node name"},
		{"bad node", connect{id: "agent/a/b"}, 2, 0x85, "node name"},
		{"bad short id", connect{id: "nb/p1"}, 2, 0x85, "listener"},
		{"narrowband id on the primary listener", connect{id: "nb/p00001"}, 2, 0x85, "narrowband listener"},
	}
	b := serve(t, accepting())
	for _, tc := range cases {
		for _, version := range []byte{4, 5} {
			t.Run(fmt.Sprintf("%s version %d", tc.name, version), func(t *testing.T) {
				tc.o.version = version
				c := open(t, b.Addr("mqtt"), tc.o)
				got := c.wantClosed()
				if len(got) != 1 || got[0].FixedHeader.Type != packets.Connack {
					t.Fatalf("got %v, want one CONNACK", got)
				}
				if want := map[byte]byte{4: tc.v3, 5: tc.v5}[version]; got[0].ReasonCode != want {
					t.Errorf("code %#x, want %#x", got[0].ReasonCode, want)
				}
				if version == 5 && !strings.Contains(got[0].Properties.ReasonString, tc.text) {
					t.Errorf("reason %q, want %q in it", got[0].Properties.ReasonString, tc.text)
				}
				if !b.log.contains("connect refused") {
					t.Error("the log lacks the refusal")
				}
			})
		}
	}
	c := open(t, b.Addr("narrowband"), connect{id: "agent/pump-1"})
	if ack := c.want(packets.Connack); ack.ReasonCode != 2 {
		t.Errorf("agent on the narrowband listener: %s", describe(ack))
	}
}

// What stock clients do is let in: an empty password, no client id, will of the agent.
func TestStockClientsAreLetIn(t *testing.T) {
	b := serve(t, accepting())
	for _, o := range []connect{
		{id: "sparkplug", user: "admin", passFlag: true},
		{id: ""},
		{id: "", version: 5},
		{id: "mqttjs_0a1b2c3d"},
		{id: "mosqsub|1234-host"},
		{id: "line 1/panel #2 +é"},
		{id: "agent/pump-1", will: &packets.Packet{TopicName: "apollo/default/evt/pump-1", Payload: []byte("x"),
			FixedHeader: packets.FixedHeader{Qos: 2}}},
	} {
		start(t, b.Addr("mqtt"), o).ping()
	}
	c := open(t, b.Addr("mqtt"), connect{version: 5, props: packets.Properties{RequestResponseInfo: 1}})
	ack := c.want(packets.Connack)
	if id := ack.Properties.AssignedClientID; id == "" || ack.Properties.ResponseInfo != "apollo/default/reply/"+id {
		t.Errorf("assigned id %q response information %q", id, ack.Properties.ResponseInfo)
	}
	if !ack.Properties.SharedSubAvailableFlag || ack.Properties.SharedSubAvailable != 0 {
		t.Error("shared subscriptions are not announced as unavailable")
	}
}

// B10: a topic that is no text ends the connection, and the log says why.
func TestB10_MalformedPacketIsNamedInTheLog(t *testing.T) {
	g := accepting()
	b := serve(t, g)
	c := start(t, b.Addr("mqtt"), connect{id: "agent/pump-1"})
	c.write([]byte{packets.Publish << 4, 4, 0, 2, 0xff, 0xfe})
	c.wantClosed()
	eventually(t, "presence", func() bool { return len(g.present()) == 2 })
	if p := g.present()[1]; p.Cause != broker.Refused {
		t.Errorf("presence %+v", p)
	}
	if !b.log.contains("malformed packet") {
		t.Error("the log does not name it")
	}
}

// Enhanced authentication is refused, not ignored.
func TestAuthenticationMethodsAreRefused(t *testing.T) {
	b := serve(t, accepting())
	c := open(t, b.Addr("mqtt"), connect{id: "hmi", version: 5, props: packets.Properties{AuthenticationMethod: "SCRAM-SHA-1"}})
	if ack := c.want(packets.Connack); ack.ReasonCode != 0x8c {
		t.Errorf("got %s, want code 0x8c", describe(ack))
	}
	c = start(t, b.Addr("mqtt"), connect{id: "hmi", version: 5})
	c.write([]byte{packets.Auth << 4, 2, 0x18, 0})
	if got := c.wantClosed(); len(got) != 1 || got[0].FixedHeader.Type != packets.Disconnect || got[0].ReasonCode != 0x82 {
		t.Errorf("got %v, want a DISCONNECT 0x82", got)
	}
}

// An MQTT version that is not spoken is refused with the code for that.
func TestOldProtocolVersionIsRefused(t *testing.T) {
	b := serve(t, accepting())
	c := dial(t, b.Addr("mqtt"), 4)
	var buf bytes.Buffer
	pk := packets.Packet{FixedHeader: packets.FixedHeader{Type: packets.Connect}, ProtocolVersion: 3,
		Connect: packets.ConnectParams{ProtocolName: []byte("MQIsdp"), Clean: true, ClientIdentifier: "old", Keepalive: 10}}
	if err := pk.ConnectEncode(&buf); err != nil {
		t.Fatal(err)
	}
	c.write(buf.Bytes())
	if got := c.wantClosed(); len(got) != 1 || got[0].ReasonCode != 1 {
		t.Errorf("got %v, want CONNACK 1", got)
	}
}

// A port in use is an error of Run that names it, and opens nothing.
func TestRunSaysWhichAddressIsTaken(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	b, err := broker.New(broker.Config{MQTT: "127.0.0.1:0", WebSocket: "127.0.0.1:0", Narrowband: l.Addr().String()},
		accepting(), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	if err := b.Run(context.Background()); err == nil || !strings.Contains(err.Error(), l.Addr().String()) {
		t.Errorf("Run: %v", err)
	}
}
