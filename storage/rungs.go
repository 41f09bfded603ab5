package storage

import (
	"encoding/binary"
	"fmt"
	"math/bits"
)

// Every batch has a number, the head: 1 for the first, one more for each next.
// It is written inside the batch itself, so it is on disk exactly when the batch
// is. It does not sit under one key but on a ladder of 65: batch h is written on
// the rung that is the number of trailing zero bits of h.
//
//	batch   1  2  3  4  5  6  7  8 ...
//	rung    0  1  0  2  0  1  0  3 ...
//
// So each rung r must hold the greatest h up to the head that has r trailing
// zeros, and a hole inside the log shows as a rung that holds less, or nothing:
// a hole is always found when it is twice as long as what survived after it, and
// often when it is shorter. One key a batch, 65 keys a store.
const (
	rungTag    = 'h'
	versionTag = 'v'
	rungCount  = 65
)

// storeVersion is the version of the layout that this package writes: reserved
// keys, sidecar, directory. Higher ones are refused, lower ones do not exist yet.
const storeVersion = 1

// versionKey returns the key of the store version record: one big-endian uint64.
func versionKey() []byte { return []byte{0x00, versionTag} }

// rungKey is the reserved key of a rung.
func rungKey(rung int) [3]byte { return [3]byte{0x00, rungTag, byte(rung)} }

// rungOf says on which rung head is written.
func rungOf(head uint64) int { return bits.TrailingZeros64(head) }

// expectedRung is the greatest number up to head with exactly rung trailing
// zeros, or 0 if there is none.
func expectedRung(head uint64, rung int) uint64 {
	if rung >= 64 {
		return 0
	}
	step := uint64(1) << rung
	n := head >> rung // how many multiples of step there are
	if n%2 == 0 {     // an even multiple belongs to a higher rung
		if n == 0 {
			return 0
		}
		n--
	}
	return n * step
}

// readRungs returns the head that the ladder holds, 0 when it is empty, and an
// error when a rung is malformed or older than the head says it must be.
func readRungs(get func(key []byte) (value []byte, ok bool, err error)) (head uint64, err error) {
	var rungs [rungCount]uint64
	for r := range rungs {
		key := rungKey(r)
		v, ok, err := get(key[:])
		if err != nil {
			return 0, fmt.Errorf("read head: %w", err)
		}
		if !ok {
			continue
		}
		if len(v) != 8 {
			return 0, fmt.Errorf("head record %d has %d bytes instead of 8", r, len(v))
		}
		rungs[r] = binary.BigEndian.Uint64(v)
		if rungs[r] == 0 || rungOf(rungs[r]) != r {
			return 0, fmt.Errorf("head record %d holds %d, which does not belong there", r, rungs[r])
		}
		head = max(head, rungs[r])
	}
	for r, got := range rungs {
		if want := expectedRung(head, r); got != want {
			return head, &holeError{head: head, want: want, got: got}
		}
	}
	return head, nil
}

// holeError says that batches are missing inside the log.
type holeError struct{ head, want, got uint64 }

func (e *holeError) Error() string {
	return fmt.Sprintf("batch %d is missing although batch %d is there (newest of its rung is %d)", e.want, e.head, e.got)
}
