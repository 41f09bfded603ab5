package storage_test

import (
	"bytes"
	"cmp"
	"errors"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/apollo-11/apollo11/storage"
)

// awkward draws strings from few letters, zeros among them, so that prefixes and
// escapes meet often.
func awkward(r *rand.Rand) string {
	b := make([]byte, r.IntN(5))
	for i := range b {
		b[i] = []byte{0x00, 0x01, 'a', 0xFE, 0xFF}[r.IntN(5)]
	}
	return string(b)
}

type fields struct {
	a string
	n uint64
	b string
}

func (f fields) key() []byte {
	k := storage.AppendString([]byte{'x'}, f.a)
	k = storage.AppendUint64(k, f.n)
	return storage.AppendString(k, f.b)
}

func TestKeyOrderIsTheOrderOfItsFields(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 3))
	draw := func() fields { return fields{awkward(r), r.Uint64() >> r.IntN(64), awkward(r)} }
	for range 50_000 {
		f, g := draw(), draw()
		if r.IntN(2) == 0 {
			g.a = f.a
		}
		if r.IntN(2) == 0 {
			g.n = f.n
		}
		want := cmp.Or(strings.Compare(f.a, g.a), cmp.Compare(f.n, g.n), strings.Compare(f.b, g.b))
		if got := bytes.Compare(f.key(), g.key()); got != want {
			t.Fatalf("%+v against %+v: %d, want %d", f, g, got, want)
		}
	}
}

func TestKeyIsReadBack(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 4))
	for range 10_000 {
		f := fields{awkward(r), r.Uint64(), awkward(r)}
		rest := f.key()[1:]
		a, rest, err1 := storage.CutString(rest)
		n, rest, err2 := storage.CutUint64(rest)
		b, rest, err3 := storage.CutString(rest)
		if got := (fields{a, n, b}); got != f || len(rest) != 0 || errors.Join(err1, err2, err3) != nil {
			t.Fatalf("%+v came back as %+v, rest %x, %v", f, got, rest, errors.Join(err1, err2, err3))
		}
	}
}

func TestMalformedKeyIsRefused(t *testing.T) {
	for _, s := range []string{"", "a", "a\x00", "a\x00\x00", "a\x00\x02", "\x00\xff"} {
		if _, _, err := storage.CutString([]byte(s)); !errors.Is(err, storage.ErrBadKey) {
			t.Errorf("string %q: %v", s, err)
		}
	}
	for _, s := range []string{"", "1234567"} {
		if _, _, err := storage.CutUint64([]byte(s)); !errors.Is(err, storage.ErrBadKey) {
			t.Errorf("number %q: %v", s, err)
		}
	}
}

func TestPrefixEndBoundsExactlyThePrefix(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 5))
	for range 20_000 {
		p, k := awkward(r), awkward(r)
		end := storage.PrefixEnd([]byte(p))
		in := k >= p && (end == nil || k < string(end))
		if in != strings.HasPrefix(k, p) {
			t.Fatalf("prefix %q, end %q, key %q", p, end, k)
		}
	}
}

func FuzzCutString(f *testing.F) {
	for _, s := range []string{"", "plain\x00\x01", "z\x00\xffz\x00\x01rest", "\x00"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, src []byte) {
		s, rest, err := storage.CutString(src)
		if err != nil {
			return
		}
		if again := append(storage.AppendString(nil, s), rest...); !bytes.Equal(again, src) {
			t.Errorf("%x has a second spelling %x", src, again)
		}
	})
}
