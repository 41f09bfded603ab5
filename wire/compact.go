package wire

import (
	"encoding/binary"
	"fmt"
)

// Compact frames go over the narrowband path, where every byte is dear. They are
// not CBOR: a fixed layout is four bytes shorter and has one spelling.
//
//	byte 0     high nibble: version (1), low nibble: kind (1 ack, 2 query, 3 cancel, 4 safe)
//	1..5 bytes instruction sequence, base-128 little end first (uvarint, shortest form)
//	1 byte     attempt, from 1 (ack, query and cancel)
//	1 byte     result code (ack)
//	2 bytes    line, big end first (safe): LineKey.Hash, 0 for all with a safe level
//
// The sequence of a safe frame is the order number of its instruction. The frame has
// no attempt, so that four bytes of MAC fit into 12 later.
//
// An ack is 4 to 8 bytes. Four more are kept free for a truncated MAC: 12 bytes
// fit a Sigfox uplink, and 11 (LoRaWAN US915 DR0) hold every sequence below 2^28.
const (
	compactVersion = 1

	compactAck    = 1
	compactQuery  = 2
	compactCancel = 3
	compactSafe   = 4

	// MaxCompactBytes is the most that any compact frame may be, MAC included.
	MaxCompactBytes = 12
)

// CompactAck says what became of one attempt, without business data.
type CompactAck struct {
	Seq     uint64
	Attempt uint8
	Code    Code
}

// CompactQuery asks what became of one attempt. The answer is a CompactAck, with
// CodeNever when the agent does not know the attempt.
type CompactQuery struct {
	Seq     uint64
	Attempt uint8
}

// CompactCancel asks the agent to stop an attempt.
type CompactCancel struct {
	Seq     uint64
	Attempt uint8
}

// CompactSafe has a line driven to its safe level, on the path that is left when the
// primary one is dead. It drives unless something newer has begun on the line, and
// raises no mark. The answer is a CompactAck with the frame's number, attempt 1 and
// CodeDriven, or the code of a refusal.
type CompactSafe struct {
	// Seq is the order number of the instruction that it stands for.
	Seq  uint64
	Line uint16 // LineKey.Hash, 0 for all outputs with a safe level
}

func compactHead(kind byte, seq uint64) ([]byte, error) {
	if seq == 0 || seq > MaxCompactSeq {
		return nil, fmt.Errorf("instruction sequence %d does not fit a compact frame (1 to %d)", seq, uint64(MaxCompactSeq))
	}
	b := make([]byte, 1, MaxCompactBytes)
	b[0] = compactVersion<<4 | kind
	return binary.AppendUvarint(b, seq), nil
}

func compactAttempt(what string, seq uint64, attempt uint8) error {
	if attempt == 0 {
		return fmt.Errorf("compact %s of instruction %d: attempt 0, they count from 1", what, seq)
	}
	return nil
}

// Encode returns the frame. It errs when the sequence or the attempt is out of
// range or the code is unknown.
func (a CompactAck) Encode() ([]byte, error) {
	if a.Code.Class() == ClassInvalid || a.Code == CodeNone {
		return nil, fmt.Errorf("compact ack of instruction %d: %v is not a code to send", a.Seq, a.Code)
	}
	if err := compactAttempt("ack", a.Seq, a.Attempt); err != nil {
		return nil, err
	}
	b, err := compactHead(compactAck, a.Seq)
	if err != nil {
		return nil, err
	}
	return append(b, a.Attempt, byte(a.Code)), nil
}

// Encode returns the frame. It errs when the sequence or the attempt is out of
// range.
func (q CompactQuery) Encode() ([]byte, error) {
	return compactAsk(compactQuery, "query", q.Seq, q.Attempt)
}

// Encode returns the frame. It errs when the sequence or the attempt is out of
// range.
func (c CompactCancel) Encode() ([]byte, error) {
	return compactAsk(compactCancel, "cancel", c.Seq, c.Attempt)
}

// Encode returns the frame. It errs when the number is out of range.
func (c CompactSafe) Encode() ([]byte, error) {
	b, err := compactHead(compactSafe, c.Seq)
	if err != nil {
		return nil, err
	}
	return binary.BigEndian.AppendUint16(b, c.Line), nil
}

func compactAsk(kind byte, what string, seq uint64, attempt uint8) ([]byte, error) {
	if err := compactAttempt(what, seq, attempt); err != nil {
		return nil, err
	}
	b, err := compactHead(kind, seq)
	if err != nil {
		return nil, err
	}
	return append(b, attempt), nil
}

// DecodeCompact reads any compact frame: the result is a CompactAck, a
// CompactQuery, a CompactCancel or a CompactSafe. A frame of another version, of another
// length or with a sequence in a longer form than needed is an error.
func DecodeCompact(b []byte) (any, error) {
	if len(b) < 2 {
		return nil, fmt.Errorf("compact frame of %d bytes is too short", len(b))
	}
	if len(b) > MaxCompactBytes {
		return nil, fmt.Errorf("compact frame of %d bytes is longer than %d", len(b), MaxCompactBytes)
	}
	if v := b[0] >> 4; v != compactVersion {
		return nil, fmt.Errorf("compact frame has version %d, this program reads version %d", v, compactVersion)
	}
	seq, n := binary.Uvarint(b[1:])
	if n <= 0 || seq == 0 || seq > MaxCompactSeq {
		return nil, fmt.Errorf("compact frame %x: the sequence is missing or out of range", b)
	}
	if n > 1 && b[n] == 0 {
		return nil, fmt.Errorf("compact frame %x: the sequence is not in its shortest form", b)
	}
	rest := b[1+n:]
	wrong := func(want int) error {
		return fmt.Errorf("compact frame %x has %d bytes after the sequence, want %d", b, len(rest), want)
	}
	switch b[0] & 0x0f {
	case compactAck:
		if len(rest) != 2 {
			return nil, wrong(2)
		}
		a := CompactAck{Seq: seq, Attempt: rest[0], Code: Code(rest[1])}
		// A code that only a newer agent knows is passed on: the gateway shows it
		// as an unknown outcome.
		if a.Code == CodeNone {
			return nil, fmt.Errorf("compact ack of instruction %d carries no code", seq)
		}
		if err := compactAttempt("ack", seq, a.Attempt); err != nil {
			return nil, err
		}
		return a, nil
	case compactSafe:
		if len(rest) != 2 {
			return nil, wrong(2)
		}
		return CompactSafe{Seq: seq, Line: binary.BigEndian.Uint16(rest)}, nil
	case compactQuery, compactCancel:
		if len(rest) != 1 {
			return nil, wrong(1)
		}
		if err := compactAttempt("question", seq, rest[0]); err != nil {
			return nil, err
		}
		if b[0]&0x0f == compactQuery {
			return CompactQuery{Seq: seq, Attempt: rest[0]}, nil
		}
		return CompactCancel{Seq: seq, Attempt: rest[0]}, nil
	}
	return nil, fmt.Errorf("compact frame %x has the unknown kind %d", b, b[0]&0x0f)
}
