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
	answers := make(chan int)
	heard := make([]time.Time, len(parts))
	asked := make([]bool, len(parts))
	for i := range heard {
		heard[i] = time.Now()
	}
	running := 0
	ask := func() {
		for i, p := range parts {
			if asked[i] {
				continue
			}
			asked[i] = true
			running++
			go func() {
				if err := p.Answer(ctx); err != nil {
					i = -1 - i
				}
				answers <- i
			}()
		}
	}
	ticker := time.NewTicker(period)
	defer ticker.Stop()
	silent := false
	done := ctx.Done()
	for ask(); ; {
		select {
		case i := <-answers:
			running--
			if i >= 0 {
				heard[i], asked[i] = time.Now(), false
			} else {
				asked[-1-i] = false
			}
		case <-ticker.C:
			stuck := stuckPart(parts, heard)
			if stuck != "" && !silent {
				log.Error("a part of the agent is stuck: the watchdog is not told any more that the agent lives", "part", stuck)
			}
			if stuck == "" {
				tell(watchers, log)
			}
			silent = stuck != ""
			ask()
		case <-done:
			done = nil
		}
		if done == nil && running == 0 {
			return
		}
	}
}

func stuckPart(parts []Part, heard []time.Time) string {
	for i, p := range parts {
		if time.Since(heard[i]) > p.Patience {
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
