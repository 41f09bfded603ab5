package api

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/apollo-11/apollo11/gateway/engine"
	"github.com/apollo-11/apollo11/gateway/scada"
	"github.com/apollo-11/apollo11/wire"
)

// idempotencyKey is the header that names a task whose document does not.
const idempotencyKey = "Idempotency-Key"

// submit is POST /v1/tasks.
func (d *door) submit(w http.ResponseWriter, r *http.Request) {
	if _, ok := d.query(w, r); !ok {
		return
	}
	format, ok := scada.FormatOf(r.Header.Get("Content-Type"))
	if !ok {
		d.fail(w, r, http.StatusUnsupportedMediaType, Fault{Code: "unsupported_media_type",
			Message: fmt.Sprintf("a task cannot be %s", clip(r.Header.Get("Content-Type"))),
			Hint:    "send it as application/json or application/yaml"})
		return
	}
	text, ok := d.body(w, r)
	if !ok {
		return
	}
	spec, warnings, err := scada.ParseTask(text, format, scada.Options{Site: d.o.Site, Now: d.o.Now().UnixMilli()})
	if err != nil {
		f := Fault{Code: string(scada.CodeSyntax), Message: err.Error()}
		if e := (*scada.Error)(nil); errors.As(err, &e) {
			f = faultOf(e)
		}
		d.fail(w, r, http.StatusBadRequest, f)
		return
	}
	if warnings, ok = d.named(w, r, &spec, warnings); !ok {
		return
	}
	hint := "look for it in the list of tasks before you send it again; with a task_id or the header " +
		idempotencyKey + " it can be repeated without harm"
	if spec.TaskID != "" {
		hint = fmt.Sprintf("send the same document again: task %s will not run twice", spec.TaskID)
	}
	d.hand(w, r, spec, warnings, hint)
}

// hand gives a task to the gateway and answers. hint says what to do when nobody
// knows whether it was taken.
func (d *door) hand(w http.ResponseWriter, r *http.Request, spec engine.Spec, warnings []scada.Warning, hint string) {
	reply, err := d.b.Submit(r.Context(), spec, engine.Source{Via: "http", Actor: callerOf(r).actor})
	switch {
	case err != nil:
		d.unanswered(w, r, err, hint)
	case reply.Refused != nil:
		d.refused(w, r, reply.Refused, "task_id")
	case reply.Accepted != nil:
		d.accepted(w, r, reply.Accepted, warnings)
	default:
		d.unanswered(w, r, errors.New("the backend's reply is empty"), "report this")
	}
}

// named lets the header name a task whose document does not. false: answered.
func (d *door) named(w http.ResponseWriter, r *http.Request, spec *engine.Spec, warnings []scada.Warning) ([]scada.Warning, bool) {
	key := r.Header.Get(idempotencyKey)
	if n := len(key); n > 1 && key[0] == '"' && key[n-1] == '"' {
		key = key[1 : n-1] // the quotes of a structured field are not part of it
	}
	if key == "" {
		return warnings, true
	}
	if err := wire.CheckTaskID(key); err != nil {
		problem := strings.Replace(err.Error(), "task_id", "the key", 1)
		d.bad(w, r, idempotencyKey, problem, "it becomes the task_id; a UUID will do")
		return nil, false
	}
	if spec.TaskID != "" && spec.TaskID != key {
		d.fail(w, r, http.StatusBadRequest, Fault{Code: string(scada.CodeContradicts), Field: idempotencyKey,
			Message: fmt.Sprintf("the header names the task %s, the document %s", key, spec.TaskID), Hint: "leave out one of the two"})
		return nil, false
	}
	spec.TaskID = key
	return slices.DeleteFunc(warnings, func(x scada.Warning) bool { return x.Code == scada.WarnNoTaskID }), true
}

func (d *door) accepted(w http.ResponseWriter, r *http.Request, a *engine.Accepted, warnings []scada.Warning) {
	out := Accepted{TaskID: a.TaskID, Existing: a.Existing, Trace: a.Trace.String(),
		Instructions: make([]AcceptedInstruction, len(a.Instructions)), Warnings: []Warning{}}
	for k, id := range a.Instructions {
		out.Instructions[k] = AcceptedInstruction{ID: id, Node: a.Nodes[k]}
	}
	for _, x := range warnings {
		out.Warnings = append(out.Warnings, Warning{string(x.Code), x.Problem, x.Field, x.Line, x.Column})
	}
	for _, text := range a.Warnings {
		out.Warnings = append(out.Warnings, Warning{Code: "node", Message: text})
	}
	status := http.StatusCreated
	if a.Existing {
		status = http.StatusOK
	}
	d.log(r).Info("task submitted", "task", a.TaskID, "existing", a.Existing, "instructions", len(a.Instructions), "trace", out.Trace)
	w.Header().Set("Location", "/v1/tasks/"+url.PathEscape(a.TaskID))
	send(w, status, out)
}
