package broker

import (
	"cmp"
	"slices"

	mqtt "github.com/mochi-mqtt/server/v2"
	"github.com/mochi-mqtt/server/v2/packets"
)

const (
	// maxSubscriptions bounds the filters of one client.
	maxSubscriptions = 256
	// inflightReserve keeps the number of unacknowledged messages below
	// Mochi's limit, beyond which it drops without telling anybody.
	inflightReserve = 8
	// invalidFilter replaces a filter that is refused; Mochi refuses it too.
	invalidFilter = "#/refused"
)

// hook is the only hook installed: authentication in Mochi is the OR of all.
type hook struct {
	mqtt.HookBase
	b *Broker
}

// ID implements mqtt.Hook.
func (*hook) ID() string { return "apollo" }

// Provides implements mqtt.Hook.
func (*hook) Provides(b byte) bool {
	switch b {
	case mqtt.OnConnect, mqtt.OnConnectAuthenticate, mqtt.OnACLCheck,
		mqtt.OnSessionEstablish, mqtt.OnSessionEstablished,
		mqtt.OnPacketRead, mqtt.OnPacketEncode,
		mqtt.OnSubscribe, mqtt.OnSubscribed,
		mqtt.OnPublish, mqtt.OnPublishDropped, mqtt.OnPacketIDExhausted,
		mqtt.OnRetainMessage, mqtt.OnRetainPublished:
		return true
	}
	return false
}

// OnPacketRead sees each packet before Mochi does anything with it.
func (h *hook) OnPacketRead(cl *mqtt.Client, pk packets.Packet) (packets.Packet, error) {
	c, ok := cl.Net.Conn.(*conn)
	if !ok {
		return pk, packets.ErrRejectPacket
	}
	select {
	case <-c.closing:
		return pk, packets.ErrRejectPacket
	default:
	}
	c.packets++
	p := c.peer
	if pk.FixedHeader.Type == packets.Connect && p == nil {
		if err := h.b.speaks(c, pk); err != nil {
			return pk, err
		}
		return normalise(c, pk, h.b.limits.SessionExpiry), nil
	}
	if p == nil {
		return pk, packets.ErrRejectPacket
	}
	switch pk.FixedHeader.Type {
	case packets.Publish:
		return h.b.publish(p, pk)
	case packets.Pubrel:
		p.send(p.receipts.release(pk.PacketID))
		return nothing(), nil
	case packets.Subscribe, packets.Unsubscribe:
		if pk.PacketID != 0 {
			p.ackID, pk.PacketID = pk.PacketID, freeID(cl)
		}
	case packets.Disconnect:
		return p.farewell(pk, h.b), nil
	case packets.Auth:
		return pk, h.b.expel(p, packets.ErrProtocolViolation, "AUTH without an authentication method")
	}
	return pk, nil
}

// freeID returns a packet id that no delivery to the client has. Mochi keeps
// the ids of both directions in one table and refuses a SUBSCRIBE whose id it
// has given to a delivery, although the two have nothing to do with each other.
// Deliveries count up from 1; this counts down.
func freeID(cl *mqtt.Client) uint16 {
	id := uint16(maxUint16)
	for ; id > 1; id-- {
		if _, used := cl.State.Inflight.Get(id); !used {
			break
		}
	}
	return id
}

// farewell notes how a client leaves.
func (p *peer) farewell(pk packets.Packet, b *Broker) packets.Packet {
	if pk.ReasonCode != packets.CodeDisconnectWillMessage.Code {
		p.conn.blame(Graceful)
	}
	if props := &pk.Properties; props.SessionExpiryIntervalFlag {
		if props.SessionExpiryInterval == 0 {
			p.keep = 0
		} else if p.keep > 0 {
			p.keep = min(seconds(props.SessionExpiryInterval), b.limits.SessionExpiry)
			props.SessionExpiryInterval = foreverSession
		}
	}
	return pk
}

// OnConnect decides about a client.
func (h *hook) OnConnect(cl *mqtt.Client, pk packets.Packet) error { return h.b.admit(cl, pk) }

// OnConnectAuthenticate lets in what OnConnect has admitted.
func (h *hook) OnConnectAuthenticate(cl *mqtt.Client, _ packets.Packet) bool {
	return peerOf(cl) != nil
}

// OnSessionEstablish puts the messages of a resumed session in order.
func (h *hook) OnSessionEstablish(cl *mqtt.Client, pk packets.Packet) {
	if old, ok := h.b.server.Clients.Get(cl.ID); ok && !pk.Connect.Clean {
		order(old)
	}
}

// OnSessionEstablished announces agents.
func (h *hook) OnSessionEstablished(cl *mqtt.Client, _ packets.Packet) {
	if p := peerOf(cl); p != nil {
		p.announced = true
		h.b.tellPresence(p, true, "")
	}
}

// OnACLCheck decides about each delivery. Writing never comes here.
func (h *hook) OnACLCheck(cl *mqtt.Client, topic string, write bool) bool {
	p := peerOf(cl)
	if p == nil || write {
		return false
	}
	// A filter of a SUBSCRIBE has been checked by OnSubscribe.
	if !isFilter(topic) && !p.rights.mayRead(topic) {
		return false
	}
	if !h.roomFor(cl, p) {
		h.b.stats.outboundLost.Add(1)
		return false
	}
	p.pace(h.b.limits.Outbound)
	return true
}

// roomFor reports whether one more message may wait for its acknowledgement by
// the client. A client that makes no room is disconnected, and the session of
// one that is away is ended: it subscribes again and finds the present status
// retained, where it would otherwise go on with an old one.
func (h *hook) roomFor(cl *mqtt.Client, p *peer) bool {
	full := func() bool { return cl.State.Inflight.Len() >= h.b.limits.Outbound-inflightReserve }
	switch {
	case !full():
		return true
	case cl.Closed():
		h.b.registry.cutShort(cl.ID)
		return false
	case p.wait(h.b.limits.AckStall, full):
		return true
	}
	p.disconnect(packets.ErrQuotaExceeded, "too many messages are not acknowledged", Slow)
	return false
}

// OnPacketEncode corrects what Mochi is about to write.
func (h *hook) OnPacketEncode(cl *mqtt.Client, pk packets.Packet) packets.Packet {
	p := peerOf(cl)
	switch pk.FixedHeader.Type {
	case packets.Connack:
		h.connack(cl, p, &pk)
	case packets.Publish:
		if p != nil {
			p.unqueued(1)
		}
	case packets.Suback, packets.Unsuback:
		if p != nil {
			pk.PacketID = p.ackID
		}
	case packets.Disconnect:
		if cl.Properties.ProtocolVersion < 5 {
			// Not a packet that a server may send here; this type is not
			// written at all.
			pk.FixedHeader.Type = packets.Reserved
		}
	}
	return pk
}

func (h *hook) connack(cl *mqtt.Client, p *peer, pk *packets.Packet) {
	if cl.Properties.ProtocolVersion < 5 {
		if pk.ReasonCode >= packets.ErrUnspecifiedError.Code {
			pk.ReasonCode = connackV3(pk.ReasonCode)
		}
		return
	}
	if p == nil || pk.ReasonCode != packets.CodeSuccess.Code {
		return
	}
	pk.Properties.MaximumPacketSize = uint32(p.conn.frames.publish + 1 + maxVarintBytes)
	pk.Properties.SharedSubAvailableFlag = true // and the value 0: not available
	if asked := cl.Properties.Props.SessionExpiryInterval; asked > 0 {
		pk.Properties.SessionExpiryInterval = uint32(p.keep.Seconds())
		pk.Properties.SessionExpiryIntervalFlag = true
	}
	if cl.Properties.Props.RequestResponseInfo == 1 && p.rights.role == Operator {
		pk.Properties.ResponseInfo = p.rights.read
	}
}

// OnSubscribe refuses filters and lowers the QoS where deliveries must not be
// tracked by Mochi.
func (h *hook) OnSubscribe(cl *mqtt.Client, pk packets.Packet) packets.Packet {
	p := peerOf(cl)
	if p == nil {
		return pk
	}
	p.refused = p.refused[:0]
	for i := range pk.Filters {
		f := &pk.Filters[i]
		if !p.rights.maySubscribe(f.Filter) || cl.State.Subscriptions.Len()+i >= maxSubscriptions {
			p.audit.warn("subscribe refused", "client", short(p.clientID), "user", short(p.username),
				"remote", p.conn.RemoteAddr().String(), "filter", short(f.Filter))
			f.Filter = invalidFilter
			p.refused = append(p.refused, i)
		} else if p.noQueue {
			f.Qos = 0
		}
	}
	return pk
}

// OnSubscribed corrects the answer for refused filters.
func (h *hook) OnSubscribed(cl *mqtt.Client, _ packets.Packet, codes []byte) {
	p := peerOf(cl)
	if p == nil {
		return
	}
	code := packets.ErrNotAuthorized.Code
	if cl.Properties.ProtocolVersion < 5 {
		code = packets.ErrUnspecifiedError.Code
	}
	p.unqueued(int32(len(codes) - len(p.refused))) // counted by OnACLCheck
	for _, i := range p.refused {
		codes[i] = code
	}
}

// OnPublish stamps what the gateway publishes with a running number and stops
// anything else that might get here.
func (h *hook) OnPublish(cl *mqtt.Client, pk packets.Packet) (packets.Packet, error) {
	if !cl.Net.Inline {
		return pk, packets.ErrRejectPacket
	}
	pk.Created = h.b.number.Add(1)
	return pk, nil
}

// OnPublishDropped runs when a message did not fit into a client's queue. An
// operator would go on showing an old status, so it is disconnected and finds
// the present one retained; for an agent the log sends again.
func (h *hook) OnPublishDropped(cl *mqtt.Client, _ packets.Packet) {
	h.b.stats.outboundLost.Add(1)
	if p := peerOf(cl); p != nil {
		p.unqueued(1)
		if p.rights.role == Operator {
			p.conn.end(Slow)
		}
	}
}

// OnPacketIDExhausted can not happen below the in-flight limit; it is counted.
func (h *hook) OnPacketIDExhausted(cl *mqtt.Client, _ packets.Packet) {
	h.b.stats.outboundLost.Add(1)
	if p := peerOf(cl); p != nil {
		p.unqueued(1)
	}
}

// OnRetainMessage makes retained messages ones of QoS 0. They are replayed on
// the goroutine that would have to read their acknowledgements, so with more of
// them than a client may leave unacknowledged it could never subscribe. A
// client that loses its connection during the replay subscribes again anyway.
func (h *hook) OnRetainMessage(_ *mqtt.Client, pk packets.Packet, _ int64) {
	kept := h.b.server.Topics.Retained
	if m, ok := kept.Get(pk.TopicName); ok && m.FixedHeader.Qos > 0 {
		m.FixedHeader.Qos = 0
		kept.Add(pk.TopicName, m)
	}
}

// OnRetainPublished paces the replay of retained messages to one client.
func (h *hook) OnRetainPublished(cl *mqtt.Client, pk packets.Packet) {
	p := peerOf(cl)
	if p == nil {
		return
	}
	share := h.b.limits.OperatorWriteBuffer / 4
	if p.replayed += len(pk.TopicName) + len(pk.Payload); p.replayed >= share {
		p.drain(share)
		p.replayed = 0
	}
}

// sortedInflight returns the unacknowledged messages to a client, oldest first.
func sortedInflight(cl *mqtt.Client) []packets.Packet {
	all := cl.State.Inflight.GetAll(false)
	slices.SortStableFunc(all, func(a, b packets.Packet) int { return cmp.Compare(a.Created, b.Created) })
	return all
}
