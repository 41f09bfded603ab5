package api

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"unicode/utf8"

	"github.com/apollo-11/apollo11/gateway/engine"
	"github.com/apollo-11/apollo11/gateway/scada"
	"github.com/apollo-11/apollo11/wire"
)

// owedNode is the last level of the path that lists what is owed. A node may have
// that name as well, and is driven to safe like any other.
const owedNode = "owed"

// maxOwed bounds the list of what is owed: it is for people, and whatever is not
// shown is counted.
const maxOwed = 1000

// safe is POST /v1/safe/{node} and POST /v1/safe/{node}/{pin}.
func (d *door) safe(w http.ResponseWriter, r *http.Request) { d.verb(w, r, wire.IntentSafe) }

// release is POST /v1/release/{node} and POST /v1/release/{node}/{pin}.
func (d *door) release(w http.ResponseWriter, r *http.Request) { d.verb(w, r, wire.IntentRelease) }

// verb submits an intent whose task needs no document.
func (d *door) verb(w http.ResponseWriter, r *http.Request, intent string) {
	if _, ok := d.query(w, r); !ok {
		return
	}
	reason := ""
	if wire.TraitsOf(intent).Safe {
		// Nothing that stands in the body may hinder it (docs/safety.md 12): a button sends
		// what it likes. What can be read of a reason is taken.
		reason = reasonIn(r)
	} else if r.ContentLength != 0 && !d.object(w, r, textField("reason", &reason)) {
		// Clients name a type for a body that they do not send.
		return
	}
	node := r.PathValue("node")
	if r.URL.Path == "/v1/safe/"+owedNode {
		node = owedNode
	}
	spec, err := scada.Verb(intent, node, r.PathValue("pin"), reason)
	if err != nil {
		f := Fault{Code: string(scada.CodeInternal), Message: err.Error()}
		if e := (*scada.Error)(nil); errors.As(err, &e) {
			f = faultOf(e)
		}
		d.fail(w, r, http.StatusBadRequest, f)
		return
	}
	if _, ok := d.named(w, r, &spec, nil); !ok {
		return
	}
	d.hand(w, r, spec, nil, "send it again: doing it twice does no harm")
}

// reasonIn reads the reason from a body that may be anything.
func reasonIn(r *http.Request) string {
	b, err := io.ReadAll(io.LimitReader(r.Body, maxReasonBody))
	if err != nil {
		return ""
	}
	var v struct {
		Reason string `json:"reason"`
	}
	if json.Unmarshal(b, &v) != nil {
		return ""
	}
	s := wire.FitText(v.Reason)
	for len(s) > maxReason {
		_, n := utf8.DecodeLastRuneInString(s)
		s = s[:len(s)-n]
	}
	return s
}

// maxReasonBody is how much of a body is looked at for a reason.
const maxReasonBody = 8 << 10

// owed is GET /v1/safe/owed.
func (d *door) owed(w http.ResponseWriter, r *http.Request) {
	if _, ok := d.query(w, r); !ok {
		return
	}
	list, err := d.b.Owed(r.Context())
	if err != nil {
		d.unread(w, r, err)
		return
	}
	out := OwedList{Owed: []Owed{}, More: max(0, len(list)-maxOwed)}
	for _, x := range list[:min(len(list), maxOwed)] {
		out.Owed = append(out.Owed, owedOf(x))
	}
	send(w, http.StatusOK, out)
}

func owedOf(x engine.Owed) Owed {
	return Owed{Node: x.Node, Pin: x.Pin, TaskID: x.Task, Instruction: x.Instruction, Since: stamp(x.Since),
		Count: x.Count, Driven: x.Driven, Reason: x.Reason}
}
