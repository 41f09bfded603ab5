package e2e

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"time"
)

// rawClient is as much of an MQTT 3.1.1 client as a test needs that decides
// packet ids and DUP flags itself and trusts nothing but the PUBACK that it read.
type rawClient struct {
	conn net.Conn
	r    *bufio.Reader
	next uint16
}

// MQTT packet types, in the upper half of the first byte.
const (
	packetConnect = 0x10
	packetPublish = 0x30
	packetPuback  = 0x40
	flagRetain    = 0x01
	flagQoS1      = 0x02
	flagDup       = 0x08
)

// dial connects with a clean session.
func dial(addr, clientID string) (*rawClient, error) {
	conn, err := net.DialTimeout("tcp", addr, 10*time.Second)
	if err != nil {
		return nil, err
	}
	c := &rawClient{conn: conn, r: bufio.NewReader(conn)}
	body := append(mqttText("MQTT"), 4, 0x02, 0, 60)
	if err := c.send(packetConnect, append(body, mqttText(clientID)...)); err != nil {
		c.close()
		return nil, err
	}
	kind, ack, err := c.read()
	if err == nil && (kind != 0x20 || len(ack) != 2 || ack[1] != 0) {
		err = fmt.Errorf("connack %#x % x", kind, ack)
	}
	if err != nil {
		c.close()
		return nil, err
	}
	return c, nil
}

func (c *rawClient) close() { _ = c.conn.Close() }

func mqttText(s string) []byte {
	return append(binary.BigEndian.AppendUint16(nil, uint16(len(s))), s...)
}

func (c *rawClient) send(first byte, body []byte) error {
	packet := binary.AppendUvarint([]byte{first}, uint64(len(body))) // MQTT's length is the same varint
	if err := c.conn.SetWriteDeadline(time.Now().Add(slow)); err != nil {
		return err
	}
	_, err := c.conn.Write(append(packet, body...))
	return err
}

func (c *rawClient) read() (first byte, body []byte, err error) {
	if err := c.conn.SetReadDeadline(time.Now().Add(slow)); err != nil {
		return 0, nil, err
	}
	if first, err = c.r.ReadByte(); err != nil {
		return 0, nil, err
	}
	n, err := binary.ReadUvarint(c.r)
	if err != nil || n > 1<<20 {
		return 0, nil, errors.Join(err, fmt.Errorf("packet of %d bytes", n))
	}
	body = make([]byte, n)
	_, err = io.ReadFull(c.r, body)
	return first, body, err
}

// put sends a command at QoS 1 without waiting for its PUBACK.
func (c *rawClient) put(id uint16, flags byte, payload string) error {
	first := packetPublish | flagQoS1 | flags
	body := binary.BigEndian.AppendUint16(mqttText("apollo/default/task"), id)
	return c.send(first, append(body, payload...))
}

// ack reads the next PUBACK and returns its packet id.
func (c *rawClient) ack() (uint16, error) {
	for {
		first, body, err := c.read()
		if err != nil {
			return 0, err
		}
		if first&0xf0 == packetPuback && len(body) == 2 {
			return binary.BigEndian.Uint16(body), nil
		}
	}
}

// publish sends commands at full speed and then reads their acknowledgements. It
// returns how many were acknowledged, which are the first ones.
func (c *rawClient) publish(payloads ...string) (acked int, err error) {
	first := c.next + 1
	sent := make(chan error, 1)
	go func() {
		for _, p := range payloads {
			c.next++
			if err := c.put(c.next, 0, p); err != nil {
				sent <- err
				return
			}
		}
		sent <- nil
	}()
	for range payloads {
		var id uint16
		if id, err = c.ack(); err != nil {
			break
		}
		if want := first + uint16(acked); id != want {
			err = fmt.Errorf("puback of %d, want %d", id, want)
			break
		}
		acked++
	}
	if err != nil {
		c.close() // ends the sender
	}
	return acked, errors.Join(err, <-sent)
}

// subscribe subscribes to a topic at QoS 0 and waits for the answer.
func (c *rawClient) subscribe(topic string) error {
	body := binary.BigEndian.AppendUint16(nil, 1)
	if err := c.send(0x82, append(append(body, mqttText(topic)...), 0)); err != nil {
		return err
	}
	for {
		first, body, err := c.read()
		if err != nil {
			return err
		}
		if first == 0x90 {
			if len(body) != 3 || body[2] > 2 {
				return fmt.Errorf("suback % x", body)
			}
			return nil
		}
	}
}

// say publishes at QoS 0.
func (c *rawClient) say(topic string, payload []byte) error {
	return c.send(packetPublish, append(mqttText(topic), payload...))
}

// hear reads the next message.
func (c *rawClient) hear() (topic string, payload []byte, err error) {
	for {
		first, body, err := c.read()
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
