package wire

import (
	"fmt"
	"reflect"

	"github.com/fxamacker/cbor/v2"
)

// cborNull is the encoding of null, which in every field means absent.
const cborNull = 0xf6

// RawMap is an encoded CBOR map that is carried without being looked into. nil
// means absent. A field of this type needs omitzero, not omitempty: the encoder
// never takes a type with its own MarshalCBOR for empty.
type RawMap []byte

// IsZero reports whether the map is absent; the encoder asks it for omitzero.
func (r RawMap) IsZero() bool { return len(r) == 0 }

// MarshalCBOR implements cbor.Marshaler: the bytes as they are, null for none.
func (r RawMap) MarshalCBOR() ([]byte, error) {
	if len(r) == 0 {
		return []byte{cborNull}, nil
	}
	if r[0]>>5 != 5 {
		return nil, fmt.Errorf("raw map starts with %#02x, not a CBOR map", r[0])
	}
	return r, nil
}

// UnmarshalCBOR implements cbor.Unmarshaler. Anything but a map (major type 5)
// or null is refused. What is inside is checked by DecodeMap, not here: an agent
// must be able to read an instruction with bad arguments in order to refuse it.
func (r *RawMap) UnmarshalCBOR(b []byte) error {
	if len(b) == 1 && b[0] == cborNull {
		*r = nil
		return nil
	}
	if len(b) == 0 || b[0]>>5 != 5 {
		return fmt.Errorf("not a map")
	}
	*r = append((*r)[:0:0], b...)
	return nil
}

// Modes are made once; they are immutable and safe for concurrent use. The
// options are valid by construction, which TestModesAreValid shows. mapMode is
// for what stands one level down in a message.
var (
	encMode, errEnc = encOptions().EncMode()
	decMode, errDec = decOptions(MaxNestedLevels).DecMode()
	mapMode, errMap = decOptions(MaxNestedLevels - 1).DecMode()
	recMode, errRec = recordOptions().DecMode()
)

func encOptions() cbor.EncOptions {
	o := cbor.CoreDetEncOptions()
	o.NaNConvert = cbor.NaNConvertReject
	o.InfConvert = cbor.InfConvertReject
	// A list without elements has one spelling, whether Go has it as nil or not.
	o.NilContainers = cbor.NilContainerAsEmpty
	return o
}

// simpleValues accepts false, true and null. The library would read the others,
// which have no meaning here, as small integers or as null.
func simpleValues() *cbor.SimpleValueRegistry {
	var reject []func(*cbor.SimpleValueRegistry) error
	for v := range 256 {
		if v >= 20 && v <= 22 || v >= 24 && v <= 31 { // 24 to 31 cannot be encoded
			continue
		}
		reject = append(reject, cbor.WithRejectedSimpleValue(cbor.SimpleValue(v)))
	}
	// An error means that a value cannot be rejected; TestModesAreValid shows
	// that there is none, and a nil registry would make that test fail.
	r, err := cbor.NewSimpleValueRegistryFromDefaults(reject...)
	if err != nil {
		return nil
	}
	return r
}

func decOptions(levels int) cbor.DecOptions {
	return cbor.DecOptions{
		DupMapKey:         cbor.DupMapKeyEnforcedAPF,
		IndefLength:       cbor.IndefLengthForbidden,
		TagsMd:            cbor.TagsForbidden,
		MaxNestedLevels:   levels,
		MaxArrayElements:  MaxArrayElements,
		MaxMapPairs:       MaxMapPairs,
		NaN:               cbor.NaNDecodeForbidden,
		Inf:               cbor.InfDecodeForbidden,
		DefaultMapType:    reflect.TypeFor[map[string]any](),
		FieldNameMatching: cbor.FieldNameMatchingCaseSensitive,
		SimpleValues:      simpleValues(),
	}
}

// recordOptions are for our own logs: what EncodeRecord wrote must always be
// readable again, so the limits are wider and text need not be UTF-8.
func recordOptions() cbor.DecOptions {
	o := decOptions(MaxRecordLevels)
	o.MaxArrayElements = MaxRecordElements
	o.MaxMapPairs = MaxRecordElements
	o.UTF8 = cbor.UTF8DecodeInvalid
	return o
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
	// The peer refuses what is too deep or has too many elements; better to say
	// so here, where somebody can still do something about it.
	if err := decMode.Wellformed(b); err != nil {
		return nil, fmt.Errorf("encode %T: %w", m, err)
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
		case KindRelease:
			return new(Release)
		case KindSafeNow:
			return new(SafeNow)
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

// EventNumber returns the number of an event that cannot be read otherwise, for
// example because a newer agent put something into it that this program does
// not know. Such an event must be taken in as unreadable, or its agent would
// send it for ever.
func EventNumber(b []byte) (uint64, bool) {
	var head struct {
		K      Kind   `cbor:"0,keyasint"`
		Number uint64 `cbor:"1,keyasint"`
	}
	if len(b) == 0 || len(b) > MaxMessageBytes || b[0]>>5 != 5 || decMode.Unmarshal(b, &head) != nil {
		return 0, false
	}
	return head.Number, head.K == KindEvent && head.Number != 0
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
// map[string]any. NaN, infinities, text that is not UTF-8 and whatever else
// DecodeMap would refuse in a message is refused here.
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
	if _, err := DecodeMap(b); err != nil {
		return nil, fmt.Errorf("encode map: %w", err)
	}
	return b, nil
}

// DecodeMap reads what EncodeMap wrote. Integers come back as uint64, negative
// ones as int64 (below -2^63, which EncodeMap's caller cannot have had, as
// big.Int), floats of every width as float64, nested maps as map[string]any. A
// key that is not text, a second entry of a key, and text that is not UTF-8 are
// errors. nil gives nil.
func DecodeMap(r RawMap) (map[string]any, error) {
	if len(r) == 0 {
		return nil, nil
	}
	var m map[string]any
	if err := mapMode.Unmarshal(r, &m); err != nil {
		return nil, fmt.Errorf("decode map: %w", err)
	}
	return m, nil
}

// EncodeRecord encodes a struct with integer keys for a log (the gateway's
// ledger, the agent's journal), by the same rules as messages but with the limits
// MaxRecordLevels and MaxRecordElements. It errs when DecodeRecord could not read
// the record again.
func EncodeRecord(v any) ([]byte, error) {
	b, err := encMode.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("encode record %T: %w", v, err)
	}
	if err := recMode.Wellformed(b); err != nil {
		return nil, fmt.Errorf("encode record %T: %w", v, err)
	}
	return b, nil
}

// DecodeRecord reads what EncodeRecord wrote into v, a pointer to a fresh value:
// fields that the record does not have are left as they are.
func DecodeRecord(b []byte, v any) error {
	if err := recMode.Unmarshal(b, v); err != nil {
		return fmt.Errorf("decode record %T: %w", v, err)
	}
	return nil
}
