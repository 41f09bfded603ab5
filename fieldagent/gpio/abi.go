package gpio

import (
	"bytes"
	"encoding/binary"
	"time"
)

// The kernel's character device interface, version 2 (Linux 5.10 and later), as
// in its header linux/gpio.h. Every 64-bit field lies at a multiple of 8, so that
// the layouts are the same on 32- and 64-bit machines, and for a 32-bit agent on
// a 64-bit kernel; a test holds sizes, offsets and numbers.

// ioctl numbers: direction, size, type 0xB4, number.
const (
	ioChipInfo  = 0x8044b401
	ioLineInfo  = 0xc100b405
	ioGetLine   = 0xc250b407
	ioSetConfig = 0xc110b40d
	ioGetValues = 0xc010b40e
	ioSetValues = 0xc010b40f
)

// Flags of a line.
const (
	flagUsed      = 1 << 0
	flagActiveLow = 1 << 1
	flagInput     = 1 << 2
	flagOutput    = 1 << 3
	flagRising    = 1 << 4
	flagFalling   = 1 << 5
	flagPullUp    = 1 << 8
	flagPullDown  = 1 << 9
	flagNoPull    = 1 << 10
)

// Attributes of a configuration.
const (
	attrOutputValues = 2
	attrDebounce     = 3
)

// eventRising is the kind of an event whose line went active, in the sense of the
// active-low flag.
const eventRising = 1

const (
	maxLines   = 64 // lines of one request; we ask for one
	maxAttrs   = 10
	nameLen    = 32
	eventBytes = 48
)

type abiChipInfo struct {
	name, label [nameLen]byte
	lines       uint32
}

type abiAttr struct {
	id    uint32
	_     uint32
	value uint64 // output values, or the debounce time in µs in its low half
}

type abiLineInfo struct {
	name, consumer [nameLen]byte
	offset         uint32
	attrCount      uint32
	flags          uint64
	attrs          [maxAttrs]abiAttr
	_              [4]uint32
}

type abiConfigAttr struct {
	attr abiAttr
	mask uint64
}

type abiConfig struct {
	flags     uint64
	attrCount uint32
	_         [5]uint32
	attrs     [maxAttrs]abiConfigAttr
}

type abiRequest struct {
	offsets     [maxLines]uint32
	consumer    [nameLen]byte
	config      abiConfig
	lines       uint32
	eventBuffer uint32
	_           [5]uint32
	fd          int32
}

type abiValues struct{ bits, mask uint64 }

// lineEvent is one edge, as it is read from a line.
type lineEvent struct {
	nanos  uint64 // on CLOCK_MONOTONIC
	rising bool
	seq    uint32 // counts the edges of the line, also those that were dropped
}

// parseEvent takes an event apart. b holds eventBytes.
func parseEvent(b []byte) lineEvent {
	return lineEvent{
		nanos:  binary.NativeEndian.Uint64(b),
		rising: binary.NativeEndian.Uint32(b[8:]) == eventRising,
		seq:    binary.NativeEndian.Uint32(b[20:]),
	}
}

// add appends an attribute for the one line of the request.
func (c *abiConfig) add(id uint32, value uint64) {
	c.attrs[c.attrCount] = abiConfigAttr{attr: abiAttr{id: id, value: value}, mask: 1}
	c.attrCount++
}

// addMicros appends an attribute whose value is the first half of the union.
func (c *abiConfig) addMicros(id uint32, d time.Duration) {
	var union [8]byte
	binary.NativeEndian.PutUint32(union[:], uint32(d.Microseconds()))
	c.add(id, binary.NativeEndian.Uint64(union[:]))
}

// text is a name as the kernel writes it.
func text(b [nameLen]byte) string {
	s, _, _ := bytes.Cut(b[:], []byte{0})
	return string(s)
}

func level64(l Level) uint64 {
	if l {
		return 1
	}
	return 0
}
