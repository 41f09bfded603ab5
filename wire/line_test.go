package wire_test

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/apollo-11/apollo11/wire"
)

// The keys that every program that was ever shipped computes in the same way.
func TestLineKeysThatNeverChange(t *testing.T) {
	for name, want := range map[string]struct {
		key  string
		hash string
	}{
		"gpiochip0:17": {"2d904026c3b8498e", "e780"},
		"GPIO17":       {"427982c39f9df772", "a855"},
	} {
		k := wire.LineOf(name)
		if fmt.Sprintf("%016x", uint64(k)) != want.key || fmt.Sprintf("%04x", k.Hash()) != want.hash {
			t.Errorf("%s: %016x and %04x, want %s and %s", name, uint64(k), k.Hash(), want.key, want.hash)
		}
	}
	if wire.LineOf("") == 0 {
		t.Error("no name gives the key 0, which is none")
	}
}

// A hash of 0 stands for all outputs, so no line has it.
func TestNoLineHasTheHashOfAll(t *testing.T) {
	for _, k := range []wire.LineKey{0, 1, 0x0001_0001, 0xffff_0000_ffff, math.MaxUint64} {
		if k.Hash() == 0 {
			t.Errorf("%016x has the hash of all", uint64(k))
		}
	}
}

func TestSafeLevelOfAPin(t *testing.T) {
	for name, tt := range map[string]struct {
		flags    wire.PinFlags
		high, ok bool
	}{
		"input":                       {0, false, false},
		"input that says it has safe": {wire.PinHasSafe | wire.PinSafeHigh, true, false},
		"output without":              {wire.PinOutput | wire.PinCommanded | wire.PinHigh, false, false},
		"safe low":                    {wire.PinOutput | wire.PinHasSafe, false, true},
		"safe high":                   {wire.PinOutput | wire.PinHasSafe | wire.PinSafeHigh, true, true},
	} {
		if high, ok := (wire.PinTraits{Line: 1, Flags: tt.flags}).Safe(); high != tt.high || ok != tt.ok {
			t.Errorf("%s: %v, %v; want %v, %v", name, high, ok, tt.high, tt.ok)
		}
	}
}

func TestPackedLevels(t *testing.T) {
	for n := range 18 {
		levels := make([]wire.Level, n)
		for i := range levels {
			levels[i] = wire.Level(i*7) & 3
		}
		b := wire.PackLevels(levels)
		if len(b) != (n+3)/4 {
			t.Fatalf("%d levels take %d bytes", n, len(b))
		}
		for i, l := range levels {
			if got := wire.UnpackLevel(b, i); got != l {
				t.Errorf("level %d of %d is %d, want %d", i, n, got, l)
			}
		}
		for _, i := range []int{-1, math.MinInt, 4 * len(b), math.MaxInt} {
			if got := wire.UnpackLevel(b, i); got != wire.LevelUnknown {
				t.Errorf("level %d of %d is %d", i, n, got)
			}
		}
	}
}

// docs/wire.md explains every flag of a pin at its bit.
func TestDocumentedPinFlags(t *testing.T) {
	word := map[wire.PinFlags]string{
		wire.PinOutput: "output", wire.PinHasSafe: "safe level", wire.PinSafeHigh: "high", wire.PinOnLoss: "lost",
		wire.PinCommanded: "known", wire.PinHigh: "high", wire.PinHeld: "held",
	}
	list := rows(section(t, wireDocument(t), "#### Traits of a pin"))
	if len(list) != len(word) {
		t.Fatalf("the document explains %d flags, the code has %d", len(list), len(word))
	}
	for i, r := range list {
		if w := word[1<<i]; r[0] != fmt.Sprint(i) || w == "" || !strings.Contains(r[1], w) {
			t.Errorf("bit %d: the document says %q", i, r)
		}
	}
}
