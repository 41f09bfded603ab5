package wire

import (
	"cmp"
	"encoding/binary"
	"hash/fnv"
	"slices"
)

// DigestOf sums up a set of attempts, in whatever order they come (B9): both ends
// compute it over what they believe the agent to hold, and compare. It is 64-bit
// FNV-1a over sequence, shard, token sequence and random part of each, big
// endian, sorted by token. Equal sets give equal sums; that two different sets do
// is one in 2^64 and cured by the next change.
func DigestOf(refs []Ref) (hash uint64, count uint32) {
	sorted := slices.SortedFunc(slices.Values(refs), func(a, b Ref) int {
		return cmp.Or(cmp.Compare(a.Token.Shard, b.Token.Shard), cmp.Compare(a.Token.Seq, b.Token.Seq),
			cmp.Compare(a.Token.Rand, b.Token.Rand), cmp.Compare(a.Seq, b.Seq))
	})
	h := fnv.New64a()
	for _, r := range sorted {
		b := make([]byte, 0, 22)
		b = binary.BigEndian.AppendUint64(b, r.Seq)
		b = binary.BigEndian.AppendUint16(b, r.Token.Shard)
		b = binary.BigEndian.AppendUint64(b, r.Token.Seq)
		b = binary.BigEndian.AppendUint32(b, r.Token.Rand)
		_, _ = h.Write(b) // a hash never fails
	}
	return h.Sum64(), uint32(len(sorted))
}
