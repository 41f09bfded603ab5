package broker

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/mochi-mqtt/server/v2/packets"
)

const jsonType = "application/json"

var errClosed = errors.New("broker is closed")

// answer is where and about what a client is answered in JSON.
type answer struct {
	topic       string // on which it published
	packetID    uint16
	response    string // MQTT 5 response topic, empty if none was given
	correlation []byte
}

// refusedBody is the JSON of a refusal for which the handler gave none. It has
// the shape of the handler's own refusals: a client reads one form on its reply
// topic, whoever refused.
type refusedBody struct {
	OK       bool         `json:"ok"`
	Error    refusedError `json:"error"`
	Topic    string       `json:"topic"`
	PacketID uint16       `json:"packet_id,omitempty"`
}

type refusedError struct {
	Code    string `json:"code"`
	Problem string `json:"problem"`
}

// reply publishes the answer to a client: on its response topic if it gave one,
// otherwise refusals on its reply topic.
func (b *Broker) reply(p *peer, a answer, v Verdict) {
	if p.rights.role != Operator {
		return
	}
	topic := a.response
	if topic == "" && v.Reason != Accepted {
		topic = p.rights.read
	}
	body := v.Body
	if body == nil && v.Reason != Accepted {
		text, err := json.Marshal(refusedBody{false, refusedError{v.Reason.String(), v.Text}, short(a.topic), a.packetID})
		if err != nil {
			b.log.Error("bug: refusal has no JSON form", "err", err)
			return
		}
		body = text
	}
	if topic == "" || body == nil {
		return
	}
	// QoS 0: this may run on the goroutine that reads the client's
	// acknowledgements, which would wait for itself when too many are owed.
	err := b.inject(packets.Packet{
		FixedHeader: packets.FixedHeader{Type: packets.Publish},
		TopicName:   topic,
		Payload:     body,
		Properties:  packets.Properties{CorrelationData: a.correlation, ContentType: jsonType},
	})
	if err != nil && !errors.Is(err, errClosed) {
		b.log.Error("answer was not published", "client", short(p.clientID), "err", err)
	}
}

// Publish delivers a message to those subscribed to topic. It waits for no
// peer: one that does not read is disconnected. Success says that the message
// was handed over, not that anybody has received it. The payload must not be
// changed afterwards. A retained message with an empty payload clears the topic.
func (b *Broker) Publish(topic string, payload []byte, qos byte, retain bool) error {
	if !validTopic(topic) || qos > 2 {
		return fmt.Errorf("publish on %q with QoS %d: not a topic or not a QoS", topic, qos)
	}
	return b.inject(packets.Packet{
		FixedHeader: packets.FixedHeader{Type: packets.Publish, Qos: qos, Retain: retain},
		TopicName:   topic,
		Payload:     payload,
		PacketID:    uint16(qos),
	})
}

func (b *Broker) inject(pk packets.Packet) error {
	if b.down.Load() {
		return errClosed
	}
	if err := b.server.InjectPacket(b.inline, pk); err != nil {
		return fmt.Errorf("publish on %q: %w", pk.TopicName, err)
	}
	return nil
}
