package api

import (
	"errors"
	"net/http"

	"github.com/apollo-11/apollo11/gateway/engine"
)

// cancel is POST /v1/tasks/{task_id}/cancel.
func (d *door) cancel(w http.ResponseWriter, r *http.Request) {
	if _, ok := d.query(w, r); !ok {
		return
	}
	id, ok := d.taskID(w, r)
	if !ok {
		return
	}
	reason := ""
	if !d.object(w, r, textField("reason", &reason)) {
		return
	}
	d.cancelAs(w, r, engine.Cancel{TaskID: id, Reason: reason})
}

// cancelAs cancels a task or an instruction for the caller.
func (d *door) cancelAs(w http.ResponseWriter, r *http.Request, c engine.Cancel) {
	c.Actor, c.Path = callerOf(r).actor, engine.PathHTTP
	reply, err := d.b.Cancel(r.Context(), c)
	switch {
	case err != nil:
		d.unanswered(w, r, err, "look at it, and cancel it again if it still runs: that does no harm")
	case reply.Refused != nil:
		d.refused(w, r, reply.Refused, "")
	case reply.Cancelled != nil:
		c := reply.Cancelled
		d.log(r).Info("cancelled", "task", c.TaskID, "cancelled", c.Done, "asked", c.Asked, "final", c.Final)
		send(w, http.StatusOK, Cancelled{c.TaskID, c.Done, c.Asked, c.Final})
	default:
		d.unanswered(w, r, errors.New("the backend's reply is empty"), "report this")
	}
}
