package broker_test

import (
	"fmt"
	"testing"

	"github.com/mochi-mqtt/server/v2/packets"
)

// BenchmarkIntake is one operator connection with 256 publishes in flight.
func BenchmarkIntake(b *testing.B) {
	for _, qos := range []byte{0, 1, 2} {
		b.Run(fmt.Sprintf("QoS %d", qos), func(b *testing.B) {
			g := new(counting)
			r := serve(b, g)
			c := start(b, r.Addr("mqtt"), connect{id: "hmi"})
			b.ReportAllocs()
			b.ResetTimer()
			const window = 256
			sent, done := 0, 0
			for done < b.N {
				for ; sent < b.N && sent-done < window; sent++ {
					p := pub{topic: taskTopic, payload: `{"intent":"gpio.write"}`, qos: qos}
					if qos > 0 {
						p.id = uint16(sent%60000) + 1
					}
					c.publish(p)
				}
				if qos == 0 {
					c.ping()
					done = sent
					continue
				}
				switch pk := c.next(); pk.FixedHeader.Type {
				case packets.Puback, packets.Pubcomp:
					done++
				case packets.Pubrec:
					c.ack(packets.Pubrel, pk.PacketID)
				}
			}
		})
	}
}

// BenchmarkDelivery is one message to one agent.
func BenchmarkDelivery(b *testing.B) {
	r := serve(b, new(counting))
	c := start(b, r.Addr("mqtt"), connect{id: "agent/pump-1"})
	c.subscribe(1, 0, "apollo/default/cmd/pump-1")
	payload := make([]byte, 100)
	b.ReportAllocs()
	b.ResetTimer()
	for range b.N {
		if err := r.Publish("apollo/default/cmd/pump-1", payload, 0, false); err != nil {
			b.Fatal(err)
		}
		c.want(packets.Publish)
	}
}
