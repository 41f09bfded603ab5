package wire_test

import (
	"bytes"
	"fmt"
	"math"
	"runtime"
	"strings"
	"testing"

	"github.com/apollo-11/apollo11/wire"
)

// A9, and any other cut: no message that was cut anywhere is taken for a shorter
// valid one, and none with something behind it is taken at all.
func TestA9_CutOrExtendedMessagesAreRefused(t *testing.T) {
	for _, s := range samples(t) {
		b := encode(t, s.msg)
		for n := range b {
			if m, err := decode(s.up, b[:n]); err == nil {
				t.Errorf("%s cut to %d of %d bytes was read as %+v", s.name, n, len(b), m)
			}
		}
		for _, tail := range [][]byte{{0}, {0xa0}, {0xf6}, {'\n'}, {'\r', '\n'}, {0xff}} {
			if _, err := decode(s.up, append(bytes.Clone(b), tail...)); err == nil {
				t.Errorf("%s with %x behind it was accepted", s.name, tail)
			}
		}
	}
}

// Every single changed bit is either refused or gives a message that is valid and
// can be sent again; nothing panics.
func TestFlippedBits(t *testing.T) {
	for _, s := range samples(t) {
		b := encode(t, s.msg)
		for i := range 8 * len(b) {
			c := bytes.Clone(b)
			c[i/8] ^= 1 << (i % 8)
			if m, err := decode(s.up, c); err == nil {
				encode(t, m)
			}
		}
	}
}

// digest is a message in which one field can be anything: key 2, a 64-bit number.
func digest(hash string) string { return "a5 00 14 01 05 02" + hash + "03 01 04 02" }

// cancel is a message with a text (key 4).
func cancel(reason string) string { return "a4 00 02 01 05 03 83 01 02 03 04" + reason }

// extended is a digest with one more pair.
func extended(pair string) string { return "a6 00 14 01 05 02 07 03 01 04 02" + pair }

func TestA21_OneMeaningOrARefusal(t *testing.T) {
	tests := []struct {
		name, hex string
		want      string // "" means refused
	}{
		{"canonical", digest("07"), digest("07")},
		{"number in a longer form", digest("1807"), digest("07")},
		{"number in the longest form", digest("1b0000000000000007"), digest("07")},
		{"map head in a longer form", "b805 00 14 01 05 02 07 03 01 04 02", digest("07")},
		{"key in a longer form", "a5 00 14 1801 05 02 07 03 01 04 02", digest("07")},
		{"kind in a longer form", "a5 00 1814 01 05 02 07 03 01 04 02", digest("07")},
		{"keys in another order", "a5 04 02 03 01 02 07 01 05 00 14", digest("07")},
		{"null is absent", digest("f6"), digest("00")},
		{"undefined", digest("f7"), ""},
		{"simple value 0", digest("e0"), ""},
		{"simple value 255", digest("f8ff"), ""},
		{"boolean for a number", digest("f5"), ""},
		{"float16 for a number", digest("f94700"), ""},
		{"float32 for a number", digest("fa40e00000"), ""},
		{"float64 for a number", digest("fb401c000000000000"), ""},
		{"NaN for a number (A11)", digest("f97e00"), ""},
		{"infinity for a number (A11)", digest("f97c00"), ""},
		{"negative number", digest("26"), ""},
		{"number as text (A3)", digest("6137"), ""},
		{"number as bytes", digest("4107"), ""},
		{"bignum", digest("c24107"), ""},
		{"tagged number", digest("c107"), ""},
		{"tagged message", "c1" + digest("07"), ""},
		{"self-described message", "d9d9f7" + digest("07"), ""},
		{"indefinite map", "bf 00 14 01 05 02 07 03 01 04 02 ff", ""},
		{"indefinite text", cancel("7f 61 61 ff"), ""},
		{"indefinite list", "a2 00 03 01 9f 82 01 83 01 02 03 ff", ""},
		{"text as bytes", cancel("43 616263"), ""},
		{"text that is not UTF-8", cancel("61 ff"), ""},
		{"list for the message", "82 14 05", ""},
		{"text for the message (A6, JSON)", "7b 7d", ""},
		{"null for the message", "f6", ""},
		{"nothing (A6)", "", ""},
		{"kind missing", "a4 01 05 02 07 03 01 04 02", ""},
		{"kind null", "a5 00 f6 01 05 02 07 03 01 04 02", ""},
		{"kind unknown", "a5 00 18ff 01 05 02 07 03 01 04 02", ""},
		{"kind too large", "a5 00 190114 01 05 02 07 03 01 04 02", ""},
		{"same key twice", extended("02 08"), ""},
		{"same key twice in two forms", extended("1802 08"), ""},
		{"same unknown key twice", "a7 00 14 01 05 02 07 03 01 04 02 1863 01 1863 01", ""},
		{"unknown key", extended("1863 01"), digest("07")},
		{"unknown key with a map", extended("1863 a1 61 61 80"), digest("07")},
		{"unknown negative key", extended("20 01"), digest("07")},
		{"unknown text key", extended("61 61 01"), digest("07")},
		{"text key that looks like a known one", extended("61 32 08"), digest("07")},
		{"float key", extended("f93c00 01"), ""},
		{"boolean key", extended("f5 01"), ""},
		{"null key", extended("f6 01"), ""},
		{"bytes key", extended("41 32 01"), ""},
		{"list key", extended("80 01"), ""},
		{"key beyond 63 bits", extended("1bffffffffffffffff 01"), ""},
		{"unknown key with NaN (A11)", extended("1863 f97e00"), ""},
		{"unknown key with a tag", extended("1863 c101"), ""},
		{"reserved head", digest("1c"), ""},
		{"break without a beginning", digest("ff"), ""},
		{"token with two elements", "a3 00 02 01 05 03 82 01 02", ""},
		{"token with four elements", "a3 00 02 01 05 03 84 01 02 03 04", ""},
		{"token as a map", "a3 00 02 01 05 03 a3 00 01 01 02 02 03", ""},
		{"token as text", "a3 00 02 01 05 03 67 312e322e303033", ""},
		{"trace of 3 bytes", "a4 00 02 01 05 03 83 01 02 03 0a 43 010203", ""},
		{"trace of 17 bytes", "a4 00 02 01 05 03 83 01 02 03 0a 51 0102030405060708090a0b0c0d0e0f1011", ""},
		{"trace as a list", "a4 00 02 01 05 03 83 01 02 03 0a 83 01 02 03", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			up := !strings.Contains(tt.hex, "a3 00 02") && !strings.Contains(tt.hex, "a4 00 02") && !strings.HasPrefix(tt.hex, "a2 00 03")
			m, err := decode(up, unhex(t, tt.hex))
			switch {
			case tt.want == "" && err == nil:
				t.Errorf("read as %+v", m)
			case tt.want != "" && err != nil:
				t.Error(err)
			case tt.want != "":
				if b := encode(t, m); !bytes.Equal(b, unhex(t, tt.want)) {
					t.Errorf("means %x, want %s", b, tt.want)
				}
			}
		})
	}
}

// A list of numbers for bytes means the bytes; what does not fit a byte is refused.
func TestA21_LevelsOfAHeartbeat(t *testing.T) {
	const head, canonical = "a3 00 12 01 05 0a", "a5 00 12 01 05 02 00 03 00 0a 42 0102"
	for h, want := range map[string]string{
		"42 0102": canonical, "82 01 02": canonical, "82 1801 02": canonical,
		"62 6162": "", "82 01 190100": "", "82 01 20": "", "82 01 f5": "", "82 01 f90000": "", "5f 41 01 ff": "", "c2 42 0102": "",
	} {
		m, err := wire.DecodeUplink(unhex(t, head+h))
		if want == "" {
			if err == nil {
				t.Errorf("%s was read as %+v", h, m)
			}
			continue
		}
		if err != nil || !bytes.Equal(encode(t, m), unhex(t, want)) {
			t.Errorf("%s was read as %+v, %v", h, m, err)
		}
	}
}

// Arguments are looked at by DecodeMap, so that an agent can answer bad ones.
func TestA21_ValuesInMaps(t *testing.T) {
	tests := []struct {
		name, hex string
		want      string // the map as Go prints it; "" means refused
	}{
		{"float16", "a1 6161 f93c00", `map[string]interface {}{"a":1}`},
		{"float32", "a1 6161 fa3f800000", `map[string]interface {}{"a":1}`},
		{"float64", "a1 6161 fb3ff0000000000000", `map[string]interface {}{"a":1}`},
		{"integer", "a1 6161 01", `map[string]interface {}{"a":0x1}`},
		{"negative integer", "a1 6161 20", `map[string]interface {}{"a":-1}`},
		{"null", "a1 6161 f6", `map[string]interface {}{"a":interface {}(nil)}`},
		{"bytes", "a1 6161 4100", `map[string]interface {}{"a":[]uint8{0x0}}`},
		{"smallest float64 (A11, 1e-400 is zero before it gets here)", "a1 6161 fb0000000000000001", `map[string]interface {}{"a":5e-324}`},
		{"minus zero (A11)", "a1 6161 f98000", `map[string]interface {}{"a":-0}`},
		{"NaN (A11)", "a1 6161 f97e00", ""},
		{"float64 NaN (A11)", "a1 6161 fb7ff8000000000001", ""},
		{"infinity (A11)", "a1 6161 fa7f800000", ""},
		{"minus infinity (A11)", "a1 6161 fbfff0000000000000", ""},
		{"undefined", "a1 6161 f7", ""},
		{"simple value", "a1 6161 e0", ""},
		{"tag", "a1 6161 c074", ""},
		{"bignum", "a1 6161 c249010000000000000000", ""},
		{"integer key", "a1 01 02", ""},
		{"bytes key", "a1 4161 02", ""},
		{"key twice", "a2 6161 01 6161 02", ""},
		{"key twice inside", "a1 6161 a2 6162 01 6162 01", ""},
		{"indefinite", "bf 6161 01 ff", ""},
		{"text that is not UTF-8", "a1 6161 61ff", ""},
		{"key that is not UTF-8", "a1 61ff 01", ""},
		{"cut", "a1 6161", ""},
		{"list", "80", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			m, err := wire.DecodeMap(unhex(t, tt.hex))
			switch got := fmt.Sprintf("%#v", m); {
			case tt.want == "" && err == nil:
				t.Errorf("read as %s", got)
			case tt.want != "" && (err != nil || got != tt.want):
				t.Errorf("read as %s (%v), want %s", got, err, tt.want)
			}
		})
	}
}

// A well-formed instruction with arguments that DecodeMap refuses is delivered:
// the agent answers it with bad_args. The bytes stay as they were.
func TestBadArgumentsReachTheAgent(t *testing.T) {
	for _, args := range []string{"a2 6161 01 6161 02", "a1 01 02", "a1 6161 61ff"} {
		in := samples(t)[1].msg.(*wire.Instruction)
		in.Args = unhex(t, args)
		m, err := wire.DecodeDownlink(encode(t, in))
		if err != nil {
			t.Fatalf("%s: %v", args, err)
		}
		got := m.(*wire.Instruction).Args
		if !bytes.Equal(got, in.Args) {
			t.Errorf("arguments %x became %x", in.Args, got)
		}
		if _, err := wire.DecodeMap(got); err == nil {
			t.Errorf("%s: DecodeMap accepted it", args)
		}
	}
	for _, args := range []string{"f5", "80", "60", "00"} {
		head := "a7 00 01 01 01 02 " + fmt.Sprintf("%x", append([]byte{0x60 + 10}, wire.Key{Site: "s", Seq: 1}.String()...))
		if _, err := wire.DecodeDownlink(unhex(t, head+"03 83 00 01 00 04 01 05 61 78 06"+args)); err == nil {
			t.Errorf("arguments %s, which are no map, were accepted", args)
		}
	}
}

// allocated returns the bytes that f allocates: the least of some runs, because
// the runtime allocates now and then too.
func allocated(f func()) uint64 {
	least := uint64(math.MaxUint64)
	for range 5 {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		f()
		runtime.ReadMemStats(&after)
		least = min(least, after.TotalAlloc-before.TotalAlloc)
	}
	return least
}

// A21: ten thousand levels cost nothing, wherever they stand.
func TestA21_DepthIsRefusedWithoutMemory(t *testing.T) {
	const depth, bound = 10_000, 32 << 10 // bytes, of error texts mostly
	lists := strings.Repeat("81", depth) + "00"
	maps := strings.Repeat("a100", depth) + "00"
	for name, h := range map[string]string{
		"lists": lists, "maps": maps, "unknown key": extended("1863" + lists), "field": digest(lists),
		"reason": cancel(maps), "cut": digest(strings.Repeat("81", depth)),
	} {
		b := unhex(t, h)
		if _, err := wire.DecodeUplink(b); err == nil {
			t.Errorf("%s: accepted by the gateway", name)
		}
		if _, err := wire.DecodeDownlink(b); err == nil {
			t.Errorf("%s: accepted by the agent", name)
		}
		if _, err := wire.DecodeMap(b); err == nil {
			t.Errorf("%s: accepted as a map", name)
		}
		n := allocated(func() {
			_, _ = wire.DecodeUplink(b)
			_, _ = wire.DecodeDownlink(b)
			_, _ = wire.DecodeMap(b)
		})
		if n > bound {
			t.Errorf("%s: %d bytes allocated", name, n)
		}
	}
}

// A head that promises more than there is allocates nothing for the promise.
func TestPromisedLengthsAreNotBelieved(t *testing.T) {
	for name, h := range map[string]string{
		"text of 2^63 bytes":  cancel("7b 7fffffffffffffff"),
		"text of 2^64 bytes":  cancel("7b ffffffffffffffff"),
		"bytes of 2^32 bytes": cancel("5a ffffffff"),
		"list of 2^64":        "a2 00 03 01 9b ffffffffffffffff",
		"list of 1024":        "a2 00 03 01 99 0400",
		"map of 2^64":         "bb ffffffffffffffff 00 02",
		"map of 256":          "b9 0100 00 02",
	} {
		b := unhex(t, h)
		if _, err := wire.DecodeDownlink(b); err == nil {
			t.Errorf("%s: accepted", name)
		}
		if n := allocated(func() { _, _ = wire.DecodeDownlink(b) }); n > 8<<10 {
			t.Errorf("%s: %d bytes allocated", name, n)
		}
	}
}
