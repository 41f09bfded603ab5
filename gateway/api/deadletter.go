package api

import (
	"errors"
	"fmt"
	"math"
	"net/http"
	"slices"
	"strconv"
	"unicode/utf8"

	"github.com/apollo-11/apollo11/gateway/engine"
	"github.com/apollo-11/apollo11/gateway/scada"
)

// codeNotReplayable refuses to submit what a dead letter holds.
const codeNotReplayable = "not_replayable"

// deadLetters is GET /v1/deadletters.
func (d *door) deadLetters(w http.ResponseWriter, r *http.Request) {
	q, ok := d.query(w, r, "limit", "after")
	if !ok {
		return
	}
	after, limit, ok := d.after(w, r, q)
	if !ok {
		return
	}
	list, err := d.r.DeadLetters(r.Context(), after, limit)
	if err != nil {
		d.unread(w, r, err)
		return
	}
	out := DeadLetterList{DeadLetters: make([]DeadLetter, len(list))}
	for k, x := range list {
		out.DeadLetters[k] = deadLetterOf(x)
	}
	if len(list) == limit {
		out.Next = list[len(list)-1].Number
	}
	send(w, http.StatusOK, out)
}

func deadLetterOf(x engine.DeadLetter) DeadLetter {
	out := DeadLetter{Number: x.Number, Time: stamp(x.At), Kind: x.Kind, From: x.From, Reason: x.Reason, Raw: x.Raw, Cut: cut(x)}
	if utf8.Valid(x.Raw) {
		out.Text = string(x.Raw)
	}
	return out
}

// cut reports whether only the beginning of a message was kept. One that filled
// the room to the last byte counts as cut: nobody can tell.
func cut(x engine.DeadLetter) bool { return len(x.Raw) >= engine.MaxDeadLetterBytes }

// deadLetterNumber reads the number in the path. false: it was answered.
func (d *door) deadLetterNumber(w http.ResponseWriter, r *http.Request) (uint64, bool) {
	text := r.PathValue("number")
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil || n == 0 || n > math.MaxInt64 {
		d.bad(w, r, "number", fmt.Sprintf("is %q, not the number of a dead letter", clip(text)), "they are listed at /v1/deadletters")
		return 0, false
	}
	return n, true
}

// deadLetterNamed reads the dead letter that the path names. false: it was
// answered.
func (d *door) deadLetterNamed(w http.ResponseWriter, r *http.Request) (*engine.DeadLetter, bool) {
	if _, ok := d.query(w, r); !ok {
		return nil, false
	}
	n, ok := d.deadLetterNumber(w, r)
	if !ok {
		return nil, false
	}
	x, err := d.r.DeadLetter(r.Context(), n)
	if err != nil {
		d.unread(w, r, err)
		return nil, false
	}
	if x == nil {
		d.missing(w, r, fmt.Sprintf("dead letter %d", n), "they are listed at /v1/deadletters")
		return nil, false
	}
	return x, true
}

// deadLetter is GET /v1/deadletters/{number}.
func (d *door) deadLetter(w http.ResponseWriter, r *http.Request) {
	if x, ok := d.deadLetterNamed(w, r); ok {
		send(w, http.StatusOK, deadLetterOf(*x))
	}
}

// drop is DELETE /v1/deadletters/{number}.
func (d *door) drop(w http.ResponseWriter, r *http.Request) {
	note, ok := d.note(w, r)
	if !ok {
		return
	}
	n, ok := d.deadLetterNumber(w, r)
	if !ok {
		return
	}
	x, ok := d.act(w, r, engine.Operate{Action: engine.ActionDeadDrop, Dead: n, Note: note},
		"look at it: when it is no longer there, it was dropped")
	if ok {
		send(w, http.StatusOK, done(x))
	}
}

// replay is POST /v1/deadletters/{number}/replay. The task comes first and the
// dead letter is forgotten after it, so that a power cut in between loses nothing;
// the task has a name that follows from the dead letter, so that a second replay
// is the same task (A4).
func (d *door) replay(w http.ResponseWriter, r *http.Request) {
	x, ok := d.deadLetterNamed(w, r)
	if !ok {
		return
	}
	spec, warnings, f := d.revive(x)
	if f != nil {
		d.fail(w, r, http.StatusUnprocessableEntity, *f)
		return
	}
	const again = "replay it again: the same task will not run twice"
	reply, err := d.b.Submit(r.Context(), spec, engine.Source{Via: engine.PathHTTP.String(), Actor: callerOf(r).actor})
	switch {
	case err != nil:
		d.unanswered(w, r, err, again)
		return
	case reply.Refused != nil:
		d.refused(w, r, reply.Refused, "task_id")
		return
	case reply.Accepted == nil:
		d.unanswered(w, r, errors.New("the backend's reply is empty"), "report this")
		return
	}
	note := "as task " + reply.Accepted.TaskID
	after, err := d.b.Operate(r.Context(), engine.Operate{Action: engine.ActionDeadReplay, Dead: x.Number,
		Note: note, Actor: callerOf(r).actor, Path: engine.PathHTTP})
	switch {
	case err != nil:
		d.unanswered(w, r, err, again)
	case after.Refused != nil && after.Refused.Kind != engine.RefusedNotFound:
		d.refused(w, r, after.Refused, "")
	default: // not found: somebody else replayed or dropped it meanwhile
		d.log(r).Info("operator acted", "action", string(engine.ActionDeadReplay), "subject", x.Number, "note", note)
		d.accepted(w, r, reply.Accepted, warnings)
	}
}

// revive reads the task in a dead letter once more.
func (d *door) revive(x *engine.DeadLetter) (engine.Spec, []scada.Warning, *Fault) {
	no := func(message, hint string) (engine.Spec, []scada.Warning, *Fault) {
		return engine.Spec{}, nil, &Fault{Code: codeNotReplayable, Message: message, Hint: hint}
	}
	if x.Kind != "task" {
		return no(fmt.Sprintf("dead letter %d is what a board reported (%s), not a task", x.Number, clip(x.Kind)),
			"nothing of it can be submitted; drop it when its cause is understood")
	}
	if cut(*x) {
		return no(fmt.Sprintf("of dead letter %d only the first %d bytes were kept", x.Number, engine.MaxDeadLetterBytes),
			fmt.Sprintf("submit the document from where %s has it, then drop this one", clip(x.From)))
	}
	now := d.o.Now().UnixMilli()
	spec, warnings, err := scada.ParseTask(x.Raw, scada.Auto, scada.Options{Site: d.o.Site, Now: now})
	if err != nil {
		f := Fault{Code: string(scada.CodeSyntax), Message: err.Error()}
		if e := (*scada.Error)(nil); errors.As(err, &e) {
			f = faultOf(e)
		}
		return engine.Spec{}, nil, &f
	}
	if spec.TTLMs != 0 {
		// Its submitter counted from when it was sent. Old commands do not run late
		// because somebody found them (A9).
		spec.NotAfter, spec.TTLMs = x.At+spec.TTLMs, 0
	}
	if spec.NotAfter != 0 && now >= spec.NotAfter {
		return no(fmt.Sprintf("the time limit of the task in dead letter %d passed at %s", x.Number, stamp(spec.NotAfter)),
			"if it is still wanted, submit it as a new task with a new limit, then drop this one")
	}
	if spec.TaskID == "" {
		spec.TaskID = fmt.Sprintf("deadletter-%d-%d", x.Number, x.At)
		warnings = slices.DeleteFunc(warnings, func(x scada.Warning) bool { return x.Code == scada.WarnNoTaskID })
	}
	return spec, warnings, nil
}
