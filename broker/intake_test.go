package broker_test

import (
	"fmt"
	"testing"

	"github.com/mochi-mqtt/server/v2/packets"

	"github.com/apollo-11/apollo11/broker"
)

// A2: nothing is acknowledged before the gateway says so, and then everything
// in the order in which it was sent, whatever the order of the verdicts.
func TestA2_NoReceiptBeforeTheVerdictAndAllInOrder(t *testing.T) {
	const n = 100
	for _, version := range []byte{4, 5} {
		for _, qos := range []byte{1, 2} {
			t.Run(fmt.Sprintf("version %d QoS %d", version, qos), func(t *testing.T) {
				g := new(gateway)
				b := serve(t, g)
				c := start(t, b.Addr("mqtt"), connect{id: "hmi", version: version})
				for id := uint16(1); id <= n; id++ {
					c.publish(pub{topic: taskTopic, payload: fmt.Sprint(id), qos: qos, id: id})
				}
				subs := g.waitSubmitted(t, n)
				c.ping() // fails on any receipt
				if p := b.Stats().PendingReceipts; p != n {
					t.Errorf("%d receipts are pending, want %d", p, n)
				}
				for i := n - 1; i >= 0; i-- {
					subs[i].done(broker.Verdict{Reason: broker.Accepted})
				}
				kind := byte(packets.Puback)
				if qos == 2 {
					kind = packets.Pubrec
				}
				for id := uint16(1); id <= n; id++ {
					if ack := c.want(kind); ack.PacketID != id || ack.ReasonCode != 0 {
						t.Fatalf("receipt %s, want id %d", describe(ack), id)
					}
				}
				if qos == 2 {
					for id := uint16(1); id <= n; id++ {
						c.ack(packets.Pubrel, id)
						if comp := c.want(packets.Pubcomp); comp.PacketID != id || comp.ReasonCode != 0 {
							t.Fatalf("completion %s, want id %d", describe(comp), id)
						}
					}
				}
				if p := b.Stats().PendingReceipts; p != 0 {
					t.Errorf("%d receipts are pending after all verdicts", p)
				}
			})
		}
	}
}
