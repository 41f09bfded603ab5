package rig

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"time"
)

// Client is as much of an MQTT 3.1.1 client as the trials need. It does nothing
// by itself: no reconnect, no retransmission, no ping.
type Client struct {
	conn net.Conn
	r    *bufio.Reader
	next uint16
}

// MQTT packet types and flags of the first byte, and the limits of a client.
const (
	packetConnect   = 0x10
	packetConnack   = 0x20
	packetPublish   = 0x30
	packetPuback    = 0x40
	packetSubscribe = 0x82
	packetSuback    = 0x90
	flagQoS1        = 0x02

	maxPacket       = 1 << 20
	dialLimit       = 10 * time.Second
	clientKeepAlive = 600 // seconds: longer than a client of a trial is silent
)

// Dialer opens a connection to an address.
type Dialer func(ctx context.Context, addr string) (net.Conn, error)

// Loopback dials from where this process runs.
func Loopback(ctx context.Context, addr string) (net.Conn, error) {
	d := net.Dialer{Timeout: dialLimit}
	return d.DialContext(ctx, "tcp", addr)
}

// Connect opens a connection with a clean session.
func Connect(ctx context.Context, dial Dialer, addr, clientID string) (*Client, error) {
	conn, err := dial(ctx, addr)
	if err != nil {
		return nil, err
	}
	c := &Client{conn: conn, r: bufio.NewReader(conn)}
	body := append(mqttText("MQTT"), 4, 0x02, clientKeepAlive>>8, clientKeepAlive&0xff)
	first, ack := byte(0), []byte(nil)
	if err = c.send(packetConnect, append(body, mqttText(clientID)...)); err == nil {
		first, ack, err = c.read(Patience)
	}
	if err == nil && (first != packetConnack || len(ack) != 2 || ack[1] != 0) {
		err = fmt.Errorf("%s: the connection was answered with %#x % x", clientID, first, ack)
	}
	if err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

// Close ends the connection without a word.
func (c *Client) Close() { _ = c.conn.Close() }

func mqttText(s string) []byte {
	return append(binary.BigEndian.AppendUint16(nil, uint16(len(s))), s...)
}

func (c *Client) send(first byte, body []byte) error {
	packet := binary.AppendUvarint([]byte{first}, uint64(len(body))) // MQTT's length is the same varint
	if err := c.conn.SetWriteDeadline(time.Now().Add(Patience)); err != nil {
		return err
	}
	_, err := c.conn.Write(append(packet, body...))
	return err
}

func (c *Client) read(limit time.Duration) (first byte, body []byte, err error) {
	if err := c.conn.SetReadDeadline(time.Now().Add(limit)); err != nil {
		return 0, nil, err
	}
	if first, err = c.r.ReadByte(); err != nil {
		return 0, nil, err
	}
	n, err := binary.ReadUvarint(c.r)
	if err != nil {
		return 0, nil, err
	}
	if n > maxPacket {
		return 0, nil, fmt.Errorf("packet of %d bytes", n)
	}
	body = make([]byte, n)
	_, err = io.ReadFull(c.r, body)
	return first, body, err
}

// Submit sends tasks at QoS 1 at full speed and reads their receipts. It returns
// how many were acknowledged, which are the first ones. After an error the client
// is closed.
func (c *Client) Submit(topic string, payloads ...string) (acked int, err error) {
	first := c.next + 1
	sent := make(chan error, 1)
	go func() { sent <- c.sendAll(topic, payloads) }()
	for range payloads {
		var id uint16
		if id, err = c.receipt(); err != nil {
			break
		}
		if want := first + uint16(acked); id != want {
			err = fmt.Errorf("receipt of packet %d, want %d", id, want)
			break
		}
		acked++
	}
	if err != nil {
		c.Close() // ends the sender
	}
	return acked, errors.Join(err, <-sent)
}

func (c *Client) sendAll(topic string, payloads []string) error {
	for _, p := range payloads {
		if c.next++; c.next == 0 {
			return errors.New("the client is out of packet ids: connect anew")
		}
		body := binary.BigEndian.AppendUint16(mqttText(topic), c.next)
		if err := c.send(packetPublish|flagQoS1, append(body, p...)); err != nil {
			return err
		}
	}
	return nil
}

func (c *Client) receipt() (uint16, error) {
	for {
		first, body, err := c.read(Patience)
		if err != nil {
			return 0, err
		}
		if first&0xf0 == packetPuback && len(body) == 2 {
			return binary.BigEndian.Uint16(body), nil
		}
	}
}

// Subscribe subscribes at QoS 0 and waits for the answer.
func (c *Client) Subscribe(topic string) error {
	body := binary.BigEndian.AppendUint16(nil, 1)
	if err := c.send(packetSubscribe, append(append(body, mqttText(topic)...), 0)); err != nil {
		return err
	}
	for {
		first, body, err := c.read(Patience)
		if err != nil {
			return err
		}
		if first == packetSuback {
			if len(body) != 3 || body[2] > 2 {
				return fmt.Errorf("subscribe to %s: refused (% x)", topic, body)
			}
			return nil
		}
	}
}

// Publish publishes at QoS 0.
func (c *Client) Publish(topic string, payload []byte) error {
	return c.send(packetPublish, append(mqttText(topic), payload...))
}

// Next reads the next message, at most for limit.
func (c *Client) Next(limit time.Duration) (topic string, payload []byte, err error) {
	for {
		first, body, err := c.read(limit)
		if err != nil {
			return "", nil, err
		}
		if first&0xf0 != packetPublish || len(body) < 2 {
			continue
		}
		n := int(binary.BigEndian.Uint16(body)) + 2
		if n > len(body) {
			return "", nil, fmt.Errorf("publish cut short: % x", body)
		}
		topic, payload = string(body[2:n]), body[n:]
		if first&flagQoS1 != 0 && len(payload) >= 2 {
			payload = payload[2:] // the packet id
		}
		return topic, payload, nil
	}
}
