package api

import (
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/apollo-11/apollo11/gateway/engine"
	"github.com/apollo-11/apollo11/gateway/scada"
)

// exportPage is how many entries are read at once for an export: some hundred
// kilobytes.
const exportPage = 500

// ContentTypeLines is the content type of JSON lines.
const ContentTypeLines = "application/x-ndjson"

// auditTrail is GET /v1/audit: a page as JSON, or everything as JSON lines.
func (d *door) auditTrail(w http.ResponseWriter, r *http.Request) {
	q, ok := d.query(w, r, "limit", "after", "format")
	if !ok {
		return
	}
	after, limit, ok := d.after(w, r, q)
	if !ok {
		return
	}
	switch format := q.Get("format"); {
	case format == "jsonl" && q.Has("limit"):
		d.fail(w, r, http.StatusBadRequest, Fault{Code: string(scada.CodeContradicts), Field: "limit",
			Message: "an export has no limit", Hint: "leave it out, or leave out format"})
	case format == "jsonl":
		d.auditLines(w, r, after)
	case q.Has("format") && format != "json":
		d.bad(w, r, "format", fmt.Sprintf("is %q", clip(format)), "there are json and jsonl")
	default:
		list, err := d.auditPage(r.Context(), after, limit)
		if err != nil {
			d.unread(w, r, err)
			return
		}
		out := AuditList{Entries: make([]AuditEntry, len(list))}
		for k, a := range list {
			out.Entries[k] = NewAuditEntry(a)
		}
		if len(list) == limit {
			out.Next = list[len(list)-1].Number
		}
		send(w, http.StatusOK, out)
	}
}

func (d *door) auditPage(ctx context.Context, after uint64, limit int) ([]engine.Audit, error) {
	ctx, cancel := context.WithTimeout(ctx, d.o.CallTimeout)
	defer cancel()
	return d.r.Audit(ctx, after, limit)
}

// auditLines writes the trail as JSON lines. A trail that cannot be read to its
// end breaks the connection, so that nobody takes a part for the whole.
func (d *door) auditLines(w http.ResponseWriter, r *http.Request, after uint64) {
	rc := http.NewResponseController(w)
	for begun := false; ; begun = true {
		list, err := d.auditPage(r.Context(), after, exportPage)
		if err != nil && !begun {
			d.unread(w, r, err)
			return
		}
		if err != nil {
			d.log(r).Error("audit export broke off", "after", after, "err", err)
			panic(http.ErrAbortHandler)
		}
		if !begun {
			w.Header().Set("Content-Type", ContentTypeLines)
			w.WriteHeader(http.StatusOK)
		}
		var b bytes.Buffer
		for _, a := range list {
			line, err := NewAuditEntry(a).Line()
			if err != nil {
				d.log(r).Error("audit export broke off", "after", after, "err", err)
				panic(http.ErrAbortHandler)
			}
			b.Write(line)
			after = a.Number
		}
		// Each page has its own time to get out; a server that knows no deadlines
		// has a limit of its own.
		if err := rc.SetWriteDeadline(time.Now().Add(writeTimeout)); err != nil && !errors.Is(err, http.ErrNotSupported) {
			panic(http.ErrAbortHandler)
		}
		if _, err := w.Write(b.Bytes()); err != nil {
			return // the client has gone
		}
		if len(list) < exportPage {
			return
		}
	}
}

// NewAuditEntry writes an entry of the audit trail as a document.
func NewAuditEntry(a engine.Audit) AuditEntry {
	return AuditEntry{Number: a.Number, Time: stamp(a.At), Actor: a.Actor, Path: a.Path.String(), Action: string(a.Action),
		Subject: a.Subject, Note: a.Note, Prev: hex.EncodeToString(a.Prev[:]), Hash: hex.EncodeToString(a.Hash[:])}
}

// Line is the entry as a line of an export.
func (e AuditEntry) Line() ([]byte, error) {
	b, err := json.Marshal(e)
	if err != nil {
		return nil, fmt.Errorf("audit entry %d as JSON: %w", e.Number, err)
	}
	return append(b, '\n'), nil
}

// ParseAuditLine reads a line of an export, without its line end, for
// engine.Trail. Only the exact spelling of Line is taken: in a looser one the same
// line could tell a reader one thing and this function another.
func ParseAuditLine(line []byte) (engine.Audit, error) {
	var e AuditEntry
	if err := json.Unmarshal(line, &e); err != nil {
		return engine.Audit{}, fmt.Errorf("not an audit entry: %w", err)
	}
	same, err := e.Line()
	if err != nil {
		return engine.Audit{}, err
	}
	if !bytes.Equal(bytes.TrimSuffix(same, []byte("\n")), line) {
		return engine.Audit{}, fmt.Errorf("audit entry %d is not written as a gateway writes it: it was edited or laid out anew", e.Number)
	}
	return e.audit()
}

// audit is the entry behind the document.
func (e AuditEntry) audit() (engine.Audit, error) {
	a := engine.Audit{Number: e.Number, Actor: e.Actor, Action: engine.Action(e.Action), Subject: e.Subject, Note: e.Note}
	t, err := time.Parse(time.RFC3339, e.Time)
	if err != nil {
		return a, fmt.Errorf("time of audit entry %d: %w", e.Number, err)
	}
	if a.At = t.UnixMilli(); stamp(a.At) != e.Time {
		return a, fmt.Errorf("time of audit entry %d is not written as a gateway writes it: it was edited", e.Number)
	}
	for a.Path.String() != e.Path {
		if a.Path++; a.Path > engine.PathMQTT {
			return a, fmt.Errorf("audit entry %d came by the way %q, which this version does not know", e.Number, clip(e.Path))
		}
	}
	for _, h := range []struct {
		text string
		into *[32]byte
	}{{e.Prev, &a.Prev}, {e.Hash, &a.Hash}} {
		b, err := hex.DecodeString(h.text)
		if err != nil || len(b) != len(h.into) || hex.EncodeToString(b) != h.text {
			return a, fmt.Errorf("a hash of audit entry %d is not %d hexadecimal digits", e.Number, 2*len(h.into))
		}
		copy(h.into[:], b)
	}
	return a, nil
}
