package api

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"unicode/utf8"

	"github.com/apollo-11/apollo11/gateway/scada"
)

// maxReason bounds the reason or note of an operator, which stands in the audit
// trail and in the timeline of each instruction concerned.
const maxReason = 256

// objectField is a member that a small body may have: text or true and false.
type objectField struct {
	name string
	text *string
	flag *bool
}

func textField(name string, into *string) objectField { return objectField{name: name, text: into} }
func flagField(name string, into *bool) objectField   { return objectField{name: name, flag: into} }

// object reads a body that is a small JSON object, or empty. false: it was
// answered.
func (d *door) object(w http.ResponseWriter, r *http.Request, fields ...objectField) bool {
	if ct := r.Header.Get("Content-Type"); ct != "" {
		if f, ok := scada.FormatOf(ct); !ok || f == scada.YAML {
			d.fail(w, r, http.StatusUnsupportedMediaType, Fault{Code: "unsupported_media_type",
				Message: fmt.Sprintf("this cannot be %s", clip(ct)), Hint: "send it as application/json"})
			return false
		}
	}
	text, ok := d.body(w, r)
	if !ok {
		return false
	}
	if f := parseObject(text, fields); f != nil {
		d.fail(w, r, http.StatusBadRequest, *f)
		return false
	}
	return true
}

// parseObject reads the members as strictly as a task is read.
func parseObject(text []byte, fields []objectField) *Fault {
	if len(bytes.TrimSpace(text)) == 0 {
		return nil
	}
	dec := json.NewDecoder(bytes.NewReader(text))
	bad := func(code scada.Code, field, message string) *Fault {
		line, col := place(text, int(dec.InputOffset()))
		return &Fault{Code: string(code), Field: field, Line: line, Column: col, Message: message, Hint: objectHint(fields)}
	}
	if !utf8.Valid(text) {
		return bad(scada.CodeEncoding, "", "the body is not UTF-8")
	}
	if t, err := dec.Token(); err != nil || t != json.Delim('{') {
		return bad(scada.CodeSyntax, "", "the body is not a JSON object")
	}
	seen := map[string]bool{}
	for dec.More() {
		key, err := dec.Token()
		if err != nil {
			return bad(scada.CodeSyntax, "", "the body is not JSON: "+err.Error())
		}
		name, _ := key.(string)
		field, known := fieldNamed(fields, name)
		switch {
		case !known:
			return bad(scada.CodeUnknownField, clip(name), "there is no such field")
		case seen[name]:
			return bad(scada.CodeDuplicate, name, "is given twice")
		}
		seen[name] = true
		value, err := dec.Token()
		if err != nil {
			return bad(scada.CodeSyntax, name, "the body is not JSON: "+err.Error())
		}
		if code, problem := field.set(value); problem != "" {
			return bad(code, name, problem)
		}
	}
	if _, err := dec.Token(); err != nil {
		return bad(scada.CodeSyntax, "", "the body is not JSON: "+err.Error())
	}
	if _, err := dec.Token(); err != io.EOF {
		return bad(scada.CodeSyntax, "", "something follows the object")
	}
	return nil
}

func fieldNamed(fields []objectField, name string) (objectField, bool) {
	for _, f := range fields {
		if f.name == name {
			return f, true
		}
	}
	return objectField{}, false
}

// set takes a value; the problem is empty when it is good.
func (f objectField) set(value json.Token) (code scada.Code, problem string) {
	var ok bool
	if f.flag != nil {
		if *f.flag, ok = value.(bool); !ok {
			return scada.CodeWrongType, "is not true or false"
		}
		return "", ""
	}
	if *f.text, ok = value.(string); !ok {
		return scada.CodeWrongType, "is not text"
	}
	if n := len(*f.text); n > maxReason {
		return scada.CodeTooLarge, fmt.Sprintf("is %d bytes long, the limit is %d", n, maxReason)
	}
	return "", ""
}

func objectHint(fields []objectField) string {
	parts := make([]string, len(fields))
	for k, f := range fields {
		parts[k] = fmt.Sprintf(`"%s": "..."`, f.name)
		if f.flag != nil {
			parts[k] = fmt.Sprintf(`"%s": true`, f.name)
		}
	}
	return "the body is {" + strings.Join(parts, ", ") + "}; each may be left out"
}

// place turns an offset into line and column, in characters from 1.
func place(text []byte, off int) (line, col int) {
	before := text[:min(off, len(text))]
	line = 1 + bytes.Count(before, []byte("\n"))
	col = 1 + utf8.RuneCount(before[bytes.LastIndexByte(before, '\n')+1:])
	return line, col
}
