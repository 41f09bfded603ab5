package engine

import (
	"time"

	"github.com/apollo-11/apollo11/wire"
	"github.com/apollo-11/apollo11/wire/mutant"
)

// repeatable reports whether executing an instruction twice has the effect of once,
// so that an unknown outcome may be cured by another attempt without asking
// anybody (C6). "On for ten minutes" would begin anew. Of intents that the gateway
// does not know it assumes the worst.
func repeatable(i *inst) bool {
	return i.task.act.Repeatable || mutant.On(mutant.UnknownRepeated) ||
		mutant.On(mutant.LeaseRepeated) && wire.TraitsOf(i.Intent).Repeatable
}

// retry decides on another attempt, if the policy, the deadline and the
// operator allow one.
func (e *Engine) retry(now Now, i *inst) bool {
	if i.Retries >= i.Retry.Max || i.Attempt == wire.MaxAttempt || i.CancelBy != "" || i.By != 0 || i.overdue || i.Thrown {
		return false
	}
	if seq, _ := e.newerThan(i); i.safe && seq != 0 {
		return false // no line is kept for it: something newer may have begun there
	}
	wait := e.retryWait(i)
	at := now.Wall + wait.Milliseconds()
	if i.NotAfter != 0 && at >= i.notAfter(now) {
		return false
	}
	if !e.move(now, i, StateRetrying, Entry{What: WhatRetrying, DurationMs: wait.Milliseconds()}) {
		return false
	}
	if !mutant.On(mutant.RetriesUncounted) {
		i.Retries++
	}
	i.RetryAt = at
	i.waitAt = now.in(wait)
	e.setInside(i, false)
	e.effects.Counts.Retried++
	i.whispers = 0
	e.watchSafe(now, i)
	e.arm(now, i)
	return true
}

func (e *Engine) retryWait(i *inst) time.Duration {
	d := time.Duration(i.Retry.InitialMs) * time.Millisecond
	limit := time.Duration(i.Retry.MaxMs) * time.Millisecond
	if mutant.On(mutant.NoBackoff) {
		return 0
	}
	if i.Retry.Backoff == BackoffTiered {
		if i.Retries < tierTries {
			return e.jitter(tierFast)
		}
		return e.jitter(tierSlow)
	}
	if i.Retry.Backoff == BackoffExponential {
		for range i.Retries {
			if d *= 2; limit > 0 && d >= limit || d > maxRetryWait {
				break
			}
		}
	}
	if limit > 0 {
		d = min(d, limit)
	}
	return e.jitter(min(d, maxRetryWait))
}

// Tiers of BackoffTiered (C3): so often fast, and slow from then on.
const (
	tierTries = 3
	tierFast  = 5 * time.Second
	tierSlow  = 60 * time.Second
)

// maxRetryWait bounds the wait of a policy that names no maximum. Longer than a day
// is no retry any more.
const maxRetryWait = 24 * time.Hour
