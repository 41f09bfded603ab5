package broker

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

const (
	// logRate and logBurst bound the lines a second that peers can provoke by
	// connecting, peerRate and peerBurst those of one peer while connected, so
	// that nobody can drown the traces of somebody else.
	logRate   = 20
	logBurst  = 100
	peerRate  = 2
	peerBurst = 20
	// maxLogText bounds text of peers in a line, in bytes.
	maxLogText = 128
)

// engineLog receives Mochi's log. Its lines carry whole packets with payloads
// and passwords and one line per disconnect, so only errors pass, and of their
// attributes only those known to be harmless.
type engineLog struct{ to *slog.Logger }

// Enabled implements slog.Handler.
func (engineLog) Enabled(_ context.Context, l slog.Level) bool { return l >= slog.LevelError }

// Handle implements slog.Handler.
func (e engineLog) Handle(ctx context.Context, r slog.Record) error {
	attrs := []slog.Attr{slog.String("engine", r.Message)}
	r.Attrs(func(a slog.Attr) bool {
		switch a.Key {
		case "client", "listener", "error", "hook":
			attrs = append(attrs, a)
		}
		return true
	})
	e.to.LogAttrs(ctx, r.Level, "protocol engine", attrs...)
	return nil
}

// WithAttrs implements slog.Handler.
func (e engineLog) WithAttrs([]slog.Attr) slog.Handler { return e }

// WithGroup implements slog.Handler.
func (e engineLog) WithGroup(string) slog.Handler { return e }

// auditLog writes the lines that peers provoke, at a bounded rate.
type auditLog struct {
	to *slog.Logger

	mu         sync.Mutex
	bucket     bucket
	suppressed uint64
}

func newAuditLog(to *slog.Logger, rate, burst int) *auditLog {
	return &auditLog{to: to, bucket: newBucket(rate, burst, time.Now())}
}

func (a *auditLog) warn(msg string, args ...any) {
	a.mu.Lock()
	pass := a.bucket.take(time.Now())
	suppressed := a.suppressed
	if pass {
		a.suppressed = 0
	} else {
		a.suppressed++
	}
	a.mu.Unlock()
	if !pass {
		return
	}
	if suppressed > 0 {
		args = append(args, "suppressed", suppressed)
	}
	a.to.Warn(msg, args...)
}

// short bounds text that came from a peer.
func short(s string) string {
	if len(s) > maxLogText {
		return s[:maxLogText] + "..."
	}
	return s
}
