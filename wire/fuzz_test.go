package wire_test

import (
	"bytes"
	"encoding/json"
	"reflect"
	"testing"

	"github.com/apollo-11/apollo11/wire"
)

// fuzzMessages is the property of both decoders: they never panic, and what they
// accept can be sent again and then means the same.
func fuzzMessages(f *testing.F, up bool) {
	for _, s := range samples(f) {
		f.Add(encode(f, s.msg))
	}
	for _, h := range []string{digest("1807"), cancel("f6"), extended("1863 a1 61 61 80"), "bf ff", "a1 00 05", "81818181"} {
		f.Add(unhex(f, h))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		in := bytes.Clone(b)
		m, err := decode(up, b)
		if !bytes.Equal(in, b) {
			t.Fatal("the decoder changed its input")
		}
		if err != nil {
			if m != nil {
				t.Fatalf("%+v and %v", m, err)
			}
			return
		}
		const missing = 64 // bytes that fields take which were left out
		again, err := wire.Encode(m)
		if err != nil {
			if len(b) > wire.MaxMessageBytes-missing {
				return
			}
			t.Fatalf("%x was accepted, but cannot be sent again: %v", b, err)
		}
		m2, err := decode(up, again)
		if err != nil {
			t.Fatalf("%x became %x, which is refused: %v", b, again, err)
		}
		if third := encode(t, m2); !bytes.Equal(third, again) {
			t.Fatalf("%x became %x, then %x", b, again, third)
		}
	})
}

func FuzzDecodeDownlink(f *testing.F) { fuzzMessages(f, false) }

func FuzzDecodeUplink(f *testing.F) { fuzzMessages(f, true) }

func FuzzDecodeCompact(f *testing.F) {
	for _, s := range compactSamples() {
		b, err := s.Encode()
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Add(unhex(f, "11 81 00 01 10"))
	f.Add(unhex(f, "11 01 01 c8"))
	f.Fuzz(func(t *testing.T, b []byte) {
		v, err := wire.DecodeCompact(b)
		if err != nil {
			return
		}
		if a, ok := v.(wire.CompactAck); ok && a.Code.Class() == wire.ClassInvalid {
			return // a newer agent's code is read, but never sent
		}
		// A frame has one spelling.
		if again, err := v.(compactFrame).Encode(); err != nil || !bytes.Equal(again, b) {
			t.Fatalf("%x became %+v, then %x, %v", b, v, again, err)
		}
	})
}

func FuzzParseKey(f *testing.F) {
	for _, s := range idSamples() {
		f.Add(s)
	}
	f.Add("default-1712345678901-42-0d4")
	f.Add("--5-42-0000")
	f.Fuzz(func(t *testing.T, s string) {
		if k, err := wire.ParseKey(s); err == nil && (k.String() != s || len(s) > wire.MaxKeyLen || wire.CheckSite(k.Site) != nil) {
			t.Fatalf("%q was read as %+v", s, k)
		}
		if tok, err := wire.ParseToken(s); err == nil && tok.String() != s {
			t.Fatalf("%q was read as the token %s", s, tok)
		}
		if node, n, err := wire.ParseEventID(s); err == nil && wire.EventID(node, n) != s {
			t.Fatalf("%q was read as the event %s, %d", s, node, n)
		}
		if tr, err := wire.ParseTrace(s); err == nil {
			if again, err := wire.ParseTrace(tr.String()); err != nil || again != tr {
				t.Fatalf("%q was read as the trace %s", s, tr)
			}
		}
		tp, err := wire.NewTopics("default")
		if err != nil {
			t.Fatal(err)
		}
		if kind, arg := tp.Parse(s); kind == wire.TopicOther && arg != "" {
			t.Fatalf("topic %q has the argument %q", s, arg)
		}
		if kind, arg := tp.Parse(tp.Reply(s)); s != "" && (kind != wire.TopicReply || arg != wire.EscapeLevel(s)) {
			t.Fatalf("the reply topic of %q is (%d, %q)", s, kind, arg)
		}
	})
}

// FuzzParseArgs reads its input as a CBOR map and as a JSON object. What is
// accepted has a canonical form that is read back to the same.
func FuzzParseArgs(f *testing.F) {
	var intents []string
	seeds := []string{`{}`, `{"pin":17}`, `{"pin":"GPIO17","width":"500ms","level":0}`, `{"pin":"GPIO17","width_ms":"500.0"}`, `{"pin":"GPIO17","width_ms":1e300}`, `{"":null}`}
	for _, d := range wire.Declarations() {
		intents = append(intents, d.Name)
		for _, all := range []bool{true, false} {
			s, err := json.Marshal(d.Example(all))
			if err != nil {
				f.Fatal(err)
			}
			seeds = append(seeds, string(s))
		}
	}
	for i := range intents {
		for _, s := range seeds {
			f.Add(uint8(i), []byte(s))
			b, err := wire.EncodeMap(object(f, s), wire.MaxArgsBytes)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(uint8(i), []byte(b))
		}
	}
	f.Fuzz(func(t *testing.T, which uint8, b []byte) {
		intent := intents[int(which)%len(intents)]
		var fromJSON map[string]any
		if json.Unmarshal(b, &fromJSON) != nil {
			fromJSON = nil
		}
		fromCBOR, err := wire.DecodeMap(b)
		if err != nil {
			fromCBOR = nil
		}
		for _, m := range []map[string]any{fromJSON, fromCBOR} {
			a, err := wire.ParseArgs(intent, m)
			if err != nil {
				if a != nil {
					t.Fatalf("%+v and %v", a, err)
				}
				encode(t, &wire.Goodbye{Session: 1, Reason: wire.FitText(err.Error())})
				continue
			}
			r, err := wire.EncodeMap(a.Map(), wire.MaxArgsBytes)
			if err != nil {
				t.Fatal(err)
			}
			back, err := wire.DecodeMap(r)
			if err != nil {
				t.Fatal(err)
			}
			if again, err := wire.ParseArgs(intent, back); err != nil || !reflect.DeepEqual(again, a) {
				t.Fatalf("%v became %+v, then %+v, %v", m, a, again, err)
			}
		}
	})
}
