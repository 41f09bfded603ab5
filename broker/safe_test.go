package broker_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/mochi-mqtt/server/v2/packets"

	"github.com/apollo-11/apollo11/broker"
)

// The way to safe takes any payload, any QoS and the retain flag, from either version
// of the protocol; its receipt waits for the verdict like a task's.
func TestSafeTopicsTakeAnything(t *testing.T) {
	payloads := map[string]string{"nothing": "", "a document": `{"intent":"gpio.write"}`, "no text": "\xff\x00", "more than a packet may have": strings.Repeat("x", 1<<20)}
	for _, topic := range []string{"apollo/default/safe/pump-1", "apollo/default/safe/never-seen/pinctrl-bcm2835:17"} {
		for what, payload := range payloads {
			for _, version := range []byte{4, 5} {
				for _, qos := range []byte{0, 1, 2} {
					for _, retain := range []bool{false, true} {
						t.Run(fmt.Sprintf("%s/%s/version %d/QoS %d/retain %v", topic, what, version, qos, retain), func(t *testing.T) {
							g := new(gateway)
							b := serve(t, g)
							c := start(t, b.Addr("mqtt"), connect{id: "hmi", version: version})
							p := pub{topic: topic, payload: payload, qos: qos, retain: retain}
							if qos > 0 {
								p.id = 9
							}
							c.publish(p)
							s := g.waitSubmitted(t, 1)[0]
							if s.Topic != topic || s.ClientID != "hmi" || s.QoS != qos {
								t.Errorf("submitted %+v", s.Submission)
							}
							c.ping() // fails on any receipt
							s.done(broker.Verdict{Reason: broker.Accepted})
							switch qos {
							case 1:
								c.want(packets.Puback)
							case 2:
								c.want(packets.Pubrec)
								c.ack(packets.Pubrel, 9)
								c.want(packets.Pubcomp)
							}
							other := start(t, b.Addr("mqtt"), connect{id: "other"})
							other.subscribe(1, 0, "#", "apollo/default/safe/#")
							other.ping() // nothing was kept
						})
					}
				}
			}
		}
	}
}

// Who may submit may drive safe, and nobody else; what is no safe topic is refused
// with the words for one.
func TestSafeTopicsAreForOperators(t *testing.T) {
	g := accepting()
	b := serve(t, g)
	for _, id := range []string{"agent/pump-1", "agent/pump-2"} {
		c := start(t, b.Addr("mqtt"), connect{id: id, version: 5})
		c.publish(pub{topic: "apollo/default/safe/pump-1", qos: 1, id: 5})
		if ack := c.want(packets.Puback); ack.ReasonCode != 0x87 {
			t.Errorf("%s: %s, want code 0x87", id, describe(ack))
		}
	}
	c := start(t, b.Addr("mqtt"), connect{id: "hmi"})
	c.subscribe(1, 0, replyTopic)
	for k, topic := range []string{"apollo/default/safe", "apollo/default/safe/", "apollo/default/safe/a/b/c", "apollo/default/safe/a b",
		"apollo/north/safe/pump-1", "apollo/default/safe/pump-1/"} {
		c.publish(pub{topic: topic, qos: 1, id: uint16(10 + k)})
		c.want(packets.Puback)
		if r := c.wantRefusal("not_authorized"); !strings.Contains(r.Error.Problem, "apollo/default/safe/NODE/PIN") {
			t.Errorf("%s: the refusal %+v does not say how", topic, r)
		}
	}
	if n := len(g.submitted()); n != 0 {
		t.Errorf("%d submissions, want none", n)
	}
}

// HMI tools subscribe to what they write: that is granted, and nothing comes.
func TestSafeTopicsMayBeNamedInASubscription(t *testing.T) {
	b := serve(t, accepting())
	c := start(t, b.Addr("mqtt"), connect{id: "hmi"})
	for k, filter := range []string{"apollo/default/safe/#", "apollo/default/safe/+", "apollo/default/safe/pump-1/valve-1", "apollo/+/safe/pump-1"} {
		if got := c.subscribe(uint16(k+1), 0, filter); got[0] != 0 {
			t.Errorf("%s: code %#x", filter, got[0])
		}
	}
	c.publish(pub{topic: "apollo/default/safe/pump-1/valve-1", payload: "x", qos: 1, id: 9})
	c.want(packets.Puback)
	c.ping()
	agent := start(t, b.Addr("mqtt"), connect{id: "agent/pump-1"})
	if got := agent.subscribe(1, 0, "apollo/default/safe/pump-1"); got[0] < 0x80 {
		t.Errorf("an agent may subscribe to a safe topic: code %#x", got[0])
	}
}

// A refusal of the gateway reaches the publisher as that of a task does.
func TestSafeIsAnsweredLikeATask(t *testing.T) {
	b := serve(t, deciding(broker.Verdict{Reason: broker.Invalid, Text: "no", Body: []byte(`{"ok":false}`)}))
	c := start(t, b.Addr("mqtt"), connect{id: "hmi", version: 5})
	c.subscribe(1, 0, "answers/hmi")
	c.publish(pub{topic: "apollo/default/safe/pump-1", qos: 1, id: 5, props: packets.Properties{ResponseTopic: "answers/hmi", CorrelationData: []byte{7}}})
	var got []packets.Packet
	for range 2 {
		got = append(got, c.next())
	}
	answered := false
	for _, pk := range got {
		switch pk.FixedHeader.Type {
		case packets.Puback:
			if pk.ReasonCode != 0x99 {
				t.Errorf("receipt %s", describe(pk))
			}
		case packets.Publish:
			answered = pk.TopicName == "answers/hmi" && string(pk.Payload) == `{"ok":false}`
		}
	}
	if !answered {
		t.Errorf("got %v", got)
	}
}
