package broker

import (
	"fmt"
	"strings"
	"time"

	"github.com/mochi-mqtt/server/v2/packets"
)

// nothing is a packet that Mochi processes without any effect: a PUBACK of a
// packet id that can not be in use. It replaces packets handled by us.
func nothing() packets.Packet {
	return packets.Packet{FixedHeader: packets.FixedHeader{Type: packets.Puback}}
}

// publish handles an inbound PUBLISH from beginning to end. Mochi gets to see
// it only when it is malformed in a way that ends the connection.
func (b *Broker) publish(p *peer, pk packets.Packet) (packets.Packet, error) {
	size, cut := p.conn.frames.oversize(p.conn.packets)
	if p.mute.Load() {
		return nothing(), nil // not taken, not acknowledged
	}
	qos, props := pk.FixedHeader.Qos, pk.Properties
	if qos > 0 && pk.PacketID == 0 || props.TopicAliasFlag || len(props.SubscriptionIdentifier) > 0 {
		p.conn.blame(Refused)
		return pk, nil
	}
	rc, standing := p.receipts.begin(qos, pk.PacketID, pk.FixedHeader.Dup, len(pk.Payload), p.conn.closing)
	switch standing {
	case absorbed:
		b.stats.duplicates.Add(1)
		return nothing(), nil
	case received:
		b.stats.duplicates.Add(1)
		p.send(p.receipts.form.encode(packets.Pubrec, pk.PacketID, Accepted, ""))
		return nothing(), nil
	case clash:
		text := fmt.Sprintf("packet id %d is in use by another publish", pk.PacketID)
		return pk, b.expel(p, packets.ErrProtocolViolation, text)
	case flood:
		text := fmt.Sprintf("more than %d publishes are not yet acknowledged", b.limits.Unacked)
		return pk, b.expel(p, packets.ErrReceiveMaximum, text)
	}
	a := answer{topic: pk.TopicName, packetID: pk.PacketID}
	if p.rights.mayRespond(props.ResponseTopic) {
		a.response, a.correlation = props.ResponseTopic, props.CorrelationData
	}
	b.stats.pending.Add(1)
	if v, refused := b.check(p, &pk, size, cut); refused {
		b.settle(p, rc, a, v)
		return nothing(), nil
	}
	if p.rights.role != Operator {
		b.stats.uplinks.Add(1)
		b.handler.Uplink(p.uplink(pk.Payload, false))
		b.settle(p, rc, a, Verdict{Reason: Accepted})
		return nothing(), nil
	}
	b.stats.submissions.Add(1)
	b.handler.Submit(Submission{
		Topic:         pk.TopicName,
		ClientID:      p.clientID,
		Username:      p.username,
		Listener:      p.conn.listener,
		Remote:        p.conn.RemoteAddr().String(),
		Payload:       pk.Payload,
		QoS:           qos,
		Dup:           pk.FixedHeader.Dup,
		PacketID:      pk.PacketID,
		MQTT5:         p.version == 5,
		ResponseTopic: a.response,
		Correlation:   a.correlation,
		Expiry:        time.Duration(props.MessageExpiryInterval) * time.Second,
		ContentType:   props.ContentType,
	}, func(v Verdict) { b.settle(p, rc, a, v) })
	return nothing(), nil
}

// expel ends the connection of a client that breaks the protocol.
func (b *Broker) expel(p *peer, code packets.Code, text string) error {
	p.audit.warn("client disconnected", "client", short(p.clientID), "user", short(p.username),
		"remote", p.conn.RemoteAddr().String(), "reason", text)
	p.disconnect(code, text, Refused)
	return packets.ErrRejectPacket
}

// check applies everything that can be said about a publish without knowing
// what it means. It may take the retain flag off.
func (b *Broker) check(p *peer, pk *packets.Packet, size int, cut bool) (Verdict, bool) {
	switch {
	case !validTopic(pk.TopicName):
		return Verdict{Reason: BadTopic, Text: "the topic is empty or has a wildcard: publish tasks on " + b.topics.task}, true
	case !p.rights.mayWrite(pk.TopicName):
		return Verdict{Reason: forbidden(pk.TopicName), Text: fmt.Sprintf("%s may not publish on %q: publish on %s",
			p.rights.role, short(pk.TopicName), p.rights.whereTo())}, true
	case p.rights.role == Operator && p.rights.topics.isSafe(pk.TopicName):
		// Nothing about its payload or its flags hinders a way to safe.
	case cut:
		limit := b.limits.PacketSize
		if p.path == Narrowband {
			limit = b.limits.NarrowbandFrame
		}
		return Verdict{Reason: TooLarge, Text: fmt.Sprintf("the packet has %d bytes, the limit is %d", size, limit)}, true
	case p.path == Narrowband && !p.frames.take(time.Now()):
		b.stats.throttled.Add(1)
		return Verdict{Reason: Throttled, Text: fmt.Sprintf("more than %d frames a second", b.limits.NarrowbandRate)}, true
	case pk.FixedHeader.Retain && !p.strip:
		return Verdict{Reason: Retained, Text: "a command must not be retained, it would run again for ever: " +
			"clear the retain flag (for tools that always set it, the gateway's strip_retain lists the client)"}, true
	}
	pk.FixedHeader.Retain = false
	return Verdict{}, false
}

// forbidden tells a topic that nobody may publish on from one that is another
// client's.
func forbidden(topic string) Reason {
	if strings.HasPrefix(topic, "$") {
		return BadTopic
	}
	return NotAuthorized
}

func (p *peer) uplink(payload []byte, will bool) Uplink {
	u := Uplink{Path: p.path, ClientID: p.clientID, Conn: p.conn.number, Payload: payload, Will: will}
	if p.path == Narrowband {
		u.Short = p.node
	} else {
		u.Node = p.node
	}
	return u
}

// settle writes the receipt for a verdict, answers in JSON where there is a
// topic for it, and counts.
func (b *Broker) settle(p *peer, rc *receipt, a answer, v Verdict) {
	if v.Reason == 0 || int(v.Reason) >= reasons {
		v = Verdict{Reason: Unavailable, Text: "the gateway gave no reason; this is a bug", Body: v.Body}
	}
	// An MQTT 3.1.1 client keeps what was not acknowledged. It is sent away
	// after a moment, to come back and send it again.
	again := p.version < 5 && rc.qos > 0 && v.Reason.repeatable()
	if again {
		p.mute.Store(true)
	}
	if !p.receipts.settle(rc, v.Reason, v.Text, p.send) {
		b.stats.doubleDone.Add(1)
		b.log.Error("bug: done called twice for one submission", "client", short(p.clientID), "packet_id", rc.id)
		return
	}
	b.stats.pending.Add(-1)
	if v.Reason != Accepted {
		b.stats.refused[v.Reason].Add(1)
		if p.rights.role != Operator {
			b.stats.uplinksLost.Add(1)
		}
		p.note(a, v)
	}
	b.reply(p, a, v)
	if again {
		b.stats.withheld.Add(1)
		p.conn.endAfter(b.limits.RefusalPause, Refused)
	}
}

// note writes a refusal to the log; of throttled frames only the first.
func (p *peer) note(a answer, v Verdict) {
	if v.Reason == Throttled {
		if p.throttled {
			return
		}
		p.throttled = true
	}
	p.audit.warn("publish refused", "client", short(p.clientID), "user", short(p.username),
		"remote", p.conn.RemoteAddr().String(), "topic", short(a.topic), "packet_id", a.packetID,
		"reason", v.Reason.String(), "text", v.Text)
}
