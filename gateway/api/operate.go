package api

import (
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/apollo-11/apollo11/gateway/engine"
	"github.com/apollo-11/apollo11/gateway/scada"
)

// CodeUnknownOutcome is the code of a fault: a retry may repeat an action unnoticed,
// and asks for accept_unknown.
const CodeUnknownOutcome = "confirm_unknown"

// act carries out an operator's action. hint says what to do when nobody knows
// whether it was. false: it was answered.
func (d *door) act(w http.ResponseWriter, r *http.Request, o engine.Operate, hint string) (*engine.Done, bool) {
	o.Actor, o.Path = callerOf(r).actor, engine.PathHTTP
	reply, err := d.b.Operate(r.Context(), o)
	switch {
	case err != nil:
		d.unanswered(w, r, err, hint)
	case reply.Refused != nil && reply.Refused.Kind == engine.RefusedUnknown:
		d.fail(w, r, http.StatusConflict, Fault{Code: CodeUnknownOutcome, Field: "accept_unknown", Message: reply.Refused.Text,
			Hint: `look at the machine first; then resolve the instruction if it was done, or retry it with "accept_unknown": true`})
	case reply.Refused != nil:
		d.refused(w, r, reply.Refused, "")
	case reply.Done != nil:
		d.log(r).Info("operator acted", "action", string(o.Action), "subject", reply.Done.Subject, "note", o.Note)
		return reply.Done, true
	default:
		d.unanswered(w, r, errors.New("the backend's reply is empty"), "report this")
	}
	return nil, false
}

func done(x *engine.Done) Done {
	return Done{Action: string(x.Action), Subject: x.Subject, Text: x.Text}
}

// retry is POST /v1/instructions/{instruction}/retry.
func (d *door) retry(w http.ResponseWriter, r *http.Request) {
	note, accept := "", false
	if in, ok := d.operated(w, r, textField("note", &note), flagField("accept_unknown", &accept)); ok {
		d.actOn(w, r, engine.Operate{Action: engine.ActionRetry, Seq: in.Seq, Note: note, AcceptUnknown: accept})
	}
}

// resolve is POST /v1/instructions/{instruction}/resolve.
func (d *door) resolve(w http.ResponseWriter, r *http.Request) {
	note := ""
	if in, ok := d.operated(w, r, textField("note", &note)); ok {
		d.actOn(w, r, engine.Operate{Action: engine.ActionResolve, Seq: in.Seq, Note: note})
	}
}

// cancelOne is POST /v1/instructions/{instruction}/cancel.
func (d *door) cancelOne(w http.ResponseWriter, r *http.Request) {
	note := ""
	if in, ok := d.operated(w, r, textField("note", &note)); ok {
		d.cancelAs(w, r, engine.Cancel{Seq: in.Seq, Reason: note})
	}
}

// operated reads the instruction and the body of an action. false: it was
// answered.
func (d *door) operated(w http.ResponseWriter, r *http.Request, fields ...objectField) (engine.Instruction, bool) {
	if _, ok := d.query(w, r); !ok {
		return engine.Instruction{}, false
	}
	if !d.object(w, r, fields...) {
		return engine.Instruction{}, false
	}
	in, _, ok := d.instruction(w, r)
	return in, ok
}

func (d *door) actOn(w http.ResponseWriter, r *http.Request, o engine.Operate) {
	if x, ok := d.act(w, r, o, "look at the queue at /v1/queue: what is no longer there was done"); ok {
		send(w, http.StatusOK, done(x))
	}
}

// quiet is GET /v1/quiet.
func (d *door) quiet(w http.ResponseWriter, r *http.Request) {
	if _, ok := d.query(w, r); !ok {
		return
	}
	q, err := d.b.Quiet(r.Context())
	if err != nil {
		d.unread(w, r, err)
		return
	}
	out := Quiet{On: q.On}
	if q.On {
		out.Since, out.Until, out.By, out.Reason = stamp(q.Since), stamp(q.Until), q.By, q.Reason
	}
	send(w, http.StatusOK, out)
}

// quietOn is PUT /v1/quiet: it begins a quiet period, or replaces the one that
// there is.
func (d *door) quietOn(w http.ResponseWriter, r *http.Request) {
	if _, ok := d.query(w, r); !ok {
		return
	}
	var reason, length, until string
	if !d.object(w, r, textField("reason", &reason), textField("for", &length), textField("until", &until)) {
		return
	}
	end, f := quietEnd(d.o.Now(), length, until)
	if f != nil {
		d.fail(w, r, http.StatusBadRequest, *f)
		return
	}
	x, ok := d.act(w, r, engine.Operate{Action: engine.ActionQuietOn, Until: end.UnixMilli(), Note: reason},
		"see /v1/quiet; beginning it again does no harm")
	if ok {
		out := done(x)
		out.Until = stamp(end.UnixMilli())
		send(w, http.StatusOK, out)
	}
}

// quietEnd reads when a quiet period ends: after a time, or at a time.
func quietEnd(now time.Time, length, until string) (time.Time, *Fault) {
	const hint = `write "for": "2h", or "until": "2026-03-01T18:00:00Z"`
	switch {
	case length != "" && until != "":
		return now, &Fault{Code: string(scada.CodeContradicts), Field: "until", Message: "is given as well as for", Hint: "keep one of them"}
	case length != "":
		t, err := time.ParseDuration(length)
		if err != nil || t <= 0 {
			return now, &Fault{Code: string(scada.CodeBadValue), Field: "for",
				Message: fmt.Sprintf("is %q, not a length of time", clip(length)), Hint: hint}
		}
		return now.Add(t), nil
	case until != "":
		t, err := time.Parse(time.RFC3339, until)
		if err != nil {
			return now, &Fault{Code: string(scada.CodeBadValue), Field: "until",
				Message: fmt.Sprintf("is %q, not a time with its zone", clip(until)), Hint: hint}
		}
		return t, nil
	}
	return now, &Fault{Code: string(scada.CodeMissing), Field: "for", Message: "is missing: a quiet period ends by itself", Hint: hint}
}

// quietOff is DELETE /v1/quiet.
func (d *door) quietOff(w http.ResponseWriter, r *http.Request) {
	note, ok := d.note(w, r)
	if !ok {
		return
	}
	x, ok := d.act(w, r, engine.Operate{Action: engine.ActionQuietOff, Note: note}, "see /v1/quiet")
	if ok {
		send(w, http.StatusOK, done(x))
	}
}

// note reads the note of an action that has no body. false: it was answered.
func (d *door) note(w http.ResponseWriter, r *http.Request) (string, bool) {
	q, ok := d.query(w, r, "note")
	if !ok {
		return "", false
	}
	note := q.Get("note")
	if len(note) > maxReason {
		d.fail(w, r, http.StatusBadRequest, Fault{Code: string(scada.CodeTooLarge), Field: "note",
			Message: fmt.Sprintf("is %d bytes long, the limit is %d", len(note), maxReason), Hint: "keep it short"})
		return "", false
	}
	return note, true
}
