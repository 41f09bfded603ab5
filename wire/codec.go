package wire

import (
	"fmt"
	"reflect"

	"github.com/fxamacker/cbor/v2"
)

// RawMap is an encoded CBOR map that is carried without being looked into. nil
// means absent.
type RawMap []byte

// MarshalCBOR implements cbor.Marshaler: the bytes as they are.
func (r RawMap) MarshalCBOR() ([]byte, error) {
	if len(r) == 0 {
		return nil, fmt.Errorf("empty raw map: leave the field absent instead")
	}
	return r, nil
}

// UnmarshalCBOR implements cbor.Unmarshaler. Anything but a map (major type 5)
// is refused.
func (r *RawMap) UnmarshalCBOR(b []byte) error {
	if len(b) == 0 || b[0]>>5 != 5 {
		return fmt.Errorf("not a map")
	}
	*r = append((*r)[:0:0], b...)
	return nil
}

// Modes are made once; they are immutable and safe for concurrent use. The
// options are valid by construction, which TestModesAreValid shows.
var (
	encMode, errEnc = encOptions().EncMode()
	decMode, errDec = decOptions().DecMode()
)

func encOptions() cbor.EncOptions {
	o := cbor.CoreDetEncOptions()
	o.NaNConvert = cbor.NaNConvertReject
	o.InfConvert = cbor.InfConvertReject
	return o
}

func decOptions() cbor.DecOptions {
	return cbor.DecOptions{
		DupMapKey:         cbor.DupMapKeyEnforcedAPF,
		IndefLength:       cbor.IndefLengthForbidden,
		TagsMd:            cbor.TagsForbidden,
		MaxNestedLevels:   MaxNestedLevels,
		MaxArrayElements:  MaxArrayElements,
		MaxMapPairs:       MaxMapPairs,
		NaN:               cbor.NaNDecodeForbidden,
		Inf:               cbor.InfDecodeForbidden,
		DefaultMapType:    reflect.TypeFor[map[string]any](),
		FieldNameMatching: cbor.FieldNameMatchingCaseSensitive,
	}
}

// Encode validates m and returns its only encoding.
func Encode(m Message) ([]byte, error) {
	m.setKind()
	if err := m.Validate(); err != nil {
		return nil, fmt.Errorf("encode %T: %w", m, err)
	}
	b, err := encMode.Marshal(m)
	if err != nil {
		return nil, fmt.Errorf("encode %T: %w", m, err)
	}
	if len(b) > MaxMessageBytes {
		return nil, fmt.Errorf("encode %T: %d bytes, the limit is %d", m, len(b), MaxMessageBytes)
	}
	return b, nil
}

// DecodeDownlink reads a message of the gateway.
func DecodeDownlink(b []byte) (Message, error) {
	return decode(b, func(k Kind) Message {
		switch k {
		case KindInstruction:
			return new(Instruction)
		case KindCancel:
			return new(Cancel)
		case KindQuery:
			return new(Query)
		case KindWelcome:
			return new(Welcome)
		case KindEventAck:
			return new(EventAck)
		}
		return nil
	})
}

// DecodeUplink reads a message of an agent.
func DecodeUplink(b []byte) (Message, error) {
	return decode(b, func(k Kind) Message {
		switch k {
		case KindHello:
			return new(Hello)
		case KindEvent:
			return new(Event)
		case KindHeartbeat:
			return new(Heartbeat)
		case KindReport:
			return new(Report)
		case KindDigest:
			return new(Digest)
		case KindGoodbye:
			return new(Goodbye)
		}
		return nil
	})
}

func decode(b []byte, make func(Kind) Message) (Message, error) {
	if len(b) > MaxMessageBytes {
		return nil, fmt.Errorf("message of %d bytes, the limit is %d", len(b), MaxMessageBytes)
	}
	if len(b) == 0 {
		return nil, fmt.Errorf("empty message")
	}
	// null decodes into any struct without an error, so the major type is
	// looked at first.
	if b[0]>>5 != 5 {
		return nil, fmt.Errorf("message starts with %#02x, not a CBOR map", b[0])
	}
	var head struct {
		K Kind `cbor:"0,keyasint"`
	}
	if err := decMode.Unmarshal(b, &head); err != nil {
		return nil, fmt.Errorf("message is not well-formed: %w", err)
	}
	m := make(head.K)
	if m == nil {
		return nil, fmt.Errorf("message of kind %d does not belong in this direction", head.K)
	}
	if err := decMode.Unmarshal(b, m); err != nil {
		return nil, fmt.Errorf("message of kind %d: %w", head.K, err)
	}
	if err := m.Validate(); err != nil {
		return nil, err
	}
	return m, nil
}

// EncodeMap encodes arguments or a result payload. nil and empty maps give nil.
// Values may be nil, bool, integers, float64, string, []byte, []any and
// map[string]any; NaN and infinities are refused.
func EncodeMap(m map[string]any, limit int) (RawMap, error) {
	if len(m) == 0 {
		return nil, nil
	}
	b, err := encMode.Marshal(m)
	if err != nil {
		return nil, fmt.Errorf("encode map: %w", err)
	}
	if len(b) > limit {
		return nil, fmt.Errorf("map takes %d bytes, the limit is %d", len(b), limit)
	}
	return b, nil
}

// DecodeMap reads what EncodeMap wrote. Integers come back as uint64 or int64,
// nested maps as map[string]any. nil gives nil.
func DecodeMap(r RawMap) (map[string]any, error) {
	if len(r) == 0 {
		return nil, nil
	}
	var m map[string]any
	if err := decMode.Unmarshal(r, &m); err != nil {
		return nil, fmt.Errorf("decode map: %w", err)
	}
	return m, nil
}

// EncodeRecord encodes a struct with integer keys for a log (the gateway's
// ledger, the agent's journal), by the same rules as messages.
func EncodeRecord(v any) ([]byte, error) { return encMode.Marshal(v) }

// DecodeRecord reads what EncodeRecord wrote into a fresh value.
func DecodeRecord(b []byte, v any) error { return decMode.Unmarshal(b, v) }
