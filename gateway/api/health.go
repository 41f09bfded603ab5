package api

import (
	_ "embed"
	"fmt"
	"net/http"
	"time"
)

//go:embed openapi.yaml
var openAPIDocument []byte

// health is GET /healthz.
func (d *door) health(w http.ResponseWriter, r *http.Request) {
	h := d.b.Health()
	out := HealthBody{Status: "ok"}
	status := http.StatusOK
	switch {
	case !h.Ready:
		out.Status, status = "unavailable", http.StatusServiceUnavailable
	case len(h.Degraded) > 0:
		out.Status = "degraded"
	}
	if callerOf(r).known {
		out.Version, out.UptimeS, out.Open = h.Version, int64(h.Uptime/time.Second), &h.Open
		out.Epoch = fmt.Sprintf("%016x", h.Epoch)
		out.Listeners, out.Degraded = h.Listeners, h.Degraded
	}
	send(w, status, out)
}

// metrics is GET /metrics.
func (d *door) metrics(w http.ResponseWriter, r *http.Request) { d.o.Metrics.ServeHTTP(w, r) }

// openAPI is GET /v1/openapi.yaml.
func (d *door) openAPI(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/yaml")
	_, _ = w.Write(openAPIDocument)
}
