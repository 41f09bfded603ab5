package wire_test

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/apollo-11/apollo11/wire"
)

var update = flag.Bool("update", false, "write the tables of intents in docs/wire.md, and add new golden vectors; existing ones never change")

// vector is one line of the contract with every agent that was ever shipped.
type vector struct {
	Name   string          `json:"name"`
	Hex    string          `json:"hex"`
	Fields json.RawMessage `json:"fields"`
}

// vectorFiles are the files of testdata and how their entries are decoded.
var vectorFiles = map[string]func(testing.TB, []byte) any{
	"downlink.json": func(t testing.TB, b []byte) any { return must(t)(wire.DecodeDownlink(b)) },
	"uplink.json":   func(t testing.TB, b []byte) any { return must(t)(wire.DecodeUplink(b)) },
	"compact.json":  func(t testing.TB, b []byte) any { return must(t)(wire.DecodeCompact(b)) },
	"ids.json":      func(t testing.TB, b []byte) any { return decodeID(t, string(b)) },
}

func must(t testing.TB) func(any, error) any {
	return func(v any, err error) any {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// want returns every vector that this version of the package makes, by file.
func want(t testing.TB) map[string][]vector {
	w := map[string][]vector{}
	add := func(file, name string, b []byte, decoded any) {
		w[file] = append(w[file], vector{name, hex.EncodeToString(b), describe(t, decoded)})
	}
	for _, s := range samples(t) {
		file := "downlink.json"
		if s.up {
			file = "uplink.json"
		}
		add(file, s.name, encode(t, s.msg), s.msg)
	}
	for name, v := range compactSamples() {
		b, err := v.Encode()
		if err != nil {
			t.Fatal(err)
		}
		add("compact.json", name, b, v)
	}
	for name, id := range idSamples() {
		add("ids.json", name, []byte(id), decodeID(t, id))
	}
	return w
}

type compactFrame interface{ Encode() ([]byte, error) }

func compactSamples() map[string]compactFrame {
	return map[string]compactFrame{
		"ack/smallest":    wire.CompactAck{Seq: 1, Attempt: 1, Code: wire.CodeReceived},
		"ack/ok":          wire.CompactAck{Seq: 300, Attempt: 2, Code: wire.CodeOK},
		"ack/never":       wire.CompactAck{Seq: 300, Attempt: 2, Code: wire.CodeNever},
		"ack/unknown":     wire.CompactAck{Seq: 1<<28 - 1, Attempt: 2, Code: wire.CodeUnknown},
		"ack/largest":     wire.CompactAck{Seq: wire.MaxCompactSeq, Attempt: wire.MaxAttempt, Code: wire.CodeInternal},
		"query/smallest":  wire.CompactQuery{Seq: 1, Attempt: 1},
		"query/ordinary":  wire.CompactQuery{Seq: 300, Attempt: 2},
		"query/largest":   wire.CompactQuery{Seq: wire.MaxCompactSeq, Attempt: wire.MaxAttempt},
		"cancel/smallest": wire.CompactCancel{Seq: 1, Attempt: 1},
		"cancel/ordinary": wire.CompactCancel{Seq: 300, Attempt: 2},
		"safe/smallest":   wire.CompactSafe{Seq: 1},
		"safe/ordinary":   wire.CompactSafe{Seq: 300, Line: lineA.Hash()},
		"safe/largest":    wire.CompactSafe{Seq: wire.MaxCompactSeq, Line: math.MaxUint16},
		"cancel/largest":  wire.CompactCancel{Seq: wire.MaxCompactSeq, Attempt: wire.MaxAttempt},
	}
}

// idSamples are ids in their text form, which is also what their hex encodes. A
// short is written as the node's name, an equals sign and the short id.
func idSamples() map[string]string {
	return map[string]string{
		"key/ordinary":   wire.Key{Site: "default", Millis: sampleMillis, Seq: 42}.String(),
		"key/dashes":     wire.Key{Site: "hall-2-north", Millis: sampleMillis, Seq: 1}.String(),
		"key/smallest":   wire.Key{Site: "s"}.String(),
		"key/largest":    wire.Key{Site: "abcdefghijklmnopqrstuvwxyz012345", Millis: wire.MaxKeyMillis, Seq: 1<<64 - 1}.String(),
		"token/ordinary": sampleToken.String(),
		"token/largest":  wire.Token{Shard: 1<<16 - 1, Seq: 1<<64 - 1, Rand: 1<<32 - 1}.String(),
		"trace/ordinary": wire.NewTrace(0x0123456789abcdef, 0x0fedcba987654321).String(),
		"event/ordinary": wire.EventID("pump-1", 1001),
		"short/pump-1":   "pump-1=" + wire.Short("pump-1"),
		"short/pump-2":   "pump-2=" + wire.Short("pump-2"),
	}
}

func decodeID(t testing.TB, s string) any {
	t.Helper()
	if k, err := wire.ParseKey(s); err == nil {
		return map[string]any{"id": "key", "text": s, "site": k.Site, "millis": k.Millis, "seq": k.Seq}
	}
	if k, err := wire.ParseToken(s); err == nil {
		return map[string]any{"id": "token", "text": s, "shard": k.Shard, "seq": k.Seq, "rand": k.Rand}
	}
	if tr, err := wire.ParseTrace(s); err == nil {
		return map[string]any{"id": "trace", "text": s, "bytes": hex.EncodeToString(tr[:])}
	}
	if node, n, err := wire.ParseEventID(s); err == nil {
		return map[string]any{"id": "event", "text": s, "node": node, "number": n}
	}
	node, short, ok := strings.Cut(s, "=")
	if !ok || wire.CheckShort(short) != nil || wire.Short(node) != short {
		t.Fatalf("%q is no id", s)
	}
	return map[string]any{"id": "short", "text": s, "node": node, "short": short}
}

// describe is the decoded form of a vector.
func describe(t testing.TB, v any) json.RawMessage {
	t.Helper()
	out := fields(t, v)
	if m, ok := out.(map[string]any); ok && reflect.TypeOf(v).Kind() != reflect.Map {
		m["@type"] = strings.TrimPrefix(fmt.Sprintf("%T", v), "*")
	}
	b, err := json.Marshal(out)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func readVectors(t testing.TB, file string) []vector {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", file))
	if *update && errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	var vs []vector
	if err := json.Unmarshal(b, &vs); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	return vs
}

// TestGoldenVectors holds the code against the files: what was ever written there
// is still produced, byte for byte, from the same fields.
func TestGoldenVectors(t *testing.T) {
	wanted := want(t)
	for file := range vectorFiles {
		t.Run(file, func(t *testing.T) {
			old := map[string]vector{}
			stored := readVectors(t, file)
			for _, v := range stored {
				if _, twice := old[v.Name]; twice {
					t.Errorf("%s stands there twice", v.Name)
				}
				old[v.Name] = v
			}
			added := false
			for _, w := range sortedVectors(wanted[file]) {
				o, ok := old[w.Name]
				switch {
				case ok && o.Hex != w.Hex:
					t.Errorf("%s: encodes to\n%s, the vector says\n%s\nvectors never change: mend the code, or add a vector with another name", w.Name, w.Hex, o.Hex)
				case ok:
				case *update:
					stored, added = append(stored, w), true
				default:
					t.Errorf("%s is not in testdata/%s; go test ./wire -run Vectors -update adds it", w.Name, file)
				}
				delete(old, w.Name)
			}
			for name := range old {
				t.Errorf("%s is in testdata/%s, but nothing makes it any more", name, file)
			}
			if added && !t.Failed() {
				writeVectors(t, file, stored)
			}
		})
	}
}

// TestGoldenVectorsDecode reads every stored vector back, A5 and B7 ids included.
func TestGoldenVectorsDecode(t *testing.T) {
	for file, decodeOne := range vectorFiles {
		for _, v := range readVectors(t, file) {
			t.Run(v.Name, func(t *testing.T) {
				got := decodeOne(t, unhex(t, v.Hex))
				var should bytes.Buffer
				if err := json.Compact(&should, v.Fields); err != nil {
					t.Fatal(err)
				}
				if is := describe(t, got); !bytes.Equal(is, should.Bytes()) {
					t.Errorf("decodes to\n%s, the vector says\n%s", is, should.Bytes())
				}
				if m, ok := got.(wire.Message); ok {
					if b := encode(t, m); hex.EncodeToString(b) != v.Hex {
						t.Errorf("encodes again to\n%x, the vector says\n%s", b, v.Hex)
					}
				}
			})
		}
	}
}

func sortedVectors(vs []vector) []vector {
	return slices.SortedFunc(slices.Values(vs), func(a, b vector) int { return strings.Compare(a.Name, b.Name) })
}

func writeVectors(t *testing.T, file string, vs []vector) {
	t.Helper()
	b, err := json.MarshalIndent(vs, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll("testdata", 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join("testdata", file), append(b, '\n'), 0o644); err != nil {
		t.Fatal(err)
	}
}
