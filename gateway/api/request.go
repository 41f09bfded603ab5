package api

import (
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/apollo-11/apollo11/gateway/scada"
)

const (
	// maxBody bounds a request body: the largest task document.
	maxBody = scada.MaxTaskBytes
	// maxDrain bounds what is read of a body that is too large, so that its sender
	// gets to see the answer instead of a broken connection.
	maxDrain = 4 << 20
	// defaultLimit and maxLimit bound a page of a list.
	defaultLimit = 50
	maxLimit     = 500
)

// body reads the request's body. false: it was answered.
func (d *door) body(w http.ResponseWriter, r *http.Request) ([]byte, bool) {
	if enc := r.Header.Get("Content-Encoding"); enc != "" && enc != "identity" {
		d.fail(w, r, http.StatusUnsupportedMediaType, Fault{Code: "unsupported_encoding",
			Message: fmt.Sprintf("the body is encoded with %s", clip(enc)), Hint: "send it as it is"})
		return nil, false
	}
	text, err := io.ReadAll(io.LimitReader(r.Body, maxBody+1))
	if err != nil {
		d.fail(w, r, http.StatusBadRequest, Fault{Code: "incomplete",
			Message: "the body ended before its announced length, or came too slowly", Hint: "send it again"})
		return nil, false
	}
	if len(text) > maxBody {
		w.Header().Set("Connection", "close")
		_, _ = io.CopyN(io.Discard, r.Body, maxDrain) // only so that the answer is seen
		d.fail(w, r, http.StatusRequestEntityTooLarge, Fault{Code: string(scada.CodeTooLarge),
			Message: fmt.Sprintf("the body is larger than %d bytes", maxBody), Hint: "split it into several tasks"})
		return nil, false
	}
	return text, true
}

// query reads the query parameters, of which only those named are taken, each
// once. false: it was answered.
func (d *door) query(w http.ResponseWriter, r *http.Request, names ...string) (url.Values, bool) {
	q, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		d.bad(w, r, "", "the query part of the address cannot be read", "percent-encode what is not a letter or digit")
		return nil, false
	}
	keys := make([]string, 0, len(q))
	for k := range q {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	for _, k := range keys {
		switch {
		case !slices.Contains(names, k):
			hint := "leave it out"
			if len(names) > 0 {
				hint = "there are: " + strings.Join(names, ", ")
			}
			d.fail(w, r, http.StatusBadRequest, Fault{Code: string(scada.CodeUnknownField), Field: clip(k),
				Message: "is not a parameter of this path", Hint: hint})
			return nil, false
		case len(q[k]) > 1:
			d.fail(w, r, http.StatusBadRequest, Fault{Code: string(scada.CodeDuplicate), Field: k,
				Message: "is given more than once", Hint: "give it once"})
			return nil, false
		}
	}
	return q, true
}

// number reads an optional whole number between low and high. false: it was
// answered.
func (d *door) number(w http.ResponseWriter, r *http.Request, q url.Values, name string, absent, low, high uint64) (uint64, bool) {
	if !q.Has(name) {
		return absent, true
	}
	n, err := strconv.ParseUint(q.Get(name), 10, 64)
	if err != nil || n < low || n > high {
		d.bad(w, r, name, fmt.Sprintf("is %q, not a whole number from %d to %d", clip(q.Get(name)), low, high), "")
		return 0, false
	}
	return n, true
}
