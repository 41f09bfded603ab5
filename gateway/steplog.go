package gateway

import (
	"context"
	"log/slog"

	"github.com/apollo-11/apollo11/gateway/engine"
)

// stepLog writes every step of every instruction to the log with the same keys
// (B6). Routine steps are Debug; what an operator acts on is Info or Warn.
type stepLog struct {
	log  *slog.Logger
	site string
}

func (s stepLog) write(w *engine.Write) {
	for k := range w.Entries {
		e := &w.Entries[k]
		level := stepLevel(e)
		if !s.log.Enabled(context.Background(), level) {
			continue
		}
		i := &w.Instruction
		s.log.LogAttrs(context.Background(), level, "step",
			slog.String("step", e.What.String()),
			slog.String("instruction", i.Key(s.site)),
			slog.Uint64("seq", i.Seq),
			slog.String("task", i.Task),
			slog.String("node", i.Node),
			slog.String("from", e.From.String()),
			slog.String("to", e.To.String()),
			slog.String("actor", e.Actor),
			slog.String("token", e.Token.String()),
			slog.Int("attempt", int(e.Attempt)),
			slog.String("path", e.Path.String()),
			slog.Int64("duration_ms", e.DurationMs),
			slog.String("code", e.Code.String()),
			slog.String("detail", e.Detail),
			slog.String("trace", i.Trace.String()))
	}
}

func stepLevel(e *engine.Entry) slog.Level {
	switch {
	case e.What == engine.WhatRefused:
		return slog.LevelWarn
	case e.From != e.To && (e.To == engine.StateFailed || e.To == engine.StateTimeout):
		return slog.LevelWarn
	case e.From != e.To && e.To == engine.StateCancelled, e.What == engine.WhatRetrying && !e.Implied:
		return slog.LevelInfo
	}
	return slog.LevelDebug
}
