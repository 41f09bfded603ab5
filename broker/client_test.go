package broker_test

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"testing"
	"time"

	"github.com/mochi-mqtt/server/v2/packets"
)

// patience is how long a test waits for what must happen. It is not a measure
// of speed: the machine may be busy.
const patience = 20 * time.Second

// client is an MQTT client that sends exactly the packets that a test asks for.
type client struct {
	t       testing.TB
	conn    net.Conn
	version byte
	in      chan packets.Packet // closed when the broker has closed the connection
}

type connect struct {
	id         string
	version    byte // default 4
	keepalive  uint16
	persistent bool
	user, pass string
	passFlag   bool // send an empty password
	will       *packets.Packet
	props      packets.Properties
}

// dial opens a connection without saying anything on it.
func dial(t testing.TB, addr net.Addr, version byte) *client {
	t.Helper()
	conn, err := net.Dial("tcp", addr.String())
	if err != nil {
		t.Fatal(err)
	}
	return attach(t, conn, version)
}

// attach makes a client of a connection and reads from it.
func attach(t testing.TB, conn net.Conn, version byte) *client {
	c := &client{t: t, conn: conn, version: version, in: make(chan packets.Packet, 4096)}
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer close(c.in)
		r := bufio.NewReader(conn)
		for {
			pk, err := readPacket(r, version)
			if err != nil {
				return
			}
			c.in <- pk
		}
	}()
	t.Cleanup(func() {
		_ = conn.Close()
		for range c.in {
		}
		<-done
	})
	return c
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
	if pk.FixedHeader.Remaining, _, err = packets.DecodeLength(r); err != nil {
		return pk, err
	}
	body := make([]byte, pk.FixedHeader.Remaining)
	if _, err := io.ReadFull(r, body); err != nil {
		return pk, err
	}
	switch pk.FixedHeader.Type {
	case packets.Connack:
		err = pk.ConnackDecode(body)
	case packets.Publish:
		err = pk.PublishDecode(body)
	case packets.Puback:
		err = pk.PubackDecode(body)
	case packets.Pubrec:
		err = pk.PubrecDecode(body)
	case packets.Pubrel:
		err = pk.PubrelDecode(body)
	case packets.Pubcomp:
		err = pk.PubcompDecode(body)
	case packets.Suback:
		err = pk.SubackDecode(body)
	case packets.Unsuback:
		err = pk.UnsubackDecode(body)
	case packets.Disconnect:
		err = pk.DisconnectDecode(body)
	}
	return pk, err
}

// start connects and wants to be let in.
func start(t testing.TB, addr net.Addr, o connect) *client {
	t.Helper()
	c := open(t, addr, o)
	if ack := c.want(packets.Connack); ack.ReasonCode != 0 {
		t.Fatalf("connect as %q refused: %#x %s", o.id, ack.ReasonCode, ack.Properties.ReasonString)
	}
	return c
}

// open connects and leaves the answer to the test.
func open(t testing.TB, addr net.Addr, o connect) *client {
	t.Helper()
	if o.version == 0 {
		o.version = 4
	}
	c := dial(t, addr, o.version)
	c.connect(o)
	return c
}

func (c *client) connect(o connect) {
	c.t.Helper()
	if o.keepalive == 0 {
		o.keepalive = 60
	}
	pk := packets.Packet{
		FixedHeader:     packets.FixedHeader{Type: packets.Connect},
		ProtocolVersion: c.version,
		Properties:      o.props,
		Connect: packets.ConnectParams{
			ProtocolName:     []byte("MQTT"),
			Clean:            !o.persistent,
			ClientIdentifier: o.id,
			Keepalive:        o.keepalive,
			UsernameFlag:     o.user != "",
			Username:         []byte(o.user),
			PasswordFlag:     o.pass != "" || o.passFlag,
			Password:         []byte(o.pass),
		},
	}
	if o.will != nil {
		pk.Connect.WillFlag = true
		pk.Connect.WillTopic, pk.Connect.WillPayload = o.will.TopicName, o.will.Payload
		pk.Connect.WillQos, pk.Connect.WillRetain = o.will.FixedHeader.Qos, o.will.FixedHeader.Retain
	}
	c.encode(pk.ConnectEncode)
}

func (c *client) encode(f func(*bytes.Buffer) error) {
	c.t.Helper()
	var buf bytes.Buffer
	if err := f(&buf); err != nil {
		c.t.Fatal(err)
	}
	c.write(buf.Bytes())
}

func (c *client) write(b []byte) {
	c.t.Helper()
	if err := c.conn.SetWriteDeadline(time.Now().Add(patience)); err != nil {
		c.t.Fatal(err)
	}
	if _, err := c.conn.Write(b); err != nil {
		c.t.Logf("write: %v", err) // the broker may have closed it; the test sees that by what comes
	}
}

type pub struct {
	topic   string
	payload string
	qos     byte
	id      uint16
	dup     bool
	retain  bool
	props   packets.Properties
}

func (c *client) publish(p pub) {
	c.t.Helper()
	pk := packets.Packet{
		FixedHeader:     packets.FixedHeader{Type: packets.Publish, Qos: p.qos, Dup: p.dup, Retain: p.retain},
		ProtocolVersion: c.version,
		TopicName:       p.topic,
		Payload:         []byte(p.payload),
		PacketID:        p.id,
		Properties:      p.props,
		Mods:            packets.Mods{AllowResponseInfo: true},
	}
	c.encode(pk.PublishEncode)
}

// subscribe returns the granted codes.
func (c *client) subscribe(id uint16, qos byte, filters ...string) []byte {
	c.t.Helper()
	pk := packets.Packet{
		FixedHeader:     packets.FixedHeader{Type: packets.Subscribe, Qos: 1},
		ProtocolVersion: c.version,
		PacketID:        id,
	}
	for _, f := range filters {
		pk.Filters = append(pk.Filters, packets.Subscription{Filter: f, Qos: qos})
	}
	c.encode(pk.SubscribeEncode)
	for {
		ack := c.next()
		if ack.FixedHeader.Type == packets.Suback {
			if ack.PacketID != id {
				c.t.Fatalf("SUBACK for packet id %d, want %d", ack.PacketID, id)
			}
			return ack.ReasonCodes
		}
	}
}

func (c *client) ack(kind byte, id uint16) {
	c.t.Helper()
	flags := byte(0)
	if kind == packets.Pubrel {
		flags = 2
	}
	c.write(binary.BigEndian.AppendUint16([]byte{kind<<4 | flags, 2}, id))
}

func (c *client) disconnect() {
	c.t.Helper()
	c.write([]byte{packets.Disconnect << 4, 0})
}

// next returns the next packet from the broker.
func (c *client) next() packets.Packet {
	c.t.Helper()
	select {
	case pk, ok := <-c.in:
		if !ok {
			c.t.Fatal("connection closed by the broker")
		}
		return pk
	case <-time.After(patience):
		c.t.Fatal("nothing came from the broker")
	}
	panic("unreachable")
}

// want returns the next packet and fails if it is of another type.
func (c *client) want(kind byte) packets.Packet {
	c.t.Helper()
	pk := c.next()
	if pk.FixedHeader.Type != kind {
		c.t.Fatalf("got %s, want %s", describe(pk), packets.PacketNames[kind])
	}
	return pk
}

func describe(pk packets.Packet) string {
	return fmt.Sprintf("%s id=%d code=%#x topic=%q payload=%q reason=%q", packets.PacketNames[pk.FixedHeader.Type],
		pk.PacketID, pk.ReasonCode, pk.TopicName, pk.Payload, pk.Properties.ReasonString)
}

// ping proves that the broker has handled everything sent before, and fails if
// anything came in between.
func (c *client) ping() {
	c.t.Helper()
	c.write([]byte{packets.Pingreq << 4, 0})
	c.want(packets.Pingresp)
}

// wantClosed waits until the broker has closed the connection and returns what
// came before.
func (c *client) wantClosed() []packets.Packet {
	c.t.Helper()
	var got []packets.Packet
	for deadline := time.After(patience); ; {
		select {
		case pk, ok := <-c.in:
			if !ok {
				return got
			}
			got = append(got, pk)
		case <-deadline:
			c.t.Fatal("connection is still open")
		}
	}
}
