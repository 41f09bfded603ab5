package broker_test

import (
	"fmt"
	"testing"

	"github.com/mochi-mqtt/server/v2/packets"
)

// everything is one topic of each kind.
var everything = []string{
	"apollo/default/cmd/pump-1", "apollo/default/cmd/pump-2", "apollo/default/evt/pump-1",
	"d/p00001", "d/p00002", "n/p00001", "$SYS/broker/clients", "$apollo/x",
	"apollo/default/task/t1/status", "apollo/default/task/t1/other", "apollo/default/task/a/b/status",
	"apollo/default/node/pump-1/state", "apollo/default/alarm",
	"apollo/default/node/pump-1/pin/valve-1", "apollo/default/node/a/b/pin/valve-1", "apollo/default/node/pump-1/pin/a/b",
	"apollo/default/reply/hmi", "apollo/default/reply/other", "apollo/north/task/t1/status",
	"answers/hmi",
}

// B19: whatever a client subscribes to, it gets what its role may read and
// nothing of ours besides; a filter that can match nothing is refused visibly.
func TestB19_SubscriptionsDeliverWhatTheRoleMayRead(t *testing.T) {
	operator := []string{"apollo/default/task/t1/status", "apollo/default/node/pump-1/state", "apollo/default/alarm",
		"apollo/default/node/pump-1/pin/valve-1", "apollo/default/reply/hmi", "answers/hmi"}
	cases := []struct {
		id, listener, filter string
		want                 []string // nil: refused
	}{
		{"hmi", "mqtt", "#", operator},
		{"hmi", "mqtt", "+/+/+/+/+", []string{"apollo/default/task/t1/status", "apollo/default/node/pump-1/state"}},
		{"hmi", "mqtt", "apollo/#", operator[:5]},
		{"hmi", "mqtt", "apollo/default/task/+/status", operator[:1]},
		{"hmi", "mqtt", "apollo/default/alarm", operator[2:3]},
		{"hmi", "mqtt", "apollo/default/reply/hmi", operator[4:5]},
		{"hmi", "mqtt", "apollo/default/reply/+", operator[4:5]},
		{"hmi", "mqtt", "apollo/default/node/+/pin/+", operator[3:4]},
		{"hmi", "mqtt", "apollo/default/task", []string{}},
		{"hmi", "mqtt", "answers/#", operator[5:]},
		{"hmi", "mqtt", "apollo/default/cmd/#", nil},
		{"hmi", "mqtt", "apollo/default/evt/+", nil},
		{"hmi", "mqtt", "apollo/default/reply/other", nil},
		{"hmi", "mqtt", "$SYS/#", nil},
		{"hmi", "mqtt", "$share/g/#", nil},
		{"hmi", "mqtt", "$share/g/apollo/default/alarm", nil},
		{"hmi", "mqtt", "d/+", nil},
		{"hmi", "mqtt", "a/#/b", nil},
		{"hmi", "mqtt", "a+/b", nil},
		{"agent/pump-1", "mqtt", "#", []string{"apollo/default/cmd/pump-1"}},
		{"agent/pump-1", "mqtt", "apollo/+/cmd/+", []string{"apollo/default/cmd/pump-1"}},
		{"agent/pump-1", "mqtt", "apollo/default/cmd/pump-2", nil},
		{"agent/pump-1", "mqtt", "apollo/default/alarm", nil},
		{"agent/pump-1", "mqtt", "d/p00001", nil},
		{"nb/p00001", "narrowband", "#", []string{"d/p00001"}},
		{"nb/p00001", "narrowband", "d/p00002", nil},
		{"nb/p00001", "narrowband", "apollo/default/cmd/p00001", nil},
	}
	for _, version := range []byte{4, 5} {
		for _, tc := range cases {
			t.Run(fmt.Sprintf("version %d %s %s", version, tc.id, tc.filter), func(t *testing.T) {
				b := serve(t, accepting())
				c := start(t, b.Addr(tc.listener), connect{id: tc.id, version: version})
				code := c.subscribe(1, 0, tc.filter)[0]
				if refused := map[byte]byte{4: 0x80, 5: 0x87}[version]; tc.want == nil {
					if code != refused {
						t.Fatalf("code %#x, want %#x", code, refused)
					}
					if !b.log.contains("subscribe refused") {
						t.Error("the log lacks the refusal")
					}
				} else if code != 0 {
					t.Fatalf("refused: %#x", code)
				}
				for _, topic := range everything {
					if err := b.Publish(topic, []byte("x"), 1, false); err != nil {
						t.Fatal(err)
					}
				}
				for _, want := range tc.want {
					if pk := c.want(packets.Publish); pk.TopicName != want {
						t.Fatalf("got %s, want %s", pk.TopicName, want)
					}
				}
				c.ping()
			})
		}
	}
}

// Several filters in one SUBSCRIBE get their own answers, also beside refused ones.
func TestEachFilterOfASubscribeHasItsOwnAnswer(t *testing.T) {
	b := serve(t, accepting())
	c := start(t, b.Addr("mqtt"), connect{id: "hmi", version: 5})
	got := c.subscribe(9, 2, "apollo/default/alarm", "$SYS/#", "apollo/default/cmd/x", "answers/x")
	if want := []byte{2, 0x87, 0x87, 2}; string(got) != string(want) {
		t.Errorf("codes %#v, want %#v", got, want)
	}
}
