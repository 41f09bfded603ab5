package api

import (
	"context"
	"fmt"
	"net/http"
	"path"
	"slices"
	"strings"
)

// door is the handler with all it needs.
type door struct {
	b Backend
	r Reader
	o Options
}

// route is one row of the table of routes.
type route struct {
	method, path string
	serve        func(*door, http.ResponseWriter, *http.Request)
	// long routes bound their own time: their answer may be as long as the log.
	long bool
}

// routes is the whole API. openapi.yaml describes the same rows.
func routes() []route {
	var list []route
	add := func(method, path string, serve func(*door, http.ResponseWriter, *http.Request)) {
		list = append(list, route{method: method, path: path, serve: serve})
	}
	add("POST", "/v1/tasks", (*door).submit)
	add("GET", "/v1/tasks", (*door).list)
	add("GET", "/v1/tasks/{task_id}", (*door).task)
	add("POST", "/v1/tasks/{task_id}/cancel", (*door).cancel)
	add("POST", "/v1/safe/{node}", (*door).safe)
	add("POST", "/v1/safe/{node}/{pin}", (*door).safe)
	add("GET", "/v1/safe/"+owedNode, (*door).owed)
	add("POST", "/v1/safe/"+owedNode, (*door).safe)
	add("POST", "/v1/release/{node}", (*door).release)
	add("POST", "/v1/release/{node}/{pin}", (*door).release)
	add("GET", "/v1/queue", (*door).queue)
	add("GET", "/v1/instructions/{instruction}/timeline", (*door).timeline)
	add("POST", "/v1/instructions/{instruction}/retry", (*door).retry)
	add("POST", "/v1/instructions/{instruction}/resolve", (*door).resolve)
	add("POST", "/v1/instructions/{instruction}/cancel", (*door).cancelOne)
	add("GET", "/v1/nodes", (*door).nodes)
	add("GET", "/v1/nodes/{node}", (*door).node)
	add("GET", "/v1/alarms", (*door).alarms)
	add("GET", "/v1/quiet", (*door).quiet)
	add("PUT", "/v1/quiet", (*door).quietOn)
	add("DELETE", "/v1/quiet", (*door).quietOff)
	add("GET", "/v1/deadletters", (*door).deadLetters)
	add("GET", "/v1/deadletters/{number}", (*door).deadLetter)
	add("DELETE", "/v1/deadletters/{number}", (*door).drop)
	add("POST", "/v1/deadletters/{number}/replay", (*door).replay)
	add("GET", "/v1/openapi.yaml", (*door).openAPI)
	add("GET", "/healthz", (*door).health)
	add("GET", "/metrics", (*door).metrics)
	return append(list, route{"GET", "/v1/audit", (*door).auditTrail, true})
}

// New returns the handler of the whole API.
func New(b Backend, r Reader, o Options) http.Handler {
	d := &door{b: b, r: r, o: o.withDefaults()}
	byPath := map[string]map[string]route{}
	mux := http.NewServeMux()
	for _, rt := range routes() {
		if rt.path == "/metrics" && d.o.Metrics == nil {
			continue
		}
		if byPath[rt.path] == nil {
			byPath[rt.path] = map[string]route{}
			mux.Handle(rt.path, d.methods(byPath[rt.path]))
		}
		byPath[rt.path][rt.method] = rt
	}
	mux.HandleFunc("/", d.unknown)
	return d.guarded(d.plainPath(mux))
}

// methods serves one path. HEAD is answered like GET, without the body.
func (d *door) methods(by map[string]route) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		method := r.Method
		if method == http.MethodHead {
			method = http.MethodGet
		}
		rt, ok := by[method]
		if !ok {
			allow := allowed(by)
			w.Header().Set("Allow", allow)
			d.fail(w, r, http.StatusMethodNotAllowed, Fault{Code: "method_not_allowed",
				Message: fmt.Sprintf("%s does not take %s", r.URL.Path, clip(r.Method)), Hint: "use " + allow})
			return
		}
		if rt.long {
			rt.serve(d, w, r)
			return
		}
		ctx, cancel := context.WithTimeout(r.Context(), d.o.CallTimeout)
		defer cancel()
		rt.serve(d, w, r.WithContext(ctx))
	})
}

func allowed(by map[string]route) string {
	var list []string
	for m := range by {
		list = append(list, m)
		if m == http.MethodGet {
			list = append(list, http.MethodHead)
		}
	}
	slices.Sort(list)
	return strings.Join(list, ", ")
}

// plainPath refuses a path that http.ServeMux would answer with a redirect page:
// every answer of ours is JSON.
func (d *door) plainPath(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p := r.URL.Path
		if p == "" || p[0] != '/' || (path.Clean(p) != p && path.Clean(p)+"/" != p) {
			d.unknown(w, r)
			return
		}
		next.ServeHTTP(w, r)
	})
}

func (d *door) unknown(w http.ResponseWriter, r *http.Request) {
	d.fail(w, r, http.StatusNotFound, Fault{Code: "no_such_path",
		Message: fmt.Sprintf("there is nothing at %s", clip(r.URL.Path)),
		Hint:    "start at /v1/tasks, /v1/queue, /v1/nodes, /v1/alarms or /healthz; /v1/openapi.yaml describes them all"})
}
