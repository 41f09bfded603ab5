package wire

import (
	"hash/fnv"
	"time"
)

// LineKey stands for one kernel line of a board on the wire: whoever compares two
// names of pins compares these (order at a line, marks, holds). It is the 64-bit
// FNV-1a hash of the one name that the board has for the line, and never 0. 256
// lines of a board collide once in 10^14; then they merely wait for each other.
type LineKey uint64

// LineOf is the key of the line that a board knows under this name. While no
// hello has told the key of a pin, a gateway takes the pin's name.
func LineOf(name string) LineKey {
	h := fnv.New64a()
	_, _ = h.Write([]byte(name)) // a hash never fails
	return LineKey(max(h.Sum64(), 1))
}

// Hash names the line in a compact frame, where every byte is dear: never 0, which
// stands for all outputs with a safe level. Two lines of one board share one in
// 65,535: the frame then drives both safe.
func (k LineKey) Hash() uint16 {
	h := uint16(k) ^ uint16(k>>16) ^ uint16(k>>32) ^ uint16(k>>48)
	return max(h, 1)
}

// Rules is the version of the rules for order at a line and the way to safe that a
// program follows (docs/safety.md). A program that names none follows none: its
// instructions count their sequence, and it is told nothing that it can't read (see
// Code.OldCode and LeaseEnd.OldLeaseEnd).
type Rules uint8

// The versions.
const (
	// RulesOrder: order numbers and marks, the way to safe, holds, lines that are
	// kept for a retry, ends by the board itself.
	RulesOrder Rules = 1
	// RulesUrgent: SafeNow, which drives before the gateway has written its record.
	RulesUrgent Rules = 2
	// NewestRules is what this program follows.
	NewestRules = RulesUrgent
)

// PinFlags say what a pin is and how it stands, in a hello.
type PinFlags uint16

// The flags.
const (
	PinOutput    PinFlags = 1 << 0 // an output; an input otherwise
	PinHasSafe   PinFlags = 1 << 1 // it has a safe level
	PinSafeHigh  PinFlags = 1 << 2 // which is high
	PinOnLoss    PinFlags = 1 << 3 // it falls to the safe level when the gateway is lost
	PinCommanded PinFlags = 1 << 4 // its level is known: the one that was commanded last
	PinHigh      PinFlags = 1 << 5 // which is high
	PinHeld      PinFlags = 1 << 6 // it is held at the safe level until somebody releases it
)

// PinTraits are what the gateway must know of a pin, in the order of Hello.Pins.
type PinTraits struct {
	_       struct{} `cbor:",toarray"`
	Line    LineKey
	Flags   PinFlags
	MaxOnMs uint64 // longest time away from the safe level, 0 for no limit
}

// MaxMaxOn is the longest max_on that a pin map may have.
const MaxMaxOn = 31 * 24 * time.Hour

// Safe returns the safe level of a pin, and false if it has none.
func (p PinTraits) Safe() (high, ok bool) {
	return p.Flags&PinSafeHigh != 0, p.Flags&PinOutput != 0 && p.Flags&PinHasSafe != 0
}

// Level is how an output stands in a heartbeat.
type Level uint8

// The levels.
const (
	LevelUnknown Level = 0 // never set, or no output
	LevelLow     Level = 1
	LevelHigh    Level = 2
	LevelHeld    Level = 3 // at its safe level, and held there
)

// PackLevels puts levels into a byte string, four a byte, the first in the lowest
// bits.
func PackLevels(levels []Level) []byte {
	if len(levels) == 0 {
		return nil
	}
	b := make([]byte, (len(levels)+3)/4)
	for i, l := range levels {
		b[i/4] |= byte(l&3) << (i % 4 * 2)
	}
	return b
}

// UnpackLevel returns the i-th level of a packed list; LevelUnknown behind its end.
func UnpackLevel(b []byte, i int) Level {
	if i < 0 || i/4 >= len(b) {
		return LevelUnknown
	}
	return Level(b[i/4]>>(i%4*2)) & 3
}
