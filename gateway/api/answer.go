package api

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/apollo-11/apollo11/gateway/engine"
	"github.com/apollo-11/apollo11/gateway/scada"
)

// retryAfter is what a refused client is asked to wait, in seconds: long enough
// for a backlog to move, short enough for a person to wait.
const retryAfter = 5

// send writes a value as JSON. A client that is gone is no error of ours, so the
// write's own error has no one to go to.
func send(w http.ResponseWriter, status int, v any) {
	body, err := json.Marshal(v)
	if err != nil {
		status, body = http.StatusInternalServerError, []byte(`{"error":{"code":"internal","message":"the answer could not be encoded"}}`)
	}
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Content-Length", strconv.Itoa(len(body)+1))
	w.WriteHeader(status)
	_, _ = w.Write(append(body, '\n'))
}

// fail answers with an error and logs the refusal.
func (d *door) fail(w http.ResponseWriter, r *http.Request, status int, f Fault) {
	if status == http.StatusServiceUnavailable {
		w.Header().Set("Retry-After", strconv.Itoa(retryAfter))
	}
	if status >= http.StatusInternalServerError {
		d.log(r).Warn("http request failed", "status", status, "code", f.Code, "reason", f.Message)
	} else {
		d.log(r).Info("http request refused", "status", status, "code", f.Code, "reason", f.Message)
	}
	send(w, status, ErrorBody{f})
}

// bad answers a request that is wrong in one of its parameters.
func (d *door) bad(w http.ResponseWriter, r *http.Request, field, message, hint string) {
	d.fail(w, r, http.StatusBadRequest, Fault{Code: string(scada.CodeBadValue), Field: field, Message: message, Hint: hint})
}

// faultOf is a fault of a task document.
func faultOf(e *scada.Error) Fault {
	f := Fault{Code: string(e.Code), Field: e.Field, Line: e.Line, Column: e.Column, Message: e.Problem, Hint: e.Hint}
	for _, m := range e.More {
		f.More = append(f.More, faultOf(m))
	}
	return f
}

// refused answers what the engine did not take. field is the one that a conflict
// is about; it may be empty.
func (d *door) refused(w http.ResponseWriter, r *http.Request, x *engine.Refusal, field string) {
	f := Fault{Message: x.Text, Hint: x.Hint}
	status := http.StatusBadRequest
	switch x.Kind {
	case engine.RefusedInvalid:
		f.Code = string(scada.CodeBadValue)
	case engine.RefusedConflict:
		status, f.Code, f.Field = http.StatusConflict, string(scada.CodeConflict), field
	case engine.RefusedHeld:
		status, f.Code = http.StatusConflict, string(scada.CodeHeld)
	case engine.RefusedCapacity:
		status, f.Code = http.StatusServiceUnavailable, string(scada.CodeFull)
	case engine.RefusedNotFound:
		status, f.Code = http.StatusNotFound, "not_found"
	case engine.RefusedNoNode:
		status, f.Code, f.Field = http.StatusUnprocessableEntity, string(scada.CodeUnknownNode), "target_selector"
	default:
		status, f.Code = http.StatusInternalServerError, string(scada.CodeInternal)
	}
	d.fail(w, r, status, f)
}

// unanswered answers when the backend returned an error instead of a reply to a
// change. hint says how to find out and repeat without harm.
func (d *door) unanswered(w http.ResponseWriter, r *http.Request, err error, hint string) {
	if errors.Is(err, ErrStopping) {
		d.fail(w, r, http.StatusServiceUnavailable, Fault{Code: "stopping",
			Message: "the gateway is shutting down; nothing was taken", Hint: "try again in a few seconds"})
		return
	}
	d.log(r).Warn("change without an outcome", "err", err)
	d.fail(w, r, http.StatusGatewayTimeout, Fault{Code: "outcome_unknown",
		Message: "the gateway could not tell in time whether this was taken", Hint: hint})
}

// unread answers when a read failed.
func (d *door) unread(w http.ResponseWriter, r *http.Request, err error) {
	if errors.Is(err, ErrStopping) {
		d.fail(w, r, http.StatusServiceUnavailable, Fault{Code: "stopping",
			Message: "the gateway is shutting down", Hint: "try again in a few seconds"})
		return
	}
	d.log(r).Error("read failed", "err", err)
	if errors.Is(err, context.DeadlineExceeded) {
		d.fail(w, r, http.StatusGatewayTimeout, Fault{Code: "timeout",
			Message: "the gateway did not finish reading in time", Hint: "try again, or ask for less with limit"})
		return
	}
	d.fail(w, r, http.StatusInternalServerError, Fault{Code: string(scada.CodeInternal),
		Message: "the gateway could not read its log", Hint: "its own log names the cause next to this request's X-Request-Id"})
}

// clip shortens hostile text for a message, between characters.
func clip(s string) string {
	const most = 80
	if len(s) <= most {
		return s
	}
	n := most
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n] + "..."
}

// stamp writes Unix ms like the documents of package scada do.
func stamp(ms int64) string {
	return time.UnixMilli(ms).UTC().Format("2006-01-02T15:04:05.000Z07:00")
}
