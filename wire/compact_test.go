package wire_test

import (
	"bytes"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/apollo-11/apollo11/wire"
)

func TestCompactRoundTrip(t *testing.T) {
	var frames []compactFrame
	for _, seq := range []uint64{1, 127, 128, 1<<14 - 1, 1 << 14, 1<<21 - 1, 1 << 21, 1<<28 - 1, 1 << 28, wire.MaxCompactSeq} {
		for _, attempt := range []uint8{1, 2, wire.MaxAttempt} {
			frames = append(frames, wire.CompactQuery{Seq: seq, Attempt: attempt}, wire.CompactCancel{Seq: seq, Attempt: attempt})
			if attempt == 1 {
				frames = append(frames, wire.CompactSafe{Seq: seq}, wire.CompactSafe{Seq: seq, Line: lineA.Hash()}, wire.CompactSafe{Seq: seq, Line: 1})
			}
			for _, c := range allCodes()[1:] {
				frames = append(frames, wire.CompactAck{Seq: seq, Attempt: attempt, Code: c})
			}
		}
	}
	seen := map[string]bool{}
	for _, f := range frames {
		b, err := f.Encode()
		if err != nil {
			t.Fatal(err)
		}
		got, err := wire.DecodeCompact(b)
		if err != nil || got != f {
			t.Errorf("%+v became %x, then %+v, %v", f, b, got, err)
		}
		if seen[string(b)] {
			t.Errorf("%x has two meanings", b)
		}
		seen[string(b)] = true
	}
}

// B3: an ack fits Sigfox (12 bytes) with a MAC of four bytes, and LoRaWAN US915
// DR0 (11 bytes) below sequence 2^28.
func TestB3_CompactAckSize(t *testing.T) {
	const mac = 4
	for _, tt := range []struct {
		seq  uint64
		most int
	}{{1, 11}, {1<<7 - 1, 11}, {1<<28 - 1, 11}, {1 << 28, 12}, {wire.MaxCompactSeq, 12}} {
		b, err := wire.CompactAck{Seq: tt.seq, Attempt: wire.MaxAttempt, Code: wire.CodeInternal}.Encode()
		if err != nil {
			t.Fatal(err)
		}
		if n := len(b) + mac; n > tt.most || n > wire.MaxCompactBytes {
			t.Errorf("sequence %d: %d bytes with a MAC, want at most %d", tt.seq, n, tt.most)
		}
		if b, err = (wire.CompactSafe{Seq: tt.seq, Line: 1<<16 - 1}).Encode(); err != nil || len(b)+mac > tt.most {
			t.Errorf("safe with sequence %d: %d bytes with a MAC, want at most %d (%v)", tt.seq, len(b)+mac, tt.most, err)
		}
	}
}

func TestCompactFramesThatCannotBeSent(t *testing.T) {
	for _, f := range []compactFrame{
		wire.CompactQuery{Attempt: 1}, wire.CompactQuery{Seq: 1}, wire.CompactQuery{Seq: wire.MaxCompactSeq + 1, Attempt: 1},
		wire.CompactQuery{Seq: math.MaxUint64, Attempt: 1},
		wire.CompactCancel{Attempt: 1}, wire.CompactCancel{Seq: 1}, wire.CompactCancel{Seq: wire.MaxCompactSeq + 1, Attempt: 1},
		wire.CompactSafe{}, wire.CompactSafe{Line: 1}, wire.CompactSafe{Seq: wire.MaxCompactSeq + 1},
		wire.CompactAck{Attempt: 1, Code: wire.CodeOK}, wire.CompactAck{Seq: 1, Code: wire.CodeOK},
		wire.CompactAck{Seq: 1, Attempt: 1}, wire.CompactAck{Seq: 1, Attempt: 1, Code: 200},
		wire.CompactAck{Seq: wire.MaxCompactSeq + 1, Attempt: 1, Code: wire.CodeOK},
	} {
		if b, err := f.Encode(); err == nil {
			t.Errorf("%+v became %x", f, b)
		}
	}
}

func TestBadCompactFrames(t *testing.T) {
	for name, h := range map[string]string{
		"empty":                     "",
		"head only":                 "11",
		"CBOR":                      "a2 00 13 01 80",
		"JSON":                      "7b 7d",
		"version 0":                 "01 01 01 10",
		"version 2":                 "21 01 01 10",
		"kind 0":                    "10 01 01 10",
		"kind 5":                    "15 01 01 10",
		"safe without a line":       "14 01",
		"safe with half a line":     "14 01 01",
		"safe with an attempt":      "14 01 01 01 10",
		"safe of number 0":          "14 00 01 10",
		"sequence 0":                "11 00 01 10",
		"sequence cut":              "11 80",
		"sequence cut in the frame": "11 ff ff ff ff ff",
		"sequence beyond 2^35":      "12 80 80 80 80 80 01",
		"sequence beyond 2^64":      "12 ff ff ff ff ff ff ff ff ff 7f",
		"sequence in a longer form": "11 81 00 01 10",
		"ack without a code":        "11 01 01",
		"ack with code none":        "11 01 01 00",
		"ack of attempt 0":          "11 01 00 10",
		"ack with a byte too many":  "11 01 01 10 00",
		"query without attempt":     "12 01",
		"query of attempt 0":        "12 01 00",
		"query with a code":         "12 01 01 10",
		"cancel without attempt":    "13 01",
		"cancel of attempt 0":       "13 01 00",
		"cancel with a code":        "13 01 01 10",
		"longer than any frame":     "11 01 01 10 00 00 00 00 00 00 00 00 00",
		"very long":                 strings.Repeat("11", 1<<16),
	} {
		if f, err := wire.DecodeCompact(unhex(t, h)); err == nil {
			t.Errorf("%s was read as %+v", name, f)
		}
	}
}

// A code that only a newer agent knows is passed on, to be shown as unknown (C14).
func TestC14_CompactAckOfANewerAgent(t *testing.T) {
	f, err := wire.DecodeCompact(unhex(t, "11 01 01 c8"))
	if want := (wire.CompactAck{Seq: 1, Attempt: 1, Code: 200}); err != nil || f != want {
		t.Errorf("read as %+v, %v", f, err)
	}
}

// A9: a frame that was cut is never a shorter frame of the same kind.
func TestA9_CutCompactFrames(t *testing.T) {
	for name, f := range compactSamples() {
		b, err := f.Encode()
		if err != nil {
			t.Fatal(err)
		}
		for n := range b {
			if got, err := wire.DecodeCompact(b[:n]); err == nil {
				t.Errorf("%s cut to %d bytes was read as %+v", name, n, got)
			}
			flipped := bytes.Clone(b)
			flipped[n] ^= 0xff
			if got, err := wire.DecodeCompact(flipped); err == nil && fmt.Sprint(got) == fmt.Sprint(f) {
				t.Errorf("%s with byte %d inverted still means the same", name, n)
			}
		}
	}
}
