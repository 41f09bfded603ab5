package scada_test

import (
	"encoding/json"
	"errors"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"testing/quick"

	"github.com/apollo-11/apollo11/gateway/scada"
	"github.com/apollo-11/apollo11/wire"
)

// seedsOf are the documents of the scripts and some good ones.
func seedsOf(f *testing.F, file string, good ...string) {
	f.Helper()
	for _, doc := range good {
		f.Add([]byte(doc))
	}
	for _, b := range readBlocks(f, filepath.Join("testdata", file)) {
		f.Add([]byte(b.doc))
	}
}

// checkAny holds for every input: no panic, a complete refusal, or a Spec that
// can be written and read again, sent and stored.
func checkAny(t *testing.T, doc []byte, f scada.Format) {
	spec, _, err := scada.ParseTask(doc, f, scada.Options{Site: "default", Now: 1772366400000})
	if err != nil {
		var fault *scada.Error
		if !errors.As(err, &fault) || fault.Code == "" || fault.Problem == "" || fault.Hint == "" || fault.Code == scada.CodeInternal {
			t.Fatalf("%q: incomplete refusal %+v", doc, err)
		}
		if _, err := scada.Marshal(scada.Refused(err)); err != nil {
			t.Fatalf("%q: %v", doc, err)
		}
		if len(err.Error()) > 2000 {
			t.Fatalf("%q: a refusal of %d bytes", doc, len(err.Error()))
		}
		return
	}
	again, err := scada.MarshalTask(spec)
	if err != nil {
		t.Fatalf("%q: %v", doc, err)
	}
	back, _, err := scada.ParseTask(again, scada.JSON, scada.Options{MaxBytes: 1 << 20})
	if err != nil || !reflect.DeepEqual(back, spec) {
		t.Fatalf("%q: written as\n%s\nreads as %+v, %v\nnot %+v", doc, again, back, err, spec)
	}
	if _, err := wire.DecodeMap(spec.Args); err != nil {
		t.Fatalf("%q: an agent cannot read the arguments: %v", doc, err)
	}
	if err := wire.CheckIntent(spec.Intent); err != nil {
		t.Fatalf("%q: %v", doc, err)
	}
	if spec.Label.IsZero() == (len(spec.Nodes) == 0) {
		t.Fatalf("%q: targets %v and %+v", doc, spec.Nodes, spec.Label)
	}
}

func FuzzJSON(f *testing.F) {
	seedsOf(f, "refused.json.txt",
		write("1"),
		`{"intent":"valve.set","node":"a","args":{"v":[1,0.5,"x",null,{"a":{}}]},"metadata":{"n":1.50},"ttl":"1h"}`,
		`{"intent":"gpio.pulse","nodes":["b","a"],"args":{"pin":"GPIO17","width":"5ms"},"not_after":"2026-03-01T12:00:00Z","priority":"low"}`,
		"\xef\xbb\xbf{\"\\ud83d\\ude00\":1}")
	f.Fuzz(func(t *testing.T, doc []byte) {
		checkAny(t, doc, scada.JSON)
		// What encoding/json refuses is never a task.
		if _, _, err := scada.ParseTask(doc, scada.JSON, scada.Options{}); err == nil && !json.Valid([]byte(strings.TrimPrefix(string(doc), "\xef\xbb\xbf"))) {
			t.Fatalf("%q is not JSON", doc)
		}
	})
}

func FuzzYAML(f *testing.F) {
	seedsOf(f, "refused.yaml.txt",
		write("1"),
		"intent: gpio.write\nnode: pump-1\nargs:\n  pin: GPIO17\n  level: on\n",
		"intent: valve.set\nnodes: [b, a]\nargs: {v: [1, 0.5, x, null]}\nmetadata:\n  note: >\n    a b\n",
		"? intent\n: collect_metrics\n? node\n: a\n")
	f.Fuzz(func(t *testing.T, doc []byte) { checkAny(t, doc, scada.YAML) })
}

// Random bytes, in every test run: never a panic, never an incomplete refusal.
func TestAnyBytesAreAnswered(t *testing.T) {
	check := func(doc []byte) bool {
		for _, f := range []scada.Format{scada.JSON, scada.YAML, scada.Auto} {
			checkAny(t, doc, f)
		}
		return true
	}
	if err := quick.Check(check, &quick.Config{MaxCount: 500}); err != nil {
		t.Error(err)
	}
}

// Every prefix of a good document, and every document with one byte changed, is
// answered.
func TestCutAndDamagedDocumentsAreAnswered(t *testing.T) {
	for f, doc := range map[scada.Format]string{
		scada.JSON: `{"intent":"valve.set","node":"a","args":{"v":[1,0.5,"\u00e4"]},"ttl":"30s"}`,
		scada.YAML: "intent: valve.set\nnode: a\nargs:\n  - {v: [1, \"\\u00e4\"]}\nttl: 30s\n",
	} {
		for i := range len(doc) {
			checkAny(t, []byte(doc[:i]), f)
			for _, c := range []byte{0, '"', '{', '}', '[', ':', ',', '\\', '-', '0', 'e', ' ', '\n', '&', '*', '!', '%', '#', 0x80, 0xff} {
				damaged := []byte(doc)
				damaged[i] = c
				checkAny(t, damaged, f)
			}
		}
	}
}

// A document that is built to be slow is not.
func TestHostileNestingIsCheap(t *testing.T) {
	for _, unit := range []string{"[", "{", "{a: ", "- ", "? ", "[[],", "\"", "'", "&a ", "!", "|\n", ": ", "{\"a\":", "#", "\n", "%", "a: \n ", "-\n"} {
		doc := strings.Repeat(unit, scada.MaxTaskBytes/len(unit))
		for _, f := range []scada.Format{scada.JSON, scada.YAML} {
			if _, _, err := scada.ParseTask([]byte(doc), f, scada.Options{}); err == nil {
				t.Errorf("%q is accepted", unit)
			}
		}
	}
}
