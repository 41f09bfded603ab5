package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"unicode/utf16"
)

// bad is one document that must not be taken, and the answer to it.
type bad struct {
	name  string
	doc   string
	code  string // of the answer, the same at every door
	field string
	says  string // in the problem or the hint
	// line and column where the fault is; 0 where a document has no such place.
	// at is what stands there, where counting is too much for people.
	line, column int
	at           string
	status       int // HTTP, 0 for 400
}

// writeDoc is a gpio.write with one more thing in it.
func writeDoc(id, level, more string) string {
	return fmt.Sprintf(`{"task_id":%q,"intent":"gpio.write","node":"pump-1","args":{"pin":"GPIO17","level":%s}%s}`, id, level, more)
}

// badDocuments is one of each kind. Task ids begin with "bad-", so that one that
// slipped through is found. queued is the id of a task that stands in the queue.
func badDocuments(queued string) []bad {
	metrics := func(more string) string { return `{"task_id":"bad-m","intent":"collect_metrics"` + more + `}` }
	pulse := func(width string) string {
		return `{"task_id":"bad-p","intent":"gpio.pulse","node":"pump-1","args":{"pin":"GPIO17","width_ms":` + width + `}}`
	}
	return []bad{
		{name: "broken JSON", doc: `{"intent":"gpio.write",`, code: "syntax", says: "cut", line: 1, column: 24},
		{name: "broken JSON on the third line", doc: "{\n\"intent\":\"gpio.read\"\n\"node\":\"a\"}", code: "syntax", line: 3, column: 1},
		{name: "two documents", doc: writeDoc("bad-1", "1", "") + writeDoc("bad-2", "0", ""), code: "syntax", says: "remove what follows", at: `{"task_id":"bad-2"`},
		{name: "NaN", doc: writeDoc("bad-nan", "NaN", ""), code: "syntax", says: "NaN", at: "NaN"},
		{name: "Infinity", doc: writeDoc("bad-inf", "-Infinity", ""), code: "syntax", says: "Infinity", at: "Infinity"},
		{name: "capital True", doc: writeDoc("bad-true", "True", ""), code: "syntax", says: "lower case", at: "True"},
		{name: "object as text (A17)", doc: "[object Object]", code: "syntax", says: "JSON.stringify", line: 1, column: 2},
		{name: "duplicate key", doc: writeDoc("bad-dup", "1", `,"task_id":"bad-dup2"`), code: "duplicate", field: "task_id", at: `"task_id":"bad-dup2"`},
		{name: "duplicate argument", doc: writeDoc("bad-dupa", `0,"level":1`, ""), code: "duplicate", field: "level", at: `"level":1`},
		{name: "empty payload (A6)", doc: "", code: "empty", line: 1, column: 1},
		{name: "white space only", doc: " \r\n\t", code: "empty", line: 1, column: 1},
		{name: "byte order mark only", doc: "\xef\xbb\xbf", code: "empty", line: 1, column: 1},
		{name: "binary (A15)", doc: "\x00\x5f" + writeDoc("bad-len", "1", ""), code: "encoding", says: "0x00", line: 1, column: 1},
		{name: "CBOR", doc: "\xa2\x00\x01\x01\x02", code: "encoding", says: "0xa2", line: 1, column: 1},
		{name: "invalid UTF-8", doc: `{"metadata":{"wer":"J` + "\xfc" + `rgen"}}`, code: "encoding", says: "0xfc", line: 1, column: 22},
		{name: "UTF-16", doc: utf16LE(writeDoc("bad-16", "1", "")), code: "encoding", says: "UTF-16", line: 1, column: 1},
		{name: "zero byte at the end", doc: writeDoc("bad-zero", "1", "") + "\x00", code: "encoding", says: "0x00", line: 1},
		{name: "half a surrogate pair", doc: `{"intent":"x","node":"a","metadata":{"a":"\ud83d"}}`, code: "encoding", says: "half a character", line: 1},
		{name: "nested 10,000 deep", doc: strings.Repeat(`{"a":`, 10000) + "1" + strings.Repeat("}", 10000), code: "too_deep", line: 1},
		{name: "arguments nested too deep", doc: `{"intent":"set","node":"a","args":{"a":[[[[[[[[[1]]]]]]]]]}}`, code: "too_deep", field: "args.a[0][0][0][0][0][0][0]", line: 1},
		{name: "over 64 KiB", doc: writeDoc("bad-64k", "1", `,"metadata":{"note":"`+strings.Repeat("x", 64<<10)+`"}`), code: "too_large", status: http.StatusRequestEntityTooLarge},
		{name: "1 MiB", doc: strings.Repeat("x", 1<<20), code: "too_large", status: http.StatusRequestEntityTooLarge},
		{name: "a list at the top", doc: "[" + writeDoc("bad-list", "1", "") + "]", code: "wrong_type", says: "a task is an object", line: 1, column: 1},
		{name: "a bare value", doc: "1", code: "wrong_type", says: "a task is an object", line: 1, column: 1},
		{name: "null", doc: "null", code: "wrong_type", says: "a task is an object", line: 1, column: 1},
		{name: "an empty object", doc: "{}", code: "missing", field: "node", line: 1, column: 1},
		{name: "unknown field, misspelt", doc: `{"intnet":"gpio.read","node":"a","args":{"pin":"GPIO17"}}`, code: "unknown_field", field: "intnet", says: "did you mean intent?", line: 1, column: 2},
		{name: "words of another tool", doc: `{"cmd":"gpio.write","value":1,"timestamp":1}`, code: "unknown_field", field: "cmd", says: "did you mean intent?", line: 1, column: 2},
		{name: "unknown argument", doc: `{"intent":"gpio.write","node":"a","args":{"pin":"GPIO17","value":"1"}}`, code: "unknown_field", field: "args.value", says: "takes pin, level", line: 1, column: 58},
		{name: "own status document (A4)", doc: `{"task_id":"x","state":"SUCCEEDED","updated":"2026-01-01T00:00:00Z"}`, code: "not_a_task", field: "state", line: 1},
		{name: "intent is a number", doc: `{"intent":5,"node":"a"}`, code: "wrong_type", field: "intent", line: 1, column: 11},
		{name: "number as text (A3)", doc: metrics(`,"node":"a","timeout":"120"`), code: "wrong_type", field: "timeout", says: "without quotes", line: 1},
		{name: "time as text (A14)", doc: metrics(`,"node":"a","not_after":"1700000000000"`), code: "wrong_type", field: "not_after", says: "without quotes", line: 1},
		{name: "integer over 64 bits", doc: `{"intent":"set","node":"a","args":{"v":18446744073709551616}}`, code: "out_of_range", field: "args.v", says: "64 bits", line: 1, column: 40},
		{name: "number that overflows", doc: `{"intent":"set","node":"a","args":{"v":1e999}}`, code: "out_of_range", field: "args.v", says: "too large", line: 1, column: 40},
		{name: "pin is a number", doc: `{"intent":"gpio.read","node":"a","args":{"pin":17}}`, code: "bad_value", field: "args.pin", says: "named, never numbered", line: 1, column: 48},
		{name: "pin with a slash", doc: `{"intent":"gpio.read","node":"a","args":{"pin":"../17"}}`, code: "bad_value", field: "args.pin", line: 1, column: 48},
		{name: "null level (A1)", doc: writeDoc("bad-null", "null", ""), code: "bad_value", field: "args.level", says: "null", line: 1},
		{name: "empty level (A1)", doc: writeDoc("bad-empty", `""`, ""), code: "bad_value", field: "args.level", says: "empty string", line: 1},
		{name: "level 2", doc: writeDoc("bad-two", "2", ""), code: "bad_value", field: "args.level", line: 1},
		{name: "width 0 (I13)", doc: pulse("0"), code: "bad_value", field: "args.width_ms", says: "out of range", line: 1},
		{name: "width negative (I13)", doc: pulse("-5"), code: "bad_value", field: "args.width_ms", says: "out of range", line: 1},
		{name: "width 2^31 (I13)", doc: pulse("2147483648"), code: "bad_value", field: "args.width_ms", says: "out of range", line: 1},
		{name: "a limit shorter than the pulse (A20)", doc: `{"task_id":"bad-t","intent":"gpio.pulse","node":"pump-1","timeout":"1m","args":{"pin":"GPIO17","width":"3m"}}`,
			code: "bad_value", field: "timeout", says: "shorter than the pulse", at: `"1m"`},
		{name: "a limit shorter than the watch", doc: `{"task_id":"bad-w","intent":"gpio.watch","node":"pump-1","timeout":59,"args":{"pin":"GPIO17","for":"1m"}}`,
			code: "bad_value", field: "timeout", says: "shorter than the watch", at: "59"},
		{name: "safe with a level", doc: `{"task_id":"bad-s","intent":"gpio.safe","node":"pump-1","args":{"pin":"GPIO17","level":0}}`,
			code: "unknown_field", field: "args.level", says: "takes pin", line: 1},
		{name: "safe of nothing", doc: `{"task_id":"bad-s","intent":"gpio.safe","node":"pump-1","args":{"pin":""}}`, code: "bad_value", field: "args.pin", line: 1},
		{name: "negative ttl", doc: writeDoc("bad-ttl", "1", `,"ttl":"-30s"`), code: "out_of_range", field: "ttl", line: 1},
		{name: "ttl and not_after", doc: writeDoc("bad-both", "1", `,"ttl":30,"not_after":1772366400000`), code: "contradicts", field: "not_after", line: 1},
		{name: "not_after in seconds (A12)", doc: writeDoc("bad-sec", "1", `,"not_after":1772366400`), code: "out_of_range", field: "not_after", says: "looks like seconds", line: 1},
		{name: "not_after without a zone (A12)", doc: writeDoc("bad-zone", "1", `,"not_after":"2026-03-01T12:00:00"`), code: "bad_value", field: "not_after", says: "without a zone", line: 1},
		{name: "depends_on", doc: metrics(`,"node":"a","depends_on":["b"]`), code: "unsupported", field: "depends_on", says: "nothing was submitted", line: 1},
		{name: "on_failure", doc: metrics(`,"node":"a","on_failure":"rollback"`), code: "unsupported", field: "on_failure", line: 1},
		{name: "selection by group", doc: metrics(`,"target_selector":{"type":"group","value":"pumps"}`), code: "unsupported", field: "target_selector.type", line: 1},
		{name: "no target", doc: metrics(""), code: "missing", field: "node", line: 1, column: 1},
		{name: "two targets", doc: metrics(`,"node":"a","nodes":["b"]`), code: "contradicts", field: "nodes", says: "keep one", line: 1},
		{name: "empty node list", doc: metrics(`,"nodes":[]`), code: "bad_value", field: "nodes", line: 1},
		{name: "node is a wildcard", doc: metrics(`,"node":"+"`), code: "bad_value", field: "node", line: 1},
		{name: "huge node list", doc: metrics(`,"nodes":` + nodeList(1001)), code: "too_large", field: "nodes", says: "by label", line: 1},
		{name: "no node has the label", doc: metrics(`,"target_selector":{"type":"label","key":"role","value":"nobody"}`), code: "unknown_node", says: "role=nobody", status: http.StatusUnprocessableEntity},
		{name: "task id with a slash", doc: writeDoc("bad/id", "1", ""), code: "bad_value", field: "task_id", line: 1, column: 12},
		{name: "task id of another task", doc: writeDoc(queued, "0", `,"ttl":"9m"`), code: "conflict", says: "other content", status: http.StatusConflict},
	}
}

func utf16LE(s string) string {
	b := []byte{0xff, 0xfe}
	for _, u := range utf16.Encode([]rune(s)) {
		b = append(b, byte(u), byte(u>>8))
	}
	return string(b)
}

func nodeList(n int) string {
	list := make([]string, n)
	for k := range list {
		list[k] = fmt.Sprintf("n%d", k)
	}
	b, err := json.Marshal(list)
	if err != nil {
		panic("bug: names are always JSON")
	}
	return string(b)
}

// odd is a document that is unusual and taken all the same.
type odd struct {
	name, doc string
	warning   string // its code; empty for none
}

// oddDocuments all name the node "nobody", which never connects. %s is the id.
func oddDocuments() []odd {
	const plain = `{"task_id":"%s","intent":"gpio.write","node":"nobody","args":{"pin":"GPIO17","level":1}}`
	level := func(l string) string { return strings.Replace(plain, `"level":1`, `"level":`+l, 1) }
	return []odd{
		{"unknown node", plain, "node"},
		{"byte order mark", "\xef\xbb\xbf" + plain, "node"},
		{"CRLF (A7)", strings.ReplaceAll(plain, ",", ",\r\n") + "\r\n", "node"},
		{"zero as a value (A1)", level("0.0"), "node"},
		{"level in quotes (A3)", level(`"1"`), "node"},
		{"level as a word (A4)", level(`"ON"`), "node"},
		{"largest 64-bit integer", `{"task_id":"%s","intent":"set","node":"nobody","args":{"v":18446744073709551615}}`, "node"},
		{"escaped characters", `{"task_id":"%s","intent":"set","node":"nobody","args":{"v":"\u00e9\ud83d\ude00"}}`, "node"},
		{"a deadline that has passed", `{"task_id":"%s","intent":"collect_metrics","node":"nobody","not_after":946684800000}`, "past"},
		{"a thousand nodes", `{"task_id":"%s","intent":"collect_metrics","nodes":` + nodeList(1000) + `}`, "node"},
	}
}
