package scada_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/apollo-11/apollo11/gateway/engine"
	"github.com/apollo-11/apollo11/gateway/scada"
	"github.com/apollo-11/apollo11/wire"
)

// write is a gpio.write with a level as it stands in JSON.
func write(level string) string {
	return `{"task_id":"t","intent":"gpio.write","node":"pump-1","args":{"pin":"GPIO17","level":` + level + `}}`
}

func levelOf(t *testing.T, s engine.Spec) any {
	t.Helper()
	m, err := wire.DecodeMap(s.Args)
	if err != nil {
		t.Fatal(err)
	}
	return m["level"]
}

// Zero and false are values; an empty string and null are refused by name.
func TestA1_ZeroIsAValue(t *testing.T) {
	for _, level := range []string{"0", "0.0", "-0", "false", `"0"`, `"off"`, `"LOW"`} {
		if got := levelOf(t, parse(t, write(level), scada.JSON)); got != uint64(0) {
			t.Errorf("%s: level %v", level, got)
		}
	}
	for level, problem := range map[string]string{`""`: "an empty string", "null": "null"} {
		fault := refuse(t, write(level), scada.JSON, scada.CodeBadValue, "args.level")
		if !strings.Contains(fault.Problem, problem) {
			t.Errorf("%s: %v", level, fault)
		}
	}
}

// A number in quotes is refused in every field of a task, in both formats and
// with a hint. In the arguments of built-in intents it is the number, in each that
// takes one, and recorded as coerced.
func TestA3_NumbersInQuotes(t *testing.T) {
	for _, c := range []struct{ field, json, yaml string }{
		{"timeout", `"timeout":"120"`, `timeout: "120"`},
		{"ttl", `"ttl":"30"`, `ttl: '30'`},
		{"not_after", `"not_after":"1772366400000"`, `not_after: "1772366400000"`},
		{"retry_policy.max_retries", `"retry_policy":{"max_retries":"3"}`, `retry_policy: {max_retries: "3"}`},
		{"retry_policy.initial_interval", `"retry_policy":{"initial_interval":"5"}`, `retry_policy: {initial_interval: "5"}`},
		{"retry_policy.max_interval", `"retry_policy":{"max_interval":"5.5"}`, `retry_policy: {max_interval: "5.5"}`},
	} {
		refuse(t, with(c.json), scada.JSON, scada.CodeWrongType, c.field)
		refuse(t, "intent: collect_metrics\nnode: a\n"+c.yaml, scada.YAML, scada.CodeWrongType, c.field)
	}
	for _, c := range []struct{ doc, field string }{
		{write(`"1"`), "args.level"},
		{`{"task_id":"t","intent":"gpio.pulse","node":"a","args":{"pin":"GPIO17","width_ms":"500"}}`, "args.width_ms"},
	} {
		_, warnings, err := scada.ParseTask([]byte(c.doc), scada.JSON, scada.Options{})
		if err != nil || len(warnings) != 1 || warnings[0].Code != scada.WarnCoerced || warnings[0].Field != c.field {
			t.Errorf("%s: %+v, %v", c.doc, warnings, err)
		}
	}
	for _, word := range []string{`"on"`, `"true"`, "1", "true"} { // words and numbers are no coercion
		if _, warnings, err := scada.ParseTask([]byte(write(word)), scada.JSON, scada.Options{}); err != nil || len(warnings) != 0 {
			t.Errorf("%s: %+v, %v", word, warnings, err)
		}
	}
	refuse(t, `{"intent":"gpio.write","node":"a","args":{"pin":"17","value":"1"}}`, scada.JSON, scada.CodeUnknownField, "args.value")
}

// Our own documents fed back: the result is good as arguments, the documents
// themselves are refused as what they are.
func TestA4_OwnDocumentsFedBack(t *testing.T) {
	task, in := sample(t)
	for _, doc := range []scada.Document{
		scada.NewStatus("default", task, []engine.Instruction{in}),
		scada.NewStatus("default", task, []engine.Instruction{in, in}),
		scada.NewTaskView("default", task, []engine.Instruction{in}, true),
		scada.NewInstructionView("default", in),
		scada.NewNodeView(engine.Node{ID: "pump-1"}, scada.Presence{}, 1),
		scada.Alarm{Alarm: "x", State: scada.AlarmRaised}.At(1, 2),
	} {
		b, err := scada.Marshal(doc)
		if err != nil {
			t.Fatal(err)
		}
		fault := refuse(t, string(b), scada.JSON, scada.CodeNotATask, "state")
		if !strings.Contains(fault.Hint, "apollo/default/task") {
			t.Errorf("%T: %v", doc, fault)
		}
	}
	for _, level := range []string{"true", `"true"`, `"ON"`, "1"} {
		spec := parse(t, write(level), scada.JSON)
		b, err := scada.MarshalTask(spec)
		if err != nil {
			t.Fatal(err)
		}
		if again := parse(t, string(b), scada.JSON); levelOf(t, again) != uint64(1) || !reflect.DeepEqual(again, spec) {
			t.Errorf("%s: %s", level, b)
		}
	}
	status := scada.NewStatus("default", task, []engine.Instruction{in})
	result, err := json.Marshal(status.Result)
	if err != nil {
		t.Fatal(err)
	}
	parse(t, `{"intent":"gpio.write","node":"pump-1","args":`+string(result)+`}`, scada.JSON)
}

func TestA6_EmptyPayload(t *testing.T) {
	for _, doc := range []string{"", " ", "\r\n", "\xef\xbb\xbf", "\xef\xbb\xbf\n"} {
		for _, f := range []scada.Format{scada.JSON, scada.YAML, scada.Auto} {
			refuse(t, doc, f, scada.CodeEmpty, "")
		}
	}
}

// White space around and inside a document means nothing.
func TestA7_LineEnds(t *testing.T) {
	doc := write("1")
	want := parse(t, doc, scada.JSON)
	for _, variant := range []string{
		doc + "\n", doc + "\r\n", doc + "\r", doc + " \t ", "\r\n" + doc,
		strings.ReplaceAll(doc, ",", ",\r\n\t"),
	} {
		if got := parse(t, variant, scada.JSON); !reflect.DeepEqual(got, want) {
			t.Errorf("%q: %+v", variant, got)
		}
	}
	yaml := "intent: gpio.write\nnode: pump-1\ntask_id: t\nargs:\n  pin: GPIO17\n  level: 1"
	for _, variant := range []string{yaml, yaml + "\n", strings.ReplaceAll(yaml, "\n", "\r\n"), yaml + "  \n\n"} {
		if got := parse(t, variant, scada.YAML); !reflect.DeepEqual(got, want) {
			t.Errorf("%q: %+v", variant, got)
		}
	}
}

func TestA11_NoSuchNumbers(t *testing.T) {
	for _, literal := range []string{"NaN", "Infinity", "-Infinity", "inf", "1e999", "-1e999", "1e-400", "1e", "+1", ".5", "5."} {
		for _, doc := range []string{write(literal), with(`"timeout":` + literal), `{"intent":"set","node":"a","args":{"v":[` + literal + `]}}`} {
			if spec, _, err := scada.ParseTask([]byte(doc), scada.JSON, scada.Options{}); err == nil {
				t.Errorf("%s is accepted as %+v", doc, spec)
			}
		}
	}
	for _, literal := range []string{".nan", ".NaN", ".inf", "-.INF", "1e999", "1e-400"} {
		if spec, _, err := scada.ParseTask([]byte("intent: set\nnode: a\nargs: {v: "+literal+"}"), scada.YAML, scada.Options{}); err == nil {
			t.Errorf("%s is accepted as %+v", literal, spec)
		}
	}
	for _, literal := range []string{"-0", "-0.0", "0e5", "0.000"} {
		spec := parse(t, `{"intent":"set","node":"a","args":{"v":`+literal+`}}`, scada.JSON)
		if m, err := wire.DecodeMap(spec.Args); err != nil || m["v"] != uint64(0) {
			t.Errorf("%s is %v, %v", literal, m["v"], err)
		}
	}
}

// A deadline in a unit that is not milliseconds, or without a zone, is refused
// with the unit that it looks like; it is never "expired" by itself.
func TestA12_UnitsOfADeadline(t *testing.T) {
	for _, c := range []struct {
		value string
		code  scada.Code
		hint  string
	}{
		{"1772366400", scada.CodeOutOfRange, "looks like seconds"},
		{"1772366400.5", scada.CodeOutOfRange, "looks like seconds"},
		{"1772366400000000", scada.CodeOutOfRange, "looks like microseconds"},
		{"1772366400000000000", scada.CodeOutOfRange, "looks like nanoseconds"},
		{"18446744073709551615", scada.CodeOutOfRange, "Unix milliseconds"},
		{"0", scada.CodeOutOfRange, "Unix milliseconds"},
		{"-1", scada.CodeOutOfRange, "Unix milliseconds"},
		{"946684799999", scada.CodeOutOfRange, "Unix milliseconds"},
		{"4102444800000", scada.CodeOutOfRange, "Unix milliseconds"},
		{`"1999-12-31T23:59:59Z"`, scada.CodeOutOfRange, "with a zone"},
		{`"2100-01-01T00:00:00Z"`, scada.CodeOutOfRange, "with a zone"},
		{`"1970-01-01T00:00:00Z"`, scada.CodeOutOfRange, "with a zone"},
		{`"2026-03-01T12:00:00"`, scada.CodeBadValue, "+02:00"},
		{`"2026-03-01 12:00:00.5"`, scada.CodeBadValue, "+02:00"},
		{`"2026-03-01"`, scada.CodeBadValue, "+02:00"},
		{`"2026-02-30T12:00:00Z"`, scada.CodeBadValue, "RFC 3339"},
		{`""`, scada.CodeBadValue, "RFC 3339"},
		{"null", scada.CodeWrongType, "RFC 3339"},
	} {
		for _, field := range []string{"not_after", "expires_at"} {
			fault := refuse(t, with(`"`+field+`":`+c.value), scada.JSON, c.code, field)
			if !strings.Contains(fault.Hint, c.hint) {
				t.Errorf("%s: %v", c.value, fault)
			}
		}
	}
	for _, value := range []string{"946684800000", "4102444799999", `"2099-12-31T23:59:59.999Z"`} {
		parse(t, with(`"not_after":`+value), scada.JSON)
	}
}

func TestA14_TimesInQuotes(t *testing.T) {
	for _, value := range []string{`"1700000000000"`, `"1700000000"`, `"1.7e12"`} {
		fault := refuse(t, with(`"not_after":`+value), scada.JSON, scada.CodeWrongType, "not_after")
		if !strings.Contains(fault.Hint, "without quotes") {
			t.Errorf("%s: %v", value, fault)
		}
	}
}

// A byte order mark is skipped; anything else before or in the text is refused
// with the first bad byte in hex.
func TestA15_StrayBytes(t *testing.T) {
	doc := write("1")
	want := parse(t, doc, scada.JSON)
	if got := parse(t, "\xef\xbb\xbf"+doc, scada.JSON); !reflect.DeepEqual(got, want) {
		t.Errorf("with a byte order mark: %+v", got)
	}
	utf16Text := func(order string) string {
		var b []byte
		for _, u := range utf16.Encode([]rune(doc)) {
			if order == "little" {
				b = append(b, byte(u), byte(u>>8))
			} else {
				b = append(b, byte(u>>8), byte(u))
			}
		}
		return string(b)
	}
	for _, c := range []struct {
		name, doc string
		code      scada.Code
		says      string
	}{
		{"two length bytes", "\x00\x5f" + doc, scada.CodeEncoding, "byte 0x00 at offset 0"},
		{"two printable bytes", "AB" + doc, scada.CodeSyntax, "byte 0x41"},
		{"a second mark", "\xef\xbb\xbf\xef\xbb\xbf" + doc, scada.CodeSyntax, "byte 0xef"},
		{"half a mark", "\xef\xbb" + doc, scada.CodeEncoding, "byte 0xef at offset 0"},
		{"UTF-16 with a mark, little end first", "\xff\xfe" + utf16Text("little"), scada.CodeEncoding, "byte 0xff at offset 0"},
		{"UTF-16 with a mark, big end first", "\xfe\xff" + utf16Text("big"), scada.CodeEncoding, "byte 0xfe at offset 0"},
		{"UTF-16, little end first", utf16Text("little"), scada.CodeEncoding, "byte 0x00 at offset 1"},
		{"UTF-16, big end first", utf16Text("big"), scada.CodeEncoding, "byte 0x00 at offset 0"},
		{"Latin-1", `{"metadata":{"wer":"J` + "\xfc" + `rgen"}}`, scada.CodeEncoding, "byte 0xfc at offset 21"},
		{"Latin-1 behind a mark", "\xef\xbb\xbf" + `{"metadata":{"wer":"J` + "\xfc" + `rgen"}}`, scada.CodeEncoding, "byte 0xfc at offset 24"},
		{"an encoded surrogate", `{"a":"` + "\xed\xa0\x80" + `"}`, scada.CodeEncoding, "byte 0xed at offset 6"},
		{"an overlong slash", `{"a":"` + "\xc0\xaf" + `"}`, scada.CodeEncoding, "byte 0xc0 at offset 6"},
		{"a zero at the end", doc + "\x00", scada.CodeEncoding, "byte 0x00 at offset"},
		{"a zero inside a text", `{"a":"` + "\x00" + `"}`, scada.CodeEncoding, "byte 0x00 at offset 6"},
		{"an escape character", `{"a":"` + "\x1b[2J" + `"}`, scada.CodeEncoding, "byte 0x1b at offset 6"},
		{"CBOR", "\xa2\x00\x01\x01\x02", scada.CodeEncoding, "byte 0xa2 at offset 0"},
		{"gzip", "\x1f\x8b\x08\x00", scada.CodeEncoding, "byte 0x1f at offset 0"},
	} {
		t.Run(c.name, func(t *testing.T) {
			fault := refuse(t, c.doc, scada.JSON, c.code, "")
			if !strings.Contains(fault.Problem, c.says) || fault.Line != 1 || fault.Column == 0 || fault.Hint == "" {
				t.Errorf("%v", fault)
			}
			if strings.HasPrefix(c.name, "UTF-16") != strings.Contains(fault.Hint, "UTF-16") {
				t.Errorf("the hint is %q", fault.Hint)
			}
			if c.code == scada.CodeEncoding { // the same rule for both formats
				refuse(t, c.doc, scada.YAML, c.code, "")
			}
		})
	}
}

func TestA17_ObjectAsText(t *testing.T) {
	for _, doc := range []string{"[object Object]", " [object Object]\n", "[object ArrayBuffer]"} {
		for _, f := range []scada.Format{scada.JSON, scada.Auto} {
			fault := refuse(t, doc, f, scada.CodeSyntax, "")
			if !strings.Contains(fault.Hint, "JSON.stringify") || len(fault.More) != 0 {
				t.Errorf("%q: %v", doc, fault)
			}
		}
	}
}
