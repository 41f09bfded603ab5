package wire_test

import (
	"encoding/hex"
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/apollo-11/apollo11/wire"
)

// sample is one message, with the name that its golden vector has.
type sample struct {
	name string
	msg  wire.Message
	up   bool // from an agent
}

func (s sample) typeName() string {
	return strings.ToLower(reflect.TypeOf(s.msg).Elem().Name())
}

const (
	sampleKey    = "default-1712345678901-42-0d40"
	sampleMillis = 1712345678901
)

// The lines of two pins, as a board names them.
var lineA, lineB = wire.LineOf("gpiochip0:17"), wire.LineOf("gpiochip0:27")

var sampleToken = wire.Token{Shard: 1, Seq: 4711, Rand: 0x9f3ab2c1}

// samples returns every message type with nothing but what it needs, and with
// every field set. Each call makes fresh messages.
func samples(t testing.TB) []sample {
	trace := wire.NewTrace(0x0123456789abcdef, 0x0fedcba987654321)
	small := wire.Token{Seq: 1}
	args := rawMap(t, map[string]any{"pin": "GPIO17", "level": uint64(1)})
	payload := rawMap(t, map[string]any{
		"ok": true, "none": nil, "load": 0.5, "third": 1.0 / 3, "big": uint64(math.MaxUint64), "low": int64(math.MinInt64),
		"raw": []byte{0, 1, 2}, "text": "größer", "list": []any{uint64(1), "two"}, "map": map[string]any{"a": uint64(0)},
	})
	return []sample{
		{"instruction/minimal", &wire.Instruction{Seq: 1, Key: wire.Key{Site: "s", Seq: 1}.String(), Token: small, Attempt: 1, Intent: "x"}, false},
		{"instruction/full", &wire.Instruction{
			Seq: 42, Key: sampleKey, Token: sampleToken, Attempt: 2, Intent: wire.IntentGPIOWrite, Args: args,
			NotAfter: sampleMillis + 30_000, TimeoutMs: 5000, Priority: wire.PriorityHigh, Trace: trace,
			SentAt: sampleMillis + 1, Resend: 3, Through: 1000,
		}, false},
		{"instruction/no-arguments", &wire.Instruction{
			Seq: 42, Key: sampleKey, Token: sampleToken, Attempt: 1, Intent: wire.IntentCollectMetrics,
			Trace: trace, SentAt: sampleMillis + 1,
		}, false},
		{"instruction/ordered", &wire.Instruction{
			Seq: 42, Key: sampleKey, Token: sampleToken, Attempt: 2, Intent: wire.IntentGPIOWrite, Args: args, TimeoutMs: 60_000,
			Trace: trace, SentAt: sampleMillis + 1, Order: 57, Lines: []wire.LineKey{lineA, lineB}, Keep: true,
		}, false},
		{"instruction/renewal", &wire.Instruction{
			Seq: 44, Key: wire.Key{Site: "default", Millis: sampleMillis, Seq: 44}.String(), Token: small, Attempt: 1, Intent: wire.IntentGPIOWrite,
			Args: rawMap(t, map[string]any{"pin": "valve-1", "level": uint64(1), "max_on": "10m"}), NotAfter: sampleMillis + 600_000,
			Trace: trace, SentAt: sampleMillis + 1, Throws: 3, EndsBy: sampleMillis + 600_000,
		}, false},
		{"instruction/thrown", &wire.Instruction{
			Seq: 43, Key: "default-1712345678901-43-8e43", Token: small, Attempt: 1, Intent: "x", Resend: 1, Throws: wire.ThrownSince,
		}, false},
		{"instruction/safe", &wire.Instruction{
			Seq: 43, Key: "default-1712345678901-43-8e43", Token: small, Attempt: 1, Intent: wire.IntentSafe, TimeoutMs: 60_000,
			Trace: trace, SentAt: sampleMillis + 1,
		}, false},
		{"release/minimal", &wire.Release{Seq: 1}, false},
		{"release/full", &wire.Release{Seq: 42, Through: 1000}, false},
		{"safenow/minimal", &wire.SafeNow{Seq: 1, Token: small}, false},
		{"safenow/full", &wire.SafeNow{Seq: 42, Token: sampleToken, NotAfter: sampleMillis + 30_000, Order: 57, Lines: []wire.LineKey{lineA}}, false},
		{"cancel/minimal", &wire.Cancel{Seq: 1, Token: small}, false},
		{"cancel/full", &wire.Cancel{Seq: 42, Token: sampleToken, Reason: "stopped by operator", Trace: trace, Through: 1000}, false},
		{"query/minimal", &wire.Query{Refs: []wire.Ref{{Seq: 1, Token: small}}}, false},
		{"query/full", &wire.Query{Refs: []wire.Ref{{Seq: 42, Token: sampleToken}, {Seq: 43, Token: small}}, Through: 1000}, false},
		{"welcome/minimal", &wire.Welcome{Session: 1, Now: 1}, false},
		{"welcome/full", &wire.Welcome{
			Session: 0xdeadbeefcafe, Epoch: 7, Now: sampleMillis, HeartbeatMs: 5000,
			Refused: "node pump-2 has the same short id", Through: 1000,
		}, false},
		{"welcome/phases", &wire.Welcome{Session: 1, Now: sampleMillis, HeartbeatMs: 5000, Phases: wire.PhaseLease, Through: 1000}, false},
		{"welcome/rules", &wire.Welcome{
			Session: 1, Epoch: 7, Now: sampleMillis, HeartbeatMs: 5000, Phases: wire.PhaseLease, Rules: wire.RulesOrder,
			Holds: []wire.LineKey{lineA}, Through: 1000,
		}, false},
		{"eventack/minimal", &wire.EventAck{}, false},
		{"eventack/full", &wire.EventAck{Through: math.MaxUint64, Gap: true}, false},

		{"hello/minimal", &wire.Hello{Session: 1, Incarnation: 1, Short: "000000", First: 1, Next: 1}, true},
		{"hello/full", &wire.Hello{
			Session: 0xdeadbeefcafe, Incarnation: 0xfeed, Version: "1.0.0", Labels: map[string]string{"role": "worker", "hall": "Süd"},
			Short: wire.Short("pump-1"), Intents: []string{"gpio.read", "gpio.write"}, Pins: []string{"GPIO17", "GPIO27"},
			First: 990, Next: 1001, Clock: sampleMillis, ClockSet: true, Board: "sim", Workers: 8,
		}, true},
		{"hello/seen", &wire.Hello{Session: 1, Incarnation: 1, Short: "000000", First: 1, Next: 1, TopSeq: 42, TopToken: 4711}, true},
		{"hello/rules", &wire.Hello{
			Session: 0xdeadbeefcafe, Incarnation: 0xfeed, Short: wire.Short("pump-1"),
			Intents: []string{wire.IntentGPIOWrite, "rinse"}, Pins: []string{"valve-1", "door"}, First: 1, Next: 1, Clock: sampleMillis,
			Nonce: 0xbeef, Rules: wire.RulesOrder, Actuating: []uint16{1}, Local: true,
			Traits: []wire.PinTraits{
				{Line: lineA, Flags: wire.PinOutput | wire.PinHasSafe | wire.PinOnLoss | wire.PinCommanded | wire.PinHigh, MaxOnMs: 600_000},
				{Line: lineB},
			},
		}, true},
		{"hello/throws", &wire.Hello{Session: 1, Incarnation: 1, Short: "000000", First: 1, Next: 1, Nonce: 0xbeef, Rules: wire.RulesUrgent, Throws: 3}, true},
		{"event/superseded", &wire.Event{
			Number: 1004, Seq: 42, Token: sampleToken, Attempt: 2, Phase: wire.PhaseProcessed, ReceivedAt: sampleMillis + 5,
			Code: wire.CodeSuperseded, Detail: "43 has begun on valve-1",
		}, true},
		{"event/hand", &wire.Event{
			Number: 1005, Seq: 42, Token: sampleToken, Attempt: 2, Phase: wire.PhaseLease, FinishedAt: sampleMillis + 9,
			Payload: rawMap(t, map[string]any{"pin": "valve-1", "level": uint64(1)}), Lease: wire.LeaseHand,
		}, true},
		{"event/minimal", &wire.Event{Number: 1, Seq: 1, Token: small, Attempt: 1, Phase: wire.PhaseReceived}, true},
		{"event/full", &wire.Event{
			Number: 1001, Seq: 42, Token: sampleToken, Attempt: 2, Phase: wire.PhaseProcessed,
			ReceivedAt: sampleMillis + 5, StartedAt: sampleMillis + 6, FinishedAt: sampleMillis + 9,
			Code: wire.CodeOK, Detail: "GPIO17 is high", Payload: payload, Percent: 100,
		}, true},
		{"event/progress", &wire.Event{Number: 1000, Seq: 42, Token: sampleToken, Attempt: 2, Phase: wire.PhaseProgress, Percent: 50}, true},
		{"event/lease", &wire.Event{
			Number: 1002, Seq: 42, Token: sampleToken, Attempt: 2, Phase: wire.PhaseLease,
			ReceivedAt: sampleMillis + 5, StartedAt: sampleMillis + 6, FinishedAt: sampleMillis + 600_000,
			Payload: rawMap(t, map[string]any{"pin": "valve-1", "level": uint64(0)}), Lease: wire.LeaseExpired,
		}, true},
		{"event/edges", &wire.Event{
			Number: 1003, Seq: 43, Token: small, Attempt: 1, Phase: wire.PhaseProgress, ReceivedAt: sampleMillis, StartedAt: sampleMillis,
			Payload: rawMap(t, map[string]any{
				"pin": "door", "edges": []any{[]any{uint64(1), uint64(86_400_000_000_123), uint64(sampleMillis + 7)}},
				"total": uint64(9), "unlisted": uint64(2), "missed": uint64(1),
			}),
		}, true},
		{"heartbeat/minimal", &wire.Heartbeat{Session: 1}, true},
		{"heartbeat/full", &wire.Heartbeat{
			Session: 0xdeadbeefcafe, Clock: sampleMillis, UptimeMs: 86_400_000,
			Running: []wire.Running{{Seq: 42, Token: sampleToken, Percent: 50}}, Queued: 3, Through: 1000, Next: 1002,
		}, true},
		{"heartbeat/hand", &wire.Heartbeat{
			Session: 1, Clock: sampleMillis, UptimeMs: 1000, Foreign: []wire.Foreign{{Pin: "valve-1", Commanded: 0, Found: 1}}, Local: true,
		}, true},
		{"heartbeat/levels", &wire.Heartbeat{
			Session: 1, Clock: sampleMillis, UptimeMs: 1000, Room: 985,
			Levels: wire.PackLevels([]wire.Level{wire.LevelHigh, wire.LevelUnknown, wire.LevelLow, wire.LevelHeld, wire.LevelHigh}),
		}, true},
		{"heartbeat/throws", &wire.Heartbeat{Session: 1, Clock: sampleMillis, UptimeMs: 1000, Local: true, Throws: 4}, true},
		{"report/minimal", &wire.Report{}, true},
		{"report/full", &wire.Report{States: []wire.State{
			{Seq: 42, Token: sampleToken, Status: wire.StatusDone, Code: wire.CodeUnknown},
			{Seq: 43, Token: small, Status: wire.StatusNever},
			{Seq: 44, Token: small, Status: wire.StatusQueued},
			{Seq: 45, Token: small, Status: wire.StatusRunning},
		}}, true},
		{"report/rules", &wire.Report{States: []wire.State{
			{Seq: 42, Token: sampleToken, Status: wire.StatusFull},
			{Seq: 43, Token: small, Status: wire.StatusDriven},
		}}, true},
		{"digest/minimal", &wire.Digest{Session: 1}, true},
		{"digest/full", &wire.Digest{Session: 0xdeadbeefcafe, Hash: math.MaxUint64, Count: 12, Next: 1002}, true},
		{"goodbye/minimal", &wire.Goodbye{Session: 1}, true},
		{"goodbye/full", &wire.Goodbye{
			Session: 0xdeadbeefcafe, Lost: true, Reason: "the link was cut",
			Unstarted: []wire.Ref{{Seq: 43, Token: small}},
		}, true},
	}
}

func rawMap(t testing.TB, m map[string]any) wire.RawMap {
	t.Helper()
	b, err := wire.EncodeMap(m, wire.MaxArgsBytes)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func encode(t testing.TB, m wire.Message) []byte {
	t.Helper()
	b, err := wire.Encode(m)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func decode(up bool, b []byte) (wire.Message, error) {
	if up {
		return wire.DecodeUplink(b)
	}
	return wire.DecodeDownlink(b)
}

// unhex reads hex with spaces for readability.
func unhex(t testing.TB, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.ReplaceAll(s, " ", ""))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// fields shows a message as JSON can hold it, by Go field names: ids and codes in
// their text form, raw maps decoded, absent optional fields left out.
func fields(t testing.TB, v any) any {
	t.Helper()
	switch v := v.(type) {
	case wire.Token:
		return v.String()
	case wire.Trace:
		return v.String()
	case wire.Code:
		return v.String()
	case wire.Phase:
		return v.String()
	case wire.RawMap:
		m, err := wire.DecodeMap(v)
		if err != nil {
			t.Fatal(err)
		}
		return plain(m)
	}
	r := reflect.ValueOf(v)
	switch r.Kind() {
	case reflect.Pointer:
		return fields(t, r.Elem().Interface())
	case reflect.Slice:
		out := make([]any, r.Len())
		for i := range out {
			out[i] = fields(t, r.Index(i).Interface())
		}
		return out
	case reflect.Struct:
		out := map[string]any{}
		for i := range r.NumField() {
			f := r.Type().Field(i)
			optional := strings.Contains(f.Tag.Get("cbor"), "omit")
			if f.Name == "_" || optional && (r.Field(i).IsZero() || r.Field(i).Kind() == reflect.Slice && r.Field(i).Len() == 0) {
				continue
			}
			out[f.Name] = fields(t, r.Field(i).Interface())
		}
		return out
	}
	return v
}

// plain replaces what JSON cannot hold by text that says what it was.
func plain(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for k, e := range v {
			v[k] = plain(e)
		}
	case []any:
		for i, e := range v {
			v[i] = plain(e)
		}
	case []byte:
		return "h'" + hex.EncodeToString(v) + "'"
	}
	return v
}
