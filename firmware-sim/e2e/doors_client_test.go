package e2e

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/mochi-mqtt/server/v2/packets"
)

const taskTopic = "apollo/default/task"

// mqttClient sends exactly the packets a test asks for, also those that client
// libraries refuse to send, and reads the reply topic of its client id.
type mqttClient struct {
	t       *testing.T
	id      string
	version byte // 4 or 5
	conn    net.Conn
	next    uint16
	acks    chan packets.Packet // receipts of publishes
	replies chan packets.Packet // what came on the reply topic
	done    chan struct{}       // closed when the connection has ended
}

// dialMQTT connects and subscribes to the client's reply topic.
func (s *site) dialMQTT(id string, version byte) *mqttClient {
	s.t.Helper()
	conn, err := net.Dial("tcp", s.mqtt)
	if err != nil {
		s.t.Fatal(err)
	}
	c := &mqttClient{t: s.t, id: id, version: version, conn: conn, acks: make(chan packets.Packet, 64),
		replies: make(chan packets.Packet, 64), done: make(chan struct{})}
	started := make(chan struct{}, 2)
	go c.read(started)
	s.t.Cleanup(func() {
		_ = conn.Close() // the gateway may have been faster
		for {
			select {
			case <-c.done:
				return
			case <-c.acks:
			case <-c.replies:
			}
		}
	})
	c.send((&packets.Packet{FixedHeader: packets.FixedHeader{Type: packets.Connect}, ProtocolVersion: version,
		Connect: packets.ConnectParams{ProtocolName: []byte("MQTT"), Clean: true, ClientIdentifier: id, Keepalive: 60}}).ConnectEncode)
	c.await(started, "CONNACK")
	c.send((&packets.Packet{FixedHeader: packets.FixedHeader{Type: packets.Subscribe, Qos: 1}, ProtocolVersion: version,
		PacketID: 1, Filters: packets.Subscriptions{{Filter: "apollo/default/reply/" + id, Qos: 1}}}).SubscribeEncode)
	c.await(started, "SUBACK")
	c.next = 1
	return c
}

func (c *mqttClient) await(ch <-chan struct{}, what string) {
	c.t.Helper()
	select {
	case <-ch:
	case <-c.done:
		c.t.Fatalf("%s: the gateway closed the connection before its %s", c.id, what)
	case <-time.After(slow):
		c.t.Fatalf("%s: no %s within %v", c.id, what, slow)
	}
}

func (c *mqttClient) send(encode func(*bytes.Buffer) error) {
	c.t.Helper()
	var b bytes.Buffer
	if err := encode(&b); err != nil {
		c.t.Fatalf("%s: encode: %v", c.id, err)
	}
	if _, err := c.conn.Write(b.Bytes()); err != nil {
		c.t.Fatalf("%s: write: %v", c.id, err)
	}
}

// read sorts what comes until the connection ends.
func (c *mqttClient) read(started chan<- struct{}) {
	defer close(c.done)
	r := bufio.NewReader(c.conn)
	for {
		pk, err := readPacket(r, c.version)
		if err != nil {
			return
		}
		switch pk.FixedHeader.Type {
		case packets.Connack, packets.Suback:
			started <- struct{}{}
		case packets.Publish:
			c.replies <- pk
			if pk.FixedHeader.Qos == 1 {
				var b bytes.Buffer
				ack := packets.Packet{FixedHeader: packets.FixedHeader{Type: packets.Puback}, ProtocolVersion: c.version, PacketID: pk.PacketID}
				if ack.PubackEncode(&b) == nil {
					_, _ = c.conn.Write(b.Bytes()) // an end shows at the next read
				}
			}
		case packets.Puback, packets.Pubrec, packets.Pubcomp, packets.Disconnect:
			c.acks <- pk
		}
	}
}

func readPacket(r *bufio.Reader, version byte) (packets.Packet, error) {
	pk := packets.Packet{ProtocolVersion: version}
	first, err := r.ReadByte()
	if err != nil {
		return pk, err
	}
	if err := pk.FixedHeader.Decode(first); err != nil {
		return pk, err
	}
	length, _, err := packets.DecodeLength(r)
	if err != nil {
		return pk, err
	}
	body := make([]byte, length)
	if _, err := io.ReadFull(r, body); err != nil {
		return pk, err
	}
	pk.FixedHeader.Remaining = length
	decode := map[byte]func([]byte) error{packets.Connack: pk.ConnackDecode, packets.Suback: pk.SubackDecode,
		packets.Publish: pk.PublishDecode, packets.Puback: pk.PubackDecode, packets.Pubrec: pk.PubrecDecode,
		packets.Pubcomp: pk.PubcompDecode, packets.Disconnect: pk.DisconnectDecode}
	if f := decode[pk.FixedHeader.Type]; f != nil {
		err = f(body)
	}
	return pk, err
}

// publish sends a payload and waits for its receipt, which QoS 0 does not have:
// then it returns at once. QoS 2 is followed to its end.
func (c *mqttClient) publish(topic, payload string, qos byte, retain bool) packets.Packet {
	c.t.Helper()
	c.next++
	c.offer(topic, payload, qos, retain, false)
	if qos == 0 {
		return packets.Packet{}
	}
	ack := c.ack()
	if want := map[byte]byte{1: packets.Puback, 2: packets.Pubrec}[qos]; ack.FixedHeader.Type != want || ack.PacketID != c.next {
		c.t.Fatalf("%s: %s for packet %d, want %s for %d", c.id, packets.PacketNames[ack.FixedHeader.Type], ack.PacketID,
			packets.PacketNames[want], c.next)
	}
	if qos == 2 && ack.ReasonCode < 0x80 {
		c.release()
	}
	return ack
}

// offer sends a PUBLISH with the present packet id.
func (c *mqttClient) offer(topic, payload string, qos byte, retain, dup bool) {
	c.t.Helper()
	pk := packets.Packet{FixedHeader: packets.FixedHeader{Type: packets.Publish, Qos: qos, Retain: retain, Dup: dup},
		ProtocolVersion: c.version, TopicName: topic, Payload: []byte(payload)}
	if qos > 0 {
		pk.PacketID = c.next
	}
	c.send(pk.PublishEncode)
}

// release ends a QoS 2 publish.
func (c *mqttClient) release() {
	c.t.Helper()
	c.send((&packets.Packet{FixedHeader: packets.FixedHeader{Type: packets.Pubrel, Qos: 1}, ProtocolVersion: c.version,
		PacketID: c.next}).PubrelEncode)
	if comp := c.ack(); comp.FixedHeader.Type != packets.Pubcomp || comp.PacketID != c.next {
		c.t.Fatalf("%s: %s, want PUBCOMP", c.id, packets.PacketNames[comp.FixedHeader.Type])
	}
}

func (c *mqttClient) ack() packets.Packet {
	c.t.Helper()
	select {
	case pk := <-c.acks:
		return pk
	case <-c.done:
		c.t.Fatalf("%s: the gateway closed the connection instead of a receipt", c.id)
	case <-time.After(slow):
		c.t.Fatalf("%s: no receipt within %v", c.id, slow)
	}
	return packets.Packet{}
}

// refusal is the answer to a bad submission, as every door gives it.
type refusal struct {
	OK     *bool  `json:"ok"` // MQTT only
	TaskID string `json:"task_id"`
	Error  struct {
		Code, Field, Hint string
		Line, Column      int
		Problem           string // MQTT
		Message           string // HTTP
	} `json:"error"`
}

// says is the sentence of the refusal.
func (r refusal) says() string { return r.Error.Problem + r.Error.Message + " " + r.Error.Hint }

// refusal waits for the next answer on the reply topic.
func (c *mqttClient) refusal() refusal {
	c.t.Helper()
	select {
	case pk := <-c.replies:
		var r refusal
		if err := json.Unmarshal(pk.Payload, &r); err != nil || r.OK == nil || *r.OK {
			c.t.Fatalf("%s: the reply is no refusal (%v): %s", c.id, err, pk.Payload)
		}
		return r
	case <-c.done:
		c.t.Fatalf("%s: the gateway closed the connection instead of a reply", c.id)
	case <-time.After(slow):
		c.t.Fatalf("%s: no reply within %v", c.id, slow)
	}
	return refusal{}
}

// quiet holds that no reply has come which nobody asked for. A good publish
// behind it proves that there was time.
func (c *mqttClient) quiet() {
	c.t.Helper()
	select {
	case pk := <-c.replies:
		c.t.Errorf("%s: a reply too many: %s", c.id, pk.Payload)
	default:
	}
}

// fetch reads a path of the HTTP API into v and returns the body.
func (s *site) fetch(path string, v any) string {
	s.t.Helper()
	resp, err := http.Get("http://" + s.http + path)
	if err != nil {
		s.t.Fatal(err)
	}
	status, body := readAll(s.t, resp)
	if status != http.StatusOK {
		s.t.Fatalf("GET %s: %d %s", path, status, body)
	}
	if v != nil {
		if err := json.Unmarshal([]byte(body), v); err != nil {
			s.t.Fatalf("GET %s: %v: %s", path, err, body)
		}
	}
	return body
}

// submit submits a document over HTTP.
func (s *site) submit(doc, contentType string, header map[string]string) (int, string) {
	s.t.Helper()
	req, err := http.NewRequest(http.MethodPost, "http://"+s.http+"/v1/tasks", strings.NewReader(doc))
	if err != nil {
		s.t.Fatal(err)
	}
	req.Header.Set("Content-Type", contentType)
	for k, v := range header {
		req.Header.Set(k, v)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		s.t.Fatal(err)
	}
	return readAll(s.t, resp)
}

func readAll(t *testing.T, resp *http.Response) (int, string) {
	t.Helper()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	if err := resp.Body.Close(); err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(body)
}
