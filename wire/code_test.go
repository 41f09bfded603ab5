package wire_test

import (
	"fmt"
	"regexp"
	"testing"

	"github.com/apollo-11/apollo11/wire"
)

// allCodes are all codes that this version knows.
func allCodes() []wire.Code {
	var out []wire.Code
	for n := range 256 {
		if c := wire.Code(n); c.Class() != wire.ClassInvalid {
			out = append(out, c)
		}
	}
	return out
}

func TestCodesAreCompleteAndUnique(t *testing.T) {
	classes := map[wire.Class][]wire.Code{
		wire.ClassProgress:  {wire.CodeNone, wire.CodeReceived, wire.CodeStarted, wire.CodeNever, wire.CodeDriven},
		wire.ClassSuccess:   {wire.CodeOK},
		wire.ClassCancelled: {wire.CodeCancelled, wire.CodeSuperseded},
		wire.ClassUnknown:   {wire.CodeUnknown, wire.CodeInterrupted},
		wire.ClassRefused: {wire.CodeUnknownIntent, wire.CodeBadArgs, wire.CodeExpired, wire.CodeNoSuchPin,
			wire.CodeNotPermitted, wire.CodeStaleToken, wire.CodeUnsupported, wire.CodeLocal, wire.CodeHeldSafe, wire.CodeMapChanged},
		wire.ClassRetryable: {wire.CodeTimeout, wire.CodeDependency, wire.CodeResources, wire.CodeBusy, wire.CodeIO},
		wire.ClassPermanent: {wire.CodeFailed, wire.CodeInternal},
	}
	class := map[wire.Code]wire.Class{}
	for k, cs := range classes {
		for _, c := range cs {
			class[c] = k
		}
	}
	names := map[string]bool{}
	form := regexp.MustCompile(`^[a-z]+(_[a-z]+)*$`)
	for n := range 256 {
		c := wire.Code(n)
		want, known := class[c]
		if !known {
			if c.Class() != wire.ClassInvalid || c.String() != fmt.Sprintf("code_%d", n) || c.Final() {
				t.Errorf("%d: %s, class %d, final %v", n, c, c.Class(), c.Final())
			}
			continue
		}
		if c.Class() != want || c.Final() != (want != wire.ClassProgress) {
			t.Errorf("%s: class %d, want %d; final %v", c, c.Class(), want, c.Final())
		}
		if names[c.String()] || !form.MatchString(c.String()) {
			t.Errorf("%d has the name %q", n, c)
		}
		names[c.String()] = true
	}
	if len(names) != len(class) {
		t.Errorf("%d names for %d codes", len(names), len(class))
	}
}

// C14: neither an unknown outcome nor a code of a newer agent counts as success
// or failure.
func TestC14_UnknownIsNotSuccessOrFailure(t *testing.T) {
	for n := range 256 {
		c := wire.Code(n)
		if k := c.Class(); k == wire.ClassSuccess && c != wire.CodeOK {
			t.Errorf("%s is a success", c)
		}
	}
	for _, c := range []wire.Code{wire.CodeUnknown, wire.CodeInterrupted} {
		if c.Class() != wire.ClassUnknown || !c.Final() {
			t.Errorf("%s: class %d, final %v", c, c.Class(), c.Final())
		}
	}
}

func TestPhaseNames(t *testing.T) {
	want := []string{"phase_0", "received", "started", "progress", "processed", "lease_ended", "phase_6"}
	for n, s := range want {
		if got := wire.Phase(n).String(); got != s {
			t.Errorf("phase %d is %q, want %q", n, got, s)
		}
	}
}

func TestLeaseEndNames(t *testing.T) {
	want := []string{"end_0", "expired", "replaced", "loss", "stopped", "restart", "failed",
		"local", "reload", "cancelled", "hand", "end_11"}
	for n, s := range want {
		if got := wire.LeaseEnd(n).String(); got != s {
			t.Errorf("end %d is %q, want %q", n, got, s)
		}
	}
}

// What a gateway is told that follows no rules it can read, and nothing of it says
// more than is true: of what has not begun that it has not, of a pin that is not
// known to be safe nothing.
func TestOldGatewaysAreToldWhatTheyCanRead(t *testing.T) {
	old := map[wire.Code]wire.Code{
		wire.CodeSuperseded: wire.CodeCancelled, wire.CodeHeldSafe: wire.CodeNotPermitted,
		wire.CodeMapChanged: wire.CodeNoSuchPin, wire.CodeDriven: wire.CodeStarted,
	}
	for _, c := range allCodes() {
		want, ok := old[c]
		if !ok {
			want = c
		}
		if got := c.OldCode(); got != want || got.Final() != c.Final() {
			t.Errorf("%s is told as %s, want %s", c, got, want)
		}
	}
	ends := map[wire.LeaseEnd]wire.LeaseEnd{
		wire.LeaseLocal: wire.LeaseStopped, wire.LeaseReload: wire.LeaseReplaced,
		wire.LeaseCancelled: wire.LeaseStopped, wire.LeaseHand: wire.LeaseReplaced,
	}
	for e := wire.LeaseExpired; e <= wire.LeaseHand; e++ {
		want, ok := ends[e]
		if !ok {
			want = e
		}
		if got := e.OldLeaseEnd(); got != want {
			t.Errorf("the end %s is told as %s, want %s", e, got, want)
		}
	}
}

// C13: an event says why a lease ended if and only if it tells of that, and it
// carries no result.
func TestC13_OnlyTheEndOfALeaseHasAReason(t *testing.T) {
	for name, tt := range map[string]struct {
		phase wire.Phase
		lease wire.LeaseEnd
		code  wire.Code
		ok    bool
	}{
		"end of a lease":               {wire.PhaseLease, wire.LeaseExpired, wire.CodeNone, true},
		"reason of a newer agent":      {wire.PhaseLease, 99, wire.CodeNone, true},
		"end without a reason":         {wire.PhaseLease, 0, wire.CodeNone, false},
		"end with a result":            {wire.PhaseLease, wire.LeaseExpired, wire.CodeOK, false},
		"result with a reason":         {wire.PhaseProcessed, wire.LeaseExpired, wire.CodeOK, false},
		"progress with a reason":       {wire.PhaseProgress, wire.LeaseExpired, wire.CodeNone, false},
		"a phase that nobody can know": {6, wire.LeaseExpired, wire.CodeNone, false},
	} {
		m := wire.Event{Number: 1, Seq: 1, Token: sampleToken, Attempt: 1, Phase: tt.phase, Lease: tt.lease, Code: tt.code}
		if err := m.Validate(); (err == nil) != tt.ok {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// C15: what a heartbeat says of foreign outputs fits a log and a screen.
func TestC15_ForeignOutputsAreChecked(t *testing.T) {
	many := make([]wire.Foreign, wire.MaxForeign+1)
	for i := range many {
		many[i] = wire.Foreign{Pin: "valve-1", Found: 1}
	}
	for name, tt := range map[string]struct {
		foreign []wire.Foreign
		ok      bool
	}{
		"as many as may be": {many[1:], true},
		"one too many":      {many, false},
		"no name":           {[]wire.Foreign{{Found: 1}}, false},
		"markup (M1)":       {[]wire.Foreign{{Pin: "<b>", Found: 1}}, false},
		"a level of two":    {[]wire.Foreign{{Pin: "valve-1", Found: 2}}, false},
		"commanded two":     {[]wire.Foreign{{Pin: "valve-1", Commanded: 2}}, false},
	} {
		m := wire.Heartbeat{Session: 1, Foreign: tt.foreign}
		if err := m.Validate(); (err == nil) != tt.ok {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestPriorityNames(t *testing.T) {
	for _, p := range []wire.Priority{wire.PriorityHigh, wire.PriorityNormal, wire.PriorityLow} {
		got, err := wire.ParsePriority(p.String())
		if err != nil || got != p {
			t.Errorf("%s was read as %d, %v", p, got, err)
		}
	}
	if p, err := wire.ParsePriority(""); err != nil || p != wire.PriorityNormal || wire.Priority(0).String() != "normal" {
		t.Errorf("an absent priority is %s, %v", p, err)
	}
	for _, s := range []string{"High", "urgent", "1", " high", "\x00"} {
		if p, err := wire.ParsePriority(s); err == nil {
			t.Errorf("%q was read as %s", s, p)
		}
	}
}
