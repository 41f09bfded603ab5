package storage

import (
	"encoding/binary"
	"errors"
	"math/bits"
	"math/rand/v2"
	"testing"
)

// ladder is the content of the rungs after the batches for which there says yes.
func ladder(head uint64, there func(h uint64) bool) map[[3]byte]uint64 {
	m := map[[3]byte]uint64{}
	for h := uint64(1); h <= head; h++ {
		if there(h) {
			m[rungKey(rungOf(h))] = h
		}
	}
	return m
}

func read(m map[[3]byte]uint64) (uint64, error) {
	return readRungs(func(key []byte) ([]byte, bool, error) {
		h, ok := m[[3]byte(key)]
		return binary.BigEndian.AppendUint64(nil, h), ok, nil
	})
}

func TestLadderOfACompleteLogGivesItsHead(t *testing.T) {
	for head := uint64(0); head < 1200; head++ {
		got, err := read(ladder(head, func(uint64) bool { return true }))
		if got != head || err != nil {
			t.Fatalf("head %d: got %d, %v", head, got, err)
		}
	}
}

func TestExpectedRungIsTheNewestOfItsKind(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	for range 2000 {
		head := r.Uint64() >> r.IntN(64)
		for rung := range rungCount {
			got := expectedRung(head, rung)
			if got == 0 {
				if rung < 64 && head>>rung != 0 {
					t.Fatalf("head %d rung %d: none, but there must be one", head, rung)
				}
				continue
			}
			step := uint64(1) << rung
			next, over := bits.Add64(got, 2*step, 0)
			if rung == 63 {
				over = 1
			}
			if got > head || bits.TrailingZeros64(got) != rung || over == 0 && next <= head {
				t.Fatalf("head %d rung %d: %d", head, rung, got)
			}
		}
	}
}

func TestHoleTwiceAsLongAsWhatFollowsIsFound(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 2))
	found, tried := 0, 0
	for range 500 {
		head := 2 + r.Uint64N(2000)
		after := 1 + r.Uint64N(head-1)              // batches that survived behind the hole
		length := 1 + r.Uint64N(head-after)         // of the hole
		from, to := head-after-length+1, head-after // the hole
		there := func(h uint64) bool { return h < from || h > to }
		_, err := read(ladder(head, there))
		var hole *holeError
		if errors.As(err, &hole) {
			found++
		} else if err != nil {
			t.Fatal(err)
		}
		tried++
		if err == nil && length >= 2*after {
			t.Fatalf("hole %d..%d of %d not found", from, to, head)
		}
	}
	t.Logf("%d of %d holes of any length found", found, tried)
}

func TestForeignRungIsRefused(t *testing.T) {
	for _, h := range []uint64{0, 2, 3} { // none of them has two trailing zeros
		if _, err := read(map[[3]byte]uint64{rungKey(2): h}); err == nil {
			t.Errorf("rung 2 holding %d was accepted", h)
		}
	}
}

// The sidecar of the format drawing, byte by byte.
func TestSidecarVector(t *testing.T) {
	s := sidecar{head: 0x0102030405060708, manifest: manifestMark{num: 9, size: 300, crc: 0xAABBCCDD}}
	want := "A11HEAD1" + "\x01\x02\x03\x04\x05\x06\x07\x08" + "\x00\x00\x00\x00\x00\x00\x00\x09" +
		"\x00\x00\x00\x00\x00\x00\x01\x2c" + "\xaa\xbb\xcc\xdd"
	b := s.encode()
	if string(b[:36]) != want || len(b) != headBytes {
		t.Fatalf("encoded %x", b)
	}
	if back, err := decodeSidecar(b); err != nil || back != s {
		t.Errorf("decoded %+v, %v", back, err)
	}
	for i := range b {
		for bit := range 8 {
			b[i] ^= 1 << bit
			if _, err := decodeSidecar(b); !errors.Is(err, errHeadUnreadable) {
				t.Errorf("bit %d of byte %d flipped: %v", bit, i, err)
			}
			b[i] ^= 1 << bit
		}
	}
	for n := range len(b) {
		if _, err := decodeSidecar(b[:n]); !errors.Is(err, errHeadUnreadable) {
			t.Errorf("cut to %d bytes: %v", n, err)
		}
	}
}
