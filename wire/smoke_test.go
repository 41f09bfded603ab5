package wire_test

import (
	"bytes"
	"testing"

	"github.com/apollo-11/apollo11/wire"
)

func TestInstructionRoundTrip(t *testing.T) {
	args, err := wire.EncodeMap(map[string]any{"pin": "GPIO17", "level": uint64(1)}, wire.MaxArgsBytes)
	if err != nil {
		t.Fatal(err)
	}
	in := &wire.Instruction{
		Seq: 42, Key: wire.Key{Site: "default", Millis: 1712345678901, Seq: 42}.String(),
		Token: wire.Token{Shard: 1, Seq: 4711, Rand: 0x9f3ab2c1}, Attempt: 1, Intent: "gpio.write",
		Args: args, NotAfter: 1712345708901, Trace: wire.NewTrace(1, 2), SentAt: 1712345678902,
	}
	b, err := wire.Encode(in)
	if err != nil {
		t.Fatal(err)
	}
	m, err := wire.DecodeDownlink(b)
	if err != nil {
		t.Fatal(err)
	}
	b2, err := wire.Encode(m)
	if err != nil || !bytes.Equal(b, b2) {
		t.Fatalf("re-encoded %x, want %x (%v)", b2, b, err)
	}
	t.Logf("%d bytes: %x", len(b), b)
}
