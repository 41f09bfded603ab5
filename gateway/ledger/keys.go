package ledger

import (
	"encoding/binary"
	"fmt"

	"github.com/apollo-11/apollo11/storage"
)

// First bytes of keys, one a table.
const (
	tabCounters    = 'c'
	tabTask        = 'T'
	tabTaskID      = 't'
	tabOpen        = 'o'
	tabInstruction = 'i'
	tabTimeline    = 'l'
	tabNode        = 'n'
	tabCursor      = 'e'
	tabMark        = 'p'
	tabDead        = 'd'
	tabQueue       = 'q'
	tabAudit       = 'a'
	tabQuiet       = 'Q'
	tabLost        = 'L'
	tabGiven       = 'g'
	tabMoved       = 'J'
	tabReserved    = 'r'
	tabHold        = 'h'
)

func numKey(dst []byte, tab byte, n uint64) []byte {
	return storage.AppendUint64(append(dst[:0], tab), n)
}

func textKey(dst []byte, tab byte, s string) []byte {
	return storage.AppendString(append(dst[:0], tab), s)
}

func timelineKey(dst []byte, seq uint64, version uint32) []byte {
	return binary.BigEndian.AppendUint32(numKey(dst, tabTimeline, seq), version)
}

func markKey(dst []byte, client string, packet uint16) []byte {
	return binary.BigEndian.AppendUint16(textKey(dst, tabMark, client), packet)
}

// number reads the number of a numKey.
func number(key []byte) (uint64, error) {
	if len(key) < 1 {
		return 0, fmt.Errorf("empty key")
	}
	n, rest, err := storage.CutUint64(key[1:])
	if err != nil {
		return 0, fmt.Errorf("key %x: %w", key, err)
	}
	if len(rest) != 0 {
		return 0, fmt.Errorf("key %x has %d bytes too many", key, len(rest))
	}
	return n, nil
}
