package scada

import (
	"bytes"
	"fmt"
	"mime"
	"strings"
	"unicode/utf8"
)

// Format is the notation of a document.
type Format uint8

const (
	// Auto takes a document that starts with { or [ as JSON, everything else as
	// YAML. It is for files and for HTTP bodies without a content type; MQTT
	// payloads are always JSON.
	Auto Format = iota
	JSON
	YAML
)

// FormatOf tells the format of an HTTP body by its content type. An absent or
// unspecific type (what curl sends by itself) is Auto. false means that the type
// is none that holds a task.
func FormatOf(contentType string) (Format, bool) {
	if contentType == "" {
		return Auto, true
	}
	media, _, err := mime.ParseMediaType(contentType)
	if err != nil {
		return Auto, false
	}
	switch media {
	case "application/json", "text/json":
		return JSON, true
	case "application/yaml", "application/x-yaml", "text/yaml", "text/x-yaml":
		return YAML, true
	case "application/octet-stream", "application/x-www-form-urlencoded", "text/plain":
		return Auto, true
	}
	switch {
	case strings.HasSuffix(media, "+json"):
		return JSON, true
	case strings.HasSuffix(media, "+yaml"):
		return YAML, true
	}
	return Auto, false
}

const byteOrderMark = "\xef\xbb\xbf"

// checkText applies the rules that do not depend on the format: size, encoding,
// byte order mark, emptiness. It returns the document without its mark.
func checkText(doc []byte, limit int) ([]byte, *Error) {
	if len(doc) > limit {
		return nil, &Error{Code: CodeTooLarge,
			Problem: fmt.Sprintf("the document has %d bytes, the limit is %d", len(doc), limit),
			Hint:    "split it into several tasks"}
	}
	body := bytes.TrimPrefix(doc, []byte(byteOrderMark))
	skipped := len(doc) - len(body)
	if len(bytes.TrimLeft(body, " \t\r\n")) == 0 {
		return nil, &Error{Code: CodeEmpty, Line: 1, Column: 1, Problem: "the document is empty",
			Hint: `send a task, for example {"intent":"gpio.read","node":"pump-1","args":{"pin":"GPIO17"}}`}
	}
	for i := 0; i < len(body); {
		c := body[i]
		switch {
		case c >= ' ' && c < utf8.RuneSelf, c == '\t', c == '\n', c == '\r':
			i++
		case c < utf8.RuneSelf:
			return nil, badByte(doc, i+skipped, "is a control character")
		default:
			r, n := utf8.DecodeRune(body[i:])
			if r == utf8.RuneError && n == 1 {
				return nil, badByte(doc, i+skipped, "is not UTF-8")
			}
			i += n
		}
	}
	return body, nil
}

func badByte(doc []byte, i int, what string) *Error {
	hint := "send the document as UTF-8 text"
	switch {
	case bytes.HasPrefix(doc, []byte("\xff\xfe")), bytes.HasPrefix(doc, []byte("\xfe\xff")),
		len(doc) > 3 && (doc[0] == 0) != (doc[1] == 0) && doc[0] == 0 == (doc[2] == 0) && doc[1] == 0 == (doc[3] == 0):
		hint = "this looks like UTF-16: send the document as UTF-8"
	case i == 0:
		hint = "the document must start with its first character: remove what stands before it (a length, a header?)"
	}
	// What comes before the bad byte is sound, so its place can be counted.
	c := cursor{line: 1, col: 1}
	c.advance(string(doc[:i]), i)
	return faultAt(c.pos(), CodeEncoding, "", fmt.Sprintf("byte 0x%02x at offset %d %s", doc[i], i, what), hint)
}

// cursor counts lines and columns while it moves forward through a document.
type cursor struct {
	off       int
	line, col int32
}

// advance moves to an offset at or after the present one.
func (c *cursor) advance(doc string, to int) {
	for ; c.off < to; c.off++ {
		switch b := doc[c.off]; {
		case b == '\n':
			c.line++
			c.col = 1
		case b&0xc0 != 0x80: // not the inside of a character
			c.col++
		}
	}
}

func (c *cursor) pos() pos { return pos{c.line, c.col} }

// sniff decides what Auto means for a document that checkText has passed.
func sniff(body []byte) Format {
	body = bytes.TrimLeft(body, " \t\r\n")
	if body[0] == '{' || body[0] == '[' {
		return JSON
	}
	return YAML
}
