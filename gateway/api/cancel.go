package api

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"unicode/utf8"

	"github.com/apollo-11/apollo11/gateway/engine"
	"github.com/apollo-11/apollo11/gateway/scada"
)

// maxReason bounds the reason of an operator, which stands in the timeline of
// each instruction of the task.
const maxReason = 256

// cancel is POST /v1/tasks/{task_id}/cancel.
func (d *door) cancel(w http.ResponseWriter, r *http.Request) {
	if _, ok := d.query(w, r); !ok {
		return
	}
	id, ok := d.taskID(w, r)
	if !ok {
		return
	}
	if ct := r.Header.Get("Content-Type"); ct != "" {
		if f, ok := scada.FormatOf(ct); !ok || f == scada.YAML {
			d.fail(w, r, http.StatusUnsupportedMediaType, Fault{Code: "unsupported_media_type",
				Message: fmt.Sprintf("a cancellation cannot be %s", clip(ct)), Hint: "send it as application/json"})
			return
		}
	}
	text, ok := d.body(w, r)
	if !ok {
		return
	}
	reason, f := parseReason(text)
	if f != nil {
		d.fail(w, r, http.StatusBadRequest, *f)
		return
	}
	reply, err := d.b.Cancel(r.Context(), engine.Cancel{TaskID: id, Actor: callerOf(r).actor, Reason: reason, Path: engine.PathHTTP})
	switch {
	case err != nil:
		d.unanswered(w, r, err, "look at the task, and cancel it again if it still runs: that does no harm")
	case reply.Refused != nil:
		d.refused(w, r, reply.Refused)
	case reply.Cancelled != nil:
		c := reply.Cancelled
		d.log(r).Info("task cancelled", "task", id, "cancelled", c.Done, "asked", c.Asked, "final", c.Final)
		send(w, http.StatusOK, Cancelled{c.TaskID, c.Done, c.Asked, c.Final})
	default:
		d.unanswered(w, r, errors.New("the backend's reply is empty"), "report this")
	}
}

// parseReason reads {"reason":"..."}, as strictly as a task is read. An empty
// body is no reason.
func parseReason(text []byte) (string, *Fault) {
	if len(bytes.TrimSpace(text)) == 0 {
		return "", nil
	}
	dec := json.NewDecoder(bytes.NewReader(text))
	bad := func(code scada.Code, field, message string) (string, *Fault) {
		line, col := place(text, int(dec.InputOffset()))
		return "", &Fault{Code: string(code), Field: field, Line: line, Column: col, Message: message,
			Hint: `the body is {"reason": "a few words"}, or empty`}
	}
	if !utf8.Valid(text) {
		return bad(scada.CodeEncoding, "", "the body is not UTF-8")
	}
	if t, err := dec.Token(); err != nil || t != json.Delim('{') {
		return bad(scada.CodeSyntax, "", "the body is not a JSON object")
	}
	reason, seen := "", false
	for dec.More() {
		key, err := dec.Token()
		if err != nil {
			return bad(scada.CodeSyntax, "", "the body is not JSON: "+err.Error())
		}
		name, _ := key.(string)
		switch {
		case name != "reason":
			return bad(scada.CodeUnknownField, clip(name), "there is no such field")
		case seen:
			return bad(scada.CodeDuplicate, name, "is given twice")
		}
		value, err := dec.Token()
		if err != nil {
			return bad(scada.CodeSyntax, name, "the body is not JSON: "+err.Error())
		}
		if reason, seen = value.(string); !seen {
			return bad(scada.CodeWrongType, name, "is not text")
		}
		if len(reason) > maxReason {
			return bad(scada.CodeTooLarge, name, fmt.Sprintf("is %d bytes long, the limit is %d", len(reason), maxReason))
		}
	}
	if _, err := dec.Token(); err != nil {
		return bad(scada.CodeSyntax, "", "the body is not JSON: "+err.Error())
	}
	if _, err := dec.Token(); err != io.EOF {
		return bad(scada.CodeSyntax, "", "something follows the object")
	}
	return reason, nil
}

// place turns an offset into line and column, in characters from 1.
func place(text []byte, off int) (line, col int) {
	before := text[:min(off, len(text))]
	line = 1 + bytes.Count(before, []byte("\n"))
	col = 1 + utf8.RuneCount(before[bytes.LastIndexByte(before, '\n')+1:])
	return line, col
}
