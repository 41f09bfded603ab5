package journal

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
)

// Limits of the format. They bound every allocation made from a length that
// was read, and they tell a torn append from wider damage.
const (
	// MaxRecord is the largest record in bytes: an intent's payload is at most
	// 8 KiB and an instruction at most 64 KiB on the wire, plus room.
	MaxRecord = 128 << 10
	// MaxBatch is the largest payload of one frame in bytes, that is all records
	// of one Append with four bytes each. It is no larger than needed: a ruined
	// tail of up to this size passes for a torn append.
	MaxBatch = 256 << 10

	version    = 1
	headerSize = 24
	frameHead  = 9
	recordHead = 4
	typeBatch  = 1
)

const magic = "A11JRNL\n"

// encodeHeader returns the header of a file with this salt.
func encodeHeader(salt uint64) []byte {
	b := make([]byte, 0, headerSize)
	b = append(b, magic...)
	b = binary.LittleEndian.AppendUint32(b, version)
	b = binary.LittleEndian.AppendUint64(b, salt)
	return binary.LittleEndian.AppendUint32(b, crc32.Checksum(b, castagnoli()))
}

// decodeHeader checks the header field by field and returns the salt.
func decodeHeader(file string, data []byte) (salt uint64, err error) {
	if len(data) < headerSize {
		return 0, &DamageError{File: file, Next: -1,
			Reason: fmt.Sprintf("%d bytes are less than the %d of a header", len(data), headerSize)}
	}
	if string(data[:8]) != magic {
		return 0, &DamageError{File: file, Next: -1, Reason: "the magic bytes are not those of a journal"}
	}
	if got, want := binary.LittleEndian.Uint32(data[20:]), crc32.Checksum(data[:20], castagnoli()); got != want {
		return 0, &DamageError{File: file, Next: -1, Reason: "the header does not match its checksum"}
	}
	if v := binary.LittleEndian.Uint32(data[8:]); v != version {
		return 0, fmt.Errorf("journal %s: %w: it has version %d, this program writes version %d: run the program that wrote it",
			file, ErrVersion, v, version)
	}
	return binary.LittleEndian.Uint64(data[12:]), nil
}

// appendFrame appends to dst the frame that holds records and will stand at
// offset. The caller has checked the limits.
func appendFrame(dst []byte, salt uint64, offset int64, records [][]byte) []byte {
	start := len(dst)
	dst = append(dst, make([]byte, frameHead)...)
	for _, r := range records {
		dst = binary.LittleEndian.AppendUint32(dst, uint32(len(r)))
		dst = append(dst, r...)
	}
	frame := dst[start:]
	binary.LittleEndian.PutUint32(frame, uint32(len(frame)-frameHead))
	frame[8] = typeBatch
	binary.LittleEndian.PutUint32(frame[4:], frameSum(salt, offset, frame))
	return dst
}

// frameSum computes the checksum of a whole frame that stands at offset.
func frameSum(salt uint64, offset int64, frame []byte) uint32 {
	var place [16]byte
	binary.LittleEndian.PutUint64(place[:], salt)
	binary.LittleEndian.PutUint64(place[8:], uint64(offset))
	sum := crc32.Update(0, castagnoli(), place[:])
	sum = crc32.Update(sum, castagnoli(), frame[:4])
	return crc32.Update(sum, castagnoli(), frame[8:])
}

// castagnoli returns the CRC32C table, which the library builds once.
func castagnoli() *crc32.Table { return crc32.MakeTable(crc32.Castagnoli) }

// frameAt returns the length of the intact frame at offset, or a reason why
// there is none. Reasons are constants: a search asks at every byte of a file.
func frameAt(data []byte, salt uint64, offset int64) (size int64, reason string) {
	rest := data[offset:]
	if len(rest) < frameHead {
		return 0, "it ends inside the head of a frame"
	}
	length := binary.LittleEndian.Uint32(rest)
	if length < recordHead || length > MaxBatch {
		return 0, "a frame of that length is not possible"
	}
	if rest[8] != typeBatch {
		return 0, "a frame of that type is not known"
	}
	if int64(length) > int64(len(rest)-frameHead) {
		return 0, "it ends inside a frame"
	}
	frame := rest[:frameHead+int(length)]
	if !tiles(frame[frameHead:]) {
		return 0, "the lengths inside a frame do not add up"
	}
	if frameSum(salt, offset, frame) != binary.LittleEndian.Uint32(frame[4:]) {
		return 0, "a frame does not match its checksum"
	}
	return int64(len(frame)), ""
}

// tiles reports whether the record lengths in a payload fill it exactly. It is
// asked before the checksum because it is cheaper on garbage.
func tiles(payload []byte) bool {
	for len(payload) > 0 {
		if len(payload) < recordHead {
			return false
		}
		n := binary.LittleEndian.Uint32(payload)
		if n > MaxRecord || int64(n) > int64(len(payload)-recordHead) {
			return false
		}
		payload = payload[recordHead+int(n):]
	}
	return true
}

// recordsOf appends to dst the records of a frame that frameAt has accepted.
// They share memory with frame.
func recordsOf(dst [][]byte, frame []byte) [][]byte {
	for p := frame[frameHead:]; len(p) > 0; {
		end := recordHead + int(binary.LittleEndian.Uint32(p))
		dst = append(dst, p[recordHead:end:end])
		p = p[end:]
	}
	return dst
}
