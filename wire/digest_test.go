package wire_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/apollo-11/apollo11/wire"
)

// B9: the sums that the document shows, which every agent that was ever shipped
// computes in the same way.
func TestB9_DigestsThatNeverChange(t *testing.T) {
	one := wire.Ref{Seq: 42, Token: sampleToken}
	two := wire.Ref{Seq: 43, Token: wire.Token{Seq: 1}}
	doc := section(t, wireDocument(t), "### Digest")
	for _, c := range []struct {
		refs []wire.Ref
		want string
	}{
		{nil, "cbf29ce484222325"},
		{[]wire.Ref{one}, "42625a67d07508e7"},
		{[]wire.Ref{one, two}, "b53ffae045f77eb9"},
		{[]wire.Ref{two, one}, "b53ffae045f77eb9"},
	} {
		hash, count := wire.DigestOf(c.refs)
		if got := fmt.Sprintf("%016x", hash); got != c.want || int(count) != len(c.refs) {
			t.Errorf("%v: %s of %d, want %s", c.refs, got, count, c.want)
		}
		if !strings.Contains(doc, "`"+c.want+"`") {
			t.Errorf("docs/wire.md does not show %s", c.want)
		}
	}
}

// B9: the sum depends on every part of every attempt, and not on their order; the
// caller's slice stays as it was.
func TestB9_DigestTellsSetsApart(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	var refs []wire.Ref
	for i := range uint64(20) {
		refs = append(refs, wire.Ref{Seq: i + 1, Token: wire.Token{Shard: uint16(i % 3), Seq: 100 - i, Rand: uint32(i)}})
	}
	first := refs[0]
	hash, count := wire.DigestOf(refs)
	if refs[0] != first {
		t.Error("the slice was sorted")
	}
	seen := map[uint64]string{hash: "the whole"}
	for range 20 {
		rng.Shuffle(len(refs), func(i, j int) { refs[i], refs[j] = refs[j], refs[i] })
		if h, n := wire.DigestOf(refs); h != hash || n != count {
			t.Fatalf("another order gives %x of %d, not %x of %d", h, n, hash, count)
		}
	}
	for i := range refs {
		for what, change := range map[string]func(*wire.Ref){
			"sequence": func(r *wire.Ref) { r.Seq += 1000 },
			"shard":    func(r *wire.Ref) { r.Token.Shard += 10 },
			"token":    func(r *wire.Ref) { r.Token.Seq += 1000 },
			"random":   func(r *wire.Ref) { r.Token.Rand += 1000 },
		} {
			old := refs[i]
			change(&refs[i])
			h, _ := wire.DigestOf(refs)
			if other, ok := seen[h]; ok {
				t.Errorf("%s %d changed gives the same as %s", what, i, other)
			}
			seen[h] = fmt.Sprintf("%s %d changed", what, i)
			refs[i] = old
		}
	}
}
