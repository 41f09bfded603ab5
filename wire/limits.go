package wire

// Limits of what may be on the wire. Each bounds an allocation or a key size.
const (
	// MaxMessageBytes bounds one CBOR message in either direction. It is twice
	// MaxArgsBytes, so that a full set of arguments always fits in an envelope,
	// and well under the broker's packet limit.
	MaxMessageBytes = 32 << 10
	// MaxArgsBytes bounds the encoded arguments of one instruction.
	MaxArgsBytes = 16 << 10
	// MaxPayloadBytes bounds the encoded result payload of one event.
	MaxPayloadBytes = 8 << 10
	// MaxDetailBytes bounds a sentence for people (result detail, reasons).
	MaxDetailBytes = 512
	// MaxNestedLevels bounds the depth of any CBOR message: envelope, payload
	// map, and a few levels of the payload's own.
	MaxNestedLevels = 12
	// MaxArrayElements bounds any array in a message.
	MaxArrayElements = 1024
	// MaxMapPairs bounds any map in a message.
	MaxMapPairs = 256
	// MaxRecordLevels bounds the depth of a record in a log: a message inside it,
	// and a few levels of the record's own.
	MaxRecordLevels = MaxNestedLevels + 4
	// MaxRecordElements bounds any array or map in a record: the nodes of the
	// largest task, with room.
	MaxRecordElements = 1 << 17
	// MaxAttempt is the highest attempt number: the compact ack has one byte for it.
	MaxAttempt = 255
	// MaxCompactSeq is the highest instruction sequence that a compact frame can
	// carry: five bytes of base-128 digits. At a million instructions a day it
	// lasts 94 years.
	MaxCompactSeq = 1<<35 - 1
	// MaxRefs bounds the instructions named in one Query, Report or Heartbeat.
	MaxRefs = 512
	// MaxForeign bounds the outputs named in one Heartbeat; more are left out.
	MaxForeign = 64
	// MaxLines bounds the lines that one instruction or a welcome names: all that a
	// pin map can have.
	MaxLines = 256
	// MaxLabels bounds the labels of a node, MaxLabelBytes the bytes of them that an
	// agent may be given: beside as many pins as a map can have, with names of full
	// length and all their traits, they fit one hello. A gateway takes more.
	MaxLabels     = 64
	MaxLabelBytes = 8 << 10
)
