package wire_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/apollo-11/apollo11/wire"
)

// nest puts v into n maps.
func nest(v any, n int) map[string]any {
	m := map[string]any{"a": v}
	for range n - 1 {
		m = map[string]any{"a": m}
	}
	return m
}

func wide(n int) map[string]any {
	m := map[string]any{}
	for i := range n {
		m[fmt.Sprint(i)] = true
	}
	return m
}

// What EncodeMap lets through arrives; what would not arrive it refuses.
func TestMapLimits(t *testing.T) {
	tests := []struct {
		name string
		m    map[string]any
		ok   bool
	}{
		{"depth at the limit", nest(true, wire.MaxNestedLevels-1), true},
		{"depth beyond the limit", nest(true, wire.MaxNestedLevels), false},
		{"list at the limit", map[string]any{"a": make([]any, wire.MaxArrayElements)}, true},
		{"list beyond the limit", map[string]any{"a": make([]any, wire.MaxArrayElements+1)}, false},
		{"pairs at the limit", wide(wire.MaxMapPairs), true},
		{"pairs beyond the limit", wide(wire.MaxMapPairs + 1), false},
		{"bytes at the limit", map[string]any{"a": make([]byte, wire.MaxPayloadBytes-6)}, true},
		{"bytes beyond the limit", map[string]any{"a": make([]byte, wire.MaxPayloadBytes-5)}, false},
		{"text that is not UTF-8", map[string]any{"a": "\xff"}, false},
		{"key that is not UTF-8", map[string]any{"\xff": 1}, false},
		{"A11 NaN", map[string]any{"a": math.NaN()}, false},
		{"A11 infinity", map[string]any{"a": []any{math.Inf(-1)}}, false},
		{"A11 minus zero", map[string]any{"a": math.Copysign(0, -1)}, true},
		{"map with integer keys", map[string]any{"a": map[int]int{1: 2}}, false},
		{"channel", map[string]any{"a": make(chan int)}, false},
		{"nil list and nil bytes", map[string]any{"a": []any(nil), "b": []byte(nil), "c": map[string]any(nil)}, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r, err := wire.EncodeMap(tt.m, wire.MaxPayloadBytes)
			if (err == nil) != tt.ok {
				t.Fatalf("err = %v", err)
			}
			if !tt.ok {
				return
			}
			m, err := wire.DecodeUplink(encode(t, &wire.Event{
				Number: 1, Seq: 1, Token: wire.Token{Seq: 1}, Attempt: 1, Phase: wire.PhaseReceived, Payload: r}))
			if err != nil {
				t.Fatal(err)
			}
			if _, err := wire.DecodeMap(m.(*wire.Event).Payload); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// Raw maps that come from elsewhere are measured when the message is encoded.
func TestRawMapsAreMeasured(t *testing.T) {
	for name, h := range map[string]string{
		"too deep":      strings.Repeat("a1 6161 ", wire.MaxNestedLevels) + "00",
		"indefinite":    "bf ff",
		"cut":           "a1 6161",
		"two items":     "a0 a0",
		"not a map":     "80",
		"tag":           "a1 6161 c100",
		"NaN (A11)":     "a1 6161 f97e00",
		"simple value":  "a1 6161 e0",
		"list too long": "a1 6161 99 0401" + strings.Repeat("00", wire.MaxArrayElements+1),
	} {
		if b, err := wire.Encode(&wire.Event{
			Number: 1, Seq: 1, Token: wire.Token{Seq: 1}, Attempt: 1, Phase: wire.PhaseReceived, Payload: unhex(t, h),
		}); err == nil {
			t.Errorf("%s: encoded to %x", name, b)
		}
	}
}

func TestMessageSizeLimit(t *testing.T) {
	names := make([]string, wire.MaxArrayElements)
	for i := range names {
		names[i] = fmt.Sprintf("pin-%0*d", wire.MaxPinLen-4, i)
	}
	h := &wire.Hello{Session: 1, Incarnation: 1, Short: "000000", First: 1, Next: 1, Pins: names}
	if _, err := wire.Encode(h); err == nil {
		t.Error("a hello with 64 KiB of pins was encoded")
	}
	h.Pins = slices.Repeat([]string{"a"}, wire.MaxArrayElements)
	encode(t, h)
	h.Pins = append(h.Pins, "a")
	if _, err := wire.Encode(h); err == nil {
		t.Error("a hello with more pins than a decoder takes was encoded")
	}
	b := append(unhex(t, extended("1863 59 7fff")), make([]byte, wire.MaxMessageBytes)...)
	if _, err := wire.DecodeUplink(b); err == nil || !strings.Contains(err.Error(), "limit") {
		t.Errorf("a message of %d bytes: %v", len(b), err)
	}
	if _, err := wire.DecodeUplink(make([]byte, 64<<20)); err == nil {
		t.Error("64 MiB of zeros were accepted")
	}
}

// The largest set of references fits a message.
func TestLargestListsFit(t *testing.T) {
	tok := wire.Token{Shard: 1<<16 - 1, Seq: math.MaxUint64, Rand: math.MaxUint32}
	encode(t, &wire.Query{Refs: slices.Repeat([]wire.Ref{{Seq: math.MaxUint64, Token: tok}}, wire.MaxRefs), Through: math.MaxUint64})
	encode(t, &wire.Heartbeat{Session: 1, Running: slices.Repeat([]wire.Running{{Seq: math.MaxUint64, Token: tok, Percent: 100}}, wire.MaxRefs)})
	encode(t, &wire.Report{States: slices.Repeat([]wire.State{{Seq: math.MaxUint64, Token: tok, Status: wire.StatusDone, Code: 255}}, wire.MaxRefs)})
	encode(t, &wire.Goodbye{Session: 1, Reason: strings.Repeat("x", wire.MaxDetailBytes),
		Unstarted: slices.Repeat([]wire.Ref{{Seq: math.MaxUint64, Token: tok}}, wire.MaxRefs)})
	encode(t, &wire.Instruction{
		Seq: math.MaxUint64, Key: wire.Key{Site: strings.Repeat("s", wire.MaxSiteLen), Millis: wire.MaxKeyMillis, Seq: math.MaxUint64}.String(),
		Token: tok, Attempt: wire.MaxAttempt, Intent: strings.Repeat("i", wire.MaxIntentLen),
		Args:     rawMap(t, map[string]any{"a": make([]byte, wire.MaxArgsBytes-6)}),
		NotAfter: math.MaxInt64, TimeoutMs: math.MaxUint32, Priority: wire.PriorityLow, Trace: wire.NewTrace(1, 2),
		SentAt: math.MinInt64, Resend: 255, Through: math.MaxUint64,
		Order: math.MaxUint64, Lines: slices.Repeat([]wire.LineKey{math.MaxUint64}, wire.MaxLines), Keep: true,
	})
	encode(t, &wire.Welcome{Session: math.MaxUint64, Epoch: math.MaxUint64, Now: math.MaxInt64, HeartbeatMs: math.MaxUint32,
		Refused: strings.Repeat("x", wire.MaxDetailBytes), Phases: wire.MaxPhase, Rules: 255,
		Holds: slices.Repeat([]wire.LineKey{math.MaxUint64}, wire.MaxLines), Through: math.MaxUint64})
	encode(t, &wire.Heartbeat{Session: 1, Running: slices.Repeat([]wire.Running{{Seq: math.MaxUint64, Token: tok, Percent: 100}}, wire.MaxRefs),
		Foreign: slices.Repeat([]wire.Foreign{{Pin: strings.Repeat("p", wire.MaxPinLen), Commanded: 1, Found: 1}}, wire.MaxForeign),
		Levels:  make([]byte, wire.MaxArrayElements/4), Room: math.MaxUint32})
}

// Whatever an agent can be configured to be fits one hello: as many pins as a map can
// have, with names of full length and all their traits, and labels of the most bytes
// that the configuration takes; with room for two dozen intents of full length.
func TestTheLargestHelloFits(t *testing.T) {
	h := &wire.Hello{
		Session: math.MaxUint64, Incarnation: math.MaxUint64, Version: strings.Repeat("v", 64), Board: "chardev", Short: "000000",
		First: math.MaxUint64, Next: math.MaxUint64, Clock: math.MinInt64, ClockSet: true, Workers: math.MaxUint16,
		TopSeq: math.MaxUint64, TopToken: math.MaxUint64, Nonce: math.MaxUint64, Rules: 255, Local: true, Labels: map[string]string{},
	}
	for i := range wire.MaxLines {
		h.Pins = append(h.Pins, fmt.Sprintf("%0*d", wire.MaxPinLen, i))
		h.Traits = append(h.Traits, wire.PinTraits{Line: math.MaxUint64, Flags: math.MaxUint16, MaxOnMs: uint64(wire.MaxMaxOn.Milliseconds())})
	}
	for i := range wire.MaxLabels { // heads of keys and values are paid for beside their bytes
		h.Labels[fmt.Sprintf("%0*d", wire.MaxNodeLen, i)] = strings.Repeat("x", wire.MaxLabelBytes/wire.MaxLabels-wire.MaxNodeLen)
	}
	for i := range 24 {
		h.Intents = append(h.Intents, fmt.Sprintf("i%0*d", wire.MaxIntentLen-1, i))
		h.Actuating = append(h.Actuating, uint16(i))
	}
	for _, d := range wire.Declarations() {
		h.Intents = append(h.Intents, d.Name)
	}
	t.Logf("%d bytes", len(encode(t, h)))
}

func TestFitText(t *testing.T) {
	long := strings.Repeat("ö", wire.MaxDetailBytes) // two bytes each
	for in, want := range map[string]string{
		"":                          "",
		"plain":                     "plain",
		"cut \xc3":                  "cut \uFFFD",
		"a\xff\xfeb":                "a\uFFFDb",
		"x" + long:                  "x" + long[:wire.MaxDetailBytes-2],
		long:                        long[:wire.MaxDetailBytes],
		strings.Repeat("\xff", 1e4): "\uFFFD",
	} {
		got := wire.FitText(in)
		if got != want || len(got) > wire.MaxDetailBytes || !utf8.ValidString(got) {
			t.Errorf("FitText(%.20q) = %.20q", in, got)
		}
		encode(t, &wire.Goodbye{Session: 1, Reason: got})
	}
}

// Whatever was written to a log can be read again, or is refused when it is written.
func TestRecordLimits(t *testing.T) {
	type record struct {
		Nodes []string       `cbor:"0,keyasint"`
		Text  string         `cbor:"1,keyasint"`
		Map   map[string]any `cbor:"2,keyasint,omitempty"`
	}
	for name, tt := range map[string]struct {
		in record
		ok bool
	}{
		"ten thousand nodes":     {record{Nodes: make([]string, 10_000)}, true},
		"more than the limit":    {record{Nodes: make([]string, wire.MaxRecordElements+1)}, false},
		"text that is not UTF-8": {record{Text: "\xff"}, true},
		"depth at the limit":     {record{Map: nest(true, wire.MaxRecordLevels-1)}, true},
		"depth beyond the limit": {record{Map: nest(true, wire.MaxRecordLevels)}, false},
		"wide map":               {record{Map: wide(10 * wire.MaxMapPairs)}, true},
	} {
		b, err := wire.EncodeRecord(tt.in)
		if (err == nil) != tt.ok {
			t.Errorf("%s: %v", name, err)
		}
		var out record
		if err == nil {
			if err := wire.DecodeRecord(b, &out); err != nil || out.Text != tt.in.Text || len(out.Nodes) != len(tt.in.Nodes) {
				t.Errorf("%s: read back: %v", name, err)
			}
		}
	}
}

func TestRecordRoundTrip(t *testing.T) {
	type record struct {
		V     uint8         `cbor:"0,keyasint"`
		Trace wire.Trace    `cbor:"1,keyasint,omitempty"`
		Wait  time.Duration `cbor:"2,keyasint"`
		Args  wire.RawMap   `cbor:"3,keyasint,omitzero"`
	}
	in := record{V: 1, Trace: wire.NewTrace(1, 2), Wait: time.Second, Args: rawMap(t, map[string]any{"a": "b"})}
	b, err := wire.EncodeRecord(in)
	if err != nil {
		t.Fatal(err)
	}
	var out record
	if err := wire.DecodeRecord(b, &out); err != nil || fmt.Sprint(in) != fmt.Sprint(out) {
		t.Errorf("%+v became %+v, %v", in, out, err)
	}
	for n := range b {
		if err := wire.DecodeRecord(b[:n], new(record)); err == nil {
			t.Errorf("a record cut to %d bytes was accepted", n)
		}
	}
}
