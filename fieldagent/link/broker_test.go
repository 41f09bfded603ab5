package link_test

import (
	"context"
	"errors"
	"net"
	"sync"

	"github.com/eclipse/paho.mqtt.golang/packets"
)

// broker is a broker in memory that can misbehave. The zero value behaves.
type broker struct {
	mu        sync.Mutex
	down      bool // refuses connections
	silent    bool // accepts, reads, and never answers
	deaf      bool // stops reading after the subscription, until hold is closed
	hold      chan struct{}
	refuseSub bool
	greet     [][]byte // payloads sent after the subscription

	conns     []net.Conn
	connects  []*packets.ConnectPacket
	subs      []string
	published []string
	goodbyes  int // DISCONNECT packets
	pings     int
	wg        sync.WaitGroup
}

func (b *broker) set(f func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	f()
}

// dial is what a link dials with.
func (b *broker) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.down {
		return nil, errors.New("connection refused")
	}
	near, far := net.Pipe()
	b.conns = append(b.conns, far)
	b.wg.Go(func() { b.serve(far) })
	return near, ctx.Err()
}

// cut ends all connections.
func (b *broker) cut() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, c := range b.conns {
		_ = c.Close()
	}
	b.conns = nil
}

// say sends a message on the connection that is up.
func (b *broker) say(payload []byte) {
	b.mu.Lock()
	c := b.conns[len(b.conns)-1]
	topic := b.subs[len(b.subs)-1]
	b.mu.Unlock()
	m := packets.NewControlPacket(packets.Publish).(*packets.PublishPacket)
	m.TopicName, m.Payload = topic, payload
	_ = m.Write(c) // a connection that is gone takes nothing
}

func (b *broker) serve(c net.Conn) {
	defer func() { _ = c.Close() }()
	for {
		p, err := packets.ReadPacket(c)
		if err != nil {
			return
		}
		for _, answer := range b.take(p) {
			if answer.Write(c) != nil {
				return
			}
		}
		if _, ok := p.(*packets.SubscribePacket); ok && b.isDeaf() {
			<-b.hold
			return
		}
	}
}

func (b *broker) isDeaf() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.deaf
}

// take notes a packet and returns the answers.
func (b *broker) take(p packets.ControlPacket) (answers []packets.ControlPacket) {
	b.mu.Lock()
	defer b.mu.Unlock()
	add := func(kind byte) packets.ControlPacket {
		a := packets.NewControlPacket(kind)
		if !b.silent {
			answers = append(answers, a)
		}
		return a
	}
	switch p := p.(type) {
	case *packets.ConnectPacket:
		b.connects = append(b.connects, p)
		add(packets.Connack)
	case *packets.SubscribePacket:
		b.subs = append(b.subs, p.Topics...)
		s := add(packets.Suback).(*packets.SubackPacket)
		s.MessageID, s.ReturnCodes = p.MessageID, []byte{0}
		if b.refuseSub {
			s.ReturnCodes[0] = 0x80
		}
		for _, g := range b.greet {
			m := add(packets.Publish).(*packets.PublishPacket)
			m.TopicName, m.Payload = p.Topics[0], g
		}
	case *packets.PublishPacket:
		b.published = append(b.published, string(p.Payload))
	case *packets.PingreqPacket:
		b.pings++
		add(packets.Pingresp)
	case *packets.DisconnectPacket:
		b.goodbyes++
	}
	return answers
}
