package wire_test

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/apollo-11/apollo11/wire"
)

// pair is one entry of an encoded message.
type pair struct {
	key uint64
	raw []byte // key and value
}

// pairs takes a canonical message apart. Its keys are all below 24.
func pairs(t *testing.T, b []byte) []pair {
	t.Helper()
	var out []pair
	rest := b[1:]
	for len(rest) > 0 {
		n := 1 + itemLen(t, rest[1:])
		out = append(out, pair{uint64(rest[0]), rest[:n]})
		rest = rest[n:]
	}
	if len(out) != int(b[0]-0xa0) {
		t.Fatalf("%x has %d pairs", b, len(out))
	}
	return out
}

// itemLen is the length of the CBOR item at the start of b, which is definite.
func itemLen(t *testing.T, b []byte) int {
	t.Helper()
	major, info := b[0]>>5, b[0]&31
	head, value := 1, uint64(info)
	if info >= 24 {
		head += 1 << (info - 24)
		value = 0
		for _, c := range b[1:head] {
			value = value<<8 | uint64(c)
		}
	}
	items := 0
	switch major {
	case 2, 3:
		return head + int(value)
	case 4:
		items = int(value)
	case 5:
		items = 2 * int(value)
	}
	n := head
	for range items {
		n += itemLen(t, b[n:])
	}
	return n
}

func assemble(ps []pair) []byte {
	b := []byte{0xa0 + byte(len(ps))}
	if len(ps) > 23 {
		b = []byte{0xb8, byte(len(ps))}
	}
	for _, p := range ps {
		b = append(b, p.raw...)
	}
	return b
}

// needed are the keys without which a message is refused. All others may be
// missing or null and then mean zero.
var needed = map[string][]uint64{
	"instruction": {0, 1, 2, 3, 4, 5}, "cancel": {0, 1, 3}, "query": {0, 1}, "welcome": {0, 1, 3}, "eventack": {0}, "release": {0, 1}, "safenow": {0, 1, 3},
	"hello": {0, 1, 2, 5, 8, 9}, "event": {0, 1, 2, 3, 4, 5}, "heartbeat": {0, 1}, "report": {0}, "digest": {0, 1}, "goodbye": {0, 1},
}

func fullSamples(t *testing.T) []sample {
	return slices.DeleteFunc(samples(t), func(s sample) bool { return !strings.HasSuffix(s.name, "/full") })
}

func TestNeededFields(t *testing.T) {
	for _, s := range fullSamples(t) {
		ps := pairs(t, encode(t, s.msg))
		for i, p := range ps {
			need := slices.Contains(needed[s.typeName()], p.key)
			without := slices.Delete(slices.Clone(ps), i, i+1)
			null := slices.Clone(ps)
			null[i].raw = []byte{p.raw[0], 0xf6}
			a, errA := decode(s.up, assemble(without))
			b, errB := decode(s.up, assemble(null))
			if s.typeName() == "event" && p.key == 9 {
				need = true // a processed event without its code
			}
			if (errA != nil) != need || (errB != nil) != need {
				t.Errorf("%s: key %d needed: %v; missing gives %v, null gives %v", s.name, p.key, need, errA, errB)
			}
			if !need && !bytes.Equal(encode(t, a), encode(t, b)) {
				t.Errorf("%s: key %d: null and missing differ", s.name, p.key)
			}
		}
	}
}

// A newer peer adds keys; an older one leaves them unread.
func TestUnknownKeysAreIgnored(t *testing.T) {
	for _, s := range samples(t) {
		b := encode(t, s.msg)
		ps := pairs(t, b)
		for _, raw := range []string{"17 01", "1818 f5", "1863 a2 01 02 61 61 80", "190400 60", "3863 40", "63 6e6577 f6"} {
			for at := range len(ps) + 1 {
				mixed := slices.Insert(slices.Clone(ps), at, pair{raw: unhex(t, raw)})
				m, err := decode(s.up, assemble(mixed))
				if err != nil {
					t.Errorf("%s with %s: %v", s.name, raw, err)
				} else if again := encode(t, m); !bytes.Equal(again, b) {
					t.Errorf("%s with %s became %x", s.name, raw, again)
				}
			}
		}
	}
}

// The order of keys and the length of heads have no meaning.
func TestOtherOrdersMeanTheSame(t *testing.T) {
	for _, s := range samples(t) {
		b := encode(t, s.msg)
		ps := pairs(t, b)
		slices.Reverse(ps)
		for i, p := range ps {
			if i%2 == 0 {
				ps[i].raw = append([]byte{0x18}, p.raw...) // the key in two bytes
			}
		}
		m, err := decode(s.up, assemble(ps))
		if err != nil {
			t.Errorf("%s: %v", s.name, err)
		} else if again := encode(t, m); !bytes.Equal(again, b) {
			t.Errorf("%s became %x", s.name, again)
		}
	}
}

func TestEncodingIsDeterministic(t *testing.T) {
	for range 50 { // maps are walked in another order every time
		for i, s := range samples(t) {
			a, b := encode(t, s.msg), encode(t, samples(t)[i].msg)
			if !bytes.Equal(a, b) {
				t.Fatalf("%s: %x and %x", s.name, a, b)
			}
		}
	}
}

// What Validate refuses is refused on both sides. change makes a full message
// unfit.
func TestUnfitMessages(t *testing.T) {
	long := strings.Repeat("x", wire.MaxDetailBytes+1)
	refs := func(n int) []wire.Ref {
		return slices.Repeat([]wire.Ref{{Seq: 1, Token: wire.Token{Seq: 1}}}, n)
	}
	tests := []struct {
		name   string
		change func(wire.Message)
	}{
		{"instruction/full", func(m wire.Message) { m.(*wire.Instruction).Key = "default-1-42-0000" }},
		{"instruction/full", func(m wire.Message) { m.(*wire.Instruction).Seq = 43 }},
		{"instruction/full", func(m wire.Message) { m.(*wire.Instruction).Intent = "GPIO" }},
		{"instruction/full", func(m wire.Message) { m.(*wire.Instruction).NotAfter = -1 }},
		{"instruction/full", func(m wire.Message) { m.(*wire.Instruction).Priority = 4 }},
		{"instruction/full", func(m wire.Message) {
			m.(*wire.Instruction).Args = rawMap(t, map[string]any{"a": make([]byte, wire.MaxArgsBytes-6)})
			m.(*wire.Instruction).Args = append(unhex(t, "a1 6161 59 4000"), make([]byte, wire.MaxArgsBytes)...)
		}},
		{"cancel/full", func(m wire.Message) { m.(*wire.Cancel).Reason = long }},
		{"cancel/full", func(m wire.Message) { m.(*wire.Cancel).Reason = "\xff" }},
		{"query/full", func(m wire.Message) { m.(*wire.Query).Refs = refs(wire.MaxRefs + 1) }},
		{"query/full", func(m wire.Message) { m.(*wire.Query).Refs[1].Seq = 0 }},
		{"welcome/full", func(m wire.Message) { m.(*wire.Welcome).Now = -1 }},
		{"welcome/full", func(m wire.Message) { m.(*wire.Welcome).Refused = long }},
		{"hello/full", func(m wire.Message) { m.(*wire.Hello).Next = 1 }},
		{"hello/full", func(m wire.Message) { m.(*wire.Hello).Short = "pump-1" }},
		{"hello/full", func(m wire.Message) { m.(*wire.Hello).Labels["a/b"] = "" }},
		{"hello/full", func(m wire.Message) { m.(*wire.Hello).Labels["a"] = long }},
		{"hello/full", func(m wire.Message) { m.(*wire.Hello).Labels["a"] = "\xc3" }},
		{"hello/full", func(m wire.Message) {
			for i := range wire.MaxLabels {
				m.(*wire.Hello).Labels[fmt.Sprint(i)] = ""
			}
		}},
		{"hello/full", func(m wire.Message) { m.(*wire.Hello).Intents[0] = "Read" }},
		{"hello/full", func(m wire.Message) { m.(*wire.Hello).Pins[0] = "" }},
		{"hello/full", func(m wire.Message) { m.(*wire.Hello).Board = long }},
		{"hello/full", func(m wire.Message) { m.(*wire.Hello).Version = "\xed\xa0\x80" }},
		{"event/full", func(m wire.Message) { m.(*wire.Event).Phase = 5 }},
		{"event/full", func(m wire.Message) { m.(*wire.Event).Phase = wire.PhaseStarted }},
		{"event/full", func(m wire.Message) { m.(*wire.Event).Code = wire.CodeStarted }},
		{"event/full", func(m wire.Message) { m.(*wire.Event).FinishedAt = -1 }},
		{"event/full", func(m wire.Message) { m.(*wire.Event).Percent = 101 }},
		{"event/full", func(m wire.Message) { m.(*wire.Event).Detail = "cut in the middle: \xc3" }},
		{"event/full", func(m wire.Message) {
			m.(*wire.Event).Payload = append(unhex(t, "a1 6161 59 2000"), make([]byte, wire.MaxPayloadBytes)...)
		}},
		{"instruction/ordered", func(m wire.Message) { m.(*wire.Instruction).Lines[1] = 0 }},
		{"instruction/ordered", func(m wire.Message) {
			m.(*wire.Instruction).Lines = slices.Repeat([]wire.LineKey{1}, wire.MaxLines+1)
		}},
		{"safenow/full", func(m wire.Message) { m.(*wire.SafeNow).Seq = 0 }},
		{"safenow/full", func(m wire.Message) { m.(*wire.SafeNow).NotAfter = -1 }},
		{"safenow/full", func(m wire.Message) { m.(*wire.SafeNow).Lines = []wire.LineKey{0} }},
		{"release/full", func(m wire.Message) { m.(*wire.Release).Seq = 0 }},
		{"welcome/rules", func(m wire.Message) { m.(*wire.Welcome).Holds[0] = 0 }},
		{"welcome/rules", func(m wire.Message) {
			m.(*wire.Welcome).Holds = slices.Repeat([]wire.LineKey{1}, wire.MaxLines+1)
		}},
		{"hello/rules", func(m wire.Message) { m.(*wire.Hello).Traits[1].Line = 0 }},
		{"hello/rules", func(m wire.Message) { m.(*wire.Hello).Traits = m.(*wire.Hello).Traits[:1] }},
		{"hello/rules", func(m wire.Message) { m.(*wire.Hello).Pins = m.(*wire.Hello).Pins[:1] }},
		{"hello/rules", func(m wire.Message) { m.(*wire.Hello).Traits[0].MaxOnMs = uint64(wire.MaxMaxOn.Milliseconds()) + 1 }},
		{"hello/rules", func(m wire.Message) { m.(*wire.Hello).Actuating[0] = 2 }},
		{"heartbeat/levels", func(m wire.Message) { m.(*wire.Heartbeat).Levels = make([]byte, wire.MaxArrayElements/4+1) }},
		{"heartbeat/full", func(m wire.Message) { m.(*wire.Heartbeat).Running[0].Percent = 101 }},
		{"heartbeat/full", func(m wire.Message) { m.(*wire.Heartbeat).Running[0].Token = wire.Token{} }},
		{"heartbeat/full", func(m wire.Message) {
			h := m.(*wire.Heartbeat)
			h.Running = slices.Repeat(h.Running, wire.MaxRefs+1)
		}},
		{"report/full", func(m wire.Message) { m.(*wire.Report).States[0].Status = 0 }},
		{"report/full", func(m wire.Message) { m.(*wire.Report).States[0].Status = 7 }},
		{"report/full", func(m wire.Message) {
			r := m.(*wire.Report)
			r.States = slices.Repeat(r.States, wire.MaxRefs)
		}},
		{"goodbye/full", func(m wire.Message) { m.(*wire.Goodbye).Reason = long }},
		{"goodbye/full", func(m wire.Message) { m.(*wire.Goodbye).Unstarted = refs(wire.MaxRefs + 1) }},
	}
	for i, tt := range tests {
		t.Run(fmt.Sprintf("%s/%d", tt.name, i), func(t *testing.T) {
			for _, s := range samples(t) {
				if s.name != tt.name {
					continue
				}
				encode(t, s.msg)
				tt.change(s.msg)
				if b, err := wire.Encode(s.msg); err == nil {
					t.Errorf("encoded to %x", b)
				}
				b, err := wire.EncodeRecord(s.msg) // what a peer without checks would send
				if err != nil {
					t.Fatal(err)
				}
				if _, err := decode(s.up, b); err == nil {
					t.Errorf("%+v was decoded", s.msg)
				}
				return
			}
			t.Fatal("no such sample")
		})
	}
}
