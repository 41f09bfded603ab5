package broker

import (
	"bytes"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	mqtt "github.com/mochi-mqtt/server/v2"
	"github.com/mochi-mqtt/server/v2/packets"
)

const (
	// maxClientID bounds a client id, in bytes: it is part of the reply topic
	// and of log lines.
	maxClientID = 256
	// maxEngineKeepalive is the longest keepalive whose one and a half fits
	// Mochi's 16 bit arithmetic, in seconds.
	maxEngineKeepalive = 43690
	// maxWill bounds an agent's will, in bytes.
	maxWill = 4 << 10
	// bridgeState is where a Mosquitto bridge keeps its state, unless its
	// configuration says "notifications false".
	bridgeState = "$SYS/broker/connection/"
	// foreverSession makes Mochi keep a session until we end it.
	foreverSession = ^uint32(0)
)

// connecting is what the CONNECT packet asked for and Mochi must not see.
type connecting struct {
	will       *will
	receiveMax uint16 // 0: not given
	expiry     uint32 // MQTT 5 session expiry asked for, in seconds
}

type will struct {
	topic   string
	payload []byte
	retain  bool
	qos     byte
}

// normalise takes out of a CONNECT what Mochi handles in a way that could reach
// a user: wills bypass every check, a small receive maximum stops or deadlocks
// deliveries, outbound topic aliases break when a message is dropped, session
// expiry leaves ghost subscriptions, and an empty password is refused although
// some client libraries can not leave it out.
func normalise(c *conn, pk packets.Packet, keep time.Duration) packets.Packet {
	asked := &connecting{receiveMax: pk.Properties.ReceiveMaximum}
	if pk.Connect.WillFlag {
		asked.will = &will{
			topic: pk.Connect.WillTopic, payload: pk.Connect.WillPayload,
			retain: pk.Connect.WillRetain, qos: pk.Connect.WillQos,
		}
		pk.Connect.WillFlag, pk.Connect.WillRetain, pk.Connect.WillQos = false, false, 0
		pk.Connect.WillTopic, pk.Connect.WillPayload = "", nil
		pk.Connect.WillProperties = packets.Properties{}
	}
	pk.Properties.ReceiveMaximum = 0
	pk.Properties.TopicAliasMaximum = 0
	if pk.Connect.PasswordFlag && len(pk.Connect.Password) == 0 {
		pk.Connect.PasswordFlag = false
	}
	id := pk.Connect.ClientIdentifier
	if strings.HasPrefix(id, agentPrefix) || strings.HasPrefix(id, narrowbandPrefix) {
		// What an agent missed is sent again from the log.
		pk.Connect.Clean = true
		pk.Properties.SessionExpiryInterval = 0
	}
	if pk.Properties.SessionExpiryInterval > 0 {
		asked.expiry = min(pk.Properties.SessionExpiryInterval, uint32(keep/time.Second))
		pk.Properties.SessionExpiryInterval = foreverSession
	}
	c.connecting = asked
	return pk
}

// refusal is why a CONNECT is refused.
type refusal struct {
	code packets.Code
	text string
}

// Error implements error.
func (r *refusal) Error() string { return r.text }

func refuse(code packets.Code, format string, args ...any) *refusal {
	return &refusal{code: code, text: fmt.Sprintf(format, args...)}
}

var errGone = errors.New("peer is gone")

// speaks refuses a CONNECT in a protocol version that does not exist here, with
// the code at which a client tries another one. Mochi answers in the form of MQTT
// 5, at which a bridge of Mosquitto goes on asking for its private version, which
// is the usual one with the top bit set, for ever.
func (b *Broker) speaks(c *conn, pk packets.Packet) error {
	if v := pk.ProtocolVersion; v >= 3 && v <= 5 {
		return nil
	}
	no := refuse(packets.ErrUnsupportedProtocolVersion, "protocol version %#x: the gateway speaks MQTT 3.1, 3.1.1 and 5", pk.ProtocolVersion)
	b.stats.connRefused.Add(1)
	b.audit.warn("connect refused", "client", short(pk.Connect.ClientIdentifier), "remote", c.RemoteAddr().String(),
		"listener", c.listener, "reason", no.text)
	c.blame(Refused)
	_, _ = c.Write(connack(4, no)) // a peer that is gone needs no answer
	return packets.ErrRejectPacket
}

// admit decides about a CONNECT and makes the client known. A refusal has been
// answered when it returns.
func (b *Broker) admit(cl *mqtt.Client, pk packets.Packet) error {
	c, ok := cl.Net.Conn.(*conn)
	if !ok || c.connecting == nil {
		return errors.New("bug: connection without its wrapper")
	}
	p, err := b.judge(cl, c, pk)
	if err == nil {
		err = b.claim(p)
	}
	if err == nil {
		c.peer = p
		b.stats.connections.Add(1)
		b.stats.connected[p.rights.role].Add(1)
		return nil
	}
	var no *refusal
	if !errors.As(err, &no) {
		return err
	}
	b.stats.connRefused.Add(1)
	b.audit.warn("connect refused", "client", short(cl.ID), "user", short(string(pk.Connect.Username)),
		"remote", c.RemoteAddr().String(), "listener", c.listener, "reason", no.text)
	c.blame(Refused)
	_, _ = c.Write(connack(pk.ProtocolVersion, no)) // a peer that is gone needs no answer
	return no
}

// judge applies the rules for identity, role, keepalive and will.
func (b *Broker) judge(cl *mqtt.Client, c *conn, pk packets.Packet) (*peer, error) {
	if err := checkClientID(cl.ID); err != nil {
		return nil, err
	}
	name := string(pk.Connect.Username)
	role, node, err := b.identify(cl.ID, name, pk.Connect.Password, c)
	if err != nil {
		return nil, err
	}
	if err := b.keepalive(cl, role, pk); err != nil {
		return nil, err
	}
	props := pk.Properties
	if props.AuthenticationMethod != "" {
		return nil, refuse(packets.ErrBadAuthenticationMethod, "authentication method %q is not supported, use user name and password",
			short(props.AuthenticationMethod))
	}
	p := &peer{
		conn:     c,
		rights:   newRights(&b.topics, role, cl.ID, node),
		clientID: cl.ID,
		username: name,
		node:     node,
		path:     Primary,
		version:  pk.ProtocolVersion,
		audit:    newAuditLog(b.log, peerRate, peerBurst),
		ended:    make(chan struct{}),
	}
	if role == NarrowbandAgent {
		p.path = Narrowband
		p.frames = newBucket(b.limits.NarrowbandRate, b.limits.NarrowbandRate, time.Now())
	}
	if err := p.takeWill(c.connecting.will); err != nil {
		return nil, err
	}
	if role == Operator {
		c.setLimit(b.limits.OperatorWriteBuffer)
		p.strip = b.strips(name, cl.ID)
		p.keep = sessionKeep(pk, c.connecting.expiry, b.limits.SessionExpiry)
	}
	// A client that takes fewer unacknowledged messages than the broker may
	// send is granted QoS 0, which is within its rights and ours. Agents are
	// too: their repetition comes from the log.
	p.noQueue = role != Operator || c.connecting.receiveMax > 0 && int(c.connecting.receiveMax) < b.limits.Outbound
	p.receipts = newReceipts(ackForm{
		version:   pk.ProtocolVersion,
		maxSize:   props.MaximumPacketSize,
		noReasons: props.RequestProblemInfoFlag && props.RequestProblemInfo == 0,
	}, b.limits, nil)
	return p, nil
}

// sessionKeep is how long the session outlives the connection.
func sessionKeep(pk packets.Packet, asked uint32, limit time.Duration) time.Duration {
	if pk.ProtocolVersion == 5 {
		return time.Duration(asked) * time.Second
	}
	if pk.Connect.Clean {
		return 0
	}
	return limit
}

func checkClientID(id string) error {
	switch {
	case len(id) > maxClientID:
		return refuse(packets.ErrClientIdentifierNotValid, "client id has %d bytes, the limit is %d", len(id), maxClientID)
	case id == mqtt.InlineClientId:
		return refuse(packets.ErrClientIdentifierNotValid, "client id %q is the broker's own, choose another", id)
	case !utf8.ValidString(id) || strings.ContainsFunc(id, unicode.IsControl):
		return refuse(packets.ErrClientIdentifierNotValid, "client id must not contain control characters")
	}
	return nil
}

// identify finds the role of a client and, for agents, its node.
func (b *Broker) identify(id, name string, password []byte, c *conn) (Role, string, error) {
	role, node := Operator, ""
	if n, ok := strings.CutPrefix(id, agentPrefix); ok {
		role, node = Agent, n
	}
	if n, ok := strings.CutPrefix(id, narrowbandPrefix); ok {
		role, node = NarrowbandAgent, n
	}
	switch {
	case c.listener == narrowbandListener && role != NarrowbandAgent:
		return 0, "", refuse(packets.ErrClientIdentifierNotValid, "the narrowband listener takes client ids %s<short id> only", narrowbandPrefix)
	case c.listener != narrowbandListener && role == NarrowbandAgent:
		return 0, "", refuse(packets.ErrClientIdentifierNotValid, "client ids %s... belong to the narrowband listener", narrowbandPrefix)
	case role != Operator:
		if err := checkNode(role, node); err != nil {
			return 0, "", refuse(packets.ErrClientIdentifierNotValid, "client id %q does not end in a node name: %s", short(id), err)
		}
	}
	if b.cfg.Users == nil {
		if !b.cfg.AllowAnonymous && !loopback(c.RemoteAddr().String()) {
			return 0, "", refuse(packets.ErrNotAuthorized, "the gateway has no users file and serves its own host only")
		}
		return role, node, nil
	}
	u, ok := b.cfg.Users.check(name, password, c.closing)
	switch {
	case !ok:
		return 0, "", refuse(packets.ErrBadUsernameOrPassword, "wrong user name or password")
	case u.role != role || u.node != node:
		return 0, "", refuse(packets.ErrNotAuthorized, "user %q is %s %s and may not connect as client id %q", name, u.role, u.node, id)
	}
	return role, node, nil
}

func loopback(remote string) bool {
	addr, err := netip.ParseAddrPort(remote)
	return err == nil && addr.Addr().Unmap().IsLoopback()
}

// keepalive sees to it that a dead agent is noticed. An MQTT 5 client is told a
// better value; an MQTT 3.1.1 agent without one is refused. An operator's plain
// script may do without: TCP's own probes find out that it is gone.
func (b *Broker) keepalive(cl *mqtt.Client, role Role, pk packets.Packet) error {
	asked := int(pk.Connect.Keepalive)
	limit := int(b.limits.MaxKeepalive / time.Second)
	if asked > 0 && asked <= limit {
		return nil
	}
	switch {
	case pk.ProtocolVersion == 5:
		cl.State.Keepalive, cl.State.ServerKeepalive = uint16(min(limit, maxEngineKeepalive)), true
	case role != Operator:
		return refuse(packets.ErrNotAuthorized, "keepalive is %d s, agents need 1 to %d s", asked, limit)
	case asked > maxEngineKeepalive:
		cl.State.Keepalive = 0
	}
	return nil
}

// takeWill accepts an agent's will on its own event topic. The will that a bridge
// leaves about itself is let pass and forgotten: no client may read that topic, and
// a plant's broker as it comes must be able to connect. Every other will is
// refused. An agent's is delivered at once when the connection is lost; a delay that an MQTT 5
// client asks for is not kept, because a lost node must be known at once.
func (p *peer) takeWill(w *will) error {
	switch {
	case w == nil, p.rights.role == Operator && strings.HasPrefix(w.topic, bridgeState):
		return nil
	case p.rights.role != Agent:
		return refuse(packets.ErrNotAuthorized, "a will on %q: only agents may leave one, and a command can not be a will", short(w.topic))
	case w.topic != p.rights.write:
		return refuse(packets.ErrNotAuthorized, "will topic %q: agent %s may leave its will on %s only", short(w.topic), p.node, p.rights.write)
	case w.retain:
		return refuse(packets.ErrRetainNotSupported, "the will must not be retained")
	case w.qos > 2:
		return refuse(packets.ErrProtocolViolationQosOutOfRange, "will QoS %d does not exist", w.qos)
	case len(w.payload) == 0 || len(w.payload) > maxWill:
		return refuse(packets.ErrPayloadFormatInvalid, "the will has %d bytes, want 1 to %d", len(w.payload), maxWill)
	}
	p.will, p.hasWill = w.payload, true
	return nil
}

// strips reports whether this operator's retain flags are taken off.
func (b *Broker) strips(name, id string) bool {
	for _, s := range b.cfg.StripRetain {
		if s != "" && (s == name || strings.HasPrefix(id, s)) {
			return true
		}
	}
	return false
}

// connack returns the refusal of a CONNECT.
func connack(version byte, no *refusal) []byte {
	if version < 5 {
		return []byte{packets.Connack << 4, 2, 0, connackV3(no.code.Code)}
	}
	pk := packets.Packet{
		FixedHeader:     packets.FixedHeader{Type: packets.Connack},
		ProtocolVersion: 5,
		ReasonCode:      no.code.Code,
		Properties:      packets.Properties{ReasonString: reasonText(no.text)},
	}
	var out bytes.Buffer
	if pk.ConnackEncode(&out) != nil {
		return nil
	}
	return out.Bytes()
}

// connackV3 translates a reason code to one of the five of MQTT 3.1.1.
func connackV3(code byte) byte {
	switch code {
	case packets.ErrUnsupportedProtocolVersion.Code:
		return packets.Err3UnsupportedProtocolVersion.Code
	case packets.ErrClientIdentifierNotValid.Code:
		return packets.Err3ClientIdentifierNotValid.Code
	case packets.ErrServerUnavailable.Code, packets.ErrServerBusy.Code, packets.ErrQuotaExceeded.Code:
		return packets.Err3ServerUnavailable.Code
	case packets.ErrBadUsernameOrPassword.Code:
		return packets.ErrMalformedUsernameOrPassword.Code
	}
	return packets.Err3NotAuthorized.Code
}
