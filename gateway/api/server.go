package api

import (
	"log/slog"
	"net/http"
	"time"
)

// Limits of one connection. A request is small, so that a peer which needs
// longer is gone or means harm.
const (
	readHeaderTimeout = 5 * time.Second
	readTimeout       = 15 * time.Second
	// writeTimeout counts from the end of the header: reading, the backend's call
	// and writing together.
	writeTimeout   = 40 * time.Second
	idleTimeout    = 60 * time.Second
	maxHeaderBytes = 16 << 10
)

// NewServer returns a server for the handler with every timeout and limit set.
// The caller listens, serves and shuts down. What the server itself has to say
// (broken connections, panics) goes to log as warnings.
func NewServer(h http.Handler, log *slog.Logger) *http.Server {
	return &http.Server{
		Handler:           h,
		ReadHeaderTimeout: readHeaderTimeout,
		ReadTimeout:       readTimeout,
		WriteTimeout:      writeTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeaderBytes,
		ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelWarn),
	}
}
