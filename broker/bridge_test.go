package broker_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/mochi-mqtt/server/v2/packets"

	"github.com/apollo-11/apollo11/broker"
)

// bridge is the broker of a plant that forwards its commands to the gateway, as
// far as the gateway sees it: one client with a session that is kept, QoS 2, and
// every step repeated after a cut until it is answered.
type bridge struct {
	t *testing.T
	b *running
	c *client
}

func (br *bridge) connect() {
	br.t.Helper()
	br.c = start(br.t, br.b.Addr("mqtt"), connect{id: "plant.bridge", persistent: true})
}

// cut ends the connection without a word, and comes back.
func (br *bridge) cut() {
	br.t.Helper()
	_ = br.c.conn.Close()
	br.connect()
}

func (br *bridge) publish(id uint16, dup bool) {
	br.t.Helper()
	br.c.publish(pub{topic: taskTopic, payload: fmt.Sprintf("command %d", id), qos: 2, id: id, dup: dup})
}

// B13: the connection is cut at every step of the QoS 2 exchange. The bridge is
// let in again each time, is answered as it expects, and the gateway gets each
// command once; a copy only where it must decide, with the flag by which it
// recognises it (A10).
func TestB13_BridgeAtQoS2WithCutsAtEveryStep(t *testing.T) {
	for _, step := range []struct {
		name   string
		play   func(t *testing.T, br *bridge, g *gateway, id uint16)
		copies int // repetitions that the gateway has to recognise
	}{
		{"no cut", func(_ *testing.T, br *bridge, _ *gateway, id uint16) {
			br.publish(id, false)
			br.c.want(packets.Pubrec)
			br.c.ack(packets.Pubrel, id)
			br.c.want(packets.Pubcomp)
		}, 0},
		{"the publish did not arrive", func(_ *testing.T, br *bridge, _ *gateway, id uint16) {
			br.cut()
			br.publish(id, true) // the bridge cannot know
			br.c.want(packets.Pubrec)
			br.c.ack(packets.Pubrel, id)
			br.c.want(packets.Pubcomp)
		}, 0},
		{"before the verdict", func(t *testing.T, br *bridge, g *gateway, id uint16) {
			g.verdict = nil
			br.publish(id, false)
			first := g.waitSubmitted(t, 1)[0]
			br.cut()
			first.done(broker.Verdict{Reason: broker.Accepted}) // to nobody
			br.publish(id, true)
			g.waitSubmitted(t, 2)[1].done(broker.Verdict{Reason: broker.Accepted})
			br.c.want(packets.Pubrec)
			br.c.ack(packets.Pubrel, id)
			br.c.want(packets.Pubcomp)
		}, 1},
		{"PUBREC lost", func(_ *testing.T, br *bridge, _ *gateway, id uint16) {
			br.publish(id, false)
			br.c.want(packets.Pubrec) // read by the test, not by the bridge
			br.cut()
			br.publish(id, true)
			br.c.want(packets.Pubrec)
			br.c.ack(packets.Pubrel, id)
			br.c.want(packets.Pubcomp)
		}, 0},
		{"PUBREL lost", func(_ *testing.T, br *bridge, _ *gateway, id uint16) {
			br.publish(id, false)
			br.c.want(packets.Pubrec)
			br.cut()
			br.c.ack(packets.Pubrel, id)
			br.c.want(packets.Pubcomp)
		}, 0},
		{"PUBCOMP lost", func(_ *testing.T, br *bridge, _ *gateway, id uint16) {
			br.publish(id, false)
			br.c.want(packets.Pubrec)
			br.c.ack(packets.Pubrel, id)
			br.c.want(packets.Pubcomp)
			br.cut()
			br.c.ack(packets.Pubrel, id)
			br.c.want(packets.Pubcomp)
		}, 0},
		{"three cuts in one exchange", func(_ *testing.T, br *bridge, _ *gateway, id uint16) {
			br.publish(id, false)
			br.c.want(packets.Pubrec)
			br.cut()
			br.publish(id, true)
			br.c.want(packets.Pubrec)
			br.cut()
			br.c.ack(packets.Pubrel, id)
			br.c.want(packets.Pubcomp)
			br.cut()
			br.c.ack(packets.Pubrel, id)
			br.c.want(packets.Pubcomp)
		}, 0},
	} {
		t.Run(step.name, func(t *testing.T) {
			g := accepting()
			br := &bridge{t: t, b: serve(t, g)}
			br.connect()
			step.play(t, br, g, 7)
			var fresh, copies int
			for _, s := range g.submitted() {
				if string(s.Payload) != "command 7" || s.ClientID != "plant.bridge" || s.PacketID != 7 {
					t.Errorf("submission %+v", s.Submission)
				}
				if s.Dup && fresh+copies > 0 {
					copies++
				} else {
					fresh++
				}
			}
			if fresh != 1 || copies != step.copies {
				t.Errorf("%d commands and %d copies of them, want 1 and %d", fresh, copies, step.copies)
			}
			// The exchange is over: the id is free and the next command runs.
			g.verdict = func(broker.Submission) (broker.Verdict, bool) { return broker.Verdict{Reason: broker.Accepted}, true }
			before := len(g.submitted())
			br.publish(7, false)
			br.c.want(packets.Pubrec)
			br.c.ack(packets.Pubrel, 7)
			br.c.want(packets.Pubcomp)
			br.c.ping() // and nothing else came
			if n := len(g.submitted()) - before; n != 1 {
				t.Errorf("the next command was handed over %d times", n)
			}
			if s := br.b.Stats(); s.PendingReceipts != 0 || s.Sessions != 0 || s.Operators != 1 {
				t.Errorf("left behind: %+v", s)
			}
		})
	}
}

// B13: many commands under way at each cut, as after a night without a link.
// Nothing is lost, nothing is handed over twice without its flag.
func TestB13_BridgeWithAFullWindowIsCutAgainAndAgain(t *testing.T) {
	const n, cuts = 100, 10
	g := accepting()
	br := &bridge{t: t, b: serve(t, g)}
	br.connect()
	recorded := map[uint16]bool{} // the bridge has read the PUBREC
	for cut := range cuts {
		for id := uint16(1); id <= n; id++ {
			if !recorded[id] {
				br.publish(id, cut > 0)
			}
		}
		for range n / cuts {
			recorded[br.c.want(packets.Pubrec).PacketID] = true
		}
		br.cut()
	}
	for id := uint16(1); id <= n; id++ {
		if !recorded[id] {
			t.Fatalf("command %d was never received", id)
		}
		br.c.ack(packets.Pubrel, id)
		if comp := br.c.want(packets.Pubcomp); comp.PacketID != id {
			t.Fatalf("got %s, want the end of %d", describe(comp), id)
		}
	}
	seen := map[uint16]bool{}
	for _, s := range g.submitted() {
		if seen[s.PacketID] && !s.Dup {
			t.Errorf("command %d was handed over again without its flag", s.PacketID)
		}
		seen[s.PacketID] = true
	}
	if len(seen) != n {
		t.Errorf("%d of %d commands reached the gateway", len(seen), n)
	}
}

// B13: how Mosquitto begins. It first asks for its own protocol bit, and leaves a
// will on a topic of its own. The first is answered with the code at which it goes
// on without, the second is let pass, for nobody could read it.
func TestB13_StockBridgeComesIn(t *testing.T) {
	b := serve(t, accepting())
	for _, hello := range []string{
		"\x10\x18\x00\x04MQTT\x84\x00\x00\x3c\x00\x0cplant.bridge",
		"\x10\x1a\x00\x06MQIsdp\x83\x00\x00\x3c\x00\x0cplant.bridge",
		"\x10\x18\x00\x04MQTT\x06\x00\x00\x3c\x00\x0cplant.bridge",
	} {
		private := dial(t, b.Addr("mqtt"), 4)
		private.write([]byte(hello))
		if got := private.wantClosed(); len(got) != 1 || got[0].FixedHeader.Type != packets.Connack || got[0].ReasonCode != packets.Err3UnsupportedProtocolVersion.Code {
			t.Errorf("%q gets %d answers %v, want CONNACK 1", hello, len(got), got)
		}
	}
	if n := b.Stats().Refused; n != 3 || !b.log.contains("the gateway speaks MQTT 3.1, 3.1.1 and 5") {
		t.Errorf("%d refusals counted, or the log does not say why", n)
	}
	// Its will about itself is let pass; it does not open the way for others.
	will := start(t, b.Addr("mqtt"), connect{id: "plant.bridge", persistent: true, will: notice("$SYS/broker/connection/plant.bridge/state")})
	watch := start(t, b.Addr("mqtt"), connect{id: "hmi"})
	watch.subscribe(1, 1, "#")
	_ = will.conn.Close()
	for _, topic := range []string{taskTopic, "$SYS/broker/uptime", "plant/state"} {
		other := open(t, b.Addr("mqtt"), connect{id: "plant.bridge", will: notice(topic)})
		if got := other.wantClosed(); len(got) != 1 || got[0].ReasonCode != packets.Err3NotAuthorized.Code {
			t.Errorf("a will on %s gets %v, want CONNACK 5", topic, got)
		}
	}
	ok := &bridge{t: t, b: b}
	ok.connect()
	// Its notification is refused and acknowledged, so that it is not repeated.
	ok.c.publish(pub{topic: "$SYS/broker/connection/plant.bridge/state", payload: "1", qos: 1, id: 1, retain: true})
	if ack := ok.c.want(packets.Puback); ack.PacketID != 1 {
		t.Errorf("got %s", describe(ack))
	}
	if codes := ok.c.subscribe(2, 2, "apollo/default/task/+/status", "apollo/default/alarm"); strings.ContainsRune(string(codes), 0x80) {
		t.Errorf("what a bridge may read is refused: %v", codes)
	}
	ok.c.ping()
	watch.ping() // no will came
}

// notice is a retained will of a bridge.
func notice(topic string) *packets.Packet {
	return &packets.Packet{TopicName: topic, Payload: []byte("0"), FixedHeader: packets.FixedHeader{Qos: 1, Retain: true}}
}
