package wire_test

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/apollo-11/apollo11/wire"
)

func TestKeyRoundTrip(t *testing.T) {
	longest := strings.Repeat("s", wire.MaxSiteLen)
	for _, k := range []wire.Key{
		{Site: "default", Millis: sampleMillis, Seq: 42},
		{Site: "s", Millis: 0, Seq: 0},
		{Site: "hall-2-north", Millis: sampleMillis, Seq: 1},
		{Site: "a.b_c:d-e", Millis: 1, Seq: math.MaxUint64},
		{Site: "-", Millis: 1, Seq: 1},
		{Site: "1-2-3", Millis: 4, Seq: 5},
		{Site: longest, Millis: wire.MaxKeyMillis, Seq: math.MaxUint64},
	} {
		s := k.String()
		got, err := wire.ParseKey(s)
		if err != nil || got != k {
			t.Errorf("%s was read as %+v, %v", s, got, err)
		}
		if len(s) > wire.MaxKeyLen {
			t.Errorf("%s is %d bytes long", s, len(s))
		}
		if got.String() != k.String() {
			t.Errorf("%s is not reproducible", s)
		}
	}
	if n := len(wire.Key{Site: longest, Millis: wire.MaxKeyMillis, Seq: math.MaxUint64}.String()); n != wire.MaxKeyLen {
		t.Errorf("the longest key has %d bytes, MaxKeyLen is %d", n, wire.MaxKeyLen)
	}
}

// A key differs from every other, whatever part differs.
func TestKeysDiffer(t *testing.T) {
	seen := map[string]wire.Key{}
	for _, site := range []string{"a", "a-1", "b", "a-1-1"} {
		for _, ms := range []int64{0, 1, 11, sampleMillis} {
			for _, seq := range []uint64{0, 1, 11, 42} {
				k := wire.Key{Site: site, Millis: ms, Seq: seq}
				if other, ok := seen[k.String()]; ok {
					t.Errorf("%+v and %+v are both %s", k, other, k)
				}
				seen[k.String()] = k
			}
		}
	}
}

func TestBadKeys(t *testing.T) {
	good := wire.Key{Site: "default", Millis: 17, Seq: 42}
	for name, s := range map[string]string{
		"empty":                 "",
		"no dash":               "default",
		"one part missing":      "default-17-42",
		"check only":            "-0d40",
		"no site":               wire.Key{Millis: 17, Seq: 42}.String(),
		"site with a slash":     wire.Key{Site: "a/b", Millis: 17, Seq: 42}.String(),
		"site not ASCII":        wire.Key{Site: "süd", Millis: 17, Seq: 42}.String(),
		"site with a wildcard":  wire.Key{Site: "+", Millis: 17, Seq: 42}.String(),
		"site with a zero byte": wire.Key{Site: "a\x00", Millis: 17, Seq: 42}.String(),
		"site too long":         wire.Key{Site: strings.Repeat("s", wire.MaxSiteLen+1), Millis: 17, Seq: 42}.String(),
		"time too large":        wire.Key{Site: "a", Millis: wire.MaxKeyMillis + 1, Seq: 42}.String(),
		"upper-case check":      strings.ToUpper(good.String()),
		"space before":          " " + good.String(),
		"space behind":          good.String() + " ",
		"line end behind":       good.String() + "\n",
		"zero byte behind":      good.String() + "\x00",
		"twice":                 good.String() + good.String(),
		"very long":             strings.Repeat("x", 1<<20),
		"time with a plus":      strings.Replace(good.String(), "-17-", "-+17-", 1),
		"time with a zero":      strings.Replace(good.String(), "-17-", "-017-", 1),
		"other site":            strings.Replace(good.String(), "default", "defaulu", 1),
	} {
		if k, err := wire.ParseKey(s); err == nil {
			t.Errorf("%s: %.100q was read as %+v", name, s, k)
		} else if len(err.Error()) > 400 {
			t.Errorf("%s: the error has %d bytes", name, len(err.Error()))
		}
	}
}

// A4: the check is 16 bits, so a typo may slip through in principle. For keys as
// they are (ordinary and longest) none of one character does, replaced by any byte,
// left out, doubled, or changed places with its neighbour.
func TestA4_EverySingleTypoIsCaught(t *testing.T) {
	for _, k := range []wire.Key{
		{Site: "default", Millis: sampleMillis, Seq: 42},
		{Site: "hall-2-north", Millis: sampleMillis, Seq: 123456},
		{Site: strings.Repeat("s", wire.MaxSiteLen), Millis: wire.MaxKeyMillis, Seq: math.MaxUint64},
	} {
		s := k.String()
		tried, missed := 0, 0
		try := func(typo string) {
			if typo == s {
				return
			}
			tried++
			if got, err := wire.ParseKey(typo); err == nil {
				missed++
				t.Logf("%q was read as %+v", typo, got)
			}
		}
		for i := range len(s) {
			for c := range 256 {
				try(s[:i] + string([]byte{byte(c)}) + s[i+1:])
			}
			try(s[:i] + s[i+1:])
			try(s[:i+1] + s[i:])
			try(s[:i]) // cut
			if i > 0 {
				try(s[:i-1] + s[i:i+1] + s[i-1:i] + s[i+1:])
			}
		}
		if missed != 0 {
			t.Errorf("%s: %d of %d typos were not caught", s, missed, tried)
		}
	}
}

func TestA5_TokenRoundTrip(t *testing.T) {
	for _, tok := range []wire.Token{
		{}, sampleToken, {Seq: 1}, {Shard: 1<<16 - 1, Seq: math.MaxUint64, Rand: math.MaxUint32},
	} {
		got, err := wire.ParseToken(tok.String())
		if err != nil || got != tok {
			t.Errorf("%s was read as %+v, %v", tok, got, err)
		}
		if tok.IsZero() != (tok.Shard == 0 && tok.Seq == 0 && tok.Rand == 0) {
			t.Errorf("%s: IsZero is %v", tok, tok.IsZero())
		}
	}
	for _, s := range []string{
		"", ".", "..", "1.2", "1.2.3", "1.2.00000003.4", "1.2.0000000g", "1.2.0000000A", "1.2.000000003",
		"65536.1.00000000", "1.18446744073709551616.00000000", "-1.1.00000000", "+1.1.00000000", "01.1.00000000",
		"1.1.00000000 ", " 1.1.00000000", "1.1.00000000\n", "1.1.0x000000", "1,1,00000000", strings.Repeat("1.", 1000),
	} {
		if tok, err := wire.ParseToken(s); err == nil {
			t.Errorf("%q was read as %s", s, tok)
		}
	}
}

func TestB7_EventIDRoundTrip(t *testing.T) {
	for _, tt := range []struct {
		node string
		n    uint64
	}{{"pump-1", 1}, {"a", 0}, {"a-1-2", math.MaxUint64}, {strings.Repeat("n", wire.MaxNodeLen), 7}} {
		node, n, err := wire.ParseEventID(wire.EventID(tt.node, tt.n))
		if err != nil || node != tt.node || n != tt.n {
			t.Errorf("%+v was read as %s, %d, %v", tt, node, n, err)
		}
	}
	for _, s := range []string{"", "-", "-1", "a", "a-", "a-01", "a-+1", "a--", "a/b-1", "a-1 ", "a-18446744073709551616", strings.Repeat("n", 65) + "-1"} {
		if node, n, err := wire.ParseEventID(s); err == nil {
			t.Errorf("%q was read as %s, %d", s, node, n)
		}
	}
}

func TestB5_TraceRoundTrip(t *testing.T) {
	for _, tr := range []wire.Trace{{}, wire.NewTrace(0, 0), wire.NewTrace(math.MaxUint64, math.MaxUint64), wire.NewTrace(1, 2)} {
		for _, s := range []string{tr.String(), strings.ToUpper(tr.String())} {
			got, err := wire.ParseTrace(s)
			if err != nil || got != tr {
				t.Errorf("%s was read as %s, %v", s, got, err)
			}
		}
		if !tr.IsZero() && (tr[6]>>4 != 4 || tr[8]>>6 != 2) {
			t.Errorf("%s is no version 4 UUID", tr)
		}
	}
	good := wire.NewTrace(1, 2).String()
	for _, s := range []string{"", good[1:], good + "0", "{" + good + "}", strings.ReplaceAll(good, "-", ""), strings.Replace(good, "-", "0", 1), strings.Replace(good, "0", "g", 1), strings.Repeat("-", 36)} {
		if tr, err := wire.ParseTrace(s); err == nil {
			t.Errorf("%q was read as %s", s, tr)
		}
	}
}

func TestShort(t *testing.T) {
	seen := map[string]string{}
	for i := range 1000 {
		node := fmt.Sprintf("pump-%d", i)
		s := wire.Short(node)
		if err := wire.CheckShort(s); err != nil || s != wire.Short(node) {
			t.Errorf("%s: %s, %v", node, s, err)
		}
		if other, ok := seen[s]; ok {
			t.Errorf("%s and %s are both %s", node, other, s)
		}
		seen[s] = node
	}
	for _, s := range []string{"", "00000", "0000000", "00000i", "00000l", "00000o", "00000u", "00000A", "000/00", "00+000", "0000ö", "00000\x00"} {
		if wire.CheckShort(s) == nil {
			t.Errorf("%q was accepted", s)
		}
	}
}

// Names stand in topics, file names and keys.
func TestNames(t *testing.T) {
	checks := map[string]struct {
		check func(string) error
		limit int
	}{
		"site": {wire.CheckSite, wire.MaxSiteLen}, "node": {wire.CheckNode, wire.MaxNodeLen},
		"task_id": {wire.CheckTaskID, wire.MaxTaskIDLen}, "pin": {wire.CheckPin, wire.MaxPinLen},
	}
	for name, c := range checks {
		for _, s := range []string{"a", "Z", "0", "pump-1", "GPIO17", "gpiochip0:17", "a_b.c", ".", "-", strings.Repeat("x", c.limit)} {
			if err := c.check(s); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		for _, s := range []string{"", " ", "a b", "a/b", "+", "#", "a#", "$SYS", "a\x00", "a\n", "\x7f", "ä", "\xff", "<b>", "a%", strings.Repeat("x", c.limit+1)} {
			err := c.check(s)
			if err == nil {
				t.Errorf("%s %q was accepted", name, s)
			} else if !strings.HasPrefix(err.Error(), name) || strings.ContainsAny(err.Error(), "\x00\n\x7f") {
				t.Errorf("%s %q: the error is %q", name, s, err)
			}
		}
	}
	for _, s := range []string{"x", "gpio.write", "collect_metrics", "a1", "run.2_b", strings.Repeat("x", wire.MaxIntentLen)} {
		if err := wire.CheckIntent(s); err != nil {
			t.Error(err)
		}
	}
	for _, s := range []string{"", "A", "gpio.Write", "1a", ".a", "_a", "gpio-write", "gpio write", "gpio/write", "ö", strings.Repeat("x", wire.MaxIntentLen+1)} {
		if wire.CheckIntent(s) == nil {
			t.Errorf("intent %q was accepted", s)
		}
	}
}
