package wire

import (
	"fmt"
	"strings"
	"time"
	"unicode/utf8"
)

// FitText makes any text fit a field for people (a detail, a reason, a version):
// bytes that are not UTF-8 become U+FFFD, and what is longer than MaxDetailBytes
// is cut between two characters. Text from outside (a program's output, an
// error) must pass through here, because a message with other text is refused.
func FitText(s string) string {
	return cut(strings.ToValidUTF8(s, "\uFFFD"), MaxDetailBytes)
}

func needRef(what string, seq uint64, t Token) error {
	if seq == 0 {
		return fmt.Errorf("%s: no instruction sequence", what)
	}
	if t.IsZero() {
		return fmt.Errorf("%s of instruction %d: no token", what, seq)
	}
	return nil
}

func needText(what, s string) error {
	if len(s) > MaxDetailBytes {
		return fmt.Errorf("%s is %d bytes long, the limit is %d", what, len(s), MaxDetailBytes)
	}
	if !utf8.ValidString(s) {
		return fmt.Errorf("%s is not UTF-8", what)
	}
	return nil
}

func needRefs(what string, refs []Ref) error {
	if len(refs) > MaxRefs {
		return fmt.Errorf("%s names %d attempts, the limit is %d", what, len(refs), MaxRefs)
	}
	for _, r := range refs {
		if err := needRef(what, r.Seq, r.Token); err != nil {
			return err
		}
	}
	return nil
}

// Validate implements Message.
func (m *Instruction) Validate() error {
	if err := needRef("instruction", m.Seq, m.Token); err != nil {
		return err
	}
	k, err := ParseKey(m.Key)
	if err != nil {
		return err
	}
	if k.Seq != m.Seq {
		return fmt.Errorf("instruction %d has the id %s of another instruction", m.Seq, m.Key)
	}
	if m.Attempt == 0 {
		return fmt.Errorf("instruction %d: attempt 0, they count from 1", m.Seq)
	}
	if err := CheckIntent(m.Intent); err != nil {
		return fmt.Errorf("instruction %d: %w", m.Seq, err)
	}
	if len(m.Args) > MaxArgsBytes {
		return fmt.Errorf("instruction %d: arguments of %d bytes, the limit is %d", m.Seq, len(m.Args), MaxArgsBytes)
	}
	if m.NotAfter < 0 {
		return fmt.Errorf("instruction %d: negative not_after", m.Seq)
	}
	if m.EndsBy < 0 {
		return fmt.Errorf("instruction %d: negative ends_by", m.Seq)
	}
	if m.Priority > PriorityLow {
		return fmt.Errorf("instruction %d: unknown priority %d", m.Seq, m.Priority)
	}
	return needLines(fmt.Sprintf("instruction %d", m.Seq), m.Lines)
}

func needLines(what string, lines []LineKey) error {
	if len(lines) > MaxLines {
		return fmt.Errorf("%s names %d lines, the limit is %d", what, len(lines), MaxLines)
	}
	for _, l := range lines {
		if l == 0 {
			return fmt.Errorf("%s names the line 0, which is none", what)
		}
	}
	return nil
}

// Validate implements Message.
func (m *Cancel) Validate() error {
	if err := needRef("cancel", m.Seq, m.Token); err != nil {
		return err
	}
	return needText("the reason of a cancel", m.Reason)
}

// Validate implements Message.
func (m *Release) Validate() error {
	if m.Seq == 0 {
		return fmt.Errorf("release: no instruction sequence")
	}
	return nil
}

// Validate implements Message.
func (m *SafeNow) Validate() error {
	if err := needRef("safe-now", m.Seq, m.Token); err != nil {
		return err
	}
	if m.NotAfter < 0 {
		return fmt.Errorf("safe-now of instruction %d: negative not_after", m.Seq)
	}
	return needLines(fmt.Sprintf("safe-now of instruction %d", m.Seq), m.Lines)
}

// Validate implements Message.
func (m *Query) Validate() error {
	if len(m.Refs) == 0 {
		return fmt.Errorf("query names no attempt")
	}
	return needRefs("query", m.Refs)
}

// Validate implements Message.
func (m *Welcome) Validate() error {
	if m.Session == 0 {
		return fmt.Errorf("welcome: no session")
	}
	if m.Now <= 0 {
		return fmt.Errorf("welcome: no time")
	}
	if err := needLines("welcome", m.Holds); err != nil {
		return err
	}
	return needText("the reason of a welcome", m.Refused)
}

// Validate implements Message.
func (m *EventAck) Validate() error { return nil }

// Validate implements Message.
func (m *Hello) Validate() error {
	if m.Session == 0 || m.Incarnation == 0 {
		return fmt.Errorf("hello: session and incarnation must be set")
	}
	if err := CheckShort(m.Short); err != nil {
		return fmt.Errorf("hello: %w", err)
	}
	if m.First == 0 || m.Next < m.First {
		return fmt.Errorf("hello: event numbers %d to %d make no range", m.First, m.Next)
	}
	if len(m.Labels) > MaxLabels {
		return fmt.Errorf("hello: %d labels, the limit is %d", len(m.Labels), MaxLabels)
	}
	for k, v := range m.Labels {
		if err := CheckLabel(k, v); err != nil {
			return fmt.Errorf("hello: %w", err)
		}
	}
	if err := needText("the version in a hello", m.Version); err != nil {
		return err
	}
	for _, s := range m.Intents {
		if err := CheckIntent(s); err != nil {
			return fmt.Errorf("hello: %w", err)
		}
	}
	for _, s := range m.Pins {
		if err := CheckPin(s); err != nil {
			return fmt.Errorf("hello: %w", err)
		}
	}
	if len(m.Traits) != 0 && len(m.Traits) != len(m.Pins) {
		return fmt.Errorf("hello: traits of %d pins, and %d pins", len(m.Traits), len(m.Pins))
	}
	for i, p := range m.Traits {
		if p.Line == 0 {
			return fmt.Errorf("hello: pin %s has the line 0, which is none", m.Pins[i])
		}
		if p.MaxOnMs > uint64(MaxMaxOn/time.Millisecond) {
			return fmt.Errorf("hello: pin %s may be on for %d ms, the limit is %d", m.Pins[i], p.MaxOnMs, MaxMaxOn/time.Millisecond)
		}
	}
	for _, k := range m.Actuating {
		if int(k) >= len(m.Intents) {
			return fmt.Errorf("hello: intent %d of %d actuates", k, len(m.Intents))
		}
	}
	return needText("the board in a hello", m.Board)
}

// CheckLabel reports whether key=value may be a label of a node.
func CheckLabel(key, value string) error {
	if err := checkName("label", key, MaxNodeLen); err != nil {
		return err
	}
	if len(value) > MaxNodeLen*2 {
		return fmt.Errorf("label %s: value of %d bytes, the limit is %d", key, len(value), MaxNodeLen*2)
	}
	if !utf8.ValidString(value) {
		return fmt.Errorf("label %s: value %q is not UTF-8", key, value)
	}
	return nil
}

// Validate implements Message.
func (m *Event) Validate() error {
	if m.Number == 0 {
		return fmt.Errorf("event: no number")
	}
	if err := needRef("event", m.Seq, m.Token); err != nil {
		return err
	}
	if m.Attempt == 0 {
		return fmt.Errorf("event %d: attempt 0, they count from 1", m.Number)
	}
	switch m.Phase {
	case PhaseReceived, PhaseStarted, PhaseProgress:
		if m.Code != CodeNone {
			return fmt.Errorf("event %d: a %s event carries the result %s", m.Number, m.Phase, m.Code)
		}
	case PhaseProcessed:
		// An unknown number is a newer agent's code and is let through; progress
		// is not an end.
		if m.Code.Class() == ClassProgress {
			return fmt.Errorf("event %d: a processed event with the code %s", m.Number, m.Code)
		}
	case PhaseLease:
		// An unknown number is a newer agent's reason and is let through.
		if m.Code != CodeNone || m.Lease == 0 {
			return fmt.Errorf("event %d: the end of a lease with the code %s and the reason %s", m.Number, m.Code, m.Lease)
		}
	default:
		return fmt.Errorf("event %d: unknown phase %d", m.Number, m.Phase)
	}
	if m.Lease != 0 && m.Phase != PhaseLease {
		return fmt.Errorf("event %d: a %s event carries the end of a lease", m.Number, m.Phase)
	}
	if m.ReceivedAt < 0 || m.StartedAt < 0 || m.FinishedAt < 0 {
		return fmt.Errorf("event %d: negative time", m.Number)
	}
	if m.Percent > 100 {
		return fmt.Errorf("event %d: progress of %d percent", m.Number, m.Percent)
	}
	if len(m.Payload) > MaxPayloadBytes {
		return fmt.Errorf("event %d: payload of %d bytes, the limit is %d", m.Number, len(m.Payload), MaxPayloadBytes)
	}
	return needText("the detail of an event", m.Detail)
}

// Validate implements Message.
func (m *Heartbeat) Validate() error {
	if m.Session == 0 {
		return fmt.Errorf("heartbeat: no session")
	}
	if len(m.Running) > MaxRefs {
		return fmt.Errorf("heartbeat names %d attempts, the limit is %d", len(m.Running), MaxRefs)
	}
	for _, r := range m.Running {
		if err := needRef("heartbeat", r.Seq, r.Token); err != nil {
			return err
		}
		if r.Percent > 100 {
			return fmt.Errorf("heartbeat: progress of %d percent", r.Percent)
		}
	}
	if len(m.Levels) > MaxArrayElements/4 {
		return fmt.Errorf("heartbeat: levels of %d bytes, the limit is %d", len(m.Levels), MaxArrayElements/4)
	}
	if len(m.Foreign) > MaxForeign {
		return fmt.Errorf("heartbeat names %d foreign outputs, the limit is %d", len(m.Foreign), MaxForeign)
	}
	for _, f := range m.Foreign {
		if err := CheckPin(f.Pin); err != nil {
			return fmt.Errorf("heartbeat: %w", err)
		}
		if f.Commanded > 1 || f.Found > 1 {
			return fmt.Errorf("heartbeat: levels %d and %d of %s, they are 0 or 1", f.Commanded, f.Found, f.Pin)
		}
	}
	return nil
}

// Validate implements Message.
func (m *Report) Validate() error {
	if len(m.States) > MaxRefs {
		return fmt.Errorf("report names %d attempts, the limit is %d", len(m.States), MaxRefs)
	}
	for _, s := range m.States {
		if err := needRef("report", s.Seq, s.Token); err != nil {
			return err
		}
		if s.Status < StatusNever || s.Status > StatusDriven {
			return fmt.Errorf("report of instruction %d: unknown status %d", s.Seq, s.Status)
		}
	}
	return nil
}

// Validate implements Message.
func (m *Digest) Validate() error {
	if m.Session == 0 {
		return fmt.Errorf("digest: no session")
	}
	return nil
}

// Validate implements Message.
func (m *Goodbye) Validate() error {
	if m.Session == 0 {
		return fmt.Errorf("goodbye: no session")
	}
	if err := needText("the reason of a goodbye", m.Reason); err != nil {
		return err
	}
	return needRefs("goodbye", m.Unstarted)
}
