package engine

import "github.com/apollo-11/apollo11/wire"

// MayHaveRun reports whether an attempt of the instruction may have had its effect
// although nobody has said so: it was handed out, or may have been by the log that
// this one is an older copy of, and its agent has not said that it was refused or has
// failed. Whoever asks "may this be done a second time?" asks here: the engine before
// it calls something CANCELLED or expired, and every door before a retry (C14).
func (i *Instruction) MayHaveRun() bool {
	switch {
	case i.State == StateSucceeded:
		return false // it has
	case i.Doubted || i.Begun:
		return true // whatever the last known attempt did, there may have been another
	case i.Attempt == 0:
		return false
	}
	return !i.knownUndone()
}

// OutcomeUnknown reports whether the instruction has ended and nobody knows how:
// another attempt may do the same a second time (C14). What was stopped when its time
// was over is among them: a stop comes before the effect, or in the midst of it.
func (i *Instruction) OutcomeUnknown() bool {
	return (i.State == StateTimeout || i.State == StateFailed) && i.MayHaveRun()
}

// knownUndone reports whether the last attempt is known not to have done what it
// should: it ended with a failure or a refusal, or was not begun because of something
// newer.
func (i *Instruction) knownUndone() bool {
	if i.Code == wire.CodeSuperseded {
		return true
	}
	switch i.Code.Class() {
	case wire.ClassRetryable, wire.ClassPermanent, wire.ClassRefused:
		return true
	}
	return false
}
