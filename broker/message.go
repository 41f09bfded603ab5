package broker

import "time"

// Handler is the gateway as the broker sees it. Its methods are called on the
// goroutine that reads the peer's connection. While one waits, that peer alone
// is held back, by TCP; a wait must have a limit and must end when the gateway
// stops, or Run does not return.
type Handler interface {
	// Submit takes a publish on the task topic or on a safe topic. done must be called exactly
	// once, from any goroutine, after the outcome is durable; the receipt of
	// the publish is written only then. Receipts of one connection leave in
	// the order of its publishes, so a done that is never called holds back
	// all later ones of the same connection.
	Submit(s Submission, done func(Verdict))
	// Uplink takes an event or a compact ack of an agent. It counts as
	// delivered when Uplink returns; agents rely on the gateway's own
	// acknowledgement, never on the MQTT receipt.
	Uplink(u Uplink)
	// Presence reports that an agent has connected or is gone. The events of
	// one node on one path come strictly in order.
	Presence(p Presence)
}

// Submission is a publish on the task topic or on a safe topic.
type Submission struct {
	// Topic is where it was published. On a safe topic (wire.TopicSafe) the payload
	// means nothing and may have been cut; on the task topic it is a task.
	Topic string
	// ClientID and Username are as given at CONNECT. Username is proven only
	// if the broker has a users file.
	ClientID, Username string
	// Listener is "mqtt" or "ws"; Remote is the peer's address.
	Listener, Remote string
	// Payload belongs to the callee.
	Payload []byte
	// QoS is 0, 1 or 2. With 0 nobody waits for a receipt.
	QoS byte
	// Dup says that the sender believes to have sent this publish before, on
	// an earlier connection. A repetition on the same connection is absorbed
	// here and does not reach the handler.
	Dup bool
	// PacketID is the sender's number of this publish, 0 with QoS 0.
	PacketID uint16
	// MQTT5 says that refusals reach the sender as a reason code.
	MQTT5 bool
	// ResponseTopic and Correlation are those of an MQTT 5 request. The topic
	// is empty unless the broker is willing to publish there.
	ResponseTopic string
	Correlation   []byte
	// Expiry is the MQTT 5 message expiry, 0 if there is none.
	Expiry time.Duration
	// ContentType is the MQTT 5 content type.
	ContentType string
}

// Verdict is the outcome of a submission.
type Verdict struct {
	// Reason decides which receipt is written; the zero value is not a valid
	// reason and is treated as Unavailable, so that a forgotten field can
	// never acknowledge a command.
	Reason Reason
	// Text is one sentence for people: what is wrong, where, what to do.
	Text string
	// Body is the JSON answer for the response topic or the reply topic. When
	// it is nil a refusal is described in a JSON object made from Reason and
	// Text, and an acceptance is answered by the receipt alone.
	Body []byte
}

// Path names the way on which an agent's message came.
type Path uint8

const (
	// Primary is the listener for agents and operators.
	Primary Path = iota + 1
	// Narrowband is the listener for compact acks.
	Narrowband
)

// String returns the path's name as used in timelines and logs.
func (p Path) String() string {
	switch p {
	case Primary:
		return "primary"
	case Narrowband:
		return "narrowband"
	}
	return "unknown"
}

// Uplink is a message of an agent.
type Uplink struct {
	// Node is set on the primary path, Short on the narrowband path.
	Node, Short string
	Path        Path
	ClientID    string
	// Conn is the number of the connection, see Presence.
	Conn uint64
	// Payload belongs to the callee.
	Payload []byte
	// Will says that this is the agent's last will: the agent has not sent it
	// now, the broker delivers it because the connection was lost.
	Will bool
}

// Presence says that an agent's connection was established or has ended.
type Presence struct {
	Node, Short string
	Path        Path
	ClientID    string
	Remote      string
	// Conn numbers the connections of this broker, rising from 1.
	Conn uint64
	// Connected is true when the connection was established.
	Connected bool
	// Cause says why the connection has ended; empty while Connected.
	Cause Cause
}

// Cause says why a connection has ended.
type Cause string

const (
	// Graceful: the client sent DISCONNECT.
	Graceful Cause = "graceful"
	// Lost: the connection broke or the keepalive time passed.
	Lost Cause = "lost"
	// TakenOver: the same client connected again; its next Presence follows,
	// unless that connection breaks at once.
	TakenOver Cause = "taken over"
	// Slow: the client did not read what was sent to it.
	Slow Cause = "slow"
	// Refused: the broker closed the connection because of what the client did.
	Refused Cause = "refused"
	// Shutdown: the broker stops.
	Shutdown Cause = "shutdown"
)
