package wire_test

import (
	"testing"

	"github.com/apollo-11/apollo11/wire"
)

// A message without arguments or payload is the common case, in a record too.
func TestAbsentRawMap(t *testing.T) {
	for name, empty := range map[string]wire.RawMap{"nil": nil, "empty": {}} {
		t.Run(name, func(t *testing.T) {
			b, err := wire.Encode(&wire.Event{Number: 1, Seq: 1, Token: wire.Token{Seq: 1}, Attempt: 1, Phase: wire.PhaseReceived, Payload: empty})
			if err != nil {
				t.Fatal(err)
			}
			m, err := wire.DecodeUplink(b)
			if err != nil || m.(*wire.Event).Payload != nil {
				t.Fatalf("decoded %+v, %v", m, err)
			}
			type record struct {
				_ struct{} `cbor:",toarray"`
				A wire.RawMap
				B uint64
			}
			b, err = wire.EncodeRecord(record{A: empty, B: 7})
			if err != nil {
				t.Fatal(err)
			}
			var r record
			if err := wire.DecodeRecord(b, &r); err != nil || r.A != nil || r.B != 7 {
				t.Fatalf("decoded %+v, %v", r, err)
			}
		})
	}
}
