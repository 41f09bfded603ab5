package engine_test

import (
	"strings"
	"testing"
)

// TestQuietHoldsNoLineAgainstNewerWork: in a quiet period what is repeated, and what waited
// while its node was away, is held back, unless something newer waits behind it on its
// line (docs/safety.md 4).
func TestQuietHoldsNoLineAgainstNewerWork(t *testing.T) {
	const hello = "hello a pins=lamp:-,fan:-"
	const quiet = "operate quiet_on for=1h note=x"
	for name, c := range map[string]struct {
		before []string // ends with the quiet period
		// what comes on the same line, on another line, and then on none, and whether
		// instruction 1 goes out in a minute.
		then string
		want bool
	}{
		"resend, nothing behind it":            {[]string{hello + "\nsubmit node=a pin=lamp", quiet}, "", false},
		"resend, something newer behind it":    {[]string{hello + "\nsubmit node=a pin=lamp", quiet}, "submit node=a pin=lamp level=0", true},
		"resend, something on another line":    {[]string{hello + "\nsubmit node=a pin=lamp", quiet}, "submit node=a pin=fan", false},
		"retry, nothing behind it":             {[]string{hello + "\nsubmit node=a pin=lamp retry=3,1s,1s", "event a seq=1 processed busy", quiet}, "", false},
		"retry, something newer behind it":     {[]string{hello + "\nsubmit node=a pin=lamp retry=3,1s,1s", "event a seq=1 processed busy", quiet}, "submit node=a pin=lamp level=0", true},
		"retry, something on another line":     {[]string{hello + "\nsubmit node=a pin=lamp retry=3,1s,1s", "event a seq=1 processed busy", quiet}, "submit node=a pin=fan", false},
		"backlog, nothing behind it":           {[]string{hello, "goodbye a", "submit node=a pin=lamp", quiet, hello}, "", false},
		"backlog, something newer behind it":   {[]string{hello, "goodbye a", "submit node=a pin=lamp", quiet, hello}, "submit node=a pin=lamp level=0", true},
		"backlog, older backlog is no newer":   {[]string{hello, "goodbye a", "submit node=a pin=lamp\nsubmit node=a pin=lamp level=0", quiet, hello}, "", false},
		"backlog, something on another line":   {[]string{hello, "goodbye a", "submit node=a pin=lamp", quiet, hello}, "submit node=a pin=fan", false},
		"backlog, something for all of a node": {[]string{hello, "goodbye a", "submit node=a pin=lamp", quiet, hello}, "submit node=a intent=valve.turn", true},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t)
			for _, b := range c.before {
				h.block(b)
			}
			out := ""
			if c.then != "" {
				out = h.block(c.then)
			}
			out += h.block("advance 40s a")
			if got := strings.Contains(out, "-> send a instruction 1 "); got != c.want {
				t.Errorf("sent: %v\n%s", got, out)
			}
		})
	}
}
