package guard

import (
	"context"
	"log/slog"
	"time"
)

// Watcher acts on silence.
type Watcher interface{ Alive() error }

// Part is a part of the agent that can get stuck.
type Part struct {
	Name string
	// Answer returns soon if the part works, and may block if it does not. It ends
	// with ctx.
	Answer func(ctx context.Context) error
	// Patience is how long the part may be busy before the agent counts as stuck.
	Patience time.Duration
}

// Keep tells the watchers every period that the agent lives, as long as all its
// parts answer within their patience, until ctx ends. It only watches: what
// happens after silence is the watchers' business.
func Keep(ctx context.Context, period time.Duration, parts []Part, watchers []Watcher, log *slog.Logger) {
	q := &questions{parts: parts, asked: make([]bool, len(parts)), since: make([]time.Time, len(parts)), answers: make(chan answer)}
	ticker := time.NewTicker(period)
	defer ticker.Stop()
	silent := false
	done := ctx.Done()
	for q.ask(ctx); done != nil || q.running > 0; {
		select {
		case a := <-q.answers:
			q.take(a)
		case <-ticker.C:
			stuck := q.stuck()
			if stuck != "" && !silent {
				log.Error("a part of the agent is stuck: the watchdog is not told any more that the agent lives", "part", stuck)
			}
			if stuck == "" {
				tell(watchers, log)
			}
			silent = stuck != ""
			q.ask(ctx)
		case <-done:
			done = nil
		}
	}
}

// questions are what the parts are asked.
type questions struct {
	parts   []Part
	asked   []bool
	since   []time.Time // when the first question was asked that has no answer; zero for none
	answers chan answer
	running int
}

type answer struct {
	part int
	err  error
}

// ask asks every part that is not being asked.
func (q *questions) ask(ctx context.Context) {
	for i, p := range q.parts {
		if q.asked[i] || ctx.Err() != nil {
			continue
		}
		q.asked[i] = true
		if q.since[i].IsZero() {
			q.since[i] = time.Now()
		}
		q.running++
		go func() { q.answers <- answer{i, p.Answer(ctx)} }()
	}
}

// take notes an answer. An error is none: the part is asked again.
func (q *questions) take(a answer) {
	q.running--
	q.asked[a.part] = false
	if a.err == nil {
		q.since[a.part] = time.Time{}
	}
}

// stuck returns a part that has been asked for longer than its patience. One that
// has answered is not stuck, however long ago that was: it is the questions that
// come late then.
func (q *questions) stuck() string {
	for i, p := range q.parts {
		if !q.since[i].IsZero() && time.Since(q.since[i]) > p.Patience {
			return p.Name
		}
	}
	return ""
}

func tell(watchers []Watcher, log *slog.Logger) {
	for _, w := range watchers {
		if err := w.Alive(); err != nil {
			log.Warn("the watchdog could not be told that the agent lives", "err", err)
		}
	}
}
