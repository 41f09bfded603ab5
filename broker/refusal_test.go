package broker_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/mochi-mqtt/server/v2/packets"

	"github.com/apollo-11/apollo11/broker"
)

const replyTopic = "apollo/default/reply/hmi"

// refusal is the JSON that a client reads on its reply topic.
type refusal struct {
	OK    *bool
	Error struct {
		Code    string
		Problem string
	}
	Topic    string
	PacketID uint16 `json:"packet_id"`
}

func (c *client) wantRefusal(reason string) refusal {
	c.t.Helper()
	pk := c.want(packets.Publish)
	var r refusal
	if err := json.Unmarshal(pk.Payload, &r); err != nil {
		c.t.Fatalf("%s: %v", describe(pk), err)
	}
	if pk.TopicName != replyTopic || r.OK == nil || *r.OK || r.Error.Code != reason || r.Error.Problem == "" {
		c.t.Fatalf("reply on %s: %+v, want reason %s", pk.TopicName, r, reason)
	}
	return r
}

// B1, A18: a command that was not made durable is never acknowledged as if it
// was, and every refusal is visible to its sender in his protocol version.
func TestB1_RefusalIsVisibleAndNeverASuccess(t *testing.T) {
	for _, reason := range []broker.Reason{broker.Invalid, broker.NotAuthorized, broker.Conflict, broker.Quota, broker.Unavailable, 0} {
		for _, version := range []byte{4, 5} {
			for _, qos := range []byte{0, 1, 2} {
				t.Run(fmt.Sprintf("%s version %d QoS %d", reason, version, qos), func(t *testing.T) {
					testB1(t, reason, version, qos)
				})
			}
		}
	}
}

func testB1(t *testing.T, reason broker.Reason, version, qos byte) {
	b := serve(t, deciding(broker.Verdict{Reason: reason, Text: "because"}))
	agent := start(t, b.Addr("mqtt"), connect{id: "agent/pump-1"})
	agent.subscribe(1, 1, "#")
	c := start(t, b.Addr("mqtt"), connect{id: "hmi", version: version})
	c.subscribe(1, 0, replyTopic)
	p := pub{topic: taskTopic, payload: "x", qos: qos}
	if qos > 0 {
		p.id = 5
	}
	c.publish(p)
	word := reason.String()
	if reason == 0 {
		reason, word = broker.Unavailable, "unavailable"
	}
	codes := map[broker.Reason]byte{broker.Invalid: 0x99, broker.NotAuthorized: 0x87, broker.Conflict: 0x97, broker.Quota: 0x97, broker.Unavailable: 0x83}
	retry := reason == broker.Quota || reason == broker.Unavailable
	kinds := map[byte]byte{1: packets.Puback, 2: packets.Pubrec}

	switch {
	case qos == 0:
		c.wantRefusal(word)
	case version == 5:
		if ack := c.want(kinds[qos]); ack.ReasonCode != codes[reason] || ack.Properties.ReasonString == "" {
			t.Errorf("receipt %s, want code %#x and a reason", describe(ack), codes[reason])
		}
		c.wantRefusal(word)
	case retry:
		// Not taken: no receipt, a word on the reply topic, and the door.
		c.wantRefusal(word)
		if got := c.wantClosed(); len(got) != 0 {
			t.Errorf("before the close came %v, want nothing", got)
		}
		if n := b.Stats().Withheld; n != 1 {
			t.Errorf("%d receipts withheld, want 1", n)
		}
	default:
		c.want(kinds[qos]) // so that it is not sent for ever
		c.wantRefusal(word)
	}
	agent.ping() // nothing was routed
}

// B2: a refused QoS 2 publish is refused with PUBREC and its packet id is free.
func TestB2_RefusedQoS2EndsLegally(t *testing.T) {
	g := new(gateway)
	b := serve(t, g)
	c := start(t, b.Addr("mqtt"), connect{id: "hmi", version: 5})
	c.publish(pub{topic: taskTopic, payload: "bad", qos: 2, id: 5})
	g.waitSubmitted(t, 1)[0].done(broker.Verdict{Reason: broker.Invalid, Text: "no"})
	if rec := c.want(packets.Pubrec); rec.ReasonCode != 0x99 || !rec.ReasonCodeValid() {
		t.Fatalf("got %s", describe(rec))
	}
	c.publish(pub{topic: taskTopic, payload: "good", qos: 2, id: 5})
	g.waitSubmitted(t, 2)[1].done(broker.Verdict{Reason: broker.Accepted})
	if rec := c.want(packets.Pubrec); rec.ReasonCode != 0 {
		t.Fatalf("got %s", describe(rec))
	}
	c.ack(packets.Pubrel, 5)
	c.want(packets.Pubcomp)
	c.ack(packets.Pubrel, 6) // never used
	if comp := c.want(packets.Pubcomp); comp.ReasonCode != 0x92 {
		t.Errorf("got %s, want code 0x92", describe(comp))
	}
}

// B9, B10, M3, M5: a publish on a topic that is not the client's is answered so
// that the client can go on, is visible to it and in the log, and what comes
// behind it arrives.
func TestB9_B10_M3_M5_ForbiddenTopicIsAnsweredAndTheClientGoesOn(t *testing.T) {
	topics := map[string]string{
		"foreign":          "apollo/default/cmd/pump-1",
		"event":            "apollo/default/evt/pump-1",
		"status":           "apollo/default/task/t1/status",
		"other site":       "apollo/north/task",
		"narrowband":       "n/p00001",
		"system":           "$SYS/x",
		"share":            "$share/g/x",
		"wildcard":         "a/+/b",
		"wildcard task":    "apollo/default/task/#",
		"empty":            "",
		"longest":          strings.Repeat("x", 65535),
		"anything":         "home/lamp",
		"task with suffix": taskTopic + "/",
	}
	for name, topic := range topics {
		for _, version := range []byte{4, 5} {
			for _, qos := range []byte{0, 1, 2} {
				t.Run(fmt.Sprintf("%s version %d QoS %d", name, version, qos), func(t *testing.T) {
					g := accepting()
					b := serve(t, g)
					testForbidden(t, g, b, topic, version, qos)
				})
			}
		}
	}
}

func testForbidden(t *testing.T, g *gateway, b *running, topic string, version, qos byte) {
	all := start(t, b.Addr("mqtt"), connect{id: "listener"})
	all.subscribe(1, 0, "#")
	c := start(t, b.Addr("mqtt"), connect{id: "hmi", version: version})
	c.subscribe(1, 0, replyTopic)
	p := pub{topic: topic, payload: "payload-of-the-attempt", qos: qos}
	if qos > 0 {
		p.id = 5
	}
	c.publish(p)
	if qos > 0 {
		ack := c.next()
		if want := map[byte]byte{1: packets.Puback, 2: packets.Pubrec}[qos]; ack.FixedHeader.Type != want {
			t.Fatalf("got %s", describe(ack))
		}
		if version == 5 && ack.ReasonCode != 0x87 && ack.ReasonCode != 0x90 {
			t.Errorf("receipt %s, want code 0x87 or 0x90", describe(ack))
		}
	}
	pk := c.want(packets.Publish)
	if !strings.Contains(string(pk.Payload), taskTopic) {
		t.Errorf("refusal %s does not say where to publish", pk.Payload)
	}
	c.publish(pub{topic: taskTopic, payload: "good", qos: 1, id: 6})
	c.want(packets.Puback)
	if s := g.submitted(); len(s) != 1 || string(s[0].Payload) != "good" {
		t.Errorf("submissions %v, want the good one", s)
	}
	all.ping() // nothing was routed
	if !b.log.contains("publish refused") || b.log.contains("payload-of-the-attempt") {
		t.Error("the log lacks the attempt or shows its payload")
	}
}

// A6: an empty payload is one submission for the gateway to refuse.
func TestA6_EmptyPayloadIsOneSubmission(t *testing.T) {
	g := deciding(broker.Verdict{Reason: broker.Invalid, Text: "empty"})
	b := serve(t, g)
	c := start(t, b.Addr("mqtt"), connect{id: "hmi"})
	c.publish(pub{topic: taskTopic, qos: 1, id: 1})
	c.want(packets.Puback)
	if s := g.submitted(); len(s) != 1 || len(s[0].Payload) != 0 {
		t.Errorf("submissions %v", s)
	}
}

// A6, A10, C1, C2: nothing that a client publishes is retained, and an empty
// retained publish clears nothing.
func TestA6_C1_C2_RetainedPublishIsRefusedAndNothingIsKept(t *testing.T) {
	for _, payload := range []string{"open the gate", ""} {
		g := accepting()
		b := serve(t, g)
		c := start(t, b.Addr("mqtt"), connect{id: "hmi"})
		c.subscribe(1, 0, replyTopic)
		c.publish(pub{topic: taskTopic, payload: payload, qos: 1, id: 5, retain: true})
		c.want(packets.Puback)
		if r := c.wantRefusal("retained"); !strings.Contains(r.Error.Problem, "retain flag") || r.PacketID != 5 {
			t.Errorf("refusal %+v gives no hint", r)
		}
		if err := b.Publish("apollo/default/node/pump-1/state", []byte("{}"), 1, true); err != nil {
			t.Fatal(err)
		}
		c.publish(pub{topic: "apollo/default/node/pump-1/state", qos: 1, id: 6, retain: true})
		c.want(packets.Puback)
		c.wantRefusal("not_authorized")
		if n := len(g.submitted()); n != 0 {
			t.Errorf("%d submissions, want none", n)
		}
		for range 10 {
			again := start(t, b.Addr("mqtt"), connect{id: "other"})
			again.subscribe(1, 0, "#")
			if pk := again.want(packets.Publish); pk.TopicName != "apollo/default/node/pump-1/state" {
				t.Fatalf("got %s", describe(pk))
			}
			again.ping()
		}
		agent := start(t, b.Addr("mqtt"), connect{id: "agent/pump-1", version: 5})
		agent.publish(pub{topic: "apollo/default/evt/pump-1", payload: "e", qos: 1, id: 5, retain: true})
		if ack := agent.want(packets.Puback); ack.ReasonCode != 0x83 {
			t.Errorf("got %s, want code 0x83", describe(ack))
		}
	}
}

// A10: for a tool that always sets the flag it is taken off.
func TestA10_RetainFlagIsTakenOffForListedClients(t *testing.T) {
	g := accepting()
	b := serve(t, g, func(c *broker.Config) { c.StripRetain = []string{"mqttjs_", "fuxa"} })
	for _, o := range []connect{{id: "mqttjs_1234"}, {id: "x", user: "fuxa", pass: "p"}} {
		c := start(t, b.Addr("mqtt"), o)
		c.publish(pub{topic: taskTopic, payload: "x", qos: 1, id: 1, retain: true})
		c.want(packets.Puback)
		if got := c.subscribe(2, 0, taskTopic); got[0] != 0 {
			t.Errorf("subscribe to the own command topic: code %#x, want 0", got[0])
		}
		c.ping() // nothing retained
	}
	if n := len(g.submitted()); n != 2 {
		t.Errorf("%d submissions, want 2", n)
	}
}

// The reply topic of any client id is one level, and only its owner reads it.
func TestReplyTopicOfAnOddClientID(t *testing.T) {
	b := serve(t, deciding(broker.Verdict{Reason: broker.Invalid, Text: "no"}))
	other := start(t, b.Addr("mqtt"), connect{id: "a"})
	other.subscribe(1, 0, "#", "apollo/default/reply/#")
	c := start(t, b.Addr("mqtt"), connect{id: "a/#+%"})
	c.subscribe(1, 0, "apollo/default/reply/+")
	c.publish(pub{topic: taskTopic, payload: "x", qos: 1, id: 1})
	c.want(packets.Puback)
	if pk := c.want(packets.Publish); pk.TopicName != "apollo/default/reply/a%2F%23%2B%25" {
		t.Errorf("reply on %s", pk.TopicName)
	}
	other.ping()
}

// A packet over the limit is refused by name, its bytes are not kept, and the
// connection goes on, so that a store-and-forward client does not loop on it.
func TestOversizePublishIsRefusedAndTheClientGoesOn(t *testing.T) {
	for _, version := range []byte{4, 5} {
		for _, qos := range []byte{0, 1, 2} {
			t.Run(fmt.Sprintf("version %d QoS %d", version, qos), func(t *testing.T) {
				g := accepting()
				b := serve(t, g)
				c := open(t, b.Addr("mqtt"), connect{id: "hmi", version: version})
				if ack := c.want(packets.Connack); version == 5 && ack.Properties.MaximumPacketSize != 256<<10+5 {
					t.Errorf("announced packet size %d", ack.Properties.MaximumPacketSize)
				}
				c.subscribe(1, 0, replyTopic)
				p := pub{topic: taskTopic, payload: strings.Repeat("x", 1<<20), qos: qos}
				if qos > 0 {
					p.id = 5
				}
				c.publish(p)
				if qos > 0 {
					if ack := c.next(); version == 5 && ack.ReasonCode != 0x99 {
						t.Errorf("got %s, want code 0x99", describe(ack))
					}
				}
				if r := c.wantRefusal("too_large"); !strings.Contains(r.Error.Problem, "262144") {
					t.Errorf("refusal %+v does not name the limit", r)
				}
				c.publish(pub{topic: taskTopic, payload: "good", qos: 1, id: 6})
				c.want(packets.Puback)
				if s := g.submitted(); len(s) != 1 || string(s[0].Payload) != "good" {
					t.Errorf("%d submissions, want the good one", len(s))
				}
			})
		}
	}
}

// Beyond what MQTT clients send by mistake the connection is closed.
func TestPacketOfAHundredMegabytesClosesTheConnection(t *testing.T) {
	b := serve(t, accepting())
	c := start(t, b.Addr("mqtt"), connect{id: "hmi"})
	c.write([]byte{packets.Publish << 4, 0xff, 0xff, 0xff, 0x2f})
	c.wantClosed()
}

// An MQTT 5 request is answered on its response topic with its correlation data.
func TestF3_ResponseTopicGetsAcceptanceAndRefusal(t *testing.T) {
	for _, topic := range []string{replyTopic, replyTopic + "/7", "answers/hmi"} {
		g := new(gateway)
		b := serve(t, g)
		c := start(t, b.Addr("mqtt"), connect{id: "hmi", version: 5})
		if got := c.subscribe(1, 1, topic); got[0] != 1 {
			t.Fatalf("subscribe to %s: code %#x", topic, got[0])
		}
		verdicts := []broker.Verdict{
			{Reason: broker.Accepted, Body: []byte(`{"task_id":"t1"}`)},
			{Reason: broker.Invalid, Text: "no", Body: []byte(`{"error":"no"}`)},
		}
		for i, v := range verdicts {
			id := uint16(i + 1)
			c.publish(pub{topic: taskTopic, payload: "x", qos: 1, id: id,
				props: packets.Properties{ResponseTopic: topic, CorrelationData: []byte{byte(i), 9}}})
			g.waitSubmitted(t, i+1)[i].done(v)
			c.want(packets.Puback)
			pk := c.want(packets.Publish)
			if pk.TopicName != topic || string(pk.Payload) != string(v.Body) || string(pk.Properties.CorrelationData) != string([]byte{byte(i), 9}) {
				t.Errorf("answer %s correlation %v", describe(pk), pk.Properties.CorrelationData)
			}
		}
	}
}

// A client that sends many bad publishes at once gets all the answers, also
// when it asked for them with QoS 1 and reads them late.
func TestManyRefusalsAtOnceAreAllAnswered(t *testing.T) {
	const n = 500
	b := serve(t, deciding(broker.Verdict{Reason: broker.Invalid, Text: "no"}), func(c *broker.Config) { c.Limits.Outbound = 64 })
	c := start(t, b.Addr("mqtt"), connect{id: "hmi"})
	c.subscribe(1, 1, replyTopic)
	for id := uint16(1); id <= n; id++ {
		c.publish(pub{topic: taskTopic, payload: "x", qos: 1, id: id})
	}
	acks, replies := 0, 0
	for acks+replies < 2*n {
		switch pk := c.next(); pk.FixedHeader.Type {
		case packets.Puback:
			acks++
		case packets.Publish:
			replies++
		}
	}
	if acks != n || replies != n {
		t.Errorf("%d receipts and %d replies, want %d of each", acks, replies, n)
	}
}

// A response topic can not be used to speak where the client may not.
func TestResponseTopicIsGuarded(t *testing.T) {
	for _, topic := range []string{"apollo/default/cmd/pump-1", "apollo/default/task/t/status", "apollo/default/reply/other", "d/p00001", "$SYS/x", "n/p00001"} {
		g := deciding(broker.Verdict{Reason: broker.Accepted, Body: []byte("{}")})
		b := serve(t, g)
		all := start(t, b.Addr("mqtt"), connect{id: "other"})
		all.subscribe(1, 0, "#", "apollo/default/reply/other")
		c := start(t, b.Addr("mqtt"), connect{id: "hmi", version: 5})
		c.publish(pub{topic: taskTopic, payload: "x", qos: 1, id: 1, props: packets.Properties{ResponseTopic: topic}})
		c.want(packets.Puback)
		all.ping()
		if s := g.submitted()[0]; s.ResponseTopic != "" {
			t.Errorf("response topic %q was passed on", s.ResponseTopic)
		}
	}
}

// An MQTT 3.1.1 client that was told to come back has its later publishes
// ignored until it does, so that their order is kept.
func TestNothingIsTakenBetweenAWithheldReceiptAndTheDisconnect(t *testing.T) {
	g := deciding(broker.Verdict{Reason: broker.Quota, Text: "full"})
	b := serve(t, g)
	c := start(t, b.Addr("mqtt"), connect{id: "hmi"})
	for id := uint16(1); id <= 3; id++ {
		c.publish(pub{topic: taskTopic, payload: "x", qos: 1, id: id})
	}
	if got := c.wantClosed(); len(got) != 0 {
		t.Errorf("before the close came %v", got)
	}
	if n := len(g.submitted()); n != 1 {
		t.Errorf("%d submissions, want 1", n)
	}
}

// A18: a client id may hold anything that a topic level may not; its reply topic
// is one level all the same, and nobody else's.
func TestA18_ReplyTopicOfAnOddClientID(t *testing.T) {
	const topic = "apollo/default/reply/panel%201%2F%C2%B1"
	b := serve(t, deciding(broker.Verdict{Reason: broker.Invalid, Text: "because"}))
	other := start(t, b.Addr("mqtt"), connect{id: "panel 1"})
	other.subscribe(1, 0, "apollo/default/reply/#")
	c := start(t, b.Addr("mqtt"), connect{id: "panel 1/\u00b1"})
	if code := c.subscribe(1, 0, topic)[0]; code != 0 {
		t.Fatalf("subscription to %s: code %#x", topic, code)
	}
	c.publish(pub{topic: taskTopic, payload: "x", qos: 1, id: 5})
	c.want(packets.Puback)
	if pk := c.want(packets.Publish); pk.TopicName != topic {
		t.Errorf("reply on %s, want %s", pk.TopicName, topic)
	}
	other.ping()
}
