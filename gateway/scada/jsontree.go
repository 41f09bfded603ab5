package scada

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// parseJSON reads a document that checkText has passed. encoding/json judges the
// syntax; only what it has found valid is walked here, so that the walk needs no
// error handling of its own beyond our rules: depth, duplicate keys, lone
// surrogates.
func parseJSON(body []byte) (value, *Error) {
	if !json.Valid(body) {
		return value{}, jsonFault(body)
	}
	w := walker{doc: string(body), cur: cursor{line: 1, col: 1}}
	return w.value(1)
}

// walker reads valid JSON.
type walker struct {
	doc string
	i   int
	cur cursor
}

// here is the place of the next byte that is not white space.
func (w *walker) here() pos {
	w.space()
	w.cur.advance(w.doc, w.i)
	return w.cur.pos()
}

func (w *walker) space() {
	for w.i < len(w.doc) {
		switch w.doc[w.i] {
		case ' ', '\t', '\n', '\r':
			w.i++
		default:
			return
		}
	}
}

// next skips white space and takes one byte.
func (w *walker) next() byte {
	w.space()
	b := w.doc[w.i]
	w.i++
	return b
}

func (w *walker) value(depth int) (value, *Error) {
	v := value{at: w.here()}
	if depth > maxDepth {
		return v, tooDeep(v.at)
	}
	var fault *Error
	switch w.doc[w.i] {
	case '{':
		v.kind = kindObject
		fault = w.object(&v, depth)
	case '[':
		v.kind = kindList
		fault = w.list(&v, depth)
	case '"':
		v.kind = kindText
		v.text, fault = w.text()
	case 't':
		v.kind, v.text = kindBool, "true"
		w.i += len("true")
	case 'f':
		v.kind, v.text = kindBool, "false"
		w.i += len("false")
	case 'n':
		v.kind = kindNull
		w.i += len("null")
	default:
		v.kind = kindNumber
		start := w.i
		for w.i < len(w.doc) && strings.IndexByte("+-.0123456789eE", w.doc[w.i]) >= 0 {
			w.i++
		}
		v.text = w.doc[start:w.i]
	}
	return v, fault
}

func (w *walker) object(v *value, depth int) *Error {
	w.i++
	if w.here(); w.doc[w.i] == '}' {
		w.i++
		return nil
	}
	for {
		keyAt := w.here()
		key, fault := w.text()
		if fault != nil {
			return fault
		}
		w.next() // the colon
		m, fault := w.value(depth + 1)
		if fault != nil {
			return fault
		}
		m.key, m.keyAt = key, keyAt
		v.kids = append(v.kids, m)
		if w.next() == '}' {
			return checkObject(v)
		}
	}
}

func (w *walker) list(v *value, depth int) *Error {
	w.i++
	if w.here(); w.doc[w.i] == ']' {
		w.i++
		return nil
	}
	for {
		m, fault := w.value(depth + 1)
		if fault != nil {
			return fault
		}
		v.kids = append(v.kids, m)
		if w.next() == ']' {
			return nil
		}
	}
}

// text reads a string. One without escapes is a part of the document; only
// escapes cost a copy.
func (w *walker) text() (string, *Error) {
	start := w.i
	escaped := false
	for w.i++; w.doc[w.i] != '"'; w.i++ {
		if w.doc[w.i] == '\\' {
			escaped = true
			w.i++
		}
	}
	w.i++
	raw := w.doc[start:w.i]
	if !escaped {
		return raw[1 : len(raw)-1], nil
	}
	if i := loneSurrogate(raw); i >= 0 {
		w.cur.advance(w.doc, start+i)
		return "", faultAt(w.cur.pos(), CodeEncoding, "",
			fmt.Sprintf("the escape %s is half a character", raw[i:i+6]), "write both halves of the pair, or the character itself")
	}
	var s string
	if err := json.Unmarshal([]byte(raw), &s); err != nil {
		panic("bug: valid JSON string does not decode: " + err.Error())
	}
	return s, nil
}

// loneSurrogate finds a \uD800 to \uDFFF escape without its partner in a valid
// JSON string, -1 for none. encoding/json would replace it without a word.
func loneSurrogate(raw string) int {
	for i := 0; i < len(raw); i++ {
		if raw[i] != '\\' {
			continue
		}
		if raw[i+1] != 'u' {
			i++
			continue
		}
		switch unit(raw[i:]) {
		case 0xd800:
			if !strings.HasPrefix(raw[i+6:], `\u`) || unit(raw[i+6:]) != 0xdc00 {
				return i
			}
			i += 11
		case 0xdc00:
			return i
		default:
			i += 5
		}
	}
	return -1
}

// unit classes a \uXXXX escape: 0xd800 for a first half, 0xdc00 for a second.
func unit(esc string) uint64 {
	n, err := strconv.ParseUint(esc[2:6], 16, 16)
	if err != nil {
		panic("bug: valid JSON escape does not parse: " + err.Error())
	}
	return n & 0xfc00
}

// jsonFault explains why a document is not JSON.
func jsonFault(body []byte) *Error {
	err := json.Unmarshal(body, new(any))
	var syn *json.SyntaxError
	if !errors.As(err, &syn) {
		return &Error{Code: CodeSyntax, Problem: fmt.Sprintf("the document is not JSON: %v", err), Hint: "check it with a JSON tool"}
	}
	doc := string(body)
	c := cursor{line: 1, col: 1}
	bad := int(syn.Offset) - 1
	if bad < 0 || strings.HasPrefix(syn.Error(), "unexpected end") {
		c.advance(doc, len(doc))
		return faultAt(c.pos(), CodeSyntax, "", "the document ends in the middle", "was it cut? send all of it")
	}
	c.advance(doc, bad)
	r, _ := utf8.DecodeRuneInString(doc[bad:])
	return faultAt(c.pos(), CodeSyntax, "",
		fmt.Sprintf("is not JSON: byte 0x%02x (%q) at offset %d %s", doc[bad], r, bad, context(syn)),
		syntaxHint(doc, bad))
}

// context is what encoding/json says about a byte, without its name for it.
func context(syn *json.SyntaxError) string {
	msg := syn.Error()
	if i := strings.LastIndex(msg, "' "); i >= 0 {
		return msg[i+2:]
	}
	return msg
}

// syntaxHint recognises what people and tools often send instead of JSON.
func syntaxHint(doc string, bad int) string {
	rest := doc[bad:]
	before := strings.TrimRight(doc[:bad], " \t\r\n")
	switch {
	case strings.HasPrefix(strings.TrimLeft(doc, " \t\r\n"), "[object "):
		return "a JavaScript object was sent as text: send JSON.stringify(...) of it"
	case strings.HasPrefix(rest, "NaN"), strings.HasPrefix(rest, "Inf"), strings.HasPrefix(rest, "inf"), strings.HasPrefix(rest, "nan"):
		return "NaN and Infinity are no values: leave the field out"
	case strings.HasPrefix(rest, "True"), strings.HasPrefix(rest, "False"), strings.HasPrefix(rest, "None"):
		return "write true, false or null, in lower case"
	case rest[0] == '\'':
		return "use double quotes"
	case rest[0] == '/', rest[0] == '#':
		return "JSON has no comments; YAML has"
	case (rest[0] == '}' || rest[0] == ']') && strings.HasSuffix(before, ","):
		return "remove the comma before it"
	case before == "":
		return "a JSON task starts with {"
	case json.Valid([]byte(before)):
		return "remove what follows the end of the task"
	case strings.HasSuffix(before, "{"), strings.HasSuffix(before, ","):
		return `names stand in double quotes, like "intent"`
	}
	return "check it with a JSON tool, or send YAML"
}
