package round

import (
	"slices"
	"time"

	"github.com/apollo-11/apollo11/gateway/engine"
	"github.com/apollo-11/apollo11/wire/mutant"
)

const (
	// AheadAfter is how long a record has to get to the disk before what is towards safe
	// goes ahead of it: at the pin within a second (docs/safety.md).
	AheadAfter = 200 * time.Millisecond
	// mostAhead bounds what waits for that. What does not fit goes with its record.
	mostAhead = 4096
	// Held is how many inputs may be taken that lead to records while the disk takes no
	// more rounds: as many as one round has.
	Held = 128
)

// Ahead says what may leave before its record, and when (docs/safety.md 1, 5): only what
// is towards safe, and only under numbers that the log had reserved on disk before. Its
// owner is the loop. The zero value is one of a process that has just begun.
type Ahead struct {
	limit   engine.Reserved    // on disk
	open    []*engine.Reserved // of the jobs that are not on disk, oldest first; nil for none
	settled uint64             // how many jobs are
	waits   []waiting          // oldest first
}

// waiting is something towards safe whose record is in a job that is not on disk.
type waiting struct {
	engine.Urgent
	job uint64 // counted from 1
	at  time.Duration
}

// Take takes what leads to safe of the round that will be flushed next.
func (a *Ahead) Take(now time.Duration, list []engine.Urgent) {
	for _, u := range list {
		if len(a.waits) < mostAhead {
			a.waits = append(a.waits, waiting{u, a.settled + uint64(len(a.open)) + 1, now + AheadAfter})
		}
	}
}

// Flushed takes the next job, with what is urgent in it.
func (a *Ahead) Flushed(now time.Duration, j *Job) {
	a.Take(now, j.Effects.Urgent)
	a.open = append(a.open, j.reserved)
}

// Settled says that the first jobs up to a number are on disk. What waited for them has
// left with them.
func (a *Ahead) Settled(jobs uint64) {
	for ; a.settled < jobs && len(a.open) > 0; a.settled++ {
		if r := a.open[0]; r != nil {
			a.limit = *r
		}
		a.open = a.open[1:]
	}
	a.waits = slices.DeleteFunc(a.waits, func(w waiting) bool { return w.job <= a.settled })
}

// Waits reports whether anything waits for its record.
func (a *Ahead) Waits() bool { return len(a.waits) > 0 }

// Due returns what has to leave now, and when there will be more, 0 for never: nothing
// whose numbers are not reserved on disk.
func (a *Ahead) Due(now time.Duration) (list []engine.Urgent, next time.Duration) {
	if mutant.On(mutant.OffWaitsForLog) {
		return nil, 0
	}
	a.waits = slices.DeleteFunc(a.waits, func(w waiting) bool {
		switch {
		case !a.limit.Below(w.Numbers()) && !mutant.On(mutant.UrgentUnreserved):
		case w.at <= now:
			list = append(list, w.Urgent)
			return true
		case next == 0 || w.at < next:
			next = w.at
		}
		return false
	})
	return list, next
}
