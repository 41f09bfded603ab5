package broker_test

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	"github.com/mochi-mqtt/server/v2/packets"

	"github.com/apollo-11/apollo11/broker"
)

// wsStream is a client's WebSocket as a stream; each write is cut into messages
// of a few bytes, which MQTT allows.
type wsStream struct {
	net.Conn
	ws  *websocket.Conn
	cut int
	r   io.Reader
}

func (w *wsStream) Read(p []byte) (int, error) {
	for {
		if w.r == nil {
			_, r, err := w.ws.NextReader()
			if err != nil {
				return 0, err
			}
			w.r = r
		}
		n, err := w.r.Read(p)
		if err == io.EOF {
			w.r, err = nil, nil
		}
		if n > 0 || err != nil {
			return n, err
		}
	}
}

func (w *wsStream) Write(p []byte) (int, error) {
	for rest := p; len(rest) > 0; {
		n := min(w.cut, len(rest))
		if err := w.ws.WriteMessage(websocket.BinaryMessage, rest[:n]); err != nil {
			return 0, err
		}
		rest = rest[n:]
	}
	return len(p), nil
}

func dialWS(t *testing.T, b *running, origin string) (*websocket.Conn, error) {
	t.Helper()
	header := http.Header{}
	if origin != "" {
		header.Set("Origin", origin)
	}
	d := websocket.Dialer{Subprotocols: []string{"mqtt"}, HandshakeTimeout: patience}
	ws, resp, err := d.Dial("ws://"+b.Addr("ws").String()+"/mqtt", header)
	if resp != nil && resp.Body != nil {
		_ = resp.Body.Close()
	}
	return ws, err
}

func onWS(c *broker.Config) { c.WebSocket = "127.0.0.1:0" }

// F3: WebSocket is the same door with the same guards.
func TestF3_WebSocketCarriesTheSameProtocol(t *testing.T) {
	for _, version := range []byte{4, 5} {
		for _, cut := range []int{3, 1 << 20} {
			t.Run(fmt.Sprintf("version %d messages of %d bytes", version, cut), func(t *testing.T) {
				g := accepting()
				b := serve(t, g, onWS)
				ws, err := dialWS(t, b, "")
				if err != nil {
					t.Fatal(err)
				}
				if ws.Subprotocol() != "mqtt" {
					t.Errorf("subprotocol %q", ws.Subprotocol())
				}
				c := attach(t, &wsStream{Conn: ws.NetConn(), ws: ws, cut: cut}, version)
				c.connect(connect{id: "page"})
				c.want(packets.Connack)
				c.subscribe(1, 0, "apollo/default/alarm")
				c.publish(pub{topic: taskTopic, payload: "x", qos: 1, id: 1})
				c.want(packets.Puback)
				if err := b.Publish("apollo/default/alarm", []byte("fire"), 0, false); err != nil {
					t.Fatal(err)
				}
				c.want(packets.Publish)
				if s := g.submitted(); len(s) != 1 || s[0].Listener != "ws" {
					t.Errorf("submissions %v", s)
				}
				b.stop()
				c.wantClosed()
			})
		}
	}
}

// A page of another host can not use its visitor's browser to command the site.
func TestWebSocketOriginIsChecked(t *testing.T) {
	b := serve(t, accepting(), onWS, func(c *broker.Config) { c.Origins = []string{"https://hmi.example"} })
	cases := map[string]bool{
		"":                         true,
		"http://127.0.0.1:8080":    true,
		"http://127.0.0.1":         true,
		"https://hmi.example":      true,
		"https://hmi.example:8443": false,
		"https://evil.example":     false,
		"null":                     false,
		"http://127.0.0.1.evil":    false,
	}
	for origin, ok := range cases {
		ws, err := dialWS(t, b, origin)
		if (err == nil) != ok {
			t.Errorf("origin %q: %v", origin, err)
		}
		if err == nil {
			_ = ws.Close()
		}
	}
}

// A text message is no MQTT; a plain HTTP request is answered and closed.
func TestWebSocketRefusesWhatIsNotMQTT(t *testing.T) {
	b := serve(t, accepting(), onWS)
	ws, err := dialWS(t, b, "")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = ws.Close() }()
	if err := ws.WriteMessage(websocket.TextMessage, []byte("hello")); err != nil {
		t.Fatal(err)
	}
	if err := ws.SetReadDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	if _, _, err := ws.ReadMessage(); err == nil {
		t.Error("a text message was accepted")
	}
	h := &http.Client{Timeout: patience}
	resp, err := h.Get("http://" + b.Addr("ws").String() + "/")
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	h.CloseIdleConnections()
	if resp.StatusCode != http.StatusBadRequest {
		t.Errorf("status %d", resp.StatusCode)
	}
}

// A WebSocket subscriber that stops reading is closed like any other.
func TestWebSocketStuckSubscriberIsClosed(t *testing.T) {
	b := serve(t, accepting(), onWS, func(c *broker.Config) { c.Limits.OperatorWriteBuffer = 64 << 10 })
	ws, err := dialWS(t, b, "")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = ws.Close() }()
	c := &client{t: t, conn: &wsStream{Conn: ws.NetConn(), ws: ws, cut: 1 << 20}, version: 4}
	c.connect(connect{id: "page"})
	pk := packets.Packet{FixedHeader: packets.FixedHeader{Type: packets.Subscribe, Qos: 1}, ProtocolVersion: 4, PacketID: 1,
		Filters: packets.Subscriptions{{Filter: "#"}}}
	c.encode(pk.SubscribeEncode)
	for i := 0; b.Stats().SlowClosed == 0; i++ {
		publishAll(t, b, 100, status, 4<<10, 0, false)
		if i > 1000 {
			t.Fatal("the stuck subscriber is never closed")
		}
	}
}
