package storage

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// ErrBadKey says that bytes are not a key made by this codec.
var ErrBadKey = errors.New("malformed key")

// A string in a key is escaped so that it may contain any byte, ends by itself,
// and keeps its order whatever follows it:
//
//	0x00 in the string  ->  0x00 0xFF
//	end of the string   ->  0x00 0x01
//
// The end is smaller than any continuation (0x00 0x01 < 0x00 0xFF < 0x01), so
// "a" sorts before "a\x00" and before "ab".
const (
	keyEscape = 0x00
	keyZero   = 0xFF
	keyEnd    = 0x01
)

// AppendUint64 appends v as eight bytes, big-endian, so that the byte order of
// keys is the order of numbers.
func AppendUint64(dst []byte, v uint64) []byte {
	return binary.BigEndian.AppendUint64(dst, v)
}

// CutUint64 reads what AppendUint64 wrote and returns the bytes that follow it.
func CutUint64(src []byte) (v uint64, rest []byte, err error) {
	if len(src) < 8 {
		return 0, nil, fmt.Errorf("%w: number needs 8 bytes, %d left", ErrBadKey, len(src))
	}
	return binary.BigEndian.Uint64(src), src[8:], nil
}

// AppendString appends s, self-delimiting and order-preserving. It takes
// len(s) + 2 bytes and one more for every zero byte in s.
func AppendString(dst []byte, s string) []byte {
	for i := range len(s) {
		dst = append(dst, s[i])
		if s[i] == keyEscape {
			dst = append(dst, keyZero)
		}
	}
	return append(dst, keyEscape, keyEnd)
}

// CutString reads what AppendString wrote and returns the bytes that follow it.
// There is exactly one spelling of each string; any other is ErrBadKey.
func CutString(src []byte) (s string, rest []byte, err error) {
	var out []byte
	for i := 0; i < len(src); i++ {
		if src[i] != keyEscape {
			out = append(out, src[i])
			continue
		}
		i++
		if i == len(src) {
			break
		}
		switch src[i] {
		case keyEnd:
			return string(out), src[i+1:], nil
		case keyZero:
			out = append(out, 0)
		default:
			return "", nil, fmt.Errorf("%w: escape 0x%02x at byte %d", ErrBadKey, src[i], i)
		}
	}
	return "", nil, fmt.Errorf("%w: string without end after %d bytes", ErrBadKey, len(src))
}

// PrefixEnd returns the smallest key above every key that begins with prefix:
// the hi of a Scan over the prefix. It is nil, meaning no bound, when there is
// none (prefix empty or all 0xFF). The result does not alias prefix.
func PrefixEnd(prefix []byte) []byte {
	for i := len(prefix) - 1; i >= 0; i-- {
		if prefix[i] != 0xFF {
			end := append([]byte(nil), prefix[:i+1]...)
			end[i]++
			return end
		}
	}
	return nil
}
