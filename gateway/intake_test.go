package gateway

import (
	"testing"
	"time"

	"github.com/apollo-11/apollo11/broker"
	"github.com/apollo-11/apollo11/gateway/engine"
	"github.com/apollo-11/apollo11/wire"
)

// A publish on a safe topic is what its topic says, whatever is in it and on it. Its own
// expiry is its only limit, and it is never taken for the copy of an earlier one.
func TestSafeTopicIsTakenAsItIs(t *testing.T) {
	topics, err := wire.NewTopics("plant")
	if err != nil {
		t.Fatal(err)
	}
	l := newLoop(nil, nil, time.Now(), nil, nil)
	k := &intake{ctx: t.Context(), topics: topics, loop: l}
	for name, s := range map[string]broker.Submission{
		"bare":           {Topic: topics.Safe("pump-1", "")},
		"a pin":          {Topic: topics.Safe("pump-1", "valve-1"), QoS: 1, PacketID: 7, ClientID: "hmi"},
		"once more":      {Topic: topics.Safe("pump-1", "valve-1"), QoS: 1, PacketID: 7, ClientID: "hmi", Dup: true},
		"with an expiry": {Topic: topics.Safe("pump-1", ""), QoS: 2, PacketID: 8, ClientID: "hmi", Username: "olga", Expiry: 90 * time.Second},
		"a payload":      {Topic: topics.Safe("pump-1", ""), Payload: []byte(`{"intent":"gpio.write","ttl_ms":1}`)},
	} {
		k.Submit(s, func(v broker.Verdict) { t.Errorf("%s: answered at once: %+v", name, v) })
		if len(l.inputs) != 1 {
			t.Fatalf("%s: %d inputs", name, len(l.inputs))
		}
		in, ok := (<-l.inputs).(*engine.Submit)
		if !ok {
			t.Fatalf("%s: not a submission", name)
		}
		if in.Spec.Intent != wire.IntentSafe || len(in.Spec.Nodes) != 1 || in.Spec.Nodes[0] != "pump-1" || in.Spec.TTLMs != s.Expiry.Milliseconds() || in.Spec.NotAfter != 0 {
			t.Errorf("%s: %+v", name, in.Spec)
		}
		if in.Mark != nil || in.Dup || in.Spec.TaskID != "" {
			t.Errorf("%s: it may be taken for a copy: %+v", name, in)
		}
	}
}
