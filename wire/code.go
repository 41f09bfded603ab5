package wire

import "fmt"

// Code says how far an attempt has come or how it ended. It fits one byte, so
// that the compact ack can carry it. Values are grouped by what the gateway may
// do next; a value is never reused for something else.
type Code uint8

// Progress (an attempt that has not ended). Compact acks use them; events say
// the same with their Phase.
const (
	CodeNone     Code = 0 // no result yet
	CodeReceived Code = 1 // the agent has it, nothing has been executed
	CodeStarted  Code = 2 // execution has begun
	// CodeNever answers a compact query: the agent does not know the attempt. It
	// never arrived, or was forgotten.
	CodeNever Code = 3
	// CodeDriven means that a line has been driven to its safe level, and that is not on the
	// agent's disk yet, or came in a compact frame, which leaves no record. It settles
	// nothing.
	CodeDriven Code = 4
)

// Ends.
const (
	CodeOK        Code = 16 // done, with evidence
	CodeCancelled Code = 17 // stopped on request before it had an effect, or after, see detail
	// CodeSuperseded means that it was not begun, and never will be by itself, because
	// something newer has begun on its line or stands for it.
	CodeSuperseded Code = 18
	// CodeUnknown means that the agent cannot tell whether the effect happened.
	// It is shown as unknown, never as success or failure (C14).
	CodeUnknown Code = 24
	// CodeInterrupted means that the agent died between start and result (C6).
	// The effect is unknown as well; the cause is known.
	CodeInterrupted Code = 25
)

// Refusals: nothing was executed, and trying again will not help (C3).
const (
	CodeUnknownIntent Code = 32 // the agent has no such intent
	CodeBadArgs       Code = 33 // arguments missing, of the wrong type or out of range
	CodeExpired       Code = 34 // not_after had passed when it was about to start (A9)
	CodeNoSuchPin     Code = 35 // the board has no such pin
	CodeNotPermitted  Code = 36 // the operating system or the configuration forbids it
	CodeStaleToken    Code = 37 // a newer attempt of this instruction is known
	CodeUnsupported   Code = 38 // the pin or the board cannot do this
	CodeLocal         Code = 39 // the LOCAL switch of the node is on: a person works there by hand (C15)
	// CodeHeldSafe means that the line is held at its safe level until somebody releases it.
	CodeHeldSafe Code = 40
	// CodeMapChanged means that the pin's name stands for another line than when it was sent.
	CodeMapChanged Code = 41
)

// Failures after which another attempt may succeed (C3).
const (
	CodeTimeout    Code = 48 // the intent's own time limit ran out and it was stopped
	CodeDependency Code = 49 // something that it needs did not answer
	CodeResources  Code = 50 // memory, disk, descriptors, or the agent's queue is full
	CodeBusy       Code = 51 // the line or device is held by someone else
	CodeIO         Code = 52 // the device reported an error
)

// Failures that another attempt would only repeat.
const (
	CodeFailed   Code = 64 // the intent ran and reported failure
	CodeInternal Code = 65 // a fault in the agent itself
)

// Class groups codes by what they mean for the instruction.
type Class uint8

const (
	ClassProgress  Class = iota // not an end
	ClassSuccess                // done
	ClassCancelled              // stopped on request
	ClassUnknown                // the effect is not known
	ClassRefused                // not executed, permanent
	ClassRetryable              // failed, another attempt may help
	ClassPermanent              // failed, another attempt will not help
	ClassInvalid                // no such code
)

var codes = map[Code]struct {
	name  string
	class Class
}{
	CodeNone:          {"none", ClassProgress},
	CodeReceived:      {"received", ClassProgress},
	CodeStarted:       {"started", ClassProgress},
	CodeNever:         {"never", ClassProgress},
	CodeDriven:        {"driven", ClassProgress},
	CodeOK:            {"ok", ClassSuccess},
	CodeCancelled:     {"cancelled", ClassCancelled},
	CodeSuperseded:    {"superseded", ClassCancelled},
	CodeUnknown:       {"unknown", ClassUnknown},
	CodeInterrupted:   {"interrupted", ClassUnknown},
	CodeUnknownIntent: {"unknown_intent", ClassRefused},
	CodeBadArgs:       {"bad_args", ClassRefused},
	CodeExpired:       {"expired", ClassRefused},
	CodeNoSuchPin:     {"no_such_pin", ClassRefused},
	CodeNotPermitted:  {"not_permitted", ClassRefused},
	CodeStaleToken:    {"stale_token", ClassRefused},
	CodeUnsupported:   {"unsupported", ClassRefused},
	CodeLocal:         {"local", ClassRefused},
	CodeHeldSafe:      {"held_safe", ClassRefused},
	CodeMapChanged:    {"map_changed", ClassRefused},
	CodeTimeout:       {"timeout", ClassRetryable},
	CodeDependency:    {"dependency", ClassRetryable},
	CodeResources:     {"resources", ClassRetryable},
	CodeBusy:          {"busy", ClassRetryable},
	CodeIO:            {"io", ClassRetryable},
	CodeFailed:        {"failed", ClassPermanent},
	CodeInternal:      {"internal", ClassPermanent},
}

// String is the code's name as it stands in JSON, logs and documents.
func (c Code) String() string {
	if d, ok := codes[c]; ok {
		return d.name
	}
	return fmt.Sprintf("code_%d", uint8(c))
}

// Class says what the code means for the instruction; ClassInvalid for a number
// that this version does not know.
func (c Code) Class() Class {
	if d, ok := codes[c]; ok {
		return d.class
	}
	return ClassInvalid
}

// Final reports whether the code ends an attempt.
func (c Code) Final() bool {
	k := c.Class()
	return k != ClassProgress && k != ClassInvalid
}

// OldCode is what a gateway that follows no Rules is told instead: the nearest that
// it knows. A number that it does not know would be an unknown outcome there, and
// these mean that nothing has begun.
func (c Code) OldCode() Code {
	switch c {
	case CodeSuperseded:
		return CodeCancelled
	case CodeHeldSafe:
		return CodeNotPermitted
	case CodeMapChanged:
		return CodeNoSuchPin
	case CodeDriven:
		return CodeStarted
	}
	return c
}

// Phase is the kind of an Event.
type Phase uint8

const (
	PhaseReceived  Phase = 1 // stored by the agent, not yet started
	PhaseStarted   Phase = 2 // execution has begun
	PhaseProgress  Phase = 3 // still running; Progress says how far
	PhaseProcessed Phase = 4 // ended; Code says how
	// PhaseLease says that the lease of an output, which the attempt began, has
	// ended; Lease says why (C13). It may come long after PhaseProcessed and
	// changes no state. It is sent only to a gateway whose Welcome names it.
	PhaseLease Phase = 5
)

// MaxPhase is the highest phase that this version knows; OldMaxPhase the one of a
// gateway whose Welcome names none.
const (
	MaxPhase    = PhaseLease
	OldMaxPhase = PhaseProcessed
)

// String is the phase's name as it stands in timelines.
func (p Phase) String() string {
	switch p {
	case PhaseReceived:
		return "received"
	case PhaseStarted:
		return "started"
	case PhaseProgress:
		return "progress"
	case PhaseProcessed:
		return "processed"
	case PhaseLease:
		return "lease_ended"
	}
	return fmt.Sprintf("phase_%d", uint8(p))
}

// LeaseEnd says why the lease of an output ended. In all cases but LeaseReplaced,
// LeaseFailed, LeaseReload and LeaseHand the pin is at its safe level; the event's
// payload says at which level it is.
type LeaseEnd uint8

const (
	LeaseExpired  LeaseEnd = 1 // its time was over
	LeaseReplaced LeaseEnd = 2 // a later instruction has set the pin
	LeaseLoss     LeaseEnd = 3 // the gateway was lost for longer than the autonomy window
	LeaseStopped  LeaseEnd = 4 // the agent was stopped
	LeaseRestart  LeaseEnd = 5 // the agent was started again and set the safe level first
	// LeaseFailed means that the pin could not be set to its safe level: somebody
	// must look. The agent goes on trying; another end follows when it has worked.
	LeaseFailed LeaseEnd = 6
	// The following are told to gateways that follow RulesOrder only.
	LeaseLocal     LeaseEnd = 7 // the LOCAL switch was thrown; the pin was driven safe once
	LeaseReload    LeaseEnd = 8 // the pin map was reloaded
	LeaseCancelled LeaseEnd = 9 // its instruction was cancelled
	// LeaseHand means that a person had moved the line: it was left to the hand.
	LeaseHand LeaseEnd = 10
)

// OldLeaseEnd is what a gateway that follows no Rules is told instead: the nearest
// that it knows.
func (e LeaseEnd) OldLeaseEnd() LeaseEnd {
	switch {
	case e == LeaseHand || e == LeaseReload:
		return LeaseReplaced // it promises no level
	case e > LeaseFailed:
		return LeaseStopped
	}
	return e
}

// String is the word for it in timelines, logs and JSON.
func (e LeaseEnd) String() string {
	switch e {
	case LeaseExpired:
		return "expired"
	case LeaseReplaced:
		return "replaced"
	case LeaseLoss:
		return "loss"
	case LeaseStopped:
		return "stopped"
	case LeaseRestart:
		return "restart"
	case LeaseFailed:
		return "failed"
	case LeaseLocal:
		return "local"
	case LeaseReload:
		return "reload"
	case LeaseCancelled:
		return "cancelled"
	case LeaseHand:
		return "hand"
	}
	return fmt.Sprintf("end_%d", uint8(e))
}

// Priority orders work on a node. Lower values go first.
type Priority uint8

const (
	PriorityHigh   Priority = 1
	PriorityNormal Priority = 2 // also what an absent field means
	PriorityLow    Priority = 3
)

// String is the priority's name in task documents.
func (p Priority) String() string {
	switch p {
	case PriorityHigh:
		return "high"
	case PriorityLow:
		return "low"
	}
	return "normal"
}

// ParsePriority reads high, normal or low; the empty string is normal.
func ParsePriority(s string) (Priority, error) {
	switch s {
	case "high":
		return PriorityHigh, nil
	case "", "normal":
		return PriorityNormal, nil
	case "low":
		return PriorityLow, nil
	}
	return 0, fmt.Errorf("priority %q is not one of high, normal, low", clip(s))
}
